"""A client's parameters -> the parameters that a Letta server is given, and the way back to the client's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bridge.stubs.as_sent import kept_verbatim, plain_text
from bridge.stubs.checks import Limits, check_schema, check_spelt_out
from bridge.stubs.in_words import described
from bridge.stubs.naming import parameter_names
from bridge.stubs.normalise import tidied
from bridge.stubs.references import Definitions, Inlining
from bridge.stubs.strict_form import Simplification
from bridge.stubs.subschemas import Schema
from bridge.stubs.top_level import object_root
from bridge.turn import ArgumentPath, JsonObject, SchemaForm


@dataclass(frozen=True, slots=True)
class Conversion:
    """`words` belong into the tool's description; the rest is as in Stub."""

    parameters: Schema
    words: tuple[str, ...]
    renamed: Mapping[str, str]
    as_text: frozenset[ArgumentPath]
    changes: tuple[str, ...]


def convert(parameters: JsonObject | None, form: SchemaForm, where: str, limits: Limits) -> Conversion:
    check_schema(parameters, where, limits)
    client = tidied(parameters or {})
    definitions = Definitions(client)
    root = object_root(client, definitions, where)
    inlining = Inlining(definitions, keep=_kept_references(form))
    schema = inlining.of(_without_definitions(root.schema, inlining.keep))
    if form.as_sent:
        as_text: set[ArgumentPath] = set()
        schema, changes = kept_verbatim(schema, form.letta_converts)
    else:
        simplification = Simplification(definitions, form.nullable_types)
        schema, as_text, changes = simplification.of(schema), simplification.as_text, simplification.changes
        root.words += simplification.words
    check_spelt_out(schema, where, limits)
    names = parameter_names(schema["properties"], form.python_names)
    renamed = {server: client for client, server in names.items() if server != client}
    changes += [f"{name!r} is called {server!r} on the server." for server, name in renamed.items()]
    return Conversion(
        parameters=_with_names(schema, names),
        words=tuple(root.words),
        renamed=renamed,
        as_text=frozenset(as_text),
        changes=tuple(dict.fromkeys([*root.changes, *inlining.changes, *changes])),
    )


def _kept_references(form: SchemaForm) -> Literal["all", "recursive", "none"]:
    """Where Letta converts, and on its way to Anthropic, what stands beside the properties is dropped."""
    if not form.as_sent:
        return "recursive"
    return "none" if form.letta_converts else "all"


def _without_definitions(schema: Schema, kept: str) -> Schema:
    """What OpenAPI refers to is spelt out everywhere, so it never stays."""
    leaving = ("components",) if kept == "all" else ("$defs", "definitions", "components")
    return {key: value for key, value in schema.items() if key not in leaving}


def _with_names(schema: Schema, names: Mapping[str, str]) -> Schema:
    return {
        **schema,
        "properties": {names[name]: _named(inner, name, names[name]) for name, inner in schema["properties"].items()},
        "required": [names[name] for name in schema["required"]],
    }


def _named(schema: Schema, client_name: str, server_name: str) -> Schema:
    if client_name != server_name:
        schema = {**schema, "description": described(schema, f'the tool itself calls it "{client_name}"')}
    return _countable_note(schema)


def _countable_note(schema: Schema) -> dict[str, Any]:
    if "description" in schema:
        return {**schema, "description": plain_text(schema["description"])}
    return schema
