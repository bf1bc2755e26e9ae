"""The three tools by which an agent reaches tools of a client that it does not have: to search, to describe, to call.

The bridge answers the first two itself, with texts about the tools of the request. A call of the third becomes a call
of the client's tool, or is answered with what is wrong with it. The same call of the same request always gets the same
answer, so that a repeated turn recognises the answers that the agent has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from itertools import chain, count

from bridge.catalogue.catalogue import Catalogue
from bridge.json_text import storable_text
from bridge.stubs.arguments import member_text, remove_absent_arguments, remove_letta_arguments, text_without
from bridge.turn import Binding, ToolCall, ToolSpec

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

# Says what is wrong with arguments (JSON text) by the tool's schema; "" if nothing is, or if that can't be said.
Check = Callable[[ToolSpec, str], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the bridge answers to a call. `ok` is false if the name or the arguments were wrong. `brief`: what the
    operator is shown of a long answer.
    """

    text: str
    ok: bool = True
    brief: str = ""


@dataclass(frozen=True, slots=True)
class AccessNames:
    search: str
    describe: str
    call: str

    def to_text(self) -> str:
        return json.dumps(astuple(self))

    @classmethod
    def from_text(cls, text: str) -> AccessNames:
        return cls(*json.loads(text))


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


def called_tool(arguments: str) -> tuple[str, str] | None:
    """Returns name and arguments of the client's tool for which the bridge's own was called with these arguments."""
    name, given = _text_in(arguments, "name"), _object_in(_arguments_in(remove_letta_arguments(arguments)))
    return (name, given) if name and given is not None else None


@dataclass(frozen=True, slots=True)
class ToolAccess:
    """The three tools for one request. `shown` has the names that the agent's model sees in place of these."""

    catalogue: Catalogue
    names: AccessNames
    check: Check
    shown: Mapping[str, str] = field(default_factory=dict)

    def shown_as(self, shown: Mapping[str, str]) -> ToolAccess:
        return replace(self, shown=shown)

    def without_its_own(self, bindings: Iterable[Binding]) -> tuple[Binding, ...]:
        """Returns the bindings of the client's own tools."""
        return tuple(one for one in bindings if self.catalogue.find(one.stub.spec.name) is not None)

    def answer(self, call: ToolCall) -> ToolCall | Answer | None:
        """Returns the answer to a call of one of the three tools, or the call of the client's tool that it asks for.
        Returns None for a call of any other tool.
        """
        found = self._answer(call)
        return replace(found, text=storable_text(found.text)) if isinstance(found, Answer) else found

    def _answer(self, call: ToolCall) -> ToolCall | Answer | None:
        if call.name == self.names.search:
            return self._search(call)
        if call.name == self.names.describe:
            return self._describe(_text_in(call.arguments, "name"))
        return self._call(call) if call.name == self.names.call else None

    def _search(self, call: ToolCall) -> Answer:
        words = _text_in(call.arguments, "words")
        text = self.catalogue.search_answer(words, self._shown_names)
        if not words and text_without(call.arguments, "words") not in ("{}", None):
            return Answer(
                f"The argument `words` is missing: a text that says what the tool should do. {text}", ok=False
            )
        found = self.catalogue.search(words) if words else ()
        return Answer(text, brief=", ".join(spec.name for spec in found) or "nothing found")

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
        given = _object_in(_arguments_in(call.arguments))
        if given is None:
            return Answer(f"The arguments for {spec.name} must be one JSON object. Nothing was called.", ok=False)
        arguments = remove_absent_arguments(spec, given)
        fault = self.check(spec, arguments)
        return self._wrong_arguments(spec, fault) if fault else ToolCall(call.id, spec.name, arguments)

    def _wrong_name(self, name: str) -> Answer:
        if not name:
            return Answer("The argument `name` is missing: the exact name of a tool that the search found.", ok=False)
        if name in self.shown or name in self.shown.values():
            return Answer(f"{name} is called by itself, not by its name in another tool's arguments.", ok=False)
        near = ", ".join(self.catalogue.nearest(name, NEAREST))
        known = f" The nearest names are: {near}." if near else ""
        return Answer(
            f"The user's application has no tool {name!r:.100}.{known} To find others: {self._shown_names.search}.",
            ok=False,
        )

    def _wrong_arguments(self, spec: ToolSpec, fault: str) -> Answer:
        schema = json.dumps(_parameters_of(spec), ensure_ascii=False)
        shown = f"Their schema: {schema}" if len(schema) <= LONGEST_SCHEMA else f"See {self._shown_names.describe}."
        return Answer(f"The arguments do not fit {spec.name}: {fault}. Nothing was called. {shown}", ok=False)


def _parameters_of(spec: ToolSpec) -> object:
    return spec.parameters or {"type": "object", "properties": {}}


def _arguments_in(arguments: str) -> str | None:
    """Returns the JSON text of the arguments for the client's tool. Many models write them beside the name."""
    inner = member_text(arguments, "arguments")
    return text_without(arguments, "name") if inner == "" else inner


def _text_in(arguments: str, name: str) -> str:
    """Returns the text that a call has as this argument; "" if it has none."""
    try:
        value = json.loads(member_text(arguments, name) or '""')
    except (ValueError, RecursionError):  # such as a number of thousands of digits
        return ""
    return value.strip() if isinstance(value, str) else ""


def _object_in(text: str | None) -> str | None:
    """Returns the JSON text of an object, which a model may have put into a string; an empty one for "". Returns None
    for anything else.
    """
    for _ in range(2):
        try:
            value = json.loads(text or "{}") if text is not None else None
        except (ValueError, RecursionError):
            return None
        if isinstance(value, dict):
            return text or "{}"
        if not isinstance(value, str):
            return None
        text = value
    return None
