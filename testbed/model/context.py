"""The messages that the model was shown, in a compact form that tests can compare. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.model.wrapping import text_of, unwrap_result, unwrap_user

# Arguments that Letta adds to every tool of agents with heartbeats.
LETTA_ARGUMENTS = ("thinking", "inner_thoughts", "request_heartbeat")


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A tool call in the context. Arguments that are not a JSON object remain text."""

    id: str
    name: str
    arguments: Any

    @property
    def own(self) -> Any:
        """The arguments without the three that Letta adds."""
        if not isinstance(self.arguments, dict):
            return self.arguments
        return {key: value for key, value in self.arguments.items() if key not in LETTA_ARGUMENTS}


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message of the context, without Letta's wrapping.

    `kind` is the role, except for Letta's own user messages, where it is "heartbeat", "login" or "system_alert".
    A tool's result has `call_id`, `tool` (the name of the called tool) and `status`: "OK", "Failed", or "" if Letta
    did not wrap it.
    """

    kind: str
    text: str = ""
    calls: tuple[ShownCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    status: str = ""

    def lines(self) -> list[str]:
        """The message as lines of a story, see `story`."""
        if self.kind == "tool":
            failed = " FAILED" if self.status not in ("", "OK") else ""
            return [f"result of {self.tool or '?'}{failed}: {self.text}"]
        lines = [f"{self.kind}: {self.text}"] if self.text or not self.calls else []
        return lines + [_call_line(call) for call in self.calls]


def _call_line(call: ShownCall) -> str:
    own = call.own
    if call.name == "send_message" and isinstance(own, dict) and list(own) == ["message"]:
        return f"assistant: {own['message']}"
    arguments = own if isinstance(own, str) else json.dumps(own, ensure_ascii=False)
    return f"call {call.name} {arguments}"


def shown(messages: Iterable[Mapping[str, Any]]) -> list[ShownMessage]:
    """Returns the messages of a request without Letta's wrapping."""
    tools: dict[str, str] = {}
    result = []
    for message in messages:
        one = _shown(message, tools)
        tools.update({call.id: call.name for call in one.calls})
        result.append(one)
    return result


def _shown(message: Mapping[str, Any], tools: Mapping[str, str]) -> ShownMessage:
    role, text = str(message.get("role")), text_of(message.get("content"))
    if role == "user":
        note = unwrap_user(text)
        return ShownMessage(note.kind, note.text)
    if role == "system":
        return ShownMessage(role, unwrap_user(text).text)  # servers before 0.8 wrap them as alerts
    if role == "tool":
        unwrapped, call_id = unwrap_result(text), str(message.get("tool_call_id"))
        return ShownMessage(role, unwrapped.text, (), call_id, tools.get(call_id, ""), unwrapped.status)
    calls = message.get("tool_calls")
    return ShownMessage(role, text, tuple(map(_shown_call, calls if isinstance(calls, list) else ())))


def _shown_call(call: Any) -> ShownCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return ShownCall("", "", call)
    return ShownCall(str(call.get("id")), str(function.get("name")), _arguments(function.get("arguments")))


def _arguments(text: Any) -> Any:
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def story(messages: Sequence[Mapping[str, Any]], since: str | None = None) -> list[str]:
    """Returns the context as short lines without ids, so that whole conversations compare as lists of strings.

        user: What is the weather in Oslo?
        call get_weather {"city": "Oslo"}
        result of get_weather: 12 degrees
        assistant: It is 12 degrees.

    A first system message is left out, an answer by send_message looks like plain content (its result stays, as the
    model sees it), and a failed result says FAILED. `since` starts the story at the first message whose text contains
    it.
    """
    context = shown(messages)
    if context and context[0].kind in ("system", "developer"):
        context = context[1:]
    if since is not None:
        start = next((index for index, one in enumerate(context) if since in one.text), len(context))
        context = context[start:]
    return [line for one in context for line in one.lines()]
