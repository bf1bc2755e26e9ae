"""A client that waits for a turn gets the answer as it comes, and may leave at any moment."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from bridge import errors
from bridge.conversation import Conversation
from bridge.turn import AgentEvent, MethodChosen, Notice, Stopped, Text, TurnEvent
from bridge.web import listener as module
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.log_lines import whole_log
from tests.sse_checker import check_error
from tests.waiting import SOON

Quiet = Callable[..., tuple[Iterator[bytes], threading.Event]]


def open_stream(client: FlaskClient, connection: socket.socket | None = None, **fields: Any) -> Any:
    body = {"model": "Ada", "stream": True, "messages": [{"role": "user", "content": "Hi"}], **fields}
    overrides = {} if connection is None else {"gunicorn.socket": connection}
    response = client.post("/v1/chat/completions", json=body, environ_overrides=overrides)
    assert response.status_code == 200
    return response.iter_encoded()


def test_deltas_are_sent_as_they_come(client: FlaskClient, letta: FakeGateway) -> None:
    go_on = threading.Event()
    letta.will(Text("Hel"), lambda: go_on.wait(SOON), Text("lo"), Stopped("end_turn"))
    frames = open_stream(client)
    assert b'"Hel"' in next(frames)
    go_on.set()
    assert b'"lo"' in next(frames)


@pytest.fixture
def short_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK", 0.001)


@pytest.fixture
def fields() -> dict[str, Any]:
    """More fields of the request. A test may set them before it opens a stream."""
    return {}


@pytest.fixture
def quiet(
    short_tick: None,
    parameters: dict[str, Any],
    fields: dict[str, Any],
    letta: FakeGateway,
    request: pytest.FixtureRequest,
) -> Quiet:
    """Opens a stream whose headers are sent at once. The agent says nothing until the event is set."""

    def opened(ping_interval: float, *events: AgentEvent | Exception) -> tuple[Iterator[bytes], threading.Event]:
        parameters.update(ping_interval=ping_interval, header_wait=0.0)
        go_on = threading.Event()
        letta.will(lambda: go_on.wait(SOON), *events)
        return open_stream(request.getfixturevalue("client"), **fields), go_on

    return opened


def test_a_quiet_stream_is_kept_open_by_comments(quiet: Quiet) -> None:
    frames, go_on = quiet(0.1, Text("Hello"), Stopped("end_turn"))
    assert [next(frames), next(frames)] == [b": ping\n\n", b": ping\n\n"]
    go_on.set()
    assert b"Hello" in next(frame for frame in frames if frame != b": ping\n\n")


def test_the_first_silence_of_a_stream_has_a_comment_at_once(quiet: Quiet) -> None:
    frames, go_on = quiet(25, Text("Hello"), Stopped("end_turn"))
    assert next(frames) == b": ping\n\n"
    go_on.set()
    assert b"Hello" in next(frames)


def test_a_failure_after_the_headers_were_sent_is_an_error_event(quiet: Quiet) -> None:
    frames, go_on = quiet(0.1, errors.LettaUnreachable("It broke."))
    assert next(frames) == b": ping\n\n"
    go_on.set()
    *_, last = frames
    assert check_error(json.loads(last.removeprefix(b"data: ")))["message"] == "It broke."


def test_a_stream_says_whether_its_text_has_the_wanted_form_where_the_headers_were_sent_before(
    quiet: Quiet, fields: dict[str, Any]
) -> None:
    fields["response_format"] = {"type": "json_object"}
    frames, go_on = quiet(25, Text("Here: {}"), Stopped("end_turn"))
    assert next(frames) == b": ping\n\n"
    go_on.set()
    assert next(frames) == b": X-Bridge-Format: valid\n\n"
    assert b'"content":"{}"' in next(frames)


# --- notices ------------------------------------------------------------------------------------------------


@pytest.fixture
def happens(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes these the events of every turn. A failure among them is raised."""

    def set_events(*events: TurnEvent | errors.BridgeError) -> None:
        def made(*_: object) -> Iterator[TurnEvent]:
            for event in events:
                if isinstance(event, errors.BridgeError):
                    raise event
                yield event

        monkeypatch.setattr(Conversation, "events", made)

    return set_events


ANSWER = (MethodChosen("native"), Text("Hello"), Stopped("end_turn"))


def test_a_notice_is_a_comment_of_one_line_in_a_stream(chat: Chat, happens: Callable[..., None]) -> None:
    happens(Notice("waiting for\nanother turn"), *ANSWER)
    reply = chat.ask(stream=True)
    assert reply.text == "Hello"
    assert reply.streamed is not None
    assert reply.streamed.comments == ("waiting for another turn",)
    assert reply.headers["X-Bridge-Method"] == "native"


def test_a_notice_is_not_in_a_whole_reply(chat: Chat, happens: Callable[..., None]) -> None:
    happens(Notice("waiting for another turn"), *ANSWER)
    reply = chat.ask()
    assert reply.text == "Hello"
    assert "waiting" not in str(reply.message)


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_after_a_notice_has_its_own_status(chat: Chat, happens: Callable[..., None], stream: bool) -> None:
    happens(Notice("waiting for another turn"), errors.Busy("The agent is busy.", retry_after=5))
    reply = chat.ask(stream=stream)
    assert (reply.status, reply.headers["Retry-After"]) == (429, "5")


@pytest.mark.fault("clients that hang up")
@pytest.mark.usefixtures("short_tick")
def test_a_client_that_hangs_up_ends_its_stream_but_not_the_turn(client: FlaskClient, letta: FakeGateway) -> None:
    go_on, done = threading.Event(), threading.Event()
    letta.will(Text("Hel"), lambda: go_on.wait(SOON), Text("lo"), done.set, Stopped("end_turn"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames = open_stream(client, ours)
        assert b"Hel" in next(frames)
        theirs.close()
        assert list(frames) == []
    go_on.set()
    assert done.wait(SOON)


@pytest.mark.fault("clients that hang up")
def test_a_client_that_hangs_up_when_the_first_words_come_has_not_stopped_the_answer(
    client: FlaskClient, chat: Chat, letta: FakeGateway
) -> None:
    """For a moment, a write to a connection that the client has closed succeeds."""
    go_on = threading.Event()
    ours, theirs = socket.socketpair()
    letta.will(theirs.close, Text("Hel"), lambda: go_on.wait(SOON), Text("lo"), Stopped("end_turn"))
    with ours:
        assert list(open_stream(client, ours)) == []
    assert letta.cancelled == []
    go_on.set()
    assert chat.ask("Hi", stream=True, usage=False).text == "Hello"
    assert len(letta.prompts) == 1


@pytest.mark.fault("clients that hang up")
@pytest.mark.usefixtures("short_tick")
def test_a_client_that_hangs_up_in_the_middle_of_the_answer_stops_the_run(
    client: FlaskClient, letta: FakeGateway
) -> None:
    go_on = threading.Event()
    letta.will(Text("Hel"), lambda: go_on.wait(SOON), Text("lo"), Stopped("end_turn"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames = open_stream(client, ours)
        assert b"Hel" in next(frames)
        theirs.close()
        assert list(frames) == []
    assert len(letta.cancelled) == 1
    go_on.set()


@pytest.mark.fault("clients that hang up")
@pytest.mark.usefixtures("short_tick")
def test_a_client_that_hangs_up_frees_the_worker_that_held_its_answer(
    client: FlaskClient, letta: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    letta.will(lambda: go_on.wait(SOON), Text("Hello"), Stopped("end_turn"))
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        body = {"model": "Ada", "messages": [{"role": "user", "content": "Hi"}]}
        response = client.post("/v1/chat/completions", json=body, environ_overrides={"gunicorn.socket": ours})
    go_on.set()
    assert response.status_code == 499
    assert "client_gone" in whole_log(caplog)


@pytest.mark.fault("clients that hang up")
def test_a_client_that_hangs_up_before_the_end_of_a_quick_answer_gets_it_when_it_comes_back(
    client: FlaskClient, chat: Chat, letta: FakeGateway
) -> None:
    """For a moment, a write to a connection that the client has closed succeeds."""
    ours, theirs = socket.socketpair()
    with ours:
        frames = open_stream(client, ours)
        theirs.close()
        assert b"[DONE]" not in b"".join(frames)
    assert chat.ask("Hi", stream=True, usage=False).text == "You said: Hi"
    assert len(letta.prompts) == 1
