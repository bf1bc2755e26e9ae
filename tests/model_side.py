"""Turns the arguments that a client should get into those that a model writes when it sees the stub."""

from __future__ import annotations

import json
from typing import Any

from bridge.turn import Stub

Path = tuple[str, ...]


def arguments_from_model(stub: Stub, arguments: dict[str, Any], forced: bool) -> dict[str, Any]:
    """With `forced` the model must give every argument, and gives null for those that it would leave out."""
    names = {client: server for server, client in stub.renamed.items()}
    given = _object(stub, arguments, stub.json_schema["parameters"], names, (), forced)
    return {"thinking": "I call it.", **given, "request_heartbeat": True}


def _object(
    stub: Stub, value: dict[str, Any], schema: dict[str, Any], names: dict[str, str], path: Path, forced: bool
) -> dict[str, Any]:
    properties = schema.get("properties", {})
    given = {
        names.get(name, name): _value(stub, inner, properties.get(names.get(name, name), {}), (*path, name), forced)
        for name, inner in value.items()
    }
    if forced:
        clients = {server: client for client, server in names.items()}
        for name, inner in properties.items():
            if name not in given and "leaves it out" in inner["description"]:
                given[name] = _null(stub, inner, (*path, clients.get(name, name)))
    return given


def _null(stub: Stub, schema: dict[str, Any], path: Path) -> Any:
    return "null" if path in stub.as_text and schema.get("type") == "string" else None


def _value(stub: Stub, value: Any, schema: dict[str, Any], path: Path, forced: bool) -> Any:
    if path in stub.as_text:
        return _text(value, schema)
    if isinstance(value, dict):
        return _object(stub, value, schema, {}, path, forced)
    if isinstance(value, list):
        return [_value(stub, item, schema.get("items", {}), (*path, "*"), forced) for item in value]
    return value


def _text(value: Any, schema: dict[str, Any]) -> str:
    """Returns JSON if the description mentions JSON, else the text itself, but the word null in quotes."""
    if isinstance(value, str) and "json" not in schema["description"].lower() and value.strip(' \n"\\') != "null":
        return value
    return json.dumps(value, ensure_ascii=False)
