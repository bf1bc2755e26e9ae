"""Tries a client's tool with the model of an agent: shows the call to the operator, who answers it by hand.

Each try has an agent of its own, made for it, and a thread that runs it from the question to the end. What it does is
in the store, so that every worker can show it and take the operator's answer. The agent and the stub that was made for
the try are removed at the end, also after a failure or if the operator does not answer. If the worker dies before,
sweeps remove them.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Literal

from bridge.errors import BridgeError, Busy, InvalidRequest, StoreUnavailable, UnknownPath
from bridge.history.records import ToolCard
from bridge.operation.helper_turns import SYSTEM, first_call, method_of, run_turn, text_of
from bridge.operation.parts import Parts
from bridge.store.heartbeat import last_beat
from bridge.store.port import Store
from bridge.sync.cleanup import HELPER_LIFE, delete_unused_stubs
from bridge.sync.inventory import list_own_tools
from bridge.sync.ownership import client_name_of, is_made_for
from bridge.turn import (
    NewInput,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    TurnEvent,
    UserMessage,
)

log = logging.getLogger(__name__)

# Tries that may run at once, in all workers together.
MOST_TRIES = 3
# Calls that one try shows: a model may answer a result with a further call.
MOST_CALLS = 5
# Seconds that a try waits for the operator's answer.
PATIENCE = 600.0
POLL = 0.5
# The client for which stubs are made. No key can have this name.
MAKER = "a tried call"
MOST_CHARACTERS = 20_000
FAILED = "The bridge failed; its log says why."
ENDED = "The bridge was restarted meanwhile. The next sweeps remove the agent that was made for this."

State = Literal["asking", "called", "answering", "answered", "failed"]
ENDS = ("answered", "failed")


@dataclass(frozen=True, slots=True)
class TriedCall:
    """A try as the operator sees it, begun at the Unix time `started`. `name` and `arguments` are those of the newest
    call, `said` is what the agent said last, `reason` why the try failed, `worker` the worker that runs it.
    """

    id: str
    tool: str
    agent: str
    words: str
    started: float
    state: State = "asking"
    calls: int = 0
    name: str = ""
    arguments: str = ""
    method: str = ""
    result: str = ""
    said: str = ""
    reason: str = ""
    worker: str = ""

    @property
    def is_running(self) -> bool:
        return self.state in ("asking", "answering")


class TryFailed(Exception):
    """The agent did not call the tool, or nobody answered the call. The message says it to the operator."""


def usual_words(tool: str) -> str:
    return f"Please call the tool {tool} with arguments that fit it. Then tell me what it returned."


def read_try(store: Store, try_id: str) -> TriedCall:
    """Returns a try. It does not wait for an answer any more as soon as there is one, which its thread sees later."""
    written = store.get(_key(try_id))
    if written is None:
        raise UnknownPath("This try is over and forgotten, or never began.")
    tried = TriedCall(**json.loads(written))
    if tried.state not in ENDS and last_beat(store, tried.worker) is None:
        return replace(tried, state="failed", reason=ENDED)
    is_answered = tried.state == "called" and store.get(_answer_key(tried)) is not None
    return replace(tried, state="answering") if is_answered else tried


def answer_try(store: Store, tried: TriedCall, text: str, *, is_error: bool = False, stop: bool = False) -> None:
    """Gives the result of the newest call to the try, or stops it. Only the first answer to a call counts."""
    if tried.state != "called":
        raise InvalidRequest("This try does not wait for an answer now.")
    answer = json.dumps({"text": text[:MOST_CHARACTERS], "is_error": is_error, "stop": stop})
    store.put_if_free(_answer_key(tried), answer, PATIENCE)


def begin_try(parts: Parts, digest: str, agent_id: str, words: str, pause: Callable[[float], None] = time.sleep) -> str:
    """Begins a try of the tool with this digest, with the model of an agent. Returns the try's id at once."""
    card = parts.activity.tool_card(digest)
    if card is None:
        raise InvalidRequest("What the client sent for this tool is not known any more: it is not in the history.")
    agent = parts.gateway.agent(agent_id)
    words = words.strip()[:MOST_CHARACTERS] or usual_words(card.client_name)
    tried = TriedCall(secrets.token_hex(8), card.client_name, agent.name, words, time.time(), worker=parts.heartbeat.id)
    slot = _take_slot(parts.store, tried.id)
    try:
        _save(parts.store, tried)
        run = _Try(parts, card, agent_id, tried, slot, pause)
        threading.Thread(target=run.run, name="tried-call", daemon=True).start()
    except (RuntimeError, StoreUnavailable):  # RuntimeError: there is no thread left
        parts.store.remove(slot)
        raise
    with suppress(StoreUnavailable):
        parts.activity.note_action(tried.started, f"Tried a call of {tried.tool} with the model of {tried.agent}.")
    return tried.id


def _take_slot(store: Store, try_id: str) -> str:
    """Returns the key of a free place for a try, which is taken now. The place of a try whose worker died is free."""
    for number in range(MOST_TRIES):
        slot = f"place of a tried call {number}"
        holder = store.put_if_free(slot, try_id, HELPER_LIFE)
        if holder is not None and _has_died(store, holder):
            store.remove(slot)
            holder = store.put_if_free(slot, try_id, HELPER_LIFE)
        if holder is None:
            return slot
    raise Busy(f"{MOST_TRIES} calls are being tried already. Answer or stop one of them first.", retry_after=60)


def _has_died(store: Store, try_id: str) -> bool:
    """Returns whether the worker of a try died. A try that is not in the store is about to begin."""
    written = store.get(_key(try_id))
    return written is not None and last_beat(store, TriedCall(**json.loads(written)).worker) is None


class _Try:
    """Runs one try in its own thread."""

    def __init__(
        self,
        parts: Parts,
        card: ToolCard,
        agent_id: str,
        tried: TriedCall,
        slot: str,
        pause: Callable[[float], None],
    ) -> None:
        self._parts = parts
        self._tool = ToolSpec(card.client_name, card.description, card.parameters, card.strict)
        self._agent_id = agent_id
        self._tried = tried
        self._slot = slot
        self._pause = pause

    def run(self) -> None:
        try:
            self._run()
        except TryFailed as failure:
            self._show(state="failed", reason=str(failure))
        except BridgeError as failure:
            log.warning("a tried call failed: %s", failure.message)
            self._show(state="failed", reason=failure.message)
        finally:
            if self._tried.state not in ENDS:
                self._show(state="failed", reason=FAILED)
            with suppress(StoreUnavailable):
                self._parts.store.remove(self._slot)

    def _run(self) -> None:
        gateway = self._parts.gateway
        helper = gateway.make_helper(self._agent_id, SYSTEM)
        try:
            said = self._talk(helper.id)
            self._show(state="answered", said=said[:MOST_CHARACTERS])
        finally:
            self._remove(helper.id)

    def _remove(self, helper_id: str) -> None:
        """Deletes the agent, and the stubs that tries of this tool made and no agent has now."""
        gateway = self._parts.gateway
        try:
            gateway.delete_agent(helper_id)
            self._parts.shared.open_calls.forget(helper_id)
            unused = [own.tool for own in list_own_tools(gateway) if not own.is_used and is_made_for(own.tool, MAKER)]
            made = [tool for tool in unused if client_name_of(tool) == self._tool.name]
            delete_unused_stubs(gateway, made, self._pause)
        except BridgeError as fault:  # sweeps remove them later
            log.warning("what a tried call made could not be removed: %s", fault.message)

    def _talk(self, helper_id: str) -> str:
        """Returns what the agent says in the end."""
        events = self._ask(helper_id)
        for number in range(1, MOST_CALLS + 1):
            call = first_call(events)
            if call is None:
                break
            arguments, said = call.arguments[:MOST_CHARACTERS], text_of(events)[:MOST_CHARACTERS]
            self._show(state="called", calls=number, name=call.name, arguments=arguments, said=said)
            result = self._wait_for_result(call)
            self._show(state="answering", result=result.text)
            new_input = NewInput((), (result,), opens_conversation=False)
            events = self._run_turn(self._turn(helper_id, new_input, known_calls=frozenset([call.id])))
        else:
            raise TryFailed(f"The agent called the tool {MOST_CALLS} times and said nothing.")
        return text_of(events)

    def _ask(self, helper_id: str) -> list[TurnEvent]:
        """Asks the agent for a call; if it makes none, once more, and leaves it no choice."""
        question = NewInput((UserMessage(self._tried.words),))
        events = self._run_turn(self._turn(helper_id, question))
        if first_call(events) is None:
            choice = ToolChoice("function", self._tool.name)
            events = self._run_turn(replace(self._turn(helper_id, question), tool_choice=choice))
        if first_call(events) is None:
            said = text_of(events)[:MOST_CHARACTERS] or "nothing"
            raise TryFailed(f"The agent did not call the tool. It said: {said}")
        return events

    def _turn(self, helper_id: str, new_input: NewInput, known_calls: frozenset[str] = frozenset()) -> Turn:
        return Turn(
            helper_id, new_input, (self._tool,), parallel_tool_calls=False, known_calls=known_calls, client=MAKER
        )

    def _run_turn(self, turn: Turn) -> list[TurnEvent]:
        events = run_turn(self._parts.conversation, turn)
        self._tried = replace(self._tried, method=method_of(events))
        return events

    def _wait_for_result(self, call: ToolCall) -> ToolResult:
        key, until = _answer_key(self._tried), time.monotonic() + PATIENCE
        while time.monotonic() < until:
            written = self._parts.store.get(key)
            if written is not None:
                answer = json.loads(written)
                if answer["stop"]:
                    raise TryFailed("You stopped it.")
                return ToolResult(call.id, answer["text"], answer["is_error"], call.name, call.arguments)
            self._pause(POLL)
        raise TryFailed(f"Nobody answered the call for {PATIENCE / 60:.0f} minutes.")

    def _show(self, **changes: object) -> None:
        """Writes the state to the store. If the store fails, the page goes on showing the state before."""
        self._tried = replace(self._tried, **changes)  # type: ignore[arg-type]
        try:
            _save(self._parts.store, self._tried)
        except StoreUnavailable as fault:
            log.warning("the state of a tried call could not be written: %s", fault.message)


def _save(store: Store, tried: TriedCall) -> None:
    store.put(_key(tried.id), json.dumps(asdict(tried)), HELPER_LIFE)


def _key(try_id: str) -> str:
    return f"tried call {try_id[:40]}"


def _answer_key(tried: TriedCall) -> str:
    return f"answer to tried call {tried.id} {tried.calls}"
