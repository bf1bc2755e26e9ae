"""Lists the input of a kept response, in pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bridge.errors import InvalidRequest
from bridge.turn import JsonObject

MOST = 100


def list_items(items: Sequence[Any], asked: Mapping[str, str]) -> JsonObject:
    """Returns one page of the items, the newest first. `asked` are the parameters `limit`, `order` and `after`."""
    order, after = asked.get("order", "desc"), asked.get("after", "")
    limit = asked.get("limit", "20")
    if order not in ("asc", "desc"):
        raise InvalidRequest('`order` must be "asc" or "desc".', param="order")
    if not limit.isascii() or not limit.isdigit() or len(limit) > 3 or not 1 <= int(limit) <= MOST:
        raise InvalidRequest(f"`limit` must be a whole number from 1 to {MOST}.", param="limit")
    shown = [_with_id(item, place) for place, item in enumerate(items) if isinstance(item, dict)]
    shown = shown if order == "asc" else shown[::-1]
    places = [place for place, item in enumerate(shown) if item["id"] == after]
    rest = shown[places[0] + 1 :] if places else shown
    page = rest[: int(limit)]
    ends = {"first_id": page[0]["id"] if page else None, "last_id": page[-1]["id"] if page else None}
    return {"object": "list", "data": page, **ends, "has_more": len(rest) > len(page)}


def _with_id(item: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Returns an item with what clients expect of each: an id, a type, and the content of a message in parts."""
    given = {"id": f"item_{place}", "type": "message", **item}
    content = given.get("content")
    if isinstance(content, str):
        kind = "output_text" if given.get("role") == "assistant" else "input_text"
        part: dict[str, Any] = {"type": kind, "text": content}
        given["content"] = [part | {"annotations": []} if kind == "output_text" else part]
    return given
