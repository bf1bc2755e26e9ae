"""Reads answers of Letta's own API and checks everything that clients rely on: letta-client's types, and the order.

A field that its types do not have fails as well as one with a wrong value, and so do values that it would convert.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from letta_client.types.agents import LettaResponse, LettaStreamingResponse
from letta_client.types.agents import Message as LettaMessage
from pydantic import BaseModel

from tests.sse_checker import Json

TAIL = ("stop_reason", "usage_statistics")
DONE = "[DONE]"


def check_answer(body: Json) -> None:
    """Checks an answer that is not a stream."""
    assert not _surplus(LettaResponse.model_validate_json(json.dumps(body), strict=True))
    for message in body["messages"]:
        _check_row(message, MESSAGES)
        if message["message_type"] == "approval_request_message":
            assert message["tool_calls"][0] == message["tool_call"], (
                "a whole request has all calls, and the first alone"
            )
            assert all(call["name"] and json.loads(call["arguments"]) is not None for call in message["tool_calls"])
    _check_end(body["messages"], body["stop_reason"]["stop_reason"])


def read_events(body: bytes) -> list[Json]:
    """Returns the events of a stream that ended well, without pings."""
    assert body.endswith(b"\n\n"), "a stream ends with a whole event"
    frames = [frame for frame in body.decode().split("\n\n") if frame]
    assert [frame for frame in frames if not frame.startswith("data: ")] == [], "events have no names"
    *values, done = [frame.removeprefix("data: ") for frame in frames]
    assert done == DONE
    events: list[Json] = [json.loads(value) for value in values]
    for event in events:
        check_event(event)
    said = [event for event in events if event["message_type"] != "ping"]
    assert tuple(event["message_type"] for event in said[-2:]) == TAIL
    assert not [event for event in said[:-2] if event["message_type"] in TAIL]
    _check_end(said[:-2], said[-2]["stop_reason"])
    return said


def calls_of(messages: list[Json]) -> dict[str, tuple[str, str]]:
    """Returns name and arguments of each call that waits for the client, by its id, also from the parts of a stream."""
    calls: dict[str, tuple[str, str]] = {}
    for message in messages:
        if message["message_type"] == "approval_request_message":
            many = message.get("tool_calls")
            for call in many if isinstance(many, list) else [message["tool_call"]]:
                name, arguments = calls.get(call["tool_call_id"], ("", ""))
                calls[call["tool_call_id"]] = name + (call["name"] or ""), arguments + (call["arguments"] or "")
    return calls


def check_event(event: Json) -> None:
    """Checks one event of a stream."""
    _check_row(event, EVENTS)


def _check_row(row: Json, kinds: Mapping[str, type[BaseModel]]) -> None:
    """Chooses the type by the row's `message_type`: one row may fit several of the union's types."""
    found = kinds[row["message_type"]].model_validate_json(json.dumps(row), strict=True)
    assert not _surplus(found), f"{row['message_type']} has no fields {_surplus(found)}"


def _check_end(messages: list[Json], stop_reason: str) -> None:
    ends_open = bool(messages) and messages[-1]["message_type"] == "approval_request_message"
    assert stop_reason == ("requires_approval" if ends_open else "end_turn")


def _surplus(value: Any) -> list[str]:
    """Returns the fields that the types do not have. The models of letta-client keep them without complaint."""
    if isinstance(value, list):
        return [name for one in value for name in _surplus(one)]
    if not isinstance(value, BaseModel):
        return []
    inner = (name for field in type(value).model_fields for name in _surplus(getattr(value, field)))
    return [*(value.model_extra or {}), *inner]


def _kinds(union: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    for kind in get_args(_bare(union)):
        model = _bare(kind)
        yield _word(model.model_fields["message_type"].annotation), model


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


def _word(annotation: Any) -> str:
    """Returns the word of `Literal["word"]` or of `Optional[Literal["word"]]`."""
    literal = annotation if get_origin(annotation) is Literal else get_args(annotation)[0]
    (word,) = get_args(literal)
    return str(word)


MESSAGES = dict(_kinds(LettaMessage))
EVENTS = dict(_kinds(LettaStreamingResponse))
