"""The settings as they may be shown. Of a secret, only the fact that it is set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bridge.config import Settings
from bridge.keys import ApiKey
from bridge.values import Methods

HIDDEN = "(set, not shown)"


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting. `changed`: its value is not the default."""

    variable: str
    value: str
    changed: bool
    meaning: str


def masked(settings: Settings) -> list[ShownSetting]:
    return [_shown(item.metadata, getattr(settings, item.name)) for item in fields(settings) if item.metadata]


def _shown(metadata: Mapping[str, Any], value: Any) -> ShownSetting:
    default = metadata["default"]
    changed = default is None or value != metadata["parse"](default)
    hidden = metadata["secret"] and value and not _are_keys(value)
    return ShownSetting(metadata["variable"], HIDDEN if hidden else _text(value), changed, metadata["meaning"])


def _text(value: Any) -> str:
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    return str(value)


def _are_keys(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, ApiKey) for item in value)


def _listed(value: Any) -> str:
    """The names of keys, which are not secret, or the number of rules."""
    if _are_keys(value):
        return ", ".join(f"{key.name} (not shown)" for key in value)
    return f"{len(value)} rules"


def _methods(value: Methods) -> str:
    return ", ".join([value.default, *(f"{agent}={method}" for agent, method in value.by_agent.items())])


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "1" if value else "0"),
    (float, lambda value: f"{value:.15g}"),
    (frozenset, lambda value: ", ".join(sorted(value))),
    (Methods, _methods),
    (tuple, _listed),
    (Path, str),
    (type(None), lambda value: ""),
)
