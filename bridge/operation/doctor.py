"""Checks everything that a turn needs: settings, store, Letta, agents. Then tries a whole tool round trip."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from bridge.conversation import Conversation
from bridge.directory import model_names
from bridge.errors import BridgeError, LettaError, LettaRefusedCredentials
from bridge.letta.capabilities import NEWEST, OLDEST
from bridge.letta.gateway import HELPER_PREFIX, Agent
from bridge.operation.codex_names import ADVICE, is_a_model_of_codex
from bridge.operation.helper_turns import SYSTEM, first_call, method_of, run_turn, text_of
from bridge.operation.overview import agent_row
from bridge.operation.parts import Parts, Trial
from bridge.operation.wording import number_with_noun
from bridge.sync.inventory import list_own_tools
from bridge.turn import (
    AgentEvent,
    MethodChosen,
    NewInput,
    RecordEvent,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
    UserMessage,
)

ROUND_TRIP = "tool round trip"
MOST_CLOCK_DIFFERENCE = 60.0
MOST_AGENTS_NAMED = 50
TOOL = ToolSpec(
    "bridge_doctor",
    "Tells whether the tool bridge works. Call it with any word.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
QUESTION = 'Please call the tool bridge_doctor with the word "bridge", then tell me what it returned.'
ANSWER = "The bridge works: this is what the client's tool returned."

CREDENTIALS_ADVICE = "Set LETTA_API_KEY to the server's password."
ADDRESS_ADVICE = "Is the server up, and is LETTA_BASE_URL its address as seen from here?"

Verdict = Literal["good", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check. `name` says what was checked; `advice` is "" if there is nothing to do."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


class RoundTripFailed(Exception):
    """The agent did not call the tool, or did not answer after the tool's result."""


def run_checks(parts: Parts, agent_id: str = "") -> Iterator[Check]:
    """Yields the outcomes of all checks; stops if Letta or its agents can't be used. The last check is a round trip of
    a tool call, with the model of the agent `agent_id` ("": of the first agent).
    """
    yield from _check_settings(parts)
    yield _check_store(parts)
    version = _check_letta(parts)
    yield version
    if version.verdict == "bad":
        return
    listed, check = _check_agents(parts)
    yield check
    if check.verdict == "bad":
        return
    yield _check_clock(parts)
    yield from _check_methods(parts, listed)
    yield _check_turns(parts)
    if agent_id or listed:
        yield from _check_round_trips(parts, agent_id or listed[0].id)
    else:
        found = "not tried: there is no agent whose model it could use"
        yield Check(ROUND_TRIP, "warning", found, "Make an agent.")


def _check_settings(parts: Parts) -> Iterator[Check]:
    """Checks for environment variables without effect, for clients' keys and for the admin page's password."""
    settings = parts.settings
    for sentence in settings.ignored_variables:
        yield Check("settings", "warning", sentence, "Remove it from the environment, or correct its name.")
    advice = "Make one: `./letta-bridge keys new NAME` says where to put it."
    if settings.api_keys:
        yield Check("keys", "good", f"{len(settings.api_keys)} for clients")
    elif settings.allow_anonymous and settings.serves_this_machine_without_keys and not settings.proxies:
        yield Check("keys", "good", "none are needed: only this machine reaches the bridge")
    elif settings.allow_anonymous:
        yield Check("keys", "warning", "none: everybody who reaches the port may talk to the agents", advice)
    else:
        yield Check("keys", "bad", "none", advice)
    if settings.admin_password:
        yield Check("admin page", "good", "has a password")
    else:
        yield Check("admin page", "warning", "off", "Set BRIDGE_ADMIN_PASSWORD to turn it on.")


def _check_store(parts: Parts) -> Check:
    where = "Redis" if parts.settings.redis_url else f"SQLite in {parts.settings.data_dir}"
    try:
        parts.store.check_writable()
    except BridgeError as failure:
        return Check("store", "bad", failure.message, "Look at BRIDGE_DATA_DIR, or at REDIS_URL.")
    return Check("store", "good", where)


def _check_letta(parts: Parts) -> Check:
    """Checks that the Letta server answers, and that the bridge was tested on its version."""
    try:
        features = parts.gateway.features()
    except LettaError as failure:
        is_password = isinstance(failure, LettaRefusedCredentials)
        return _letta_fails("Letta", failure, CREDENTIALS_ADVICE if is_password else ADDRESS_ADVICE)
    found = f"{features.version_text} at {parts.settings.letta_base_url}"
    if not OLDEST <= features.version <= NEWEST:
        known = f"from {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        return Check("Letta", "warning", found, f"The bridge was tested on versions {known}.")
    return Check("Letta", "good", found)


def _letta_fails(name: str, failure: LettaError, advice: str) -> Check:
    """Returns a bad check. `advice` is for a failure that does not say itself what to do."""
    return Check(name, "bad", failure.message.removesuffix(failure.advice).strip(), failure.advice or advice)


def _check_agents(parts: Parts) -> tuple[list[Agent], Check]:
    """Returns all agents but the bridge's own, and a check of the credentials: Letta's version needs none."""
    try:
        whole = [agent for agent in parts.gateway.whole_agents() if not agent.name.startswith(HELPER_PREFIX)]
        tools = list_own_tools(parts.gateway)
    except LettaError as failure:
        is_password = isinstance(failure, LettaRefusedCredentials)
        advice = CREDENTIALS_ADVICE if is_password else "Look at the log of the Letta server."
        return [], _letta_fails("credentials", failure, advice)
    found = f"{number_with_noun(len(whole), 'agent')} and {number_with_noun(len(tools), 'tool')} of clients can be read"
    return whole, Check("credentials", "good", found)


def _check_clock(parts: Parts) -> Check:
    """Compares the clocks of this machine and Letta. The check is good also if the server does not tell its time."""
    try:
        theirs = parts.gateway.server_time()
    except LettaError as failure:
        return Check("clock", "warning", failure.message)
    if theirs is None:
        return Check("clock", "good", "the server does not tell its time")
    difference = theirs - time.time()
    found = f"{abs(difference):.0f} s {'ahead of' if difference < 0 else 'behind'} Letta's"
    if abs(difference) > MOST_CLOCK_DIFFERENCE:
        return Check("clock", "warning", found, "Set both clocks by NTP: times of both tell how long stubs are idle.")
    return Check("clock", "good", "as Letta's" if abs(difference) < 2 else found)


def _check_methods(parts: Parts, agents: list[Agent]) -> Iterator[Check]:
    """Checks which interception method catches each agent's calls. Only counts agents after MOST_AGENTS_NAMED."""
    features = parts.gateway.features()
    names = model_names(agents)
    for agent, model in list(zip(agents, names, strict=True))[:MOST_AGENTS_NAMED]:
        row = agent_row(agent, features, parts.settings.methods, [], None)
        name = f"agent {model}"
        if is_a_model_of_codex(agent.name):
            yield Check(name, "warning", f"{agent.type}: Codex has a model of that name", ADVICE)
        if row.method == "none":
            yield Check(name, "bad", row.why, "Change BRIDGE_METHOD.")
        else:
            yield Check(name, "good", f"{agent.type}: {row.method}")
    if len(agents) > MOST_AGENTS_NAMED:
        yield Check("agents", "good", f"and {len(agents) - MOST_AGENTS_NAMED} more")


def _check_turns(parts: Parts) -> Check:
    """Says by which APIs the newest turns came."""
    try:
        counts = Counter(turn.dialect for turn in parts.activity.newest_turns())
    except BridgeError as failure:
        return Check("turns", "warning", failure.message)
    by_api = ", ".join(f"{count} by {api.replace('_', ' ')}" for api, count in sorted(counts.items()) if api)
    return Check("turns", "good", f"the newest: {by_api}" if by_api else "none yet")


# --- the round trip ---------------------------------------------------------------------------------------


def _check_round_trips(parts: Parts, agent_id: str) -> Iterator[Check]:
    """Tries a tool call, also by each API that is on by a setting. The agents for that have the model of `agent_id`."""
    yield _check_round_trip(parts, agent_id, ROUND_TRIP, lambda helper: _try_tool(parts.conversation, helper))
    for api, trial in parts.trials.items():
        yield _check_round_trip(parts, agent_id, f"{ROUND_TRIP} by {api}", partial(_try_api, parts.conversation, trial))


def _check_round_trip(parts: Parts, agent_id: str, name: str, try_agent: Callable[[str], tuple[str, str]]) -> Check:
    """Times a tool call of an agent made for this check. Deletes the agent and the tool's stub afterwards."""
    begun = time.perf_counter()
    try:
        helper = parts.gateway.make_helper(agent_id, SYSTEM)
    except BridgeError as failure:
        found = f"no agent could be made: {failure.message}"
        return Check(name, "bad", found, "Look at the log of the Letta server.")
    try:
        method, answer = try_agent(helper.id)
    except BridgeError as failure:
        advice = "Does the agent's model answer? The log of the Letta server says more."
        return Check(name, "bad", failure.message, advice)
    except RoundTripFailed as failure:
        advice = "Does the model of this agent support tools? Try `--agent` with another one."
        return Check(name, "bad", str(failure), advice)
    finally:
        _delete_helper_and_stub(parts, helper.id)
    took = time.perf_counter() - begun
    found = f"call, result and answer by {method} in {took:.1f} s; the agent said: {answer:.60}"
    return Check(name, "good", found)


def _try_tool(conversation: Conversation, model: str) -> tuple[str, str]:
    """Lets the agent call TOOL, if need be forced by `tool_choice`; returns the interception method and the answer."""
    question = NewInput((UserMessage(QUESTION),))
    for choice in (ToolChoice(), ToolChoice("function", TOOL.name)):
        events = run_turn(conversation, Turn(model, question, (TOOL,), choice))
        call = first_call(events)
        if call is not None:
            break
    else:
        raise RoundTripFailed("the agent did not call the tool")
    method = method_of(events)
    result = NewInput((), (ToolResult(call.id, ANSWER, name=TOOL.name),), opens_conversation=False)
    answer = text_of(run_turn(conversation, Turn(model, result, (TOOL,), known_calls=frozenset([call.id]))))
    if not answer:
        raise RoundTripFailed("the agent was given the result and said nothing")
    return method, answer


def _try_api(conversation: Conversation, trial: Trial, agent_id: str) -> tuple[str, str]:
    """Lets the agent call TOOL in the words of an API, if need be forced; returns the method and the answer."""
    methods: list[str] = []

    def run(turn: Turn, choice: ToolChoice) -> Iterator[AgentEvent]:
        asks = not turn.new_input.results
        for event in run_turn(conversation, replace(turn, tool_choice=choice) if asks else turn):
            if isinstance(event, MethodChosen):
                methods.append(event.method)
            if not isinstance(event, RecordEvent):
                yield event

    for choice in (ToolChoice(), ToolChoice("function", TOOL.name)):
        answer = trial(agent_id, TOOL, QUESTION, ANSWER, partial(run, choice=choice)).strip()
        if answer:
            return methods[-1], answer
    raise RoundTripFailed("the agent did not call the tool, or said nothing about its result")


def _delete_helper_and_stub(parts: Parts, helper_id: str) -> None:
    """The stub stays if another agent has it: a client may offer the very same tool."""
    parts.gateway.delete_agent(helper_id)
    for own in list_own_tools(parts.gateway):
        if not own.is_used and own.tool.name.startswith(TOOL.name):
            parts.gateway.delete_tool(own.tool.id)
