"""Lets the model give arguments that a client's schema allows without naming them, and gives the client its own shape.

Letta servers that convert schemas to strict mode show the model named properties only. There, one more property holds
an object with all arguments without a name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bridge.stubs.in_words import describe_schema
from bridge.stubs.parts import SAID_IN_WORDS, PartReader
from bridge.stubs.subschemas import Schema, is_impossible
from bridge.stubs.top_level import TopLevel
from bridge.turn import SchemaForm

ALL_ARGUMENTS = "arguments"
MORE_ARGUMENTS = "more_arguments"
_ALL = "All arguments of this tool in one object: its members are the arguments"
_MORE = "Arguments without a parameter of their own: the members of this object are arguments like the others"
_BRANCHES = ("if", "then", "else")
_LIMITS_OF_NAMES = ("additionalProperties", "patternProperties", "maxProperties")


def offer_unnamed_arguments(top: TopLevel, form: SchemaForm, reader: PartReader) -> str:
    """Adds the property for arguments without a name if the form needs it, and returns its name; "" without one."""
    if form.as_sent and not (form.letta_converts and not top.schema["properties"]):
        return ""
    if all(map(is_impossible, top.schema["properties"].values())):
        return _hold_all_arguments(top)
    conditional = _conditional_arguments(top, reader)
    name = _hold_more_arguments(top, bool(conditional))
    if not name:
        top.schema["properties"] |= conditional
    return name


def spread_unnamed_arguments(arguments: dict[str, Any], holder: str, read_json: Callable[[str], Any]) -> dict[str, Any]:
    """Returns the arguments with the members of the object in `holder`, perhaps given as JSON text, instead of it. What
    is no object stays where it is: the client has its own way to complain to the model.
    """
    held = arguments.get(holder)
    if isinstance(held, str):
        try:
            held = read_json(held)
        except (ValueError, RecursionError):
            return arguments
    if held is not None and not isinstance(held, dict):
        return arguments
    return {**(held or {}), **{name: value for name, value in arguments.items() if name != holder}}


def _hold_all_arguments(top: TopLevel) -> str:
    """Moves all that is said of a map to the schema of one required property."""
    said = {key: top.schema[key] for key in SAID_IN_WORDS & top.schema.keys()}
    other_names = top.schema.get("unevaluatedProperties", False)
    if other_names is not False and "additionalProperties" not in said:
        said["additionalProperties"] = other_names
    if _allows_no_arguments(said):
        _say_what_no_arguments_must_fit(top, said)
        return ""
    if not (said or top.quoted or top.has_open_form):
        return ""
    if top.quoted:
        said["allOf"] = top.quoted
        top.quoted = []
    for key in (*said, "unevaluatedProperties"):
        top.schema.pop(key, None)
    for key in ("properties", "required"):
        if top.schema[key]:
            said[key] = top.schema[key]
    description = describe_schema({"description": _ALL}, top.schema.get("description", ""))
    top.schema["properties"] = {ALL_ARGUMENTS: {"type": "object", **said, "description": description}}
    top.schema["required"] = [ALL_ARGUMENTS]
    top.changes.append(f"The schema names no arguments: they are given as the members of {ALL_ARGUMENTS!r}.")
    return ALL_ARGUMENTS


def _allows_no_arguments(said: Schema) -> bool:
    is_closed = said.get("additionalProperties") is False and not said.get("patternProperties")
    return is_closed or said.get("maxProperties") == 0


def _say_what_no_arguments_must_fit(top: TopLevel, said: Schema) -> None:
    """Moves what is said of arguments that can't be given to the tool's description: maybe nothing fits at all."""
    moved = {key: top.schema.pop(key) for key in said if key not in _LIMITS_OF_NAMES}
    if moved:
        top.quoted.append(moved)
        top.changes.append(f"{', '.join(sorted(moved))} at the top of the schema is said in the tool's description.")


def _hold_more_arguments(top: TopLevel, has_conditional: bool) -> str:
    """Adds an optional property for arguments that fit `patternProperties` or the schema in `additionalProperties`.
    With `has_conditional`, a condition names further ones.
    """
    is_open = top.has_open_form or has_conditional
    rule = top.schema.get("additionalProperties", top.schema.get("unevaluatedProperties", is_open))
    patterns = top.schema.get("patternProperties")
    if not patterns and not isinstance(rule, dict) and not top.has_open_form:
        return ""
    said = {"patternProperties": patterns} if patterns else {}
    if "propertyNames" in top.schema:
        said["propertyNames"] = top.schema["propertyNames"]
    left_out = {name: False for name, inner in top.schema["properties"].items() if is_impossible(inner)}
    if left_out:
        said["properties"] = left_out
    if rule is not True:
        said["additionalProperties"] = rule
    top.schema.pop("additionalProperties", None)
    top.schema.pop("unevaluatedProperties", None)
    name = MORE_ARGUMENTS
    while name in top.schema["properties"]:
        name += "_"
    top.schema["properties"] = {**top.schema["properties"], name: {"type": "object", **said, "description": _MORE}}
    top.changes.append(f"Arguments beyond those that the client names are given as the members of {name!r}.")
    return name


def _conditional_arguments(top: TopLevel, reader: PartReader) -> Schema:
    """Returns the properties that are named only in conditions, such as those in `then`."""
    if top.schema.get("additionalProperties") is False:
        return {}
    found: dict[str, list[Schema]] = {}
    for part in _conditional_parts(top, reader):
        for name in part.get("required", ()):
            found.setdefault(name, [])
        for name, schema in part.get("properties", {}).items():
            found.setdefault(name, []).append(schema)
    named = top.schema["properties"]
    return {name: reader.joiner.join(schemas, "anyOf") for name, schemas in found.items() if name not in named}


def _conditional_parts(top: TopLevel, reader: PartReader) -> Iterator[Schema]:
    waiting: list[Any] = _branches(top.schema) + top.quoted
    seen = set[int]()
    while waiting:
        for part in reader.parts_of(waiting.pop()):
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                waiting += _branches(part)


def _branches(schema: Schema) -> list[Any]:
    """Returns the schemas that arguments must fit under a condition."""
    dependent = schema.get("dependentRequired", {}).values()
    return [
        *(schema[key] for key in _BRANCHES if key in schema),
        *schema.get("dependentSchemas", {}).values(),
        *({"required": names} for names in dependent),
    ]
