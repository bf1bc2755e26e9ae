"""The kind of gunicorn worker that serves the app."""

from __future__ import annotations

import errno
import time
from socket import socket

from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped] # it has no types

SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PAUSE = 0.05


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's own with threads, which would end with all its turns when it can't open one more connection.

    Whoever wants to connect waits until there is a place.
    """

    def accept(self, listener: socket) -> None:
        try:
            super().accept(listener)
        except OSError as fault:
            if fault.errno not in SCARCE:
                raise
            self.log.warning("a connection has to wait: %s", fault.strerror)
            time.sleep(PAUSE)
