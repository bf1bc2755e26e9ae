"""Turns the arguments that a client should get into those that a model writes when it sees the stub."""

from __future__ import annotations

import json
from typing import Any

from bridge.turn import Stub

Path = tuple[str, ...]


def arguments_from_model(stub: Stub, arguments: dict[str, Any], forced: bool) -> dict[str, Any]:
    """With `forced` the model must give every argument, and gives null for those that it would leave out."""
    names = {client: server for server, client in stub.renamed.items()}
    named = {name: value for name, value in arguments.items() if not stub.unnamed or _is_named(stub, name, names)}
    given = _object(stub, named, stub.json_schema["parameters"], names, (), forced)
    others = {name: value for name, value in arguments.items() if name not in named}
    if others or stub.unnamed in stub.json_schema["parameters"]["required"]:
        given[stub.unnamed] = json.dumps(others) if (stub.unnamed,) in stub.as_text else others
    return {"thinking": "I call it.", **given, "request_heartbeat": True}


def _is_named(stub: Stub, client_name: str, names: dict[str, str]) -> bool:
    name = names.get(client_name, client_name)
    return name != stub.unnamed and name in stub.json_schema["parameters"]["properties"]


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
    """Returns JSON if the description asks for JSON text, else the text itself, but the word null in quotes."""
    asks_for_json = "json text" in schema["description"].lower()
    if isinstance(value, str) and not asks_for_json and value.strip(' \n"\\') != "null":
        return value
    return json.dumps(value, ensure_ascii=False)
