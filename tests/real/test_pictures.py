"""Pictures in messages reach the agent's model."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest

from tests.real.talk import tool
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.one_type]


def png() -> str:
    """Returns a picture of one red pixel, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()


def test_the_model_sees_the_picture(world: World, agent: Agent, stream: bool) -> None:
    url = f"data:image/png;base64,{png()}"
    content = [{"type": "text", "text": "!say I see"}, {"type": "image_url", "image_url": {"url": url}}]
    reply = agent.ask(messages=[{"role": "user", "content": content}], stream=stream)
    if not world.at_least("0.8.0"):
        assert reply.status == 400
        return
    assert reply.text == "I see"
    shown = world.model.last_request().messages[-1]["content"]
    assert [part["type"] for part in shown] == ["text", "image_url"]
    assert shown[1]["image_url"]["url"] == url
    assert agent.ask("!say still here").text == "still here"


@pytest.mark.two_servers
def test_the_model_sees_pictures_of_earlier_messages_in_a_request_aside(world: World, agent: Agent) -> None:
    url = f"data:image/png;base64,{png()}"
    look = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    called = {"id": "call_1", "type": "function", "function": {"name": "zoom", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": look},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "call_1", "content": look},
        {"role": "assistant", "content": "A red dot."},
        {"role": "user", "content": "!say I see"},
    ]
    reply = agent.ask(messages=messages, tools=[tool("zoom")], model=f"{agent.name}:aside")
    if not world.at_least("0.8.0"):
        assert reply.status == 400
        return
    assert reply.text == "I see"
    shown = [message["content"] for message in world.model.last_request().messages]
    parts = [content for content in shown if isinstance(content, list)]
    assert [[part["type"] for part in one] for one in parts] == [["text", "image_url"]] * 2
    assert [one[1]["image_url"]["url"] for one in parts] == [url] * 2
