"""The kinds of calls to Letta, for metrics and log lines: paths without the ids in them."""

from __future__ import annotations

# The fixed words of the paths that the bridge itself calls. Every other part of such a path is an id or a label.
_FIXED_WORDS = frozenset(
    {
        *("v1", "agents", "attach", "blocks", "cancel", "core-memory", "health", "import", "messages"),
        *("openapi.json", "recompile", "steps", "stream", "tools", "runs"),
    }
)
# More words that a client's path may begin with or have after the first id.
_FOREIGN_WORDS = _FIXED_WORDS | {
    *("archival-memory", "archives", "conversations", "files", "folders", "groups", "identities", "jobs"),
    *("mcp-servers", "models", "passages", "providers", "sources", "summarize"),
}


def path_template(path: str, words: frozenset[str] = _FIXED_WORDS) -> str:
    """Returns the path with "{id}" in place of each id and label."""
    return "/".join(word if word in words or not word else "{id}" for word in path.split("/"))


def foreign_template(path: str) -> str:
    """Returns the template of a client's path: its collection, an id and the part after the id, then "..." for more.
    So there are few templates, whatever clients send.
    """
    parts = path.strip("/").split("/")
    counted = ["{id}" if place == 2 else word for place, word in enumerate(parts[:4])]
    return "/" + path_template("/".join(counted), _FOREIGN_WORDS) + "/..." * (len(parts) > 4)
