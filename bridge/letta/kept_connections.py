"""Sends the calls that every turn makes, over connections to one server that are kept for the next call.

`requests` and urllib3 take five times longer for a call than sending and parsing it. So what is between
HTTPAdapter.send() and the socket is replaced here. urllib3 still opens the connections, also over TLS; httptools parses
the answers. All exceptions are those that urllib3 raises in its place.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import IO, Any, cast
from urllib.parse import urlsplit

import requests
import urllib3
from requests.certs import where as path_of_certificates  # type: ignore[attr-defined]
from requests.structures import CaseInsensitiveDict
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import MaxRetryError, SSLError

from bridge.letta.kept_connection import ArrivingAnswer, KeptConnection


class KeptConnections(requests.adapters.HTTPAdapter):
    """Sends requests to the server at `base_url`, for many threads. Keeps at most `most` connections."""

    def __init__(self, base_url: str, most: int) -> None:
        super().__init__(max_retries=0)
        parts = urlsplit(base_url)
        # Without a port, http.client would read one out of an IPv6 address.
        self._host, self._port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        self._host_header = parts.netloc
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._tls = _tls_context() if parts.scheme == "https" else None
        self._most = most
        self._free: deque[KeptConnection] = deque()
        self._ending: deque[ArrivingAnswer] = deque()

    def close(self) -> None:
        for answer in self._ending:
            answer.abandon()
        for connection in self._free:
            connection.close()
        super().close()

    # --- what HTTPAdapter.send() calls ----------------------------------------------------------------

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> Any:
        return self

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """Does nothing: certificates are verified when a connection is opened."""

    def request_url(self, request: requests.PreparedRequest, proxies: Any) -> str:
        return str(request.url).removeprefix(self._origin)

    def urlopen(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: urllib3.Timeout,
        **_: Any,
    ) -> ArrivingAnswer | urllib3.HTTPResponse:
        """Sends a request for the path `url`. Returns the answer when its head has come. urllib3 reads an answer that
        has to be decoded, or has another status than 200.
        """
        connection = self._take_connection(url, cast(float, timeout.connect_timeout))
        answer = ArrivingAnswer(connection, url)
        try:
            connection.set_time_limit(cast(float, timeout.read_timeout))
            connection.send(method, url, {"Host": self._host_header, **headers}, body)
            answer.receive_head()
        except BaseException:
            answer.close()
            raise
        if answer.status == 200 and not answer.has_header("content-encoding"):
            return answer
        fields = urllib3.HTTPHeaderDict(answer.headers)
        file = cast(IO[bytes], answer)
        return urllib3.HTTPResponse(file, fields, answer.status, preload_content=False, decode_content=False)

    def build_response(self, request: requests.PreparedRequest, answer: Any) -> requests.Response:
        return (
            Answer(request, answer) if isinstance(answer, ArrivingAnswer) else super().build_response(request, answer)
        )

    # --- connections ----------------------------------------------------------------------------------

    def keep(self, connection: KeptConnection) -> None:
        connection.note_end_of_answer()
        if len(self._free) < self._most:
            self._free.append(connection)
        else:
            connection.close()

    def keep_ending(self, answer: ArrivingAnswer) -> None:
        if len(self._ending) < self._most:
            self._ending.append(answer)
        else:
            answer.abandon()

    def _take_connection(self, url: str, seconds: float) -> KeptConnection:
        """Returns the connection that was used last and is still open, or else a new one."""
        kept = self._take_kept()
        if kept is None:
            self._receive_ends()
            kept = self._take_kept()
        return kept or self._open_connection(url, seconds)

    def _take_kept(self) -> KeptConnection | None:
        with suppress(IndexError):
            while True:
                kept = self._free.pop()
                if kept.is_usable:
                    return kept
                kept.close()
        return None

    def _receive_ends(self) -> None:
        """Keeps the connections of those answers that have ended since they were left."""
        with suppress(IndexError):
            for _ in range(len(self._ending)):
                answer = self._ending.popleft()
                if not answer.receive_end():
                    self._ending.append(answer)

    def _open_connection(self, url: str, seconds: float) -> KeptConnection:
        opened = (
            HTTPConnection(self._host, self._port, timeout=seconds)
            if self._tls is None
            else HTTPSConnection(self._host, self._port, timeout=seconds, ssl_context=self._tls)
        )
        try:
            opened.connect()
        except urllib3.exceptions.HTTPError as fault:
            raise MaxRetryError(cast(Any, None), url, fault) from fault
        except ssl.SSLError as fault:
            raise MaxRetryError(cast(Any, None), url, SSLError(fault)) from fault
        return KeptConnection(opened, self)


class Answer(requests.Response):
    """An answer with only those fields of a requests.Response that are read here: the others take long to make."""

    def __init__(self, request: requests.PreparedRequest, answer: ArrivingAnswer) -> None:
        self.request, self.raw, self.status_code = request, answer, answer.status
        self._content: Any = False
        self._content_consumed = False

    @cached_property
    def headers(self) -> CaseInsensitiveDict[str]:  # type: ignore[override]
        return CaseInsensitiveDict(self.raw.headers)


def _tls_context() -> ssl.SSLContext:
    """Returns what `requests` uses by default: it trusts certifi's authorities."""
    context = urllib3.util.ssl_.create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
    context.load_verify_locations(path_of_certificates())
    return context
