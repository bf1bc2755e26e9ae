"""The data of the pages on which the operator tries a call."""

from __future__ import annotations

from typing import Any

from bridge.history.activity import Activity
from bridge.letta.gateway import HELPER_PREFIX
from bridge.operation.tried_calls import read_try, usual_words
from bridge.web.admin.page_data import PageData

Data = dict[str, Any]
# The tools that the form lists: those that were used last.
MOST_TOOLS = 200


def try_data(page: PageData) -> Data:
    """Returns what the form offers. The address's arguments `tool`, a digest, and `agent`, an id, are its choice."""
    uses = page.read_history(Activity.tool_uses) or {}
    chosen, agent = page.arguments.get("tool", ""), page.arguments.get("agent", "")
    newest = sorted(uses, key=lambda digest: (digest != chosen, -uses[digest].last))[:MOST_TOOLS]
    tools = sorted(((uses[digest].client_name, digest) for digest in newest), key=lambda one: (one[0].lower(), one[1]))
    shown = [one for one in page.snapshot().agents if not one.name.startswith(HELPER_PREFIX)]
    return {
        "tools": [{"digest": digest, "name": name} for name, digest in tools],
        "tool": chosen if chosen in uses else tools[0][1] if tools else "",
        "agents": sorted(({"id": one.id, "name": one.name} for one in shown), key=lambda one: one["name"].lower()),
        "agent": agent,
        "words": usual_words(uses[chosen].client_name) if chosen in uses else "",
    }


def tried_data(page: PageData, try_id: str) -> Data:
    """Returns one try."""
    tried = read_try(page.parts.store, try_id)
    return {"tried": tried, "is_running": tried.is_running}
