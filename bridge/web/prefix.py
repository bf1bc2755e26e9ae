"""Serves the bridge below a path, such as `/bridge/v1/...` instead of `/v1/...`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Environ = dict[str, Any]
Wsgi = Callable[[Environ, Any], Iterable[bytes]]


def path_without_prefix(path: str, prefix: str) -> str:
    is_below = path == prefix or path.startswith(prefix + "/")
    return path[len(prefix) :] or "/" if is_below else path


def serve_below_prefix(prefix: str, inner: Wsgi) -> Wsgi:
    """Returns a WSGI app that accepts paths with and without the prefix: some proxies remove it. "" means no prefix."""

    def outer(environ: Environ, start_response: Any) -> Iterable[bytes]:
        environ["PATH_INFO"] = path_without_prefix(environ.get("PATH_INFO", ""), prefix)
        environ["SCRIPT_NAME"] = prefix
        return inner(environ, start_response)

    return outer if prefix else inner
