"""Tool calls that a model writes into its text, between tags that only this turn knows. Pure.

    <call-3f9c01ab>{"name": "read_file", "arguments": {"path": "a.txt"}}</call-3f9c01ab>

The number in the tag is new in every turn, so nothing that was written before, in a file or in a quote, can be taken
for a call. A tag counts only at the beginning of a line and outside of fenced code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.turn import JsonObject, ToolSpec

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True)
class TaggedCall:
    """A call as it was written; `fault` says what is wrong with it, "" when it can be made."""

    name: str
    arguments: str
    fault: str = ""


class TaggedText:
    """Takes a text in pieces and tells it apart: what is for the user, and what is a call."""

    def __init__(self, nonce: str, tools: Mapping[str, ToolSpec]) -> None:
        self._open, self._close = f"<call-{nonce}>", f"</call-{nonce}>"
        self._tools = tools
        self._rest = ""
        self._said = ""
        self._in_call = False

    def feed(self, piece: str) -> Iterator[str | TaggedCall]:
        """What is certain after this piece. Text that might become a tag is held back, and nothing else."""
        self._rest += piece
        while True:
            step = self._next_call() if self._in_call else self._next_text()
            if step is None:
                return
            if step:
                yield step

    def end(self) -> Iterator[str | TaggedCall]:
        """What was held back; a call that was never closed is text."""
        rest = (self._open if self._in_call else "") + self._rest
        self._rest, self._in_call = "", False
        if rest:
            yield rest

    def _next_call(self) -> TaggedCall | None:
        body, closed, after = self._rest.partition(self._close)
        if not closed:
            return None
        self._rest, self._in_call = after, False
        return self._call(body)

    def _next_text(self) -> str | None:
        """The text up to a tag, "" when a tag is next, None when more has to come first."""
        start = self._rest.find(self._open)
        if start >= 0 and self._counts(self._said + self._rest[:start]):
            text, self._rest = self._rest[:start], self._rest[start + len(self._open) :]
            self._in_call = True
            return self._say(text)
        sure = start + len(self._open) if start >= 0 else len(self._rest) - _overlap(self._rest, self._open)
        text, self._rest = self._rest[:sure], self._rest[sure:]
        return self._say(text) or None

    def _say(self, text: str) -> str:
        self._said += text
        return text

    @staticmethod
    def _counts(before: str) -> bool:
        line = before.rpartition("\n")[2]
        fences = len(re.findall(r"^\s*```", before, re.M))
        return not line.strip() and fences % 2 == 0

    def _call(self, body: str) -> TaggedCall:
        try:
            value = json.loads(body)
        except ValueError:
            return TaggedCall("", body, "what stands between the tags is not valid JSON")
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self._tools:
            return TaggedCall(str(name), body, f"there is no tool {str(name)!r:.80}")
        arguments = value.get("arguments", {})
        written = json.dumps(arguments, ensure_ascii=False)
        return TaggedCall(name, written, fault_of(arguments, self._tools[name].parameters or {}))


def fault_of(arguments: Any, schema: JsonObject) -> str:
    """What in the arguments does not fit the schema's first level; "" when they fit."""
    if not isinstance(arguments, dict):
        return "`arguments` must be a JSON object"
    required = schema.get("required")
    missing = [name for name in required if name not in arguments] if isinstance(required, list) else []
    if missing:
        return f"the required argument {missing[0]!r} is missing"
    properties = schema.get("properties")
    for name, value in arguments.items():
        described = properties.get(name) if isinstance(properties, dict) else None
        types = described.get("type") if isinstance(described, dict) else None
        if types is not None and not any(_is(value, kind) for kind in (types if isinstance(types, list) else [types])):
            return f"the argument {name!r} must be of type {types}"
    return ""


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    return isinstance(value, _TYPES.get(kind, (object,))) or (kind == "integer" and _is_whole(value))


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _overlap(text: str, tag: str) -> int:
    """How much of the end of `text` may be the beginning of `tag`."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
