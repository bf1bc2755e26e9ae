"""Finds the model's reply to a request, from the request alone. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.model.examples import example
from testbed.model.script import Failure, Script, ScriptedCall, ScriptError, ScriptStep, parse_script
from testbed.model.tools import OfferedTool, ToolOffer, offer_of
from testbed.model.wrapping import text_of, unwrap_result, unwrap_user

THOUGHT_ARGUMENTS = ("thinking", "inner_thoughts")
HEARTBEAT_ARGUMENT = "request_heartbeat"
ECHOED = 1000
NONCE = re.compile(r"<call-([0-9a-f]+)>")

DONE = "Done."
HELP = """I am the scripted demo model: I do not think, I do what a message dictates. Without a script I repeat \
your message. To see a tool call, send for example these lines:

!call get_weather {"city": "Oslo"}
!next
!answer

The first line calls the tool, !next waits for its result, !answer says the result. There are also !say TEXT, \
!think TEXT, !delay SECONDS, !slow SECONDS, !status CODE and more; testbed/model/script.py describes them all."""


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A tool call of a reply, with its final argument text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    """One turn of the model. `notes` say which part of the script it could not follow."""

    content: str | None = None
    reasoning: str | None = None
    calls: tuple[ReplyCall, ...] = ()
    delay: float = 0.0
    slow: float = 0.0
    failure: Failure | None = None
    cut: bool = False
    notes: tuple[str, ...] = ()
    script_error: str | None = None


@dataclass(frozen=True, slots=True)
class ScriptPosition:
    """The current script and the number of the current step."""

    script: Script | None
    number: int

    @property
    def step(self) -> ScriptStep | None:
        return self.script.step(self.number) if self.script else None

    @property
    def has_next_step(self) -> bool:
        return self.script is not None and self.script.step(self.number + 1) is not None


def find_position(messages: Sequence[Mapping[str, Any]]) -> ScriptPosition:
    """Finds the newest script, and counts the turns of the model after it."""
    turns = 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        role = message.get("role")
        if role == "assistant":
            turns += 1
        elif role == "user" or (role in ("system", "developer") and index > 0):
            try:
                script = parse_script(unwrap_user(text_of(message.get("content"))).text)
            except ScriptError:
                if not turns:
                    raise
                return ScriptPosition(None, turns)  # the model said so in its answer to that message
            if script is not None:
                return ScriptPosition(script, turns)
    return ScriptPosition(None, turns)


def reply_to(body: Mapping[str, Any]) -> ModelReply:
    """Returns the reply to a valid request."""
    messages, offer = body["messages"], offer_of(body)
    try:
        position = find_position(messages)
    except ScriptError as error:
        text = f"I could not read the script: {error}."
        return replace(_turn(ScriptStep(text=text), offer, False), script_error=text)
    step = position.step or ScriptStep()
    if step.failure is not None:
        return ModelReply(failure=step.failure, delay=step.delay)
    if step.answer:
        step = replace(step, text=_newest_results(messages))
    elif step.text is None and not step.calls:
        step = replace(step, text=_unscripted_text(messages))
    if step.text is not None:
        step = replace(step, text=step.text.replace("call-NONCE", f"call-{_newest_nonce(messages)}"))
    return _turn(step, offer, position.has_next_step)


def _newest_nonce(messages: Sequence[Mapping[str, Any]]) -> str:
    """Returns the number in the tag that the newest message wants around tool calls."""
    for message in reversed(messages):
        found = NONCE.search(text_of(message.get("content")))
        if found and message.get("role") != "assistant":
            return found.group(1)
    return "none"


def _since_last_turn(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    last = max((i for i, message in enumerate(messages) if message.get("role") == "assistant"), default=-1)
    return messages[last + 1 :]


def _newest_results(messages: Sequence[Mapping[str, Any]]) -> str:
    results: list[str] = []
    for message in reversed(messages):
        if message.get("role") == "tool":
            results.insert(0, unwrap_result(text_of(message.get("content"))).text)
        elif results:
            break
    return "\n".join(results) if results else "(there is no tool result)"


def _unscripted_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Returns what the model says when no script dictates it."""
    new = _since_last_turn(messages)
    texts = _user_texts(new)
    if not texts and any(message.get("role") == "tool" for message in new):
        return DONE
    newest = (texts or _user_texts(messages) or [""])[-1]
    if newest.strip().rstrip("?!.").casefold() == "help":
        return HELP
    return "You said: " + (newest if len(newest) <= ECHOED else newest[:ECHOED] + "…")


def _user_texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    unwrapped = [unwrap_user(text_of(one.get("content"))) for one in messages if one.get("role") == "user"]
    return [one.text for one in unwrapped if one.kind == "user" and one.text]


def _turn(step: ScriptStep, offer: ToolOffer, has_next_step: bool) -> ModelReply:
    """Makes one turn that fits the tools of the request and its tool_choice."""
    calls, notes = _find_tools(step, offer)
    text = step.text
    if text is None and step.calls and not calls and offer.tools:
        text = f"I have no such tool: {'; '.join(notes)}."
    if not step.plain and not step.disobey:
        calls, text, refused = _obey(calls, text, offer)
        notes += refused
    if text is not None and not calls and not step.plain and _may_send(offer):
        calls, text = (ScriptedCall("send_message", _compact({"message": text})),), None
    said, placed = _finish_calls(calls, offer, step.thought, has_next_step)
    reasoning = step.reasoning
    if step.thought is not None and not placed:
        if text is None:
            text = step.thought
        else:
            reasoning = reasoning or step.thought
    if text is None and not said:
        text = DONE
    return ModelReply(text, reasoning, said, step.delay, step.slow, None, step.cut, notes)


def _may_send(offer: ToolOffer) -> bool:
    offered = any(tool.name == "send_message" for tool in offer.tools)
    return offer.demand != "none" and offer.named in (None, "send_message") and offered


def _find_tools(step: ScriptStep, offer: ToolOffer) -> tuple[tuple[ScriptedCall, ...], tuple[str, ...]]:
    """Gives the calls the names of offered tools. Only a model that disobeys calls a tool that is not offered."""
    found, notes = [], []
    for call in step.calls:
        tool = offer.find(call.name)
        if tool is None:
            notes.append(f"the script calls {call.name!r}, which the request does not offer")
        if tool is not None or step.disobey:
            found.append(replace(call, name=tool.name if tool else call.name.replace("*", "")))
    return tuple(found), tuple(notes)


def _obey(
    calls: tuple[ScriptedCall, ...], text: str | None, offer: ToolOffer
) -> tuple[tuple[ScriptedCall, ...], str | None, tuple[str, ...]]:
    """Returns calls and text as tool_choice and parallel_tool_calls allow them, and notes on dropped calls."""
    fitting = [call for call in calls if offer.demand != "none" and offer.named in (None, call.name)]
    allowed = tuple(fitting if offer.parallel else fitting[:1])
    dropped = [call for call in calls if not any(call is one for one in allowed)]
    notes = tuple(f"the request does not allow the call of {call.name!r}" for call in dropped)
    if offer.demand != "required" or allowed or (text is not None and _may_send(offer)):
        return allowed, text, notes
    tool = offer.find(offer.named) if offer.named else offer.tools[0]
    if tool is None:
        return allowed, text, notes
    demanded = ScriptedCall(tool.name, _compact(_example_arguments(tool)))
    return (demanded,), None, (*notes, f"the request demands a call, so {tool.name!r} is called")


def _example_arguments(tool: OfferedTool) -> dict[str, Any]:
    arguments = example(tool.parameters)
    added = (*THOUGHT_ARGUMENTS, HEARTBEAT_ARGUMENT)
    if not isinstance(arguments, dict):
        return {}
    return {name: value for name, value in arguments.items() if name not in added}


def _finish_calls(
    calls: tuple[ScriptedCall, ...], offer: ToolOffer, thought: str | None, has_next_step: bool
) -> tuple[tuple[ReplyCall, ...], bool]:
    """Adds the arguments that Letta's own tools require. Also returns whether one of them holds the thought."""
    finished, placed = [], False
    for call in calls:
        tool = offer.find(call.name)
        properties = tool.properties if tool and not call.raw else {}
        thoughts = {name: thought or f"I call {call.name}." for name in THOUGHT_ARGUMENTS if name in properties}
        placed = placed or bool(thoughts)
        heartbeat = {HEARTBEAT_ARGUMENT: has_next_step} if HEARTBEAT_ARGUMENT in properties else {}
        finished.append(ReplyCall(call.name, _with_members(call.arguments, thoughts, heartbeat)))
    return tuple(finished), placed


def _with_members(arguments: str, front: dict[str, Any], back: dict[str, Any]) -> str:
    """Adds members before and after those of a JSON object, whose text is kept. Members that it has are not added."""
    if not front and not back:
        return arguments
    own = json.loads(arguments)
    parts = [_members({name: value for name, value in front.items() if name not in own})]
    parts.append(arguments.strip()[1:-1].strip())
    parts.append(_members({name: value for name, value in back.items() if name not in own}))
    return "{" + ",".join(part for part in parts if part) + "}"


def _members(values: dict[str, Any]) -> str:
    return _compact(values)[1:-1]


def _compact(value: Any) -> str:
    """Encodes JSON as OpenAI's models write the arguments of strict functions."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
