"""Converts the JSON Schema of a client's tool to the one that a Letta server gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bridge.stubs.as_sent import break_special_tokens, keep_schema_as_sent
from bridge.stubs.checks import SchemaLimits, check_converted_size, check_schema
from bridge.stubs.in_words import describe_schema
from bridge.stubs.naming import parameter_names
from bridge.stubs.normalise import normalise_schema
from bridge.stubs.parts import PartReader
from bridge.stubs.references import Definitions, Inlining
from bridge.stubs.strict_form import MAX_QUOTED, StrictFormBuilder
from bridge.stubs.subschemas import Schema, count_subschemas
from bridge.stubs.top_level import make_top_level
from bridge.stubs.unnamed import offer_unnamed_arguments
from bridge.stubs.work import Work
from bridge.turn import ArgumentPath, JsonObject, SchemaForm, ToolSpec


@dataclass(frozen=True, slots=True)
class Conversion:
    """A schema in the form for Letta, and what turns the model's arguments back into the client's form. `renamed` maps
    names that the model sees to the client's; `as_text` are the paths of values given as JSON text. `sentences` are to
    be added to the tool's description; `changes` say what differs from the client's schema. `unnamed`: see Stub.
    """

    parameters: Schema
    sentences: tuple[str, ...]
    renamed: Mapping[str, str]
    as_text: frozenset[ArgumentPath]
    unnamed: str
    changes: tuple[str, ...]


def convert_schema(parameters: JsonObject | None, form: SchemaForm, where: str, limits: SchemaLimits) -> Conversion:
    """Checks a client's schema (None: no parameters), and returns it in the form that a Letta server needs."""
    client = check_schema(parameters, where, limits)
    definitions = Definitions(client.schema, parameters)
    reader = PartReader(definitions, Work(), where)
    top = make_top_level(client.schema, reader)
    unnamed = offer_unnamed_arguments(top, form, reader)
    inlining = Inlining(definitions, keep=_references_to_keep(form))
    schema = inlining.inline(_remove_definitions(top.schema, inlining.keep))
    if top.quoted:
        inlined = [inlining.inline(one) for one in top.quoted]
        quoted = inlined[0] if len(inlined) == 1 else {"allOf": inlined}
        top.sentences.append(_quoting_sentence(quoted, definitions))
    if form.as_sent:
        as_text: set[ArgumentPath] = set()
        schema, changes = keep_schema_as_sent(schema, form.letta_converts)
    else:
        builder = StrictFormBuilder(definitions, form.nullable_types)
        schema, as_text, changes = builder.build(schema), builder.as_text, builder.changes
        top.sentences += builder.sentences
    check_converted_size({**schema, "description": top.sentences}, where, limits)
    names = parameter_names(schema["properties"], form.python_names)
    renamed = {server: client for client, server in names.items() if server != client}
    changes += [f"{name!r} is called {server!r} on the server." for server, name in renamed.items()]
    return Conversion(
        parameters=_rename_parameters(schema, names),
        sentences=tuple(top.sentences),
        renamed=renamed,
        as_text=frozenset(as_text),
        unnamed=unnamed,
        changes=tuple(dict.fromkeys([*top.changes, *inlining.changes, *changes, *client.changes])),
    )


def spend_work(spec: ToolSpec, where: str, work: Work) -> None:
    """Counts the work that a checked tool's schema asks for. Does not depend on the Letta server."""
    sent = spec.parameters or {}
    client = normalise_schema(sent).schema
    work.spend(count_subschemas(client), where)
    definitions = Definitions(client, sent)
    definitions.read_all()
    work.spend(definitions.read_elsewhere, where)
    make_top_level(client, PartReader(definitions, work, where))


def _quoting_sentence(quoted: Schema, definitions: Definitions) -> str:
    text = definitions.quote(quoted, MAX_QUOTED)
    return (
        f"The arguments must also fit {f'the JSON Schema {text}' if text else 'a JSON Schema that is too long here'}."
    )


def _references_to_keep(form: SchemaForm) -> Literal["all", "recursive", "none"]:
    """Returns which references to definitions stay. Letta drops all keywords beside the properties when it converts a
    schema to strict mode, and when it sends one to Anthropic. The bridge's strict mode handles recursive definitions
    itself.
    """
    if not form.as_sent:
        return "recursive"
    return "none" if form.letta_converts else "all"


def _remove_definitions(schema: Schema, kept: str) -> Schema:
    """Removes definitions unless `kept` is "all". `Definitions` finds them in the client's schema."""
    removed = () if kept == "all" else ("$defs", "definitions")
    return {key: value for key, value in schema.items() if key not in removed}


def _rename_parameters(schema: Schema, names: Mapping[str, str]) -> Schema:
    return {
        **schema,
        "properties": {
            names[name]: _describe_renaming(inner, name, names[name]) for name, inner in schema["properties"].items()
        },
        "required": [names[name] for name in schema["required"]],
    }


def _describe_renaming(schema: Schema, client_name: str, server_name: str) -> Schema:
    """Adds a client's other name to the description, and breaks up a tokenizer's special tokens there."""
    if client_name != server_name:
        schema = {**schema, "description": describe_schema(schema, f'the tool itself calls it "{client_name}"')}
    return {**schema, "description": break_special_tokens(schema["description"])} if "description" in schema else schema
