"""Folds a stream of Letta's own API into what an unstreamed reply has. Checks both by letta-client's types."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from bridge import sse
from tests.letta_checker import check_answer, check_event
from tests.sse_checker import Json


@dataclass
class LettaReply:
    """What a reply says. `pieces` are the events of a stream as they came, without those that end it."""

    messages: list[Json]
    stop_reason: str
    usage: Json
    pieces: list[Json] = field(default_factory=list)
    failure: Json | None = None
    pings: int = 0

    def of(self, kind: str) -> list[Json]:
        return [message for message in self.messages if message["message_type"] == kind]

    @property
    def text(self) -> str:
        return "".join(message["content"] for message in self.of("assistant_message"))

    @property
    def calls(self) -> list[Json]:
        return [call for message in self.of("approval_request_message") for call in message["tool_calls"]]

    @property
    def comparable(self) -> tuple[list[Json], str, Json]:
        """What must be the same with and without a stream: all but times and the echo, which has a new id."""
        known = [{**message, "date": ""} for message in self.messages if message["message_type"] != "ping"]
        return (
            [message for message in known if message["message_type"] != "tool_return_message"],
            self.stop_reason,
            (self.usage),
        )


def read_whole(body: Json) -> LettaReply:
    check_answer(body)
    return LettaReply(body["messages"], body["stop_reason"]["stop_reason"], body["usage"])


def read_stream(content: bytes) -> LettaReply:
    """Checks the order of events: messages, the stop reason, the usage or an error, and the mark of the end."""
    events = list(sse.decode_events([content]))
    assert events[-1] == ("", sse.DONE), events[-1:]
    said = [(name, json.loads(data)) for name, data in events[:-1]]
    failure = None
    if said[-1][0] == "error":
        failure = said.pop()[1]
        check_event(failure)
    assert all(name == "" for name, _ in said)
    values = [value for _, value in said]
    usage = {} if failure else values.pop()
    stop_reason = values.pop()
    assert stop_reason["message_type"] == "stop_reason"
    assert failure is not None or usage["message_type"] == "usage_statistics"
    for value in [*values, stop_reason, *([usage] if usage else [])]:
        check_event(value)
    pieces = [value for value in values if value["message_type"] != "ping"]
    pings = len(values) - len(pieces)
    return LettaReply(_fold(pieces), stop_reason["stop_reason"], usage, pieces, failure, pings)


def _fold(pieces: list[Json]) -> list[Json]:
    """Joins pieces of the same message as Letta's programs do: texts by id, calls by their own ids."""
    messages: list[Json] = []
    for piece in pieces:
        kind, last = piece["message_type"], messages[-1] if messages else None
        is_same = last is not None and (last["message_type"], last["id"]) == (kind, piece["id"])
        if kind == "approval_request_message":
            if last is None or not is_same:
                last = {**piece, "tool_calls": []}
                messages.append(last)
            _add_calls(last["tool_calls"], piece)
            last["tool_call"] = last["tool_calls"][0]
        elif last is not None and is_same and kind in ("assistant_message", "reasoning_message"):
            text = "content" if kind == "assistant_message" else "reasoning"
            last[text] += piece[text]
        else:
            messages.append(dict(piece))
    return messages


def _add_calls(calls: list[Json], piece: Json) -> None:
    listed = piece["tool_calls"] if isinstance(piece["tool_calls"], list) else [piece["tool_call"]]
    for part in listed:
        call = next((one for one in calls if one["tool_call_id"] == part["tool_call_id"]), None)
        if call is None:
            calls.append({"name": "", "arguments": "", "tool_call_id": part["tool_call_id"]})
            call = calls[-1]
        call["name"] = part["name"] or call["name"]
        call["arguments"] += part["arguments"] or ""
