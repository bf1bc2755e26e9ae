"""Finds tool calls that a model writes into its text, between tags that only this turn has. Pure.

    <call-3f9c01ab>{"name": "read_file", "arguments": {"path": "a.txt"}}</call-3f9c01ab>

The hexadecimal number in the tag is new in every turn, so older text, in a file or in a quote, is never read as a call.
A tag counts only at the beginning of a line and outside of fenced code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.stubs.arguments import remove_absent_arguments
from bridge.stubs.normalise import declared_types, normalise_schema
from bridge.turn import JsonObject, ToolSpec

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


@dataclass(frozen=True, slots=True)
class TaggedCall:
    """A tool call in the model's text. `fault` says what is wrong with it, "" if nothing is. `arguments` is a JSON
    text, or the whole text between the tags if the name is missing or unknown.
    """

    name: str
    arguments: str
    fault: str = ""


class TaggedText:
    """Separates the tool calls in the model's text from the text for the user. `nonce` is the number in the tags."""

    def __init__(self, nonce: str, tools: Mapping[str, ToolSpec]) -> None:
        self._open, self._close = f"<call-{nonce}>", f"</call-{nonce}>"
        self._tools = tools
        self._rest = ""
        self._passed = ""
        self._in_call = False

    def feed(self, piece: str) -> Iterator[str | TaggedCall]:
        """Adds a piece of the model's text, and yields the texts and calls that are complete by then."""
        self._rest += piece
        while (step := self._take_call() if self._in_call else self._take_text()) is not None:
            if step:
                yield step

    def end(self) -> Iterator[str]:
        """Yields the kept text, because the model writes no more. A call without a closing tag is yielded as text."""
        rest = (self._open if self._in_call else "") + self._rest
        self._rest, self._in_call = "", False
        if rest:
            yield rest

    def _take_call(self) -> TaggedCall | None:
        body, closed, after = self._rest.partition(self._close)
        if not closed:
            return None
        self._rest, self._in_call = after, False
        return self._parse_call(body)

    def _take_text(self) -> str | None:
        """Removes the text before the next tag, and the tag, and returns the text, "" if the tag comes first. Without a
        tag, takes only what cannot be the beginning of a tag, None if nothing.
        """
        start = self._rest.find(self._open)
        if start >= 0 and self._may_be_tag(self._passed + self._rest[:start]):
            text, self._rest = self._rest[:start], self._rest[start + len(self._open) :]
            self._in_call = True
            return self._pass_on(text)
        sure = (
            start + len(self._open) if start >= 0 else len(self._rest) - _length_of_partial_tag(self._rest, self._open)
        )
        text, self._rest = self._rest[:sure], self._rest[sure:]
        return self._pass_on(text) or None

    def _pass_on(self, text: str) -> str:
        self._passed += text
        return text

    @staticmethod
    def _may_be_tag(before: str) -> bool:
        """Returns whether a tag may follow the text `before`: at the beginning of a line, outside of fenced code."""
        line = before.rpartition("\n")[2]
        fences = len(re.findall(r"^[ \t]*```", before, re.M))
        return not line.strip() and fences % 2 == 0

    def _parse_call(self, body: str) -> TaggedCall:
        try:
            value = json.loads(body)
            # JSON has no NaN and no infinite numbers, although Python reads them.
            json.dumps(value, allow_nan=False)
        except (ValueError, RecursionError):
            return TaggedCall("", body, "the text between the tags is not valid JSON")
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self._tools:
            return TaggedCall(str(name), body, f"there is no tool {str(name)!r:.80}")
        tool = self._tools[name]
        written = remove_absent_arguments(tool, json.dumps(value.get("arguments", {}), ensure_ascii=False))
        schema = normalise_schema(tool.parameters or {}).schema
        return TaggedCall(name, written, find_argument_fault(json.loads(written), schema))


def find_argument_fault(arguments: Any, schema: JsonObject) -> str:
    """Says what is wrong with a call's arguments by the tool's normalised schema; "" if nothing is. Skips nested
    values.
    """
    if not isinstance(arguments, dict):
        return "`arguments` must be a JSON object"
    missing = [name for name in schema.get("required", []) if name not in arguments]
    if missing:
        return f"the required argument {missing[0]!r} is missing"
    for name, value in arguments.items():
        types = declared_types(schema.get("properties", {}).get(name, {}))
        if types and not any(_has_type(value, kind) for kind in types):
            return f"the argument {name!r} must be of type {' or '.join(types)}"
    return ""


def _has_type(value: Any, kind: str) -> bool:
    """Returns whether a JSON value has the JSON Schema type `kind`."""
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES[kind])


def _length_of_partial_tag(text: str, tag: str) -> int:
    """Returns how many characters at the end of `text` may be the beginning of `tag`. The whole tag does not count."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
