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
    """A tool call as the model wrote it into its text.

    `arguments` is a JSON text. `fault` says what is wrong with the call; "" if the call is valid. If the name is
    missing or unknown, `arguments` is the whole text between the tags.
    """

    name: str
    arguments: str
    fault: str = ""


class TaggedText:
    """Takes the model's text in pieces, and separates the tool calls in it from the text for the user.

    `nonce` is the number in the tags. `tools` are the client's tools by name.
    """

    def __init__(self, nonce: str, tools: Mapping[str, ToolSpec]) -> None:
        self._open, self._close = f"<call-{nonce}>", f"</call-{nonce}>"
        self._tools = tools
        self._rest = ""
        self._passed = ""
        self._in_call = False

    def feed(self, piece: str) -> Iterator[str | TaggedCall]:
        """Adds a piece of the model's text, and yields the texts and calls that are complete by then.

        An end of the text that may be the beginning of a tag, and a call without its closing tag, are kept until the
        next piece.
        """
        self._rest += piece
        while (step := self._take_call() if self._in_call else self._take_text()) is not None:
            if step:
                yield step

    def end(self) -> Iterator[str | TaggedCall]:
        """Yields the text that `feed` has kept, because the model writes no more text.

        A call without a closing tag is yielded as text, with its opening tag.
        """
        rest = (self._open if self._in_call else "") + self._rest
        self._rest, self._in_call = "", False
        if rest:
            yield rest

    def _take_call(self) -> TaggedCall | None:
        """Removes a call from the unread text and returns the call, or None as long as its closing tag is missing."""
        body, closed, after = self._rest.partition(self._close)
        if not closed:
            return None
        self._rest, self._in_call = after, False
        return self._parse_call(body)

    def _take_text(self) -> str | None:
        """Removes the text before the next opening tag from the unread text and returns the removed text.

        The tag is removed, too. Returns "" if the tag comes first. Without a tag that counts, returns all text that
        cannot be the beginning of a tag, or None if there is no such text.
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
        """Adds `text` to the text that was passed on to the user, and returns `text`.

        The text that was passed on shows whether a tag is at the beginning of a line and outside of fenced code.
        """
        self._passed += text
        return text

    @staticmethod
    def _may_be_tag(before: str) -> bool:
        """Returns whether a tag may follow the text `before`: at the beginning of a line, outside of fenced code."""
        line = before.rpartition("\n")[2]
        fences = len(re.findall(r"^\s*```", before, re.M))
        return not line.strip() and fences % 2 == 0

    def _parse_call(self, body: str) -> TaggedCall:
        """Returns the call that the JSON text between two tags describes, with a `fault` if the call is not valid."""
        try:
            value = json.loads(body)
        except ValueError:
            return TaggedCall("", body, "the text between the tags is not valid JSON")
        name = value.get("name") if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in self._tools:
            return TaggedCall(str(name), body, f"there is no tool {str(name)!r:.80}")
        arguments = value.get("arguments", {})
        written = json.dumps(arguments, ensure_ascii=False)
        return TaggedCall(name, written, find_argument_fault(arguments, self._tools[name].parameters or {}))


def find_argument_fault(arguments: Any, schema: JsonObject) -> str:
    """Returns a text that says what is wrong with a call's arguments, "" if nothing is wrong.

    `schema` is the JSON Schema of the tool's parameters. Checks only that the arguments are an object, that required
    arguments are there, and that each argument has its JSON Schema type. Values inside of an argument are not checked.
    """
    if not isinstance(arguments, dict):
        return "`arguments` must be a JSON object"
    required, properties = schema.get("required"), schema.get("properties")
    missing = [name for name in required if name not in arguments] if isinstance(required, list) else []
    if missing:
        return f"the required argument {missing[0]!r} is missing"
    for name, value in arguments.items():
        described = properties.get(name) if isinstance(properties, dict) else None
        types = described.get("type") if isinstance(described, dict) else None
        if types is not None and not any(
            _has_type(value, kind) for kind in (types if isinstance(types, list) else [types])
        ):
            return f"the argument {name!r} must be of type {types}"
    return ""


def _has_type(value: Any, kind: Any) -> bool:
    """Returns whether a JSON value has the JSON Schema type `kind`. True for every value if the type is unknown."""
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    if kind in ("integer", "number") and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(kind, object))


def _length_of_partial_tag(text: str, tag: str) -> int:
    """Returns how many characters at the end of `text` may be the beginning of `tag`, 0 if none.

    The whole tag does not count. The longest possible beginning is taken.
    """
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
