"""Reads replies of the Responses API and checks everything that clients rely on: OpenAI's types, and the order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.described import check_described
from tests.sse_checker import Json

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
# The keys that every response has, whatever its state.
_KEYS = (
    "id object created_at completed_at status background error incomplete_details instructions max_output_tokens",
    "max_tool_calls model output parallel_tool_calls previous_response_id prompt_cache_key reasoning metadata",
    "safety_identifier service_tier store temperature text tool_choice tools top_logprobs top_p presence_penalty",
    "frequency_penalty truncation usage user",
)
KEYS = frozenset(" ".join(_KEYS).split())
# OpenAI's servers send this code, and clients know it. OpenAI's types do not have it.
UNLISTED_CODE = "context_length_exceeded"
_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
# What each kind of item sends while it arrives: the opening of a part, its deltas, their end, the end of the part.
_ARRIVES = {
    "message": ("content_part.added", "output_text.delta", "output_text.done", "content_part.done"),
    "reasoning": (
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
    ),
    "function_call": ("", "function_call_arguments.delta", "function_call_arguments.done", ""),
    "custom_tool_call": ("", "custom_tool_call_input.delta", "custom_tool_call_input.done", ""),
}
_PLACES = {"message": "content_index", "reasoning": "summary_index"}


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A streamed response. `pings` counts the times that it said again that it is in progress."""

    events: tuple[Json, ...]
    response: Json
    comments: tuple[str, ...]

    @property
    def pings(self) -> int:
        return sum(event["type"] == "response.in_progress" for event in self.events) - 1


def read_response_stream(body: bytes) -> StreamedResponse:
    """Returns the response, or raises an AssertionError that says which rule it breaks."""
    frames = [frame for frame in body.decode().split("\n\n") if frame]
    assert body.endswith(b"\n\n"), "a stream ends with a whole event"
    comments = tuple(frame[2:] for frame in frames if frame.startswith(": "))
    events = tuple(_event(frame) for frame in frames if not frame.startswith(": "))
    assert [event["sequence_number"] for event in events] == [*range(len(events))], "numbers begin at 0, without gaps"
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    *before, last = events
    assert [event["type"] for event in before if event["type"] in TERMINAL] == []
    assert last["type"] in TERMINAL, "a stream ends with what became of the response"
    response = last["response"]
    assert last["type"] == f"response.{response['status']}"
    heads = {(event["response"]["id"], event["response"]["created_at"]) for event in events if "response" in event}
    assert len(heads) == 1, "all events are of one response"
    for event in events:
        if "response" in event:
            check_response(event["response"])
    done = list(_check_items([event for event in events if "response" not in event], response["status"]))
    assert response["output"][: len(done)] == done, "the response has the items of its stream"
    assert response["status"] == "failed" or len(response["output"]) == len(done)
    return StreamedResponse(events, response, comments)


def check_response(response: Mapping[str, Any]) -> None:
    """Checks a response by the openai package's type, and rules that the type does not have."""
    Response.model_validate_json(json.dumps(response).replace(UNLISTED_CODE, "server_error"), strict=True)
    assert response.keys() >= KEYS
    check_described("Response", response)
    ids = [item["id"] for item in response["output"]]
    assert len(ids) == len(set(ids)), "each item has an id of its own"
    for item, prefix in zip(response["output"], map(_prefix, response["output"]), strict=True):
        assert item["id"].startswith(prefix)
        assert len(item["id"]) <= 64
    if response["status"] in ("completed", "incomplete"):
        assert response["usage"] is not None


def _prefix(item: Json) -> str:
    return {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}[item["type"]]


def _event(frame: str) -> Json:
    name, _, data = frame.partition("\n")
    assert name.startswith("event: ")
    assert data.startswith("data: ")
    _EVENT.validate_json(data.removeprefix("data: ").replace(UNLISTED_CODE, "server_error"), strict=True)
    event: Json = json.loads(data.removeprefix("data: "))
    assert event["type"] == name.removeprefix("event: "), "the name of an event is its type"
    check_described("ResponseEvent", event)
    return event


def _check_items(events: list[Json], status: str) -> Iterator[Json]:
    """Yields the finished items. The last one is unfinished if the response failed."""
    waiting = iter(events)
    for place, added in enumerate(waiting):
        assert (added["type"], added["output_index"]) == ("response.output_item.added", place)
        item = added["item"]
        opening, deltas, end, closing = (name and f"response.{name}" for name in _ARRIVES[item["type"]])
        text, expected = "", [opening] if opening else [deltas]
        for event in waiting:
            kind = event["type"]
            if kind == "response.output_item.done":
                assert expected == []
                assert event["output_index"] == place
                assert event["item"]["id"] == item["id"]
                assert _text_of(event["item"]) == text
                yield event["item"]
                break
            assert kind in expected
            assert (event["item_id"], event["output_index"]) == (item["id"], place)
            if item["type"] in _PLACES:
                assert event[_PLACES[item["type"]]] == 0
            if kind == deltas:
                text += event["delta"]
                expected = [deltas, end]
            elif kind == opening:
                expected = [deltas]
            elif kind == end:
                assert next(event[name] for name in ("text", "arguments", "input") if name in event) == text
                expected = [closing] if closing else []
            else:
                assert event["part"]["text"] == text
                expected = []
        else:
            assert status == "failed", "an item that began ends"


def _text_of(item: Json) -> str:
    if item["type"] == "message":
        return "".join(part["text"] for part in item["content"])
    if item["type"] == "reasoning":
        return "".join(part["text"] for part in item["summary"])
    return str(item["arguments"] if item["type"] == "function_call" else item["input"])
