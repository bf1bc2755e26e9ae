"""What a turn leaves in the agent's context when its bridge is killed between two calls, found and removed.

The agent goes on with all of it; it only says things that nobody said.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from bridge.interception.method import GO_ON, PreparedTurn, provisional
from bridge.interception.stored_messages import CALL, REQUEST, RETURN, SYSTEM, StoredMessages, is_heartbeat
from bridge.letta.gateway import AgentChange, StoredMessage

_RESPONSE = "approval_response_message"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """`cut` are messages to take out of the context; `denied` returns that speak of a denial, and what they mean."""

    cut: frozenset[str]
    denied: Mapping[str, str]


def tidied(turn: PreparedTurn) -> PreparedTurn:
    """The turn without what a turn that was broken off left behind."""
    if not turn.unsettled:
        return turn
    found = leftovers(StoredMessages(turn).rows, turn.unsettled)
    for message_id, meant in found.denied.items() if turn.features.message_rewrite else ():
        turn.gateway.rewrite_return(turn.agent.id, message_id, meant, False)
    if not found.cut:
        return turn
    kept = [message_id for message_id in turn.agent.message_ids if message_id not in found.cut]
    return replace(turn, agent=turn.gateway.change_agent(turn.agent.id, AgentChange(message_ids=kept)))


def leftovers(rows: Sequence[StoredMessage], stub_names: Collection[str]) -> Leftovers:
    """Nudges, and what stands around the return of a stub: the approval's answer before it, its heartbeat behind it."""
    cut: set[str] = set()
    denied: dict[str, str] = {}
    ours, returned = False, False
    for row in rows:
        if row.kind == SYSTEM and row.text == GO_ON:
            cut.add(row.id)
        elif row.kind in (REQUEST, CALL):
            ours, returned = any(call.name in stub_names for call in row.calls), False
        elif ours and row.kind == _RESPONSE and not returned:
            cut.add(row.id)
        elif ours and row.kind == RETURN and not returned:
            returned = True
            meant = provisional(row.text)
            if meant not in (None, row.text):
                denied[row.id] = meant
        elif ours and returned and is_heartbeat(row):
            cut.add(row.id)
            ours = False
        else:
            ours = False
    return Leftovers(frozenset(cut), denied)
