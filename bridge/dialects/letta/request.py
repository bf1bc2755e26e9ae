"""Makes a Turn from a message request of Letta's own API that brings client tools, or answers calls of such tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.dialects.base import RequestRules
from bridge.dialects.letta.answers import GivenAnswer, answered_call_ids, is_answer, read_answers
from bridge.dialects.letta.content import parse_content
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.dialects.openai.parameters import parse_flag
from bridge.dialects.openai.tools import parse_function, refused_by_name
from bridge.errors import InvalidRequest
from bridge.turn import JsonObject, NewInput, ToolSpec, Turn, UserMessage

# The place of a message request: the conversation that has no id of its own.
DEFAULT_CONVERSATION = "default"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message request is sent: the agent, its conversation, and whether the reply is a stream if the request
    does not say so.
    """

    agent_id: str
    conversation: str = DEFAULT_CONVERSATION
    streams: bool = False
    always_streams: bool = False


def is_for_the_bridge(body: JsonObject) -> bool:
    """Returns whether the bridge answers a message request itself: it brings client tools, or answers their calls."""
    if body.get("client_tools"):
        return True
    return any(CALL_IDS.message_and_index(call_id) for call_id in answered_call_ids(body))


def wants_stream(body: JsonObject, place: Place) -> bool:
    if place.always_streams:
        return True
    return place.streams if body.get("streaming") is None else parse_flag(body, "streaming")


def parse_request(body: JsonObject, place: Place, rules: RequestRules) -> tuple[Turn, Sequence[GivenAnswer]]:
    """Returns the turn that a request asks for, and the answers in it as the client gave them."""
    items = _message_items(body)
    answers = _first_for_each_call(
        answer for where, item in items if is_answer(item) for answer in read_answers(item, where, rules)
    )
    said = [message for where, item in items if not is_answer(item) for message in _read_message(item, where, rules)]
    pictures = [image for answer in answers for image in answer.images]
    if pictures:
        said.insert(0, UserMessage("(pictures that the tool returned)", tuple(pictures)))
    if not said and not answers:
        raise InvalidRequest(
            "Nothing to answer: `messages` must have a text or the answer to a call.", param="messages"
        )
    turn = Turn(
        model=place.agent_id,
        new_input=NewInput(
            tuple(said),
            tuple(answer.result for answer in answers),
            describe_skills(body.get("client_skills")),
            opens_conversation=False,
        ),
        tools=_parse_tools(body, rules.most_tools),
        stream=wants_stream(body, place),
        session=f"letta:{place.conversation}",
        known_calls=frozenset(answer.result.call_id for answer in answers),
        closed_calls=len(answers),
        comes_once=bool(answers) or any(isinstance(item.get("otid"), str) for _, item in items),
        answers_all_calls=True,
        call_ids=CALL_IDS,
    )
    return turn, answers


def _first_for_each_call(answers: Iterable[GivenAnswer]) -> list[GivenAnswer]:
    """Returns the answers without any for a call that an earlier one answers."""
    found: dict[str, GivenAnswer] = {}
    for answer in answers:
        found.setdefault(answer.result.call_id, answer)
    return [*found.values()]


def _message_items(body: JsonObject) -> list[tuple[str, JsonObject]]:
    """Returns the items of `messages`, each with its place. `input`, Letta's short form, is one user message."""
    messages, short = body.get("messages"), body.get("input")
    if messages is None and short is not None:
        return [("input", {"role": "user", "content": short})]
    if not isinstance(messages, list):
        raise InvalidRequest("`messages` must be an array.", param="messages")
    for index, item in enumerate(messages):
        if not isinstance(item, dict):
            raise InvalidRequest(f"`messages[{index}]` must be an object.", param=f"messages[{index}]")
    return [(f"messages[{index}]", item) for index, item in enumerate(messages)]


def _read_message(item: JsonObject, where: str, rules: RequestRules) -> Iterator[UserMessage]:
    """Yields the message, unless it says nothing."""
    role = item.get("role")
    if item.get("type") not in (None, "message") or role not in ("user", "system"):
        raise InvalidRequest(
            f'`{where}` must have the role "user" or "system", or the type "approval".', param=f"{where}.role"
        )
    place = where if where == "input" else f"{where}.content"
    text, images = parse_content(item.get("content"), place, image_urls=rules.image_urls)
    if text.strip() or images:
        yield UserMessage(text, images, "system" if role == "system" else "user")


def _parse_tools(body: JsonObject, most: int) -> tuple[ToolSpec, ...]:
    tools = body.get("client_tools")
    if tools is None:
        return ()
    if not isinstance(tools, list):
        raise InvalidRequest("`client_tools` must be an array.", param="client_tools")
    if len(tools) > most:
        raise InvalidRequest(
            f"`client_tools` has {len(tools)} tools; the limit is {most}.", param="client_tools", code="too_many_tools"
        )
    found: dict[str, ToolSpec] = {}
    for index, item in enumerate(tools):
        spec = refused_by_name(_parse_tool, item, f"client_tools[{index}]")
        if spec.name in found:
            raise InvalidRequest(
                f"`client_tools[{index}].name` is {spec.name!r:.160}, which an earlier tool has already.",
                param=f"client_tools[{index}].name",
            )
        found[spec.name] = spec
    return tuple(found.values())


def _parse_tool(value: Any, where: str) -> ToolSpec:
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{where}` must be an object.", param=where)
    return parse_function(value, where)


def describe_skills(skills: Any) -> str:
    """Returns the client's skills in words, "" without any. New servers add such a list to the system prompt."""
    named = [skill for skill in skills if isinstance(skill, dict)] if isinstance(skills, list) else []
    lines = [f"- {skill.get('name')} ({skill.get('location')}): {skill.get('description')}" for skill in named]
    return "\n".join(["<available_skills>", *lines, "</available_skills>"]) if lines else ""
