"""TLS in front of a server without it, as platforms offer for their Redis, with a certificate of no known authority."""

import asyncio
import ssl
import tempfile
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import trustme

from testbed.network import free_port
from tests.waiting import SOON

PIECE = 65536
T = TypeVar("T")


class TlsProxy:
    """Takes TLS connections at `port` and passes all bytes on to a port of this machine."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._folder = tempfile.TemporaryDirectory(prefix="tls-")
        self.certificate = Path(self._folder.name) / "certificate.pem"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls", daemon=True)
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._thread.start()  # the loop needs its own thread: a test's thread may run another loop
        self._server = self._awaited(asyncio.start_server(self._pass_on, "127.0.0.1", self.port, ssl=context))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._awaited(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    def _awaited(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SOON)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, back))
                both.create_task(_copy(there, writer))
        except* OSError:
            pass
        finally:
            writer.transport.abort()
            back.transport.abort()


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    while piece := await reader.read(PIECE):
        writer.write(piece)
        await writer.drain()
    with suppress(NotImplementedError):  # TLS can't be closed in one direction
        writer.write_eof()
