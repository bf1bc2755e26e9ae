"""Checks fields that are the same in all of OpenAI's APIs: their JSON types, and those that no agent can obey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bridge.errors import InvalidRequest
from bridge.json_text import storable_text
from bridge.turn import JsonObject

# Fields, what their values must be, and that in words.
FieldTypes = Sequence[tuple[Sequence[str], Callable[[Any], bool], str]]


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole_number(value: Any) -> bool:
    return is_number(value) and value == value // 1  # some clients send 4096.0


def is_string(value: Any) -> bool:
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def check_types(body: JsonObject, types: FieldTypes) -> None:
    """Raises InvalidRequest for a field of the wrong JSON type. null counts as a missing field."""
    for fields, fits, wanted in types:
        for name in fields:
            if body.get(name) is not None and not fits(body[name]):
                raise InvalidRequest(f"`{name}` must be {wanted}.", param=name)


def refuse_field(body: JsonObject, name: str, is_wrong: Callable[[Any], bool], why: str) -> None:
    """Raises InvalidRequest for a field that no agent can obey: the client would believe that it has an effect."""
    if is_wrong(body.get(name)):
        raise InvalidRequest(f"`{name}` is not supported: {why}.", param=name, code="unsupported_parameter")


def parse_flag(body: JsonObject, name: str, prefix: str = "") -> bool:
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(f"`{prefix}{name}` must be true or false.", param=prefix + name)
    return value


def parse_cache_key(body: JsonObject) -> str:
    """Returns the request's `prompt_cache_key`, "" for none. It is only a hint, so any other value counts as none."""
    value = body.get("prompt_cache_key")
    return value if isinstance(value, str) else ""


def parse_model(body: JsonObject) -> str:
    """Returns the name or id of the agent that the request names, maybe with `:aside` after it."""
    model = body.get("model")
    model = storable_text(model).strip() if isinstance(model, str) else ""
    if not model:
        raise InvalidRequest("`model` must be the name or id of an agent; GET /v1/models lists them.", param="model")
    return model
