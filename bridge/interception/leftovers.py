"""Removes the bridge's own messages that a turn leaves in the agent's context if the bridge is killed in the middle.

The agent's model would read these messages in every later turn, but neither the user nor the agent said them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bridge.interception.method import PreparedTurn, find_provisional_text
from bridge.interception.stored_messages import CALL, REQUEST, RETURN, StoredMessages, is_heartbeat, is_nudge
from bridge.letta.gateway import StoredMessage

_RESPONSE = "approval_response_message"


def remove_leftovers(turn: PreparedTurn) -> PreparedTurn:
    """Removes from the agent's context what a broken-off turn left there. Returns the turn with the changed agent."""
    if not turn.unfinished_stubs:
        return turn
    remove, denied = _find_leftovers(StoredMessages(turn).context_rows, turn.unfinished_stubs)
    for message_id, text in denied.items() if turn.features.message_rewrite else ():
        turn.gateway.rewrite_return(turn.agent.id, message_id, text, True)
    return turn.remove_messages(remove)


def remove_nudges(turn: PreparedTurn) -> PreparedTurn:
    """Removes only the messages that made the agent go on: for the methods that leave nothing else behind."""
    if turn.unfinished_stubs is None or len(turn.agent.message_ids) <= 1:
        return turn
    return turn.remove_messages({row.id for row in StoredMessages(turn).context_rows if is_nudge(row)})


def _find_leftovers(rows: Sequence[StoredMessage], stub_names: Collection[str]) -> tuple[set[str], dict[str, str]]:
    """Returns the ids of messages to remove, and by message id the texts of denied returns without Letta's words."""
    remove: set[str] = set()
    denied: dict[str, str] = {}
    of_stub, returned = False, False
    for row in rows:
        if is_nudge(row):
            remove.add(row.id)
        elif row.kind in (REQUEST, CALL):
            of_stub, returned = any(call.name in stub_names for call in row.calls), False
        elif of_stub and row.kind == _RESPONSE and not returned:
            remove.add(row.id)
        elif of_stub and row.kind == RETURN and not returned:
            returned = True
            text = find_provisional_text(row.text)
            if text not in (None, row.text):
                denied[row.id] = text
        elif of_stub and returned and is_heartbeat(row):
            remove.add(row.id)
            of_stub = False
        else:
            of_stub = False
    return remove, denied
