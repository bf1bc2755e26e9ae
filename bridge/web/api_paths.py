"""The paths below which clients find the APIs: the bridge's own, and Letta's."""

from __future__ import annotations

LETTA_PATH = "/letta"
_APIS = ("/v1", f"{LETTA_PATH}/v1")


def is_api_path(path: str) -> bool:
    """Returns whether a path is below one of the APIs."""
    return path.startswith(tuple(f"{api}/" for api in _APIS)) or path in _APIS


def is_letta_path(path: str) -> bool:
    """Returns whether a path is of Letta's own API."""
    return path == LETTA_PATH or path.startswith(f"{LETTA_PATH}/")
