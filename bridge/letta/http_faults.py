"""Turns what the HTTP libraries raise, and answers other than Letta's, into the bridge's errors for one server."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import letta_client
import requests
import urllib3

from bridge import errors
from bridge.letta import failures, trouble

# How many bytes of Letta's answer to a refused message are read, for the reason.
REASON_BYTES = 20_000
# Calls that every Letta answers: if one is unknown there, the server is no Letta.
_ON_EVERY_LETTA = frozenset({"/v1/health/", "/v1/agents/", "/v1/tools/", "/openapi.json"})
_CLOSED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)

Translate = Callable[[int, str], errors.BridgeError]


class HttpFaults:
    """The faults of calls to the server at `base_url`. `connect_timeout`: in seconds, for finding out about TLS."""

    def __init__(self, base_url: str, *, has_password: bool, connect_timeout: float) -> None:
        self._base_url = base_url
        self._has_password = has_password
        self._connect_timeout = connect_timeout
        # Whether the server has answered a call: then the scheme of its address is right.
        self.has_answered = False

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turns the exceptions of letta-client and requests, and of decoding an answer, into the bridge's errors."""
        try:
            yield
        except letta_client.APIStatusError as fault:
            answer = fault.response
            raise self.error_for_answer(fault.status_code, answer.headers, answer.content, "") from fault
        except (letta_client.APIConnectionError, requests.RequestException) as fault:
            raise self._error_without_answer(fault) from fault
        except (ValueError, RecursionError) as fault:
            raise self._error_for_other_form(str(getattr(fault, "doc", ""))) from fault

    def error_for_answer(
        self,
        status: int,
        headers: Mapping[str, str],
        content: bytes,
        path: str,
        translate: Translate = failures.error_from_status,
    ) -> errors.BridgeError:
        """Returns the error for an answer other than 2xx. Letta's words go only into the error's note, for the log.
        `path`: of a GET, "" for another call.
        """
        words = content[:REASON_BYTES].decode("utf-8", "replace")
        failure: errors.BridgeError | None = trouble.error_for_page(status, headers, words, self._base_url)
        if failure is None and status == 404 and path in _ON_EVERY_LETTA:
            failure = trouble.make_error("not Letta", self._base_url)
        if failure is None and status in (401, 403) and not self._has_password:
            failure = trouble.make_error("password missing")
        failure = failure or translate(status, words)
        failure.add_note(f"Letta said: {words:.2000}")
        return failure

    def _error_for_other_form(self, text: str) -> errors.LettaError:
        """Returns the error for an answer of the status 200 that is not Letta's JSON."""
        page = trouble.error_for_page(200, {}, text, self._base_url)
        return page or trouble.make_error("not Letta", self._base_url)

    def _error_without_answer(self, fault: Exception) -> errors.LettaError:
        """Returns the error for a call without an answer. Its `nothing_sent` says whether no connection was made."""
        if _is_timeout(fault):
            return self._error_for_timeout(fault)
        cause = "closed" if isinstance(fault.__cause__, _CLOSED) else trouble.cause_of_fault(fault)
        if cause == "closed" and self._wants_tls():
            cause = "speaks TLS"
        failure = trouble.error_for_fault(cause, fault, self._base_url)
        if isinstance(failure, errors.LettaUnreachable):
            failure.nothing_sent = _is_failed_connect(fault)
        return failure

    def _error_for_timeout(self, fault: Exception) -> errors.LettaTimeout:
        cause = trouble.cause_of_fault(fault)
        if cause != "TLS hangs":
            late = isinstance(fault, requests.ConnectTimeout) or isinstance(fault.__cause__, httpx.ConnectTimeout)
            cause = "no connection in time" if late else "no answer in time"
        failure = trouble.make_error(cause, self._base_url)
        assert isinstance(failure, errors.LettaTimeout)
        return failure

    def _wants_tls(self) -> bool:
        """Finds out whether the server speaks TLS, unless it is known. Nothing secret is sent."""
        parts = urlsplit(self._base_url)
        if self.has_answered or parts.scheme == "https" or not parts.hostname:
            return False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with (
                socket.create_connection((parts.hostname, parts.port or 80), self._connect_timeout) as plain,
                context.wrap_socket(plain),
            ):
                return True
        except OSError:
            return False


def error_from_stream_fault(fault: urllib3.exceptions.HTTPError) -> errors.LettaError:
    """Returns the bridge's error for a fault of reading from an open stream."""
    if isinstance(fault, urllib3.exceptions.ReadTimeoutError):
        return errors.LettaTimeout(failures.NO_ANSWER_IN_TIME)
    return errors.LettaUnreachable(failures.CONNECTION_BROKE, code="stream_cut")


def _is_timeout(fault: Exception) -> bool:
    """Silence in the middle of an answer is a ConnectionError of `requests` around urllib3's exception."""
    inner = fault.args[0] if fault.args else None
    timeouts = (letta_client.APITimeoutError, requests.Timeout)
    return isinstance(fault, timeouts) or isinstance(inner, urllib3.exceptions.ReadTimeoutError)


def _is_failed_connect(fault: Exception) -> bool:
    """Returns whether no connection was made, so nothing was sent."""
    inner = fault.args[0] if fault.args else None
    refused = isinstance(getattr(inner, "reason", None), urllib3.exceptions.NewConnectionError)
    return refused or isinstance(fault.__cause__, httpx.ConnectError)
