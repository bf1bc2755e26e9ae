"""The three tools by which an agent reaches tools of a client that it does not have: to search, to describe, to call.

The bridge answers the first two itself, with texts about the tools of the request. A call of the third becomes a call
of the client's tool, or is answered with what is wrong with it. The same call of the same request always gets the same
answer, so that a repeated turn recognises the answers that the agent has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count

from bridge.catalogue.catalogue import Catalogue
from bridge.json_text import storable_text
from bridge.stubs.arguments import member_text, remove_absent_arguments
from bridge.stubs.naming import LETTA_PARAMETERS
from bridge.turn import ToolCall, ToolSpec

# Characters of a tool's description with its schema, and of a schema that is shown because arguments do not fit it.
LONGEST_DESCRIPTION = 40_000
LONGEST_SCHEMA = 4_000
NEAREST = 5

_WORDS = {
    "type": "string",
    "description": "What the tool should do, in a few words. Empty: which groups of tools exist.",
}
_NAME = {"type": "string", "description": "The tool's exact name, as the search shows it."}
_ARGUMENTS = {"type": "object", "description": "The tool's arguments, as its schema asks for them."}

# The names under which models see the three tools: with a beginning where a client has a tool of that name, and with a
# part of a digest where another tool on the server has it.
_NAMED = re.compile(r"(?:bridge_)?(search_tools|describe_tool|call_tool)(?:_\d{1,4})?(?:_[0-9a-f]{8,})?")
_ASKED = {"search_tools": {"words"}, "describe_tool": {"name"}, "call_tool": {"name", "arguments"}}

# Says what is wrong with arguments (JSON text) by the tool's schema; "" if nothing is, or if that can't be said.
Check = Callable[[ToolSpec, str], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the bridge answers to a call. `ok` is false if the name or the arguments were wrong."""

    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class AccessNames:
    search: str
    describe: str
    call: str


def choose_names(catalogue: Catalogue) -> AccessNames:
    """Returns names that no tool of the client has: its tools keep their names."""

    def free(name: str) -> str:
        names = chain([name, f"bridge_{name}"], (f"bridge_{name}_{number}" for number in count(2)))
        return next(name for name in names if catalogue.find(name) is None)

    return AccessNames(free("search_tools"), free("describe_tool"), free("call_tool"))


def access_tools(names: AccessNames) -> tuple[ToolSpec, ...]:
    """Returns the three tools as the agent's model sees them."""
    return (
        ToolSpec(
            names.search,
            "Finds tools of the user's application by words. It has many more tools than are listed here. Search before"
            " you say that something can't be done.",
            {"type": "object", "properties": {"words": _WORDS}, "required": ["words"]},
        ),
        ToolSpec(
            names.describe,
            "Shows what a tool that the search found does, and the exact JSON Schema of its arguments.",
            {"type": "object", "properties": {"name": _NAME}, "required": ["name"]},
        ),
        ToolSpec(
            names.call,
            "Calls a tool that the search found, and returns its result. Tools that are listed here are called by"
            " themselves.",
            {
                "type": "object",
                "properties": {"name": _NAME, "arguments": _ARGUMENTS},
                "required": ["name", "arguments"],
            },
        ),
    )


def is_look_up(name: str, arguments: str) -> bool:
    """Returns whether a call that is stored on the server is one that the bridge answers itself."""
    return _named(name, arguments) in ("search_tools", "describe_tool")


def called_tool(name: str, arguments: str) -> tuple[str, str] | None:
    """Returns name and arguments of the client's tool that a stored call asks for; None for a call of another tool."""
    if _named(name, arguments) != "call_tool":
        return None
    inner = _object_in(member_text(arguments, "arguments") or "{}")
    tool = _text_in(arguments, "name")
    return (tool, inner) if tool and inner is not None else None


def _named(name: str, arguments: str) -> str:
    """Returns which of the three tools a stored call is of, by its name and the names of its arguments; "" for none."""
    found = _NAMED.fullmatch(name)
    try:
        given = json.loads(arguments or "{}") if found else None
    except (ValueError, RecursionError):
        return ""
    is_ours = found is not None and isinstance(given, dict) and given.keys() - LETTA_PARAMETERS <= _ASKED[found[1]]
    return found[1] if found is not None and is_ours else ""


@dataclass(frozen=True, slots=True)
class ToolAccess:
    """The three tools for one request. `shown` has the names that the agent's model sees in place of these."""

    catalogue: Catalogue
    names: AccessNames
    check: Check
    shown: Mapping[str, str] = field(default_factory=dict)

    def shown_as(self, shown: Mapping[str, str]) -> ToolAccess:
        return replace(self, shown=shown)

    def count_hidden(self, offered: Iterable[str]) -> int:
        """Returns how many tools the agent can only find, if it has those of these names itself."""
        return len(self.catalogue) - sum(self.catalogue.find(name) is not None for name in offered)

    def answer(self, call: ToolCall) -> ToolCall | Answer | None:
        """Returns the answer to a call of one of the three tools, or the call of the client's tool that it asks for.
        Returns None for a call of any other tool.
        """
        found = self._answer(call)
        return replace(found, text=storable_text(found.text)) if isinstance(found, Answer) else found

    def _answer(self, call: ToolCall) -> ToolCall | Answer | None:
        if call.name == self.names.search:
            return Answer(self.catalogue.search_answer(_text_in(call.arguments, "words"), self._shown_names))
        if call.name == self.names.describe:
            return self._describe(_text_in(call.arguments, "name"))
        return self._call(call) if call.name == self.names.call else None

    @property
    def _shown_names(self) -> AccessNames:
        names = self.names
        return AccessNames(*(self.shown.get(name, name) for name in (names.search, names.describe, names.call)))

    def _describe(self, name: str) -> Answer:
        spec = self.catalogue.find(name)
        if spec is None:
            return self._wrong_name(name)
        described = {"name": spec.name, "description": spec.description, "parameters": _parameters_of(spec)}
        text = json.dumps(described, ensure_ascii=False)
        if len(text) > LONGEST_DESCRIPTION:
            text = f"{text[:LONGEST_DESCRIPTION]} [{len(text) - LONGEST_DESCRIPTION} more characters are left out]"
        return Answer(f"{text}\nTo call it: {self._shown_names.call}.")

    def _call(self, call: ToolCall) -> ToolCall | Answer:
        name = _text_in(call.arguments, "name")
        spec = self.catalogue.find(name)
        if spec is None:
            return self._wrong_name(name)
        given = _object_in(member_text(call.arguments, "arguments") or "{}")
        if given is None:
            return Answer(f"The arguments for {spec.name} must be one JSON object. Nothing was called.", ok=False)
        arguments = remove_absent_arguments(spec, given)
        fault = self.check(spec, arguments)
        return self._wrong_arguments(spec, fault) if fault else ToolCall(call.id, spec.name, arguments)

    def _wrong_name(self, name: str) -> Answer:
        near = ", ".join(self.catalogue.nearest(name, NEAREST))
        known = f" The nearest names are: {near}." if near else ""
        return Answer(
            f"The user's application has no tool {name!r:.100}, and nothing was called.{known} To find others:"
            f" {self._shown_names.search}.",
            ok=False,
        )

    def _wrong_arguments(self, spec: ToolSpec, fault: str) -> Answer:
        schema = json.dumps(_parameters_of(spec), ensure_ascii=False)
        shown = f"Their schema: {schema}" if len(schema) <= LONGEST_SCHEMA else f"See {self._shown_names.describe}."
        return Answer(f"The arguments do not fit {spec.name}: {fault}. Nothing was called. {shown}", ok=False)


def _parameters_of(spec: ToolSpec) -> object:
    return spec.parameters or {"type": "object", "properties": {}}


def _text_in(arguments: str, name: str) -> str:
    """Returns the text that a call has as this argument; "" if it has none."""
    value = json.loads(member_text(arguments, name) or '""')
    return value.strip() if isinstance(value, str) else ""


def _object_in(text: str) -> str | None:
    """Returns the JSON text of an object, which a model may have put into a string; None for anything else."""
    for _ in range(2):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if isinstance(value, dict):
            return text
        if not isinstance(value, str):
            return None
        text = value or "{}"
    return None
