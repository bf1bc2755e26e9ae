"""The settings as the operator may see them. Of a secret, only the fact that it is set is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from bridge.config import Settings
from bridge.keys import ApiKey
from bridge.values import Methods, OwnFiles, ToolSearch, ToolWait

HIDDEN = "(set, not shown)"


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting as the operator sees it. `variable` is its environment variable."""

    variable: str
    value: str
    changed: bool
    meaning: str


def mask_settings(settings: Settings) -> list[ShownSetting]:
    """Returns every setting that has an environment variable, with the values of secrets hidden."""
    return [_shown_setting(item.metadata, getattr(settings, item.name)) for item in fields(settings) if item.metadata]


def _shown_setting(metadata: Mapping[str, Any], value: Any) -> ShownSetting:
    """Makes the shown form of a field of Settings. A setting without a default counts as changed."""
    default = metadata["default"]
    changed = default is None or value != metadata["parse"](default)
    hidden = metadata["secret"] and value and not _are_client_keys(value)
    return ShownSetting(metadata["variable"], HIDDEN if hidden else _value_as_text(value), changed, metadata["meaning"])


def _value_as_text(value: Any) -> str:
    """Returns a value in the form in which the environment variable has it; "" for None."""
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    return str(value)


def _are_client_keys(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, ApiKey) for item in value)


def _list_as_text(value: Any) -> str:
    """Returns the names of clients' keys, which are not secret."""
    return ", ".join(f"{key.name} (not shown)" for key in value)


def _tool_search_as_text(value: ToolSearch) -> str:
    agents = (f"{agent}={number}" for agent, number in value.by_agent.items())
    return ", ".join([str(value.above), *agents, *(f"+{name}" for name in sorted(value.always))])


def _methods_as_text(value: Methods) -> str:
    """Returns the value of BRIDGE_METHOD: `auto, my-agent=prompt`."""
    return ", ".join([value.default, *(f"{agent}={method}" for agent, method in value.by_agent.items())])


def _tool_wait_as_text(value: ToolWait) -> str:
    return f"{'refuse=' if value.refuse else ''}{value.seconds:.15g}"


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (bool, lambda value: "1" if value else "0"),
    (float, lambda value: f"{value:.15g}"),
    (frozenset, lambda value: ", ".join(sorted(value))),
    (Methods, _methods_as_text),
    (ToolSearch, _tool_search_as_text),
    (OwnFiles, lambda value: str(value.folder or "")),
    (ToolWait, _tool_wait_as_text),
    (tuple, _list_as_text),
    (Path, str),
    (type(None), lambda value: ""),
)
