"""HTTP to one Letta server. Only this module, http_faults.py and kept_connections.py know the HTTP libraries.

The reads and message streams, which every turn makes, go through KeptConnections, because a call costs less there. All
other changes go through letta-client, by its methods for any path. The typed answers of letta-client drop fields that
later servers add, and its paging does not end on servers that ignore `after`.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import httpx
import letta_client
import requests
import urllib3
from requests.structures import CaseInsensitiveDict
from requests.utils import requote_uri

from bridge import errors, sse
from bridge.config import Settings
from bridge.letta import failures
from bridge.letta.foreign import VIA, ForeignBody, end_to_end_headers
from bridge.letta.gateway import ForeignAnswer, ForeignCall
from bridge.letta.http_faults import REASON_BYTES, HttpFaults, error_from_stream_fault
from bridge.letta.kept_connection import LONGEST_IDLE, ArrivingAnswer
from bridge.letta.kept_connections import KeptConnections
from bridge.letta.paths import foreign_template, path_template
from bridge.letta.trouble import make_error
from bridge.quick_json import read_json
from bridge.trace import Trace, current_trace
from bridge.turn import JsonObject

PAGE_SIZE = 200
IDEMPOTENT_VERBS = ("GET", "PUT", "DELETE")
# The least and the most seconds between two tries. Random, so that many turns do not try again at the same moment.
RETRY_PAUSE = (0.05, 0.25)
PIECE_BYTES = 65_536
# A path with only these characters needs no quoting.
_QUOTED = re.compile(r"[A-Za-z0-9/._~?&=%+:,-]+")

Answer = httpx.Response | requests.Response
Observer = Callable[[str, float], None]
T = TypeVar("T")


class Connection:
    """Calls to one Letta server, for many threads. `observe` gets each call's template and the seconds until its answer
    began. `transport` replaces the network for changes other than messages (tests).
    """

    def __init__(
        self,
        settings: Settings,
        transport: httpx.BaseTransport | None = None,
        observe: Observer = lambda call, seconds: None,
    ) -> None:
        self._base_url = settings.letta_base_url
        self._observe = observe
        self._turn_timeout = settings.turn_timeout
        self._stream_limits: Any = urllib3.Timeout(connect=settings.connect_timeout, read=settings.turn_timeout)
        self._read_limits: Any = urllib3.Timeout(connect=settings.connect_timeout, read=settings.letta_timeout)
        self._letta = letta_client.Letta(
            base_url=self._base_url,
            api_key=settings.letta_api_key or "none",
            max_retries=0,
            timeout=letta_client.Timeout(settings.letta_timeout, connect=settings.connect_timeout),
            http_client=letta_client.DefaultHttpxClient(
                transport=transport,
                trust_env=False,
                follow_redirects=False,
                limits=httpx.Limits(keepalive_expiry=LONGEST_IDLE),
            ),
        )
        self._session = _make_session(settings)
        # As requests writes it: letters of a host or path beyond ASCII are encoded.
        self._written_url = _written_url(self._base_url)
        self._kept = KeptConnections(self._written_url, settings.threads)
        self._own_headers = {name: str(value) for name, value in self._session.headers.items()}
        self._faults = HttpFaults(
            self._base_url, has_password=bool(settings.letta_api_key), connect_timeout=settings.connect_timeout
        )

    def close(self) -> None:
        self._letta.close()
        self._session.close()
        self._kept.close()

    def call(
        self,
        verb: str,
        path: str,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        read: Callable[[bytes], Any] = read_json,
    ) -> Any:
        """Makes a call and returns what `read` makes of the answer; None if it is empty. Only a GET uses `params`."""
        content = self._call_with_retry(verb, path, params, body).content
        with self._faults.translated():
            return read(content) if content else None

    def upload(self, path: str, name: str, value: JsonObject, fields: Mapping[str, str]) -> Any:
        """Sends `value` as a file in a form, and returns the JSON of the answer. `fields` are in the form and in the
        query, because Letta before 0.11 reads only the query, and later versions only the form.
        """
        trace = current_trace()
        file = (name, json.dumps(value).encode(), "application/json")
        headers = {**_request_id_headers(trace), "Content-Type": "multipart/form-data"}

        def send() -> httpx.Response:
            with self._faults.translated(), self._measure_call(trace, f"POST {path_template(path)}"):
                return self._letta.post(
                    path,
                    cast_to=httpx.Response,
                    body=dict(fields),
                    files={"file": file},
                    options={"headers": headers, "params": dict(fields)},
                )

        answer = _retry_if_safe(send, idempotent=False)
        with self._faults.translated():
            return answer.json()

    def read_header(self, path: str, name: str) -> str:
        """Returns a header of Letta's answer to a GET; "" when the answer does not have the header."""
        return str(self._call_with_retry("GET", path).headers.get(name, ""))

    def read_pages(self, path: str, **params: Any) -> list[JsonObject]:
        """Returns all rows of a list that Letta sends in pages. If the server ignores `after`, so that the first page
        comes again, reads from the beginning with pages ten times as large.
        """
        found: dict[str, JsonObject] = {}
        limit, after = PAGE_SIZE, dict[str, str]()
        while True:
            page = require_objects(self.call("GET", path, {"limit": limit, **params, **after}))
            fresh = {str(row.get("id")): row for row in page if str(row.get("id")) not in found}
            found.update(fresh)
            if len(page) < limit:
                return list(found.values())
            if fresh:
                after = {"after": next(reversed(fresh))}
            else:
                limit, after = limit * 10, {}

    def open_stream(self, path: str, body: JsonObject) -> Iterator[JsonObject | None]:
        """Sends `body` to Letta and returns the streamed messages as they come, then None if the server says that the
        stream is complete. If this function itself raises, the run has not begun, except with RunBrokenOff.
        """
        sent, trace = json.dumps(body).encode(), current_trace()
        answer = _retry_if_safe(lambda: self._post_message(path, sent, trace), idempotent=False)
        if answer.status_code != 200:
            reason = b""
            # Letta 0.11 refuses with a 500 and closes the connection at once: then only the status is known.
            with answer, suppress(urllib3.exceptions.HTTPError):
                reason = answer.raw.read(REASON_BYTES, decode_content=True)
            translate = failures.error_from_refused_message
            raise self._faults.error_for_answer(answer.status_code, answer.headers, reason, "", translate)
        return self._read_messages(answer, trace)

    def forward(self, call: ForeignCall, *, patient: bool) -> ForeignAnswer:
        """Sends a client's call as it is. Returns the answer, of any status, as soon as its headers have come."""
        trace = current_trace()
        answer = _retry_if_safe(lambda: self._send_foreign(call, patient, trace), idempotent=call.verb == "GET")
        body = ForeignBody(_read_pieces(answer, trace, decode=False), answer.close, lambda: _abort(answer))
        return ForeignAnswer(answer.status_code, end_to_end_headers(answer.raw.headers.items()), body)

    def _send_foreign(self, call: ForeignCall, patient: bool, trace: Trace) -> requests.Response:
        own = {"User-Agent": urllib3.util.SKIP_HEADER, **call.headers, **_request_id_headers(trace)}
        kind = f"{call.verb} {foreign_template(call.path)}"
        with self._faults.translated(), self._measure_call(trace, kind):
            return self._session.request(
                call.verb,
                self._base_url + call.path + (f"?{call.query}" if call.query else ""),
                data=call.body,
                headers=own,
                timeout=self._stream_limits if patient else self._read_limits,
                allow_redirects=False,
                stream=True,
            )

    def _call_with_retry(
        self, verb: str, path: str, params: Mapping[str, Any] | None = None, body: Any = None
    ) -> Answer:
        return _retry_if_safe(lambda: self._call_once(verb, path, params, body), idempotent=verb in IDEMPOTENT_VERBS)

    def _call_once(self, verb: str, path: str, params: Mapping[str, Any] | None, body: Any) -> Answer:
        trace = current_trace()
        with self._faults.translated(), self._measure_call(trace, f"{verb} {path_template(path)}"):
            return self._send_get(path, params, trace) if verb == "GET" else self._send_change(verb, path, body, trace)

    def _send_get(self, path: str, params: Mapping[str, Any] | None, trace: Trace) -> requests.Response:
        answer = self._send_usual(
            "GET", path + (f"?{_query(params)}" if params else ""), _request_id_headers(trace), self._read_limits
        )
        if not 200 <= answer.status_code < 300:
            raise self._faults.error_for_answer(answer.status_code, answer.headers, answer.content, path)
        _ = answer.content  # faults of reading it are those of this call
        return answer

    def _send_usual(
        self, verb: str, path: str, headers: Mapping[str, str], limits: Any, body: bytes | None = None
    ) -> requests.Response:
        """Sends a call that every turn makes. Its body can be read when the head of the answer has come."""
        request = requests.PreparedRequest()
        quoted = path if _QUOTED.fullmatch(path) else requote_uri(path)
        request.method, request.url, request.body = verb, self._written_url + quoted, body
        length = {} if body is None else {"Content-Length": str(len(body))}
        # Their names differ only by case nowhere, and a CaseInsensitiveDict takes long.
        request.headers = cast(CaseInsensitiveDict[str], {**self._own_headers, **headers, **length})
        return self._kept.send(request, stream=True, timeout=limits)

    def _send_change(self, verb: str, path: str, body: Any, trace: Trace) -> httpx.Response:
        verbs: dict[str, Callable[..., httpx.Response]] = {
            "POST": self._letta.post,
            "PUT": self._letta.put,
            "PATCH": self._letta.patch,
            "DELETE": self._letta.delete,
        }
        sent = {} if body is None else {"body": body}
        return verbs[verb](path, cast_to=httpx.Response, options={"headers": _request_id_headers(trace)}, **sent)

    def _post_message(self, path: str, sent: bytes, trace: Trace) -> requests.Response:
        """Returns the answer, of any status, as soon as its headers have come; its body is read as a stream."""
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **_request_id_headers(trace)}
        with self._faults.translated(), self._measure_call(trace, f"POST {path_template(path)}"):
            return self._send_usual("POST", path, headers, self._stream_limits, sent)

    def _read_messages(self, answer: requests.Response, trace: Trace) -> Iterator[JsonObject | None]:
        """Yields each message of a stream, and None for the server's mark that the stream is complete."""
        with answer, self._faults.translated():
            for _, data in self._read_events(answer, trace):
                if data == sse.DONE:
                    if isinstance(answer.raw, ArrivingAnswer):
                        answer.raw.leave_end()
                    yield None
                else:
                    yield require_object(read_json(data))

    def _read_events(self, answer: requests.Response, trace: Trace) -> Iterator[tuple[str, str]]:
        """Yields (event name, data). Raises LettaTimeout if an event is not complete `turn_timeout` seconds after the
        one before it; if nothing comes at all, the socket's read timeout, which is as long, raises.
        """
        latest = time.monotonic() + self._turn_timeout

        def pieces() -> Iterator[bytes]:
            for piece in _read_pieces(answer, trace):
                if time.monotonic() > latest:
                    raise errors.LettaTimeout(failures.NO_ANSWER_IN_TIME)
                yield piece

        for event in sse.decode_events(pieces()):
            yield event
            latest = time.monotonic() + self._turn_timeout

    @contextmanager
    def _measure_call(self, trace: Trace, call: str) -> Iterator[None]:
        """Counts and measures the call made in the `with` block, also if it fails."""
        trace.do_what_was_put_off()
        trace.count_letta_call(call)
        begun = time.perf_counter()
        try:
            with trace.measure_letta_call():
                yield
            self._faults.has_answered = True
        finally:
            self._observe(call, time.perf_counter() - begun)


def _written_url(url: str) -> str:
    prepared = requests.Request("GET", f"{url}/").prepare()
    return str(prepared.url).removesuffix("/")


def _make_session(settings: Settings) -> requests.Session:
    """Returns a session that threads may share: its pools have locks, its cookie jar takes no cookies."""
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    # A proxy that compresses a stream delays its events.
    session.headers.update({"Accept": "application/json", "Accept-Encoding": "identity"})
    if settings.letta_api_key:
        session.headers["Authorization"] = f"Bearer {settings.letta_api_key}"
    adapter = requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=settings.threads, max_retries=0)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def _retry_if_safe(call: Callable[[], T], *, idempotent: bool) -> T:
    """Makes a call, and once more if the connection failed and the first call was not sent or is `idempotent`. Letta
    closes kept-alive connections after its own errors, so that the next call on them fails.
    """
    try:
        return call()
    except errors.LettaUnreachable as fault:
        if not idempotent and not fault.nothing_sent:
            raise
    time.sleep(random.uniform(*RETRY_PAUSE))  # nosec B311 # a pause is no secret
    return call()


def _query(params: Mapping[str, Any]) -> str:
    try:
        return _known_query(tuple(params.items()))
    except TypeError:  # a list is among the values
        return urlencode(params, doseq=True)


@lru_cache(maxsize=64)
def _known_query(params: tuple[tuple[str, Any], ...]) -> str:
    return urlencode(params, doseq=True)


def _read_pieces(answer: requests.Response, trace: Trace, *, decode: bool = True) -> Iterator[bytes]:
    """Yields the bytes as they arrive; `iter_content` waits for the end of a stream that is not sent in chunks."""
    read, time_of_letta = answer.raw.read1, trace.measure_letta_call()
    trace.reads_stream = True
    try:
        while True:
            trace.do_what_was_put_off()
            with time_of_letta:
                piece = read(PIECE_BYTES, decode_content=decode)
            if not piece:
                return
            yield piece
    except urllib3.exceptions.HTTPError as fault:
        raise error_from_stream_fault(fault) from fault
    finally:
        trace.reads_stream = False
        trace.do_what_was_put_off()


def _abort(answer: requests.Response) -> None:
    """Ends a read in another thread. close() would wait for that read."""
    with suppress(OSError, ValueError, RuntimeError):  # all was read, or the answer was closed
        answer.raw.shutdown()


def _request_id_headers(trace: Trace) -> dict[str, str]:
    """Returns headers that name the bridge, and by which Letta's logs and traces can be matched with the bridge's."""
    headers = {"X-Request-Id": trace.request_id, "Via": VIA}
    return {**headers, "traceparent": trace.traceparent} if trace.traceparent else headers


def require_object(value: Any) -> JsonObject:
    """Returns the value if it is a JSON object; raises LettaError otherwise."""
    if not isinstance(value, dict):
        raise make_error("not Letta")
    return value


def require_objects(value: Any) -> list[JsonObject]:
    if not isinstance(value, list):
        raise make_error("not Letta")
    return [require_object(item) for item in value]
