"""Checks values by the OpenAPI description that the service gives of itself."""

from __future__ import annotations

from functools import cache
from typing import Any

import jsonschema_rs

from bridge.web.openapi.description import describe_api

DESCRIPTION = describe_api("", letta_api=True, needs_key=True)


def check_described(name: str, value: Any) -> None:
    """Fails if the value breaks the schema with this name, or has a field that the description does not have."""
    faults = [f"{fault.instance_path}: {fault.message}" for fault in _validator(name, closed=True).iter_errors(value)]
    assert not faults, f"not a {name} as /openapi.json describes it: {faults}"


def fits(name: str, value: Any) -> bool:
    """Returns whether the value fits the schema as clients see it, which allows more fields."""
    return _validator(name, closed=False).is_valid(value)


@cache
def _validator(name: str, *, closed: bool) -> jsonschema_rs.Draft202012Validator:
    components = DESCRIPTION["components"]
    return jsonschema_rs.Draft202012Validator(
        {"$ref": f"#/components/schemas/{name}", "components": _closed(components) if closed else components}
    )


def _closed(schema: Any) -> Any:
    """Returns the schema without permission for fields that are not described. Objects without fields stay open."""
    if isinstance(schema, list):
        return [_closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(one) for key, one in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
