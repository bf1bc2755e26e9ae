"""Makes of the OpenAPI description what the page /docs shows: operations, tables of fields, and requests for curl."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.web.openapi.parts import Schema

_SCHEMA_PREFIX = "#/components/schemas/"
# The longest JSON that is shown as one line.
_LONGEST_LINE = 80
# Levels of objects in objects that one table shows.
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Field:
    """A row of a table. `schemas` are the tables that its type refers to."""

    name: str
    type: str
    words: str
    required: bool
    schemas: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """The fields of a schema; `words` is about all of them. Of a schema with alternatives, each alternative is a table,
    and `title` says which.
    """

    title: str
    words: str
    fields: Sequence[Field]


@dataclass(frozen=True, slots=True)
class Example:
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    status: str
    words: str
    schemas: Sequence[str]
    examples: Sequence[Example]


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb of one path. `body` is the name of the request's schema, "" without a body; `faults` are statuses."""

    id: str
    verb: str
    path: str
    summary: str
    words: str
    parameters: Sequence[Field]
    body: str
    requests: Sequence[Example]
    replies: Sequence[Reply]
    faults: Sequence[str]


def operation_groups(description: Schema, base: str, *, needs_key: bool) -> dict[str, list[Operation]]:
    """Returns the operations by their tag. `base` is the address of the service."""
    groups: dict[str, list[Operation]] = {}
    for path, item in description["paths"].items():
        for verb, described in item.items():
            made = _operation(verb.upper(), path, described, base, needs_key=needs_key)
            groups.setdefault(described["tags"][0], []).append(made)
    return groups


def schema_tables(description: Schema) -> dict[str, list[Table]]:
    """Returns the tables of all schemas by name."""
    return {name: list(_tables(schema)) for name, schema in description["components"]["schemas"].items()}


def _operation(verb: str, path: str, described: Schema, base: str, *, needs_key: bool) -> Operation:
    content = described.get("requestBody", {}).get("content", {}).get("application/json", {})
    key = needs_key and described.get("security") != []
    bodies: Mapping[str, Any] = _values(content) or {"": None}
    requests = [Example(title, _curl(verb, base + path, body, key=key)) for title, body in bodies.items()]
    replies = {status: reply for status, reply in described["responses"].items() if "$ref" not in reply}
    return Operation(
        id=described["operationId"],
        verb=verb,
        path=path,
        summary=described["summary"],
        words=described.get("description", ""),
        parameters=[_parameter(one) for one in described.get("parameters", ())],
        body=_name_of(content.get("schema", {})),
        requests=requests,
        replies=[_reply(status, reply) for status, reply in replies.items()],
        faults=[status for status in described["responses"] if status not in replies],
    )


def _reply(status: str, reply: Schema) -> Reply:
    examples, schemas = list[Example](), list[str]()
    for content in reply["content"].values():
        schemas += filter(None, (_name_of(content.get("x-event-schema", content["schema"])),))
        examples += [Example(title, _pretty(value)) for title, value in _values(content).items()]
        if "example" in content:
            examples.append(Example("stream", content["example"]))
    return Reply(status, reply["description"], schemas, examples)


def _parameter(described: Schema) -> Field:
    words = f"In the {described['in']}. {described.get('description', '')}"
    return Field(described["name"], _type(described["schema"]), words, described.get("required", False))


def _values(content: Schema) -> dict[str, Any]:
    return {title: example["value"] for title, example in content.get("examples", {}).items()}


def _curl(verb: str, url: str, body: Any, *, key: bool) -> str:
    """Returns the request as a command for a shell."""
    parts = ["curl", *(["-X", verb] if verb not in ("GET", "POST") or (verb == "POST" and body is None) else [])]
    lines = [" ".join([*parts, shlex.quote(url)])]
    if key:
        lines.append("-H 'Authorization: Bearer YOUR_KEY'")
    if verb == "POST":
        lines.append("-H 'Content-Type: application/json'")
    if body is not None:
        lines.append(f"-d {shlex.quote(_pretty(body))}")
    return " \\\n  ".join(lines)


def _pretty(value: Any, indent: str = "") -> str:
    """Returns the value as JSON. What fits into a line is one line."""
    line = json.dumps(value)
    if len(line) <= _LONGEST_LINE or not value or not isinstance(value, (dict, list)):
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(name)}: {_pretty(one, inner)}" for name, one in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _pretty(one, inner) for one in value) + f"\n{indent}]"


# --- schemas ----------------------------------------------------------------------------------------------


def _tables(schema: Schema) -> Iterator[Table]:
    for one in schema.get("oneOf", (schema,)):
        title = _kinds(one["properties"]) if "oneOf" in schema and "$ref" not in one else ""
        yield Table(title, one.get("description", ""), list(_fields(one)))


def _kinds(properties: Schema) -> str:
    """Returns the types of one alternative, which tell it from the others."""
    kinds = properties.get("message_type") or properties["type"]
    return ", ".join(kinds.get("enum", [kinds.get("const")]))


def _fields(schema: Schema, before: str = "", level: int = 1) -> Iterator[Field]:
    """Yields the fields of an object, and after each field those of the objects in it. A reference is one row."""
    if "$ref" in schema and level == 1:
        yield Field("...", _type(schema), "All its fields.", False, [_name_of(schema)])
    for name, one in schema.get("properties", {}).items():
        where = f"{before}{name}"
        required = name in schema.get("required", ())
        yield Field(where, _type(one), one.get("description", ""), required, list(_references(one)))
        if level < _DEEPEST:
            for inner, place in _objects_in(one, where):
                yield from _fields(inner, place, level + 1)
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        yield Field(f"{before}...", _type(more), more.get("description", ""), False)


def _objects_in(schema: Schema, where: str) -> Iterator[tuple[Schema, str]]:
    """Yields the objects that a field may hold, each with the beginning of the names of its fields."""
    if "items" in schema:
        yield from _objects_in(schema["items"], f"{where}[]")
    elif "properties" in schema:
        yield schema, f"{where}."
    for one in schema.get("anyOf", ()):
        yield from _objects_in(one, where)


def _references(schema: Schema) -> Iterator[str]:
    """Yields the names of the schemas that this one refers to, outside of its own fields."""
    if "$ref" in schema:
        yield _name_of(schema)
    for inner in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if inner:
            yield from _references(inner)


def _name_of(schema: Schema) -> str:
    return str(schema.get("$ref", "")).removeprefix(_SCHEMA_PREFIX)


def _type(schema: Schema) -> str:
    """Returns the type in words, such as `array of string`."""
    if "$ref" in schema:
        return _name_of(schema)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[key])))
    kind = schema.get("type", "any")
    if kind == "array" and "items" in schema:
        inner = _type(schema["items"])
        return f"array of ({inner})" if "|" in inner else f"array of {inner}"
    return " | ".join(kind) if isinstance(kind, list) else str(kind)
