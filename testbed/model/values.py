"""OpenAI's refusals of single values. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.model.refusal import Refusal

LONGEST_NAME = 64
NAME = re.compile(r"[a-zA-Z0-9_-]+\Z")

NAMES_OF_TYPES = (
    (bool, "a boolean"),
    (str, "a string"),
    (int, "an integer"),
    (float, "a decimal"),
    (list, "an array"),
    (Mapping, "an object"),
)


def _kind(value: Any) -> str:
    return next((name for kind, name in NAMES_OF_TYPES if isinstance(value, kind)), "null")


def missing(where: str) -> Refusal:
    """A required parameter is missing."""
    return Refusal(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


def invalid_type(where: str, expected: str, value: Any) -> Refusal:
    """A value has the wrong type. `expected` is a noun with its article."""
    message = f"Invalid type for '{where}': expected {expected}, but got {_kind(value)} instead."
    return Refusal(message, where, "invalid_type")


def invalid_value(where: str, value: Any, supported: Sequence[str]) -> Refusal:
    """A value is not one of the supported words."""
    quoted = [f"'{one}'" for one in supported]
    listed = ", ".join(quoted[:-1]) + f", and {quoted[-1]}" if len(quoted) > 1 else quoted[0]
    return Refusal(f"Invalid value: '{value}'. Supported values are: {listed}.", where, "invalid_value")


def above_length(where: str, text: str, longest: int) -> Refusal:
    """A text is too long."""
    return Refusal(
        f"Invalid '{where}': string too long. Expected a string with maximum length {longest}, but got a string "
        f"with length {len(text)} instead.",
        where,
        "string_above_max_length",
    )


def array_refusal(where: str, value: Any, longest: int) -> Iterator[Refusal]:
    """A value is not an array, or it is empty or too long."""
    if not isinstance(value, list):
        yield invalid_type(where, "an array of objects", value)
    elif not value:
        yield Refusal(
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            where,
            "empty_array",
        )
    elif len(value) > longest:
        yield Refusal(
            f"Invalid '{where}': array too long. Expected an array with maximum length {longest}, but got an "
            f"array with length {len(value)} instead.",
            where,
            "array_above_max_length",
        )


def name_refusals(where: str, name: Any) -> Iterator[Refusal]:
    """Yields what is wrong with the name of a function."""
    if name is None:
        yield missing(where)
    elif not isinstance(name, str):
        yield invalid_type(where, "a string", name)
    elif not NAME.match(name):
        yield Refusal(
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
            "'^[a-zA-Z0-9_-]+$'.",
            where,
            "invalid_value",
        )
    elif len(name) > LONGEST_NAME:
        yield above_length(where, name, LONGEST_NAME)
