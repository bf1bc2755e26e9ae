"""Makes conversations for servers without them: another name for an agent's one history. An id contains all that is
known of its conversation, so it is valid after a restart, and in front of another bridge.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from bridge.turn import JsonObject

# The agent's id, the time in hexadecimal seconds since 1970, and what makes the id unique.
_OURS = re.compile(r"conv-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9a-f]{8})[0-9a-f]{8}")


def new_conversation_id(agent_id: str, now: float) -> str:
    return f"conv-{agent_id.removeprefix('agent-')}-{int(now):08x}{secrets.token_hex(4)}"


def agent_of_conversation(conversation_id: str) -> str:
    """Returns the id of the agent, "" if the bridge did not make the conversation."""
    parts = _OURS.fullmatch(conversation_id)
    return f"agent-{parts[1]}" if parts else ""


def conversation_object(conversation_id: str, message_ids: Sequence[str]) -> JsonObject:
    """Returns what Letta says of a conversation; `message_ids` are those in its context."""
    parts = _OURS.fullmatch(conversation_id)
    made = datetime.fromtimestamp(int(parts[2], 16) if parts else 0, UTC).isoformat()
    return {
        "id": conversation_id,
        "agent_id": agent_of_conversation(conversation_id),
        "created_at": made,
        "updated_at": made,
        "created_by_id": None,
        "last_updated_by_id": None,
        "summary": None,
        "in_context_message_ids": list(message_ids),
        "isolated_block_ids": [],
        "model": None,
        "model_settings": None,
        "last_message_at": None,
    }
