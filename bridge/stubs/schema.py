"""Converts a client's parameters to those that a Letta server gets, and keeps what leads back to the client's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bridge.stubs.as_sent import keep_schema_as_sent, plain_text
from bridge.stubs.checks import SchemaLimits, check_converted_size, check_schema
from bridge.stubs.in_words import described
from bridge.stubs.naming import parameter_names
from bridge.stubs.normalise import normalised
from bridge.stubs.references import Definitions, Inlining
from bridge.stubs.strict_form import StrictFormBuilder
from bridge.stubs.subschemas import Schema
from bridge.stubs.top_level import top_level_object
from bridge.turn import ArgumentPath, JsonObject, SchemaForm


@dataclass(frozen=True, slots=True)
class Conversion:
    """`sentences` are for the tool's description; the other fields are as in Stub."""

    parameters: Schema
    sentences: tuple[str, ...]
    renamed: Mapping[str, str]
    as_text: frozenset[ArgumentPath]
    changes: tuple[str, ...]


def convert(parameters: JsonObject | None, form: SchemaForm, where: str, limits: SchemaLimits) -> Conversion:
    check_schema(parameters, where, limits)
    client = normalised(parameters or {})
    definitions = Definitions(client)
    top = top_level_object(client, definitions, where)
    inlining = Inlining(definitions, keep=_kept_references(form))
    schema = inlining.of(_without_definitions(top.schema, inlining.keep))
    if form.as_sent:
        as_text: set[ArgumentPath] = set()
        schema, changes = keep_schema_as_sent(schema, form.letta_converts)
    else:
        builder = StrictFormBuilder(definitions, form.nullable_types)
        schema, as_text, changes = builder.build(schema), builder.as_text, builder.changes
        top.sentences += builder.sentences
    check_converted_size(schema, where, limits)
    names = parameter_names(schema["properties"], form.python_names)
    renamed = {server: client for client, server in names.items() if server != client}
    changes += [f"{name!r} is called {server!r} on the server." for server, name in renamed.items()]
    return Conversion(
        parameters=_with_names(schema, names),
        sentences=tuple(top.sentences),
        renamed=renamed,
        as_text=frozenset(as_text),
        changes=tuple(dict.fromkeys([*top.changes, *inlining.changes, *changes])),
    )


def _kept_references(form: SchemaForm) -> Literal["all", "recursive", "none"]:
    """Letta's conversion to the strict form and its way to Anthropic drop what is beside the properties."""
    if not form.as_sent:
        return "recursive"
    return "none" if form.letta_converts else "all"


def _without_definitions(schema: Schema, kept: str) -> Schema:
    """Removes the definitions that are spelt out where they are referred to; OpenAPI's `components` always are."""
    removed = ("components",) if kept == "all" else ("$defs", "definitions", "components")
    return {key: value for key, value in schema.items() if key not in removed}


def _with_names(schema: Schema, names: Mapping[str, str]) -> Schema:
    return {
        **schema,
        "properties": {names[name]: _named(inner, name, names[name]) for name, inner in schema["properties"].items()},
        "required": [names[name] for name in schema["required"]],
    }


def _named(schema: Schema, client_name: str, server_name: str) -> Schema:
    if client_name != server_name:
        schema = {**schema, "description": described(schema, f'the tool itself calls it "{client_name}"')}
    return {**schema, "description": plain_text(schema["description"])} if "description" in schema else schema
