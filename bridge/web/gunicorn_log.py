"""gunicorn's log without its list of requests."""

from __future__ import annotations

from gunicorn.glogging import Logger  # type: ignore[import-untyped]


class RequestlessLogger(Logger):  # type: ignore[misc]
    """Logs what gunicorn has to say, but no requests: the app logs each request itself. gunicorn would gather the
    fields of a line for each request, although nobody sees the line.
    """

    def access(self, resp: object, req: object, environ: object, request_time: object) -> None:
        """Logs nothing."""
