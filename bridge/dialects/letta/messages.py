"""Makes the messages of Letta's own API from an agent's events: whole ones, or the pieces of a stream by token."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, assert_never

from bridge.dialects.letta.answers import GivenAnswer
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    FormatChecked,
    JsonObject,
    MethodChosen,
    Notice,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    Used,
)


class Messages:
    """The messages of one reply, in the order of the events. `by_token`: text and calls come in pieces. Otherwise a
    message is complete when an event of another message comes, or at `close`.
    """

    def __init__(self, *, by_token: bool) -> None:
        self.stop_reason = "end_turn"
        self.used = Used(0, 0)
        self.has_calls = False
        self._by_token = by_token
        self.run_id = ""
        self._open: dict[str, Any] | None = None
        self._own_calls: set[str] = set()

    def messages_for(self, event: AgentEvent) -> list[JsonObject]:
        """Returns the messages that are complete with this event, or its piece of a message; often none."""
        match event:
            case Text(text, item_id):
                return self._add_piece("assistant_message", item_id, "content", text)
            case Reasoning(text, item_id):
                return self._add_piece("reasoning_message", item_id, "reasoning", text)
            case ToolCall():
                return self._add_call(event)
            case AgentCall() if not event.held:
                self._own_calls.add(event.call_id)
                return [*self.close(), self._own_call(event)]
            case AgentReturn() if event.call_id in self._own_calls:
                return [*self.close(), self._own_return(event)]
            case _:
                self._note(event)
                return []

    def _note(
        self, event: AgentCall | AgentReturn | RunStarted | Used | Stopped | MethodChosen | Notice | FormatChecked
    ) -> None:
        """Keeps what later messages say of the run. Calls and returns of client tools have no messages of their own."""
        match event:
            case RunStarted(run_id):
                self.run_id = run_id
            case Used():
                self.used = event
            case Stopped(reason):
                self.stop_reason = reason
            case MethodChosen() | Notice() | FormatChecked() | AgentCall() | AgentReturn():
                pass
            case _:
                assert_never(event)

    def close(self) -> list[JsonObject]:
        """Returns the message that was not complete until now, if any."""
        last, self._open = self._open, None
        return [] if last is None else [last]

    def echo(self, answers: Sequence[GivenAnswer]) -> list[JsonObject]:
        """Returns the message with which Letta repeats the client's answers, none without answers."""
        if not answers:
            return []
        returns = [_return_fields(one.result.text, one.result.is_error, one.result.call_id, one) for one in answers]
        first, _ = CALL_IDS.message_and_index(answers[0].result.call_id) or (_new_id("message"), 0)
        listed = [{"type": "tool", **fields} for fields in returns]
        return [{**self._fields("tool_return_message", first), **returns[0], "tool_returns": listed}]

    def ping(self) -> JsonObject:
        return self._fields("ping", _new_id("ping"))

    def last_messages(self) -> list[JsonObject]:
        """Returns the stop reason and the usage, which end each reply."""
        good = "requires_approval" if self.has_calls else "end_turn"
        reason = good if self.stop_reason in _GOOD_ENDS else self.stop_reason
        return [{"message_type": "stop_reason", "stop_reason": reason}, self._usage()]

    def _add_piece(self, kind: str, item_id: str, field: str, text: str) -> list[JsonObject]:
        if self._by_token:
            return [self._text_message(kind, item_id, field, text)]
        if self._open is not None and (self._open["message_type"], self._open["id"]) == (kind, item_id):
            self._open[field] += text
            return []
        done = self.close()
        self._open = self._text_message(kind, item_id, field, text)
        return done

    def _text_message(self, kind: str, item_id: str, field: str, text: str) -> dict[str, Any]:
        more = {"source": "reasoner_model", "signature": None} if kind == "reasoning_message" else {}
        return {**self._fields(kind, item_id), **more, field: text}

    def _add_call(self, call: ToolCall) -> list[JsonObject]:
        """Adds a call of a client's tool. Calls of one step are in one message."""
        self.has_calls = True
        message_id, _ = CALL_IDS.message_and_index(call.id) or (call.id, 0)
        if self._by_token:
            pieces = ((call.name, None), (None, call.arguments))
            return [self._request_piece(message_id, call.id, name, arguments) for name, arguments in pieces]
        described = _call_fields(call.id, call.name, call.arguments)
        if self._open is not None and (self._open["message_type"], self._open["id"]) == (_REQUEST, message_id):
            self._open["tool_calls"].append(described)
            return []
        done = self.close()
        self._open = {**self._fields(_REQUEST, message_id), "tool_call": described, "tool_calls": [described]}
        return done

    def _request_piece(self, message_id: str, call_id: str, name: str | None, arguments: str | None) -> JsonObject:
        """Returns a piece of a call. There, Letta's `tool_calls` is not a list but the piece again."""
        piece = _call_fields(call_id, name, arguments)
        return {**self._fields(_REQUEST, message_id), "tool_call": piece, "tool_calls": piece}

    def _own_call(self, call: AgentCall) -> JsonObject:
        described = _call_fields(call.call_id, call.name, call.arguments)
        message = self._fields("tool_call_message", call.message_id)
        return {**message, "tool_call": described, "tool_calls": [described]}

    def _own_return(self, returned: AgentReturn) -> JsonObject:
        fields = _return_fields(returned.text, not returned.ok, returned.call_id)
        message = self._fields("tool_return_message", returned.message_id)
        return {**message, **fields, "tool_returns": [{"type": "tool", **fields}]}

    def _fields(self, kind: str, message_id: str) -> dict[str, Any]:
        """Returns the fields that all messages have. `otid` names a message, too: clients join pieces by either."""
        message_id = message_id or _new_id("message")
        return {
            "id": message_id,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "name": None,
            "message_type": kind,
            "otid": None if kind == "ping" else message_id,
            "sender_id": None,
            "step_id": None,
            "is_err": None,
            "seq_id": None,
            "run_id": self.run_id or None,
        }

    def _usage(self) -> JsonObject:
        total = self.used.prompt_tokens + self.used.completion_tokens
        return {
            "message_type": "usage_statistics",
            "completion_tokens": self.used.completion_tokens,
            "prompt_tokens": self.used.prompt_tokens,
            "total_tokens": total,
            "step_count": self.used.steps,
            "run_ids": None,
            "context_tokens": total,
        }


_REQUEST = "approval_request_message"
# Stop reasons of runs that ended well. Letta Code takes only the first and the last of them for a good end.
_GOOD_ENDS = ("end_turn", "tool_rule", "no_tool_call", "requires_approval")


def _call_fields(call_id: str, name: str | None, arguments: str | None) -> JsonObject:
    return {"name": name, "arguments": arguments, "tool_call_id": call_id}


def _return_fields(text: str, is_error: bool, call_id: str, answer: GivenAnswer | None = None) -> JsonObject:
    return {
        "tool_return": text,
        "status": "error" if is_error else "success",
        "tool_call_id": call_id,
        "stdout": answer.stdout if answer else None,
        "stderr": answer.stderr if answer else None,
    }


def _new_id(kind: str) -> str:
    return f"{kind}-{uuid.uuid4()}"
