"""Says which values each keyword of JSON Schema (draft 2020-12) may have.

Model providers refuse every message to an agent with a tool in whose schema a keyword is malformed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from bridge.stubs.subschemas import KINDS, is_schema

# Keywords that say nothing to a model, or nothing by themselves. They are not sent, so their values do not matter.
SILENT = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"}
    | {"additionalItems", "components", "discriminator", "externalDocs", "xml"}
)
FROM_TEXT = "Given as text and read as a number"
FROM_ONE_EXAMPLE = "Given as one value and read as a list of one example"
EMPTY_ENUM = "Left out, because no value would fit an empty list"
# Numbers that people write are shorter; Python refuses to read very long ones.
_LONGEST_NUMBER = 40
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def _keep(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a keyword's value. `mend` returns what a value of another form plainly means, or the value itself."""

    fits: Callable[[Any], bool]
    wanted: str
    mend: Callable[[Any], Any] = _keep


class Malformed(Exception):
    """The value of a keyword is not `wanted`."""

    def __init__(self, wanted: str) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def read_keyword(keyword: str, value: Any) -> tuple[Any, str]:
    """Returns the value to send (None: leave the keyword out), and what was mended, if the client should know."""
    form = FORMS[keyword]
    if form.fits(value):
        return value, ""
    mended = form.mend(value)
    if mended is not None and not form.fits(mended):
        raise Malformed(form.wanted)
    return mended, _what_was_mended(keyword, value)


def _what_was_mended(keyword: str, value: Any) -> str:
    if keyword == "examples":
        return FROM_ONE_EXAMPLE
    if keyword == "enum" and not value:
        return EMPTY_ENUM
    return FROM_TEXT if isinstance(value, str) and keyword != "type" else ""


def _is_instance_of(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types)


def _is_number(value: Any) -> bool:
    """Also refuses integers that are no float in other languages: Python can't convert them either."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _is_type(value: Any) -> bool:
    return value in KINDS if isinstance(value, str) else _is_list_of_types(value)


def _is_list_of_types(value: Any) -> bool:
    return bool(value) and _is_list_of_names(value) and KINDS.issuperset(value)


def _is_list_of_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value) and len(set(value)) == len(value)


def _maps_to_names(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_list_of_names, value.values()))


def _is_list_of_choices(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and len(set(map(_identity, value))) == len(value)


def _is_list_of_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


def _identity(value: Any) -> Hashable:
    """Returns what equal JSON values have in common: 1 is 1.0, but true is not 1."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, str) else (json.dumps(value, sort_keys=True),)


def _read_number(value: Any) -> Any:
    if isinstance(value, str) and len(value) <= _LONGEST_NUMBER and _NUMBER.fullmatch(value):
        return json.loads(value)
    return value


def _read_count(value: Any) -> Any:
    """Reads texts and floats such as 5.0. Some providers want counts without a fraction."""
    number = _read_number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _read_type(value: Any) -> Any:
    """Reads names in capitals, as Google writes them, and removes repeated names."""
    if isinstance(value, str):
        return value.lower()
    return list(dict.fromkeys(name.lower() for name in value)) if _holds_texts(value) else value


def _holds_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _without_repeats(value: Any) -> Any:
    return list(dict.fromkeys(value)) if _holds_texts(value) else value


def _names_without_repeats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_repeats(names) for key, names in value.items()}
    return value


def _choices_without_repeats(value: Any) -> Any:
    """Removes repeated values. An empty list, which some providers refuse, is left out."""
    if not isinstance(value, list):
        return value
    found: dict[Hashable, Any] = {}
    for choice in value:
        found.setdefault(_identity(choice), choice)
    return list(found.values()) or None


def _none_if_empty(value: Any) -> Any:
    return None if value == [] else value


_TEXT = Form(_is_instance_of(str), "a string")
_ANY = Form(lambda value: True, "any value")
_BOOLEAN = Form(_is_instance_of(bool), "true or false")
_LIMIT = Form(_is_number, "a number", _read_number)
_COUNT = Form(_is_count, "an integer of 0 or more", _read_count)
_SCHEMA = Form(is_schema, "a schema (an object)")
_SCHEMA_OR_BOOLEAN = Form(is_schema, "a schema, true or false")
_SCHEMAS = Form(_is_list_of_schemas, "a list of one or more schemas")
_NAMED_SCHEMAS = Form(_is_instance_of(dict), "an object whose members are schemas")

FORMS: dict[str, Form] = {
    "$ref": _TEXT,
    "$dynamicRef": _TEXT,
    "$recursiveRef": _TEXT,
    "$defs": _NAMED_SCHEMAS,
    "definitions": _NAMED_SCHEMAS,
    "title": _TEXT,
    "description": _TEXT,
    "default": _ANY,
    "examples": Form(_is_instance_of(list), "a list of values", lambda value: [value]),
    "deprecated": _BOOLEAN,
    "readOnly": _BOOLEAN,
    "writeOnly": _BOOLEAN,
    "nullable": _BOOLEAN,
    "type": Form(_is_type, "one of " + ", ".join(sorted(KINDS)) + ", or a list of them", _read_type),
    "enum": Form(_is_list_of_choices, "a list of values", _choices_without_repeats),
    "const": _ANY,
    "multipleOf": Form(_is_positive, "a number greater than 0", _read_number),
    "minimum": _LIMIT,
    "maximum": _LIMIT,
    "exclusiveMinimum": Form(_is_number, "a number, or true beside `minimum`", _read_number),
    "exclusiveMaximum": Form(_is_number, "a number, or true beside `maximum`", _read_number),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _TEXT,
    "format": _TEXT,
    "contentEncoding": _TEXT,
    "contentMediaType": _TEXT,
    "contentSchema": _SCHEMA,
    "items": _SCHEMA,
    "prefixItems": Form(_is_list_of_schemas, "a list of schemas", _none_if_empty),
    "contains": _SCHEMA,
    "unevaluatedItems": _SCHEMA_OR_BOOLEAN,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "uniqueItems": _BOOLEAN,
    "properties": _NAMED_SCHEMAS,
    "patternProperties": _NAMED_SCHEMAS,
    "additionalProperties": _SCHEMA_OR_BOOLEAN,
    "unevaluatedProperties": _SCHEMA_OR_BOOLEAN,
    "propertyNames": _SCHEMA,
    "required": Form(_is_list_of_names, "a list of property names", _without_repeats),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependentRequired": Form(_maps_to_names, "an object of lists of property names", _names_without_repeats),
    "dependentSchemas": _NAMED_SCHEMAS,
    "dependencies": Form(_is_instance_of(dict), "an object whose members are schemas or lists of property names"),
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
}
