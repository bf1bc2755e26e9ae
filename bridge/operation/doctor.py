"""Whether all that a turn needs is there and works: looked at one by one, then tried in a whole tool round trip."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from bridge.conversation import Conversation
from bridge.errors import BridgeError, LettaError, LettaRefusedCredentials
from bridge.letta.gateway import HELPER_PREFIX, Agent
from bridge.operation.overview import agent_row
from bridge.operation.parts import Parts
from bridge.operation.wording import counted
from bridge.sync.inventory import inventory
from bridge.turn import Message, MethodChosen, Text, ToolCall, ToolChoice, ToolSpec, Turn, TurnEvent

OLDEST, NEWEST = (0, 6, 54), (0, 16, 8)
MOST_CLOCK_DIFFERENCE = 60.0
MOST_AGENTS_NAMED = 50
TOOL = ToolSpec(
    "bridge_doctor",
    "Tells whether the tool bridge works. Call it with any word.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
QUESTION = 'Please call the tool bridge_doctor with the word "bridge", then tell me what it returned.'
ANSWER = "The bridge works: this is what the client's tool returned."

Verdict = Literal["good", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found; where it is not good, `advice` says what to do."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


class Failed(Exception):
    """What comes after makes no sense without this."""


def examine(parts: Parts, agent_id: str = "") -> Iterator[Check]:
    """One check after the other, until one fails that all others need. The round trip thinks with the agent's model."""
    yield from _settings(parts)
    yield _store(parts)
    version = _letta(parts)
    yield version
    if version.verdict == "bad":
        return
    listed, check = _agents(parts)
    yield check
    if check.verdict == "bad":
        return
    yield _clock(parts)
    yield from _methods(parts, listed)
    model = agent_id or (listed[0].id if listed else "")
    yield (
        _round_trip(parts, model)
        if model
        else Check(
            "tool round trip",
            "warning",
            "not tried: there is no agent whose model it could think with",
            "Make an agent.",
        )
    )


def _settings(parts: Parts) -> Iterator[Check]:
    settings = parts.settings
    for sentence in settings.ignored:
        yield Check("settings", "warning", sentence, "Remove it from the environment.")
    if settings.api_keys:
        yield Check("keys", "good", f"{len(settings.api_keys)} for clients")
    else:
        yield Check(
            "keys",
            "warning" if settings.allow_anonymous else "bad",
            "none: whoever reaches the port may talk to the agents" if settings.allow_anonymous else "none",
            "Make one with the command `keys new NAME` and set it as BRIDGE_API_KEYS.",
        )
    if settings.admin_password:
        yield Check("admin page", "good", "has a password")
    else:
        yield Check("admin page", "warning", "off", "Set BRIDGE_ADMIN_PASSWORD to turn it on.")


def _store(parts: Parts) -> Check:
    where = "Redis" if parts.settings.redis_url else f"SQLite in {parts.settings.data_dir}"
    try:
        parts.store.check()
    except BridgeError as failure:
        return Check("store", "bad", failure.message, "Look at BRIDGE_DATA_DIR, or at REDIS_URL.")
    return Check("store", "good", where)


def _letta(parts: Parts) -> Check:
    try:
        features = parts.gateway.features()
    except LettaRefusedCredentials as failure:
        return Check("Letta", "bad", failure.message, "Set LETTA_API_KEY to the server's password.")
    except LettaError as failure:
        advice = "Is the server up, and is LETTA_BASE_URL its address as seen from here?"
        return Check("Letta", "bad", failure.message, advice)
    found = f"{features.version_text} at {parts.settings.letta_base_url}"
    if not OLDEST <= features.version <= NEWEST:
        known = f"from {'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}"
        return Check("Letta", "warning", found, f"The bridge was tested on versions {known}.")
    return Check("Letta", "good", found)


def _agents(parts: Parts) -> tuple[list[Agent], Check]:
    """It is also what tells whether the credentials are right: the version is told to everybody."""
    try:
        whole = [agent for agent in parts.gateway.whole_agents() if not agent.name.startswith(HELPER_PREFIX)]
        tools = inventory(parts.gateway)
    except LettaRefusedCredentials as failure:
        return [], Check("credentials", "bad", failure.message, "Set LETTA_API_KEY to the server's password.")
    except LettaError as failure:
        return [], Check("credentials", "bad", failure.message, "Look at the log of the Letta server.")
    return whole, Check(
        "credentials",
        "good",
        f"{counted(len(whole), 'agent')} and {counted(len(tools), 'tool')} of clients can be read",
    )


def _clock(parts: Parts) -> Check:
    try:
        theirs = parts.gateway.clock()
    except LettaError as failure:
        return Check("clock", "warning", failure.message)
    if theirs is None:
        return Check("clock", "good", "the server does not tell its time")
    difference = theirs - time.time()
    found = f"{abs(difference):.0f} s {'ahead of' if difference < 0 else 'behind'} Letta's"
    if abs(difference) > MOST_CLOCK_DIFFERENCE:
        return Check("clock", "warning", found, "Set both machines' clocks by NTP: idle stubs are told by their age.")
    return Check("clock", "good", "as Letta's" if abs(difference) < 2 else found)


def _methods(parts: Parts, agents: list[Agent]) -> Iterator[Check]:
    features = parts.gateway.features()
    for agent in agents[:MOST_AGENTS_NAMED]:
        row = agent_row(agent, features, parts.settings.methods, [], None)
        name = f"agent {agent.name}"
        if row.method == "none":
            yield Check(name, "bad", row.why, "Change BRIDGE_METHOD.")
        else:
            yield Check(name, "good", f"{agent.type}: {row.method}")
    if len(agents) > MOST_AGENTS_NAMED:
        yield Check("agents", "good", f"and {len(agents) - MOST_AGENTS_NAMED} more")


# --- the round trip ---------------------------------------------------------------------------------------


def _round_trip(parts: Parts, agent_id: str) -> Check:
    """With an agent that is made for it and deleted afterwards, as is the stub."""
    name = "tool round trip"
    begun = time.perf_counter()
    try:
        helper = parts.gateway.make_helper(agent_id, "You test a tool. Do what the user asks for.")
    except BridgeError as failure:
        return Check(name, "bad", f"no agent could be made: {failure.message}", "Look at the log of the Letta server.")
    try:
        method, told = _talk(parts.conversation, helper.id)
    except BridgeError as failure:
        advice = "Does the agent's model answer? The log of the Letta server tells more."
        return Check(name, "bad", failure.message, advice)
    except Failed as failure:
        advice = "Does the model of this agent support tools? Try `--agent` with another one."
        return Check(name, "bad", str(failure), advice)
    finally:
        _tidy(parts, helper.id)
    took = time.perf_counter() - begun
    return Check(name, "good", f"call, result and answer by {method} in {took:.1f} s; the agent said: {told:.60}")


def _talk(conversation: Conversation, model: str) -> tuple[str, str]:
    """The method and the answer. A model that does not call the tool when asked to is made to."""
    question = Message("user", QUESTION)
    for choice in (ToolChoice(), ToolChoice("function", TOOL.name)):
        events = _turn(conversation, Turn(model, (question,), (TOOL,), choice))
        call = next((event for event in events if isinstance(event, ToolCall)), None)
        if call is not None:
            break
    else:
        raise Failed("the agent did not call the tool")
    method = next(event.method for event in events if isinstance(event, MethodChosen))
    transcript = (
        question,
        Message("assistant", tool_calls=(call,)),
        Message("tool", ANSWER, tool_call_id=call.id, name=TOOL.name),
    )
    told = _turn(conversation, Turn(model, transcript, (TOOL,)))
    answer = "".join(event.text for event in told if isinstance(event, Text)).strip()
    if not answer:
        raise Failed("the agent was given the result and said nothing")
    return method, answer


def _turn(conversation: Conversation, turn: Turn) -> list[TurnEvent]:
    return list(conversation.events(turn, threading.Event()))


def _tidy(parts: Parts, helper_id: str) -> None:
    """A stub that a client has offered under the very same form is one that agents use: it stays."""
    parts.gateway.delete_agent(helper_id)
    for own in inventory(parts.gateway):
        if not own.is_used and own.tool.name.startswith(TOOL.name):
            parts.gateway.delete_tool(own.tool.id)
