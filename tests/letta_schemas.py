"""What becomes of a tool's schema between Letta's database and an OpenAI model, by server version.

Written after Letta's `enable_strict_mode` and `convert_to_structured_output`. What Letta adds of its own (thinking,
request_heartbeat) is left out; from 0.16.4 on it is about agents whose model configuration asks for `strict`. `Poison`
is raised where Letta would fail at every message to the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bridge.turn import SchemaForm

Schema = dict[str, Any]

AS_SENT = SchemaForm()
CONVERTING = SchemaForm(letta_converts=True)
STRICT = SchemaForm(as_sent=False)
SANDBOXED = SchemaForm(as_sent=False, nullable_types=False, python_names=True)
FORMS = {"verbatim": AS_SENT, "converting": CONVERTING, "strict": STRICT, "sandboxed": SANDBOXED}

MARK = "mcp:SCHEMA_STATUS"
_KEPT = ("enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "default", "title")


class Poison(Exception):
    """Letta does not catch what happens here."""


class Unconvertible(Exception):
    """Letta gives up and passes the schema on as it is."""


def seen_by_model(json_schema: Mapping[str, Any], form: str) -> Schema:
    """The function as the servers of one form offer it to the model."""
    parameters = json_schema["parameters"]
    marked = json_schema.get(MARK) == "NON_STRICT_ONLY"
    if not isinstance(parameters.get("properties"), dict) or not isinstance(parameters.get("required"), list):
        raise Poison("parameters without properties or without required")
    strict = not marked and form != "sandboxed"
    try:
        if form != "verbatim" or not marked:
            parameters, strict = _CONVERSIONS[form](parameters), True
    except Unconvertible:
        pass
    offered = {"name": json_schema["name"], "description": json_schema["description"], "parameters": parameters}
    return offered | ({"strict": True} if strict else {})


def count_tokens(json_schema: Mapping[str, Any], form: str) -> None:
    """Raises where Letta's count of tokens raises: it looks at the parameters themselves, not into them."""
    _count(json_schema["name"])
    _count(json_schema["description"])
    for name, schema in json_schema["parameters"]["properties"].items():
        _count(name)
        kind = schema.get("type", "")
        _count(",".join(kind) if isinstance(kind, list) and form != "sandboxed" else kind)
        _count(schema.get("description", ""))
        _count(str(schema.get("default", "")))
        for value in schema.get("enum", []):
            _count(value)
        if isinstance(schema.get("items"), dict):
            _count(schema["items"].get("type", ""))


def _count(text: Any) -> None:
    if not isinstance(text, str):
        raise Poison(f"{text!r} is counted as text")
    if any(f"<|{token}|>" in text for token in ("endoftext", "fim_prefix", "fim_middle", "fim_suffix", "endofprompt")):
        raise Poison(f"{text!r} holds a token of the tokenizer's own")


def _closed(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": list(properties)}


def _by_later_servers(parameters: Schema) -> Schema:
    """0.13.0 to 0.16.2; later ones do about the same, to what is not marked."""
    return _closed({name: _later(schema) for name, schema in parameters["properties"].items()})


def _later(schema: Any) -> Schema:
    if not isinstance(schema, dict):
        raise Poison(f"{schema!r} is no object")
    if "anyOf" in schema and "type" not in schema:
        return _alternatives(schema)
    kind = schema.get("type")
    if kind is None or (kind == "object" and "properties" not in schema) or (kind == "array" and "items" not in schema):
        raise Unconvertible
    if kind == "object":
        return _closed({name: _later(inner) for name, inner in schema["properties"].items()}) | _notes(schema)
    if kind == "array":
        return {"type": "array", "items": _later(schema["items"])} | _notes(schema)
    return {key: schema[key] for key in ("type", "description", *_KEPT) if key in schema}


def _alternatives(schema: Schema) -> Schema:
    named = [option["type"] for option in schema["anyOf"] if "type" in option]
    if named and "object" not in named and "array" not in named:
        return {"type": named} | {key: schema[key] for key in ("description", *_KEPT[:-1]) if key in schema}
    kept = {key: schema[key] for key in ("description", "default", "title") if key in schema}
    return {"anyOf": [_later(option) for option in schema["anyOf"]]} | kept


def _notes(schema: Schema) -> Schema:
    return {key: schema[key] for key in ("description", "title") if key in schema}


def _by_earlier_servers(parameters: Schema) -> Schema:
    """Up to 0.12.1: the types, the descriptions, the enums of the parameters themselves, and nothing else."""
    return _closed({name: _top(schema) for name, schema in parameters["properties"].items()})


def _top(schema: Schema) -> Schema:
    if "type" not in schema or (schema["type"] == "array" and not schema.get("items")):
        raise Poison(f"{schema!r} has no type, or is a list without items")
    return _earlier(schema) | ({"enum": schema["enum"]} if "enum" in schema else {})


def _earlier(schema: Schema) -> Schema:
    kind = schema.get("type")
    if kind is None or (kind == "object" and "properties" not in schema) or (kind == "array" and "items" not in schema):
        raise Unconvertible
    if kind == "object":
        result = _closed({name: _earlier(inner) for name, inner in schema["properties"].items()})
    else:
        result = {"type": kind} | ({"items": _earlier(schema["items"])} if kind == "array" else {})
    return result | ({"description": schema["description"]} if "description" in schema else {})


_CONVERSIONS: dict[str, Callable[[Schema], Schema]] = {
    "verbatim": _by_later_servers,
    "converting": _by_later_servers,
    "strict": _by_earlier_servers,
    "sandboxed": _by_earlier_servers,
}
