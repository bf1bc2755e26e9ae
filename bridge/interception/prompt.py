"""The interception method `prompt`, for any agent whose tools must not be changed.

A message, the guide, describes the client's tools to the model, and the bridge reads calls from the model's text. A
call waits for its result until the agent gets a user message. Results come as messages that quote them. The guide is
removed from the agent's context after the run, or in the next turn if the turn was broken off.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator

from bridge.interception.calls_in_text import TaggedCall, TaggedText
from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import GivenResults, add_other_results, answer_without_run
from bridge.interception.held_calls import run_agent
from bridge.interception.method import Interception, PreparedTurn
from bridge.interception.stored_messages import SYSTEM, StoredMessages
from bridge.letta.gateway import Say
from bridge.turn import AgentEvent, Stopped, Text, ToolCall, ToolResult, ToolSpec, separated_text

# How often an agent may correct an invalid call in a turn. After that, the turn ends without the call.
CORRECTIONS = 2

_BEGIN = "The user's application offers you the tools listed below. It runs them itself and sends you the results."
_GUIDE = (
    _BEGIN
    + """
To call one, write on a line of its own in your message to the user:
<call-{nonce}>{{"name": "the tool's name", "arguments": {{"its": "arguments"}}}}</call-{nonce}>
The tag is valid for this reply only. After the calls, end your message: the results come next.
Tools:
{tools}"""
)


class Prompt(Interception):
    name = "prompt"
    offers_stubs = False
    can_force = False

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        """Runs the agent with the guide, and yields the events of its reply, with valid calls only. If all calls are
        invalid, asks the agent to correct them. Stopped comes last, after the guide is removed.
        """
        turn = _remove_old_guides(turn)
        tools = {binding.stub.spec.name: binding.stub.spec for binding in turn.bindings}
        nonce = nonce_for_turn(turn.turn_id)
        stored, editor = StoredMessages(turn), ContextEditor(turn)
        run = _start_first_run(turn, stored, editor, _guide_message(nonce, tools.values()) if tools else None)
        for corrections in range(CORRECTIONS + 1):
            wrong: list[TaggedCall] = []
            last: Stopped | None = None
            called = False
            for event in _read_calls(turn, run, TaggedText(nonce, tools)):
                if isinstance(event, TaggedCall):
                    wrong.append(event)
                elif isinstance(event, Stopped):
                    last = event
                elif not isinstance(event, ToolCall) or turn.parallel or not called:
                    called = called or isinstance(event, ToolCall)
                    yield event
            if called or not wrong or corrections == CORRECTIONS:
                break
            correction = Say("system", f"Your call was not made: {wrong[0].fault}. Write it again, corrected.")
            run = run_agent(turn, stored, editor, [correction])
        editor.remove_temporary()
        yield last or Stopped("end_turn")


def _start_first_run(
    turn: PreparedTurn, stored: StoredMessages, editor: ContextEditor, guide: Say | None
) -> Iterator[AgentEvent]:
    """Sends guide, results and messages, and returns the events of the run, or of the reply that the client missed."""
    given = _give_results(turn, stored)
    messages = given.outgoing(turn)
    missed = [] if messages else answer_without_run(turn, stored, given)
    if missed:
        return iter(missed)
    guides = [editor.mark_temporary(guide)] if guide else []
    return run_agent(turn, stored, editor, [*guides, *messages] or [editor.go_on_message()])


def _give_results(turn: PreparedTurn, stored: StoredMessages) -> GivenResults:
    """Returns what becomes of the results of the turn. Those of waiting calls are quoted, too."""
    if turn.delivered:
        return GivenResults()
    waiting = tuple(one for one in turn.new_input.results if _waits(turn, stored, one))
    others = [one for one in turn.new_input.results if one not in waiting]
    return add_other_results(turn, stored, others, GivenResults(bool(waiting), waiting))


def _waits(turn: PreparedTurn, stored: StoredMessages, result: ToolResult) -> bool:
    """Returns whether the result's call waits for it. The id of the call contains the id of the message with its text,
    which is the last in the context, or in older loops the last before the return of send_message.
    """
    message_id, _ = turn.call_ids.message_and_index(result.call_id) or ("", 0)
    if message_id in turn.agent.message_ids[-1 if turn.loop == "v3" else -2 :]:
        return True
    numbers = [number for number, row in enumerate(stored.context_rows) if row.id == message_id]
    return bool(numbers) and not stored.has_gone_on_after(numbers[-1])


def _guide_message(nonce: str, tools: Iterable[ToolSpec]) -> Say:
    rows = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}} for tool in tools]
    described = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return Say("system", _GUIDE.format(nonce=nonce, tools=described))


def nonce_for_turn(turn_id: str) -> str:
    """Returns the number in the tags of a turn's calls, random if `turn_id` is "". A repeated turn has the same number,
    so the bridge can read the calls in a reply that the client missed.
    """
    return hashlib.sha256(turn_id.encode()).hexdigest()[:8] if turn_id else secrets.token_hex(4)


def _read_calls(
    turn: PreparedTurn, events: Iterator[AgentEvent], text: TaggedText
) -> Iterator[AgentEvent | TaggedCall]:
    """Yields the events of a run, with calls in place of the tagged text: ToolCall if valid, otherwise TaggedCall."""
    last: Text | None = None
    called: Counter[str] = Counter()
    for event in events:
        if isinstance(event, Text):
            for part in text.feed(separated_text(event, last)):
                yield _event_from_part(turn, part, event.item_id, called)
            last = event
        elif isinstance(event, Stopped):
            yield from (Text(rest) for rest in text.end())
            yield event
        else:
            yield event


def _event_from_part(
    turn: PreparedTurn, part: str | TaggedCall, message_id: str, called: Counter[str]
) -> AgentEvent | TaggedCall:
    """Returns a part of the text in a message as an event. `called` counts the valid calls in each message."""
    if isinstance(part, str):
        return Text(part)
    if part.fault:
        return part
    called[message_id] += 1
    return ToolCall(turn.call_ids.id_in_message(message_id, called[message_id] - 1), part.name, part.arguments)


def _remove_old_guides(turn: PreparedTurn) -> PreparedTurn:
    """Removes the guide that a broken-off turn left in the agent's context. Returns the turn with the changed agent."""
    if turn.unfinished_stubs is None:
        return turn
    guides = {row.id for row in StoredMessages(turn).context_rows if row.kind == SYSTEM and _BEGIN in row.text}
    return turn.remove_messages(guides)
