"""Pieces of text that the thread of the turn sends to clients that read quickly, slowly or not at all."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from flask.testing import FlaskClient
from gunicorn.config import Config  # type: ignore[import-untyped]

from bridge.dialects.chat_completions.reply import ChatReply
from bridge.turn import AgentEvent, Stopped, Text
from bridge.web.piece_sender import WRITER, PieceSender
from bridge.web.reply_socket import ReplySocket
from bridge.web.reply_writer import ReplyWriter
from tests.fakes import FakeGateway
from tests.waiting import SOON, turns_have_ended, until

BODY = {"model": "Ada", "stream": True, "messages": [{"role": "user", "content": "Write."}]}


class NotedWriter(ReplyWriter):
    """Notes which pieces which thread writes."""

    def __init__(self, connection: ReplySocket) -> None:
        super().__init__(
            SimpleNamespace(method="POST", version=(1, 1), should_close=lambda: False), connection, Config()
        )
        self.by_request: list[bytes] = []
        self.by_turn: list[bytes] = []

    def write(self, arg: bytes) -> None:
        self.by_request.append(arg)
        super().write(arg)

    def write_at_once(self, piece: bytes) -> bool:
        self.by_turn.append(piece)
        return super().write_at_once(piece)


@dataclass
class Exchange:
    """A request for a stream, served as the worker does. `theirs` is the client's end of the connection."""

    client: FlaskClient
    ours: ReplySocket
    theirs: socket.socket
    writer: NotedWriter
    fault: BaseException | None = None

    def begin(self) -> threading.Thread:
        serving = threading.Thread(target=self._serve)
        serving.start()
        return serving

    def _serve(self) -> None:
        overrides: dict[str, Any] = {"gunicorn.socket": self.ours, WRITER: self.writer}
        response = self.client.post("/v1/chat/completions", json=BODY, environ_overrides=overrides)
        self.writer.start_response(response.status, [*response.headers])
        frames = iter(response.iter_encoded())
        try:
            for frame in frames:
                self.writer.write(frame)
            self.writer.close()
        except OSError as fault:
            self.fault = fault
        finally:
            frames.close()  # type: ignore[attr-defined]
            response.close()

    def read(self) -> bytes:
        """What comes until the end of the reply."""
        got = b""
        while not got.endswith(b"\r\n0\r\n\r\n"):
            piece = self.theirs.recv(1 << 16)
            assert piece, got[-200:]
            got += piece
        return got


@pytest.fixture
def exchange(client: FlaskClient) -> Iterator[Exchange]:
    accepted, theirs = socket.socketpair()
    theirs.settimeout(SOON)
    with ReplySocket(accepted) as ours, theirs:
        yield Exchange(client, ours, theirs, NotedWriter(ours))
        until(turns_have_ended)


def unframed(reply: bytes) -> bytes:
    """Returns the body of a reply in chunks, and checks their lengths."""
    rest, body = reply.partition(b"\r\n\r\n")[2], b""
    while rest != b"0\r\n\r\n":
        length, _, rest = rest.partition(b"\r\n")
        size = int(length, 16)
        assert size > 0
        assert rest[size : size + 2] == b"\r\n"
        body, rest = body + rest[:size], rest[size + 2 :]
    return body


def texts(body: bytes) -> list[str]:
    chunks = [json.loads(line) for line in re.findall(rb"^data: ({.*)$", body, re.M)]
    found = [choice["delta"].get("content") for chunk in chunks for choice in chunk.get("choices", [])]
    return [text for text in found if text]


def slowly(events: list[AgentEvent], exchange: Exchange) -> Iterator[AgentEvent | Callable[[], object]]:
    """Yields each event when all before it were written, so that the thread of the request sleeps by then."""
    for number, event in enumerate(events):
        yield lambda number=number: until(lambda: written_texts(exchange.writer) >= number)
        yield event


def written_texts(writer: NotedWriter) -> int:
    return len(texts(b"".join([*writer.by_request, *writer.by_turn])))


def test_the_thread_of_the_turn_sends_all_pieces_but_the_first(exchange: Exchange, letta: FakeGateway) -> None:
    pieces: list[AgentEvent] = [Text(f"word {number} ") for number in range(20)]
    letta.will(*slowly(pieces, exchange), Stopped("end_turn"))
    serving = exchange.begin()
    body = unframed(exchange.read())
    serving.join(SOON)
    assert texts(body) == [f"word {number} " for number in range(20)]
    assert body.endswith(b"data: [DONE]\n\n")
    sent = texts(b"".join(exchange.writer.by_turn))
    assert len(sent) >= 15, "the thread of the request may be awake now and then"
    assert exchange.fault is None


def test_nothing_is_lost_for_a_client_that_reads_slowly(exchange: Exchange, letta: FakeGateway) -> None:
    exchange.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    pieces: list[AgentEvent] = [Text(f"{number} " + "long " * 200) for number in range(300)]
    done = threading.Event()
    letta.will(*pieces, done.set, Stopped("end_turn"))
    serving = exchange.begin()
    assert done.wait(SOON), "the turn must not wait for the client"
    body = unframed(exchange.read())
    serving.join(SOON)
    assert [int(text.split()[0]) for text in texts(body)] == list(range(300))
    assert exchange.fault is None


@pytest.mark.fault("clients that hang up")
def test_a_client_that_leaves_while_the_turn_sends_stops_the_run(exchange: Exchange, letta: FakeGateway) -> None:
    gone = threading.Event()
    pieces: list[AgentEvent] = [Text("word ") for _ in range(5)]
    letta.will(*pieces, lambda: gone.wait(SOON), *pieces, lambda: until(lambda: letta.cancelled), Stopped("end_turn"))
    serving = exchange.begin()
    until(lambda: written_texts(exchange.writer) == 5)
    exchange.theirs.close()
    gone.set()
    serving.join(SOON)
    assert not serving.is_alive()
    assert len(letta.cancelled) == 1


def test_a_fault_while_frames_are_made_ends_the_reply_but_not_the_turn(
    exchange: Exchange, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ChatReply.frames

    def frames(self: ChatReply, event: AgentEvent) -> Any:
        if event == Text("three"):
            raise ZeroDivisionError
        return whole(self, event)

    monkeypatch.setattr(ChatReply, "frames", frames)
    done = threading.Event()
    pieces: list[AgentEvent] = [Text("one"), Text("two"), Text("three"), Text("four")]
    letta.will(*slowly(pieces[:3], exchange), pieces[3], done.set, Stopped("end_turn"))
    serving = exchange.begin()
    body = unframed(exchange.read())
    serving.join(SOON)
    assert texts(body) == ["one", "two"]
    assert b'"error"' in body
    assert b"[DONE]" not in body
    assert done.wait(SOON)


def test_pieces_without_frames_do_not_count_as_sent() -> None:
    """Otherwise a long message that is sent as a whole would have no comment that keeps its stream open."""
    reply = SimpleNamespace(frames=lambda piece: [piece.text.encode()] if piece.text else [])
    writer, sends = SimpleNamespace(write_at_once=lambda frames: True), list[Callable[[Any], bool]]()
    sender = PieceSender(cast(Any, reply), {WRITER: writer})
    sender.begin(cast(Any, SimpleNamespace(let_others_send=sends.append)))
    (send,) = sends
    assert send([Text("")])
    assert not sender.has_sent()
    assert send([Text("a"), Text("")])
    assert send([Text("")])
    assert (sender.has_sent(), sender.has_sent()) == (True, False)
