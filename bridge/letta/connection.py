"""HTTP to one Letta server: the only module that knows the HTTP libraries and their exceptions.

What every turn does, reads and message streams, goes through `requests`, which costs less per call. All other changes
go through letta-client, by the verbs that its documentation gives for any path: its typed answers drop fields that
later servers add, and its paging does not end on servers that ignore `after`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.cookiejar import DefaultCookiePolicy
from typing import Any, TypeVar

import httpx
import letta_client
import requests
import urllib3

from bridge import errors, sse
from bridge.config import Settings
from bridge.letta import failures
from bridge.trace import Trace, current_trace
from bridge.turn import JsonObject

PAGE_SIZE = 200
IDEMPOTENT = ("GET", "PUT", "DELETE")
# Seconds between two tries. Random, so that many turns do not come back at the same moment.
RETRY_PAUSE = (0.05, 0.25)
# So many bytes of a refused message are read for its reason.
REASON = 20_000
PIECE = 65_536
# The fixed words of Letta's paths. Every other part of a path is an id or a label.
_FIXED_WORDS = frozenset(
    {
        *("v1", "agents", "attach", "blocks", "cancel", "core-memory", "health", "messages"),
        *("openapi.json", "recompile", "steps", "stream", "tools", "runs"),
    }
)

Answer = httpx.Response | requests.Response
Observer = Callable[[str, float], None]
T = TypeVar("T")


class Connection:
    """Calls one server. Used by many threads; opens no connection before its first call.

    `observe` gets the template of every call, as in "GET /v1/agents/{id}", and the seconds until its answer began.
    `transport` replaces the network for the changes (tests).
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
        self._stream_limits = (settings.connect_timeout, settings.turn_timeout)
        self._read_limits = (settings.connect_timeout, settings.letta_timeout)
        self._letta = letta_client.Letta(
            base_url=self._base_url,
            api_key=settings.letta_api_key or "none",
            max_retries=0,
            timeout=letta_client.Timeout(settings.letta_timeout, connect=settings.connect_timeout),
            http_client=letta_client.DefaultHttpxClient(transport=transport, trust_env=False, follow_redirects=False),
        )
        self._session = _session(settings)

    def close(self) -> None:
        """Closes the connections that are kept open for the next call."""
        self._letta.close()
        self._session.close()

    def call(self, verb: str, path: str, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """Makes a call and returns the decoded answer; only a GET has `params`, only a change has a `body`."""
        content = self._answer(verb, path, params, body).content
        with _named_faults(self._base_url):
            return json.loads(content) if content else None

    def header(self, path: str, name: str) -> str:
        """Returns a header of the answer to a GET; "" when the answer does not have it."""
        return str(self._answer("GET", path).headers.get(name, ""))

    def pages(self, path: str, **params: Any) -> list[JsonObject]:
        """Returns all rows of a list. A server that ignores `after` repeats itself: then a larger page is read."""
        found: dict[str, JsonObject] = {}
        limit, after = PAGE_SIZE, dict[str, str]()
        while True:
            page = as_objects(self.call("GET", path, {"limit": limit, **params, **after}))
            fresh = {str(row.get("id")): row for row in page if str(row.get("id")) not in found}
            found.update(fresh)
            if len(page) < limit:
                return list(found.values())
            if fresh:
                after = {"after": next(reversed(fresh))}
            else:
                limit, after = limit * 10, {}

    def stream(self, path: str, body: JsonObject) -> Iterator[JsonObject | None]:
        """Yields the messages of a stream as they come, then None when the server says that it is done.

        Raises before it returns when the server refuses; then the run has not begun.
        """
        sent, trace = json.dumps(body).encode(), current_trace()
        answer = _safely_again(lambda: self._open_stream(path, sent, trace), idempotent=False)
        if answer.status_code != 200:
            reason = b""
            # 0.11 refuses with a 500 and closes the connection at once: then the status is all there is.
            with answer, suppress(errors.LettaError), _named_breaks():
                reason = answer.raw.read(REASON, decode_content=True)
            raise _refusal(answer.status_code, reason)
        return self._messages(answer, trace)

    def _answer(self, verb: str, path: str, params: Mapping[str, Any] | None = None, body: Any = None) -> Answer:
        return _safely_again(lambda: self._answer_once(verb, path, params, body), idempotent=verb in IDEMPOTENT)

    def _answer_once(self, verb: str, path: str, params: Mapping[str, Any] | None, body: Any) -> Answer:
        trace = current_trace()
        with _named_faults(self._base_url), self._counted(trace, verb, path):
            return self._read(path, params, trace) if verb == "GET" else self._change(verb, path, body, trace)

    def _read(self, path: str, params: Mapping[str, Any] | None, trace: Trace) -> requests.Response:
        answer = self._session.get(
            self._base_url + path,
            params=params,
            headers=_request_ids(trace),
            timeout=self._read_limits,
            allow_redirects=False,
        )
        if not 200 <= answer.status_code < 300:
            raise _refusal(answer.status_code, answer.content)
        return answer

    def _change(self, verb: str, path: str, body: Any, trace: Trace) -> httpx.Response:
        verbs: dict[str, Callable[..., httpx.Response]] = {
            "POST": self._letta.post,
            "PUT": self._letta.put,
            "PATCH": self._letta.patch,
            "DELETE": self._letta.delete,
        }
        sent = {} if body is None else {"body": body}
        return verbs[verb](path, cast_to=httpx.Response, options={"headers": _request_ids(trace)}, **sent)

    def _open_stream(self, path: str, sent: bytes, trace: Trace) -> requests.Response:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream", **_request_ids(trace)}
        with _named_faults(self._base_url), self._counted(trace, "POST", path):
            return self._session.post(
                self._base_url + path,
                data=sent,
                headers=headers,
                timeout=self._stream_limits,
                allow_redirects=False,
                stream=True,
            )

    def _messages(self, answer: requests.Response, trace: Trace) -> Iterator[JsonObject | None]:
        with answer, _named_faults(self._base_url):
            for _, data in self._events(answer, trace):
                yield None if data == sse.DONE else as_object(json.loads(data))

    def _events(self, answer: requests.Response, trace: Trace) -> Iterator[tuple[str, str]]:
        """Yields the events of a stream. The time limit is for whole events: bytes alone do not extend it."""
        latest = time.monotonic() + self._turn_timeout

        def pieces() -> Iterator[bytes]:
            for piece in _pieces(answer, trace):
                if time.monotonic() > latest:
                    raise errors.LettaTimeout(failures.SILENT)
                yield piece

        for event in sse.decode_events(pieces()):
            yield event
            latest = time.monotonic() + self._turn_timeout

    @contextmanager
    def _counted(self, trace: Trace, verb: str, path: str) -> Iterator[None]:
        call = f"{verb} {path_template(path)}"
        trace.count_letta_call(call)
        begun = time.perf_counter()
        try:
            with trace.measure_letta_call():
                yield
        finally:
            self._observe(call, time.perf_counter() - begun)


def _session(settings: Settings) -> requests.Session:
    """Returns the one Session of all threads.

    Threads may share it because no call changes it: its connection pools have locks, and the cookie jar, which every
    answer would change, takes no cookies. Letta sets none.
    """
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    # A proxy that compresses a stream holds events back.
    session.headers.update({"Accept": "application/json", "Accept-Encoding": "identity"})
    if settings.letta_api_key:
        session.headers["Authorization"] = f"Bearer {settings.letta_api_key}"
    adapter = requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=settings.threads, max_retries=0)
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


def _safely_again(call: Callable[[], T], *, idempotent: bool) -> T:
    """Tries once more where nothing can be done twice. Letta closes kept-alive connections after its own errors."""
    try:
        return call()
    except errors.LettaUnreachable as fault:
        if not idempotent and not fault.nothing_sent:
            raise
    time.sleep(random.uniform(*RETRY_PAUSE))  # nosec B311 # a pause is no secret
    return call()


@contextmanager
def _named_faults(base_url: str) -> Iterator[None]:
    """Turns the exceptions of letta-client and requests, and those of decoding an answer, into named errors."""
    try:
        yield
    except letta_client.APIStatusError as fault:
        raise _refusal(fault.status_code, fault.response.content) from fault
    except (letta_client.APIConnectionError, requests.RequestException) as fault:
        if _timed_out(fault):
            raise errors.LettaTimeout(failures.SILENT) from fault
        failure = errors.LettaUnreachable(f"The Letta server at {base_url} can't be reached.")
        failure.nothing_sent = _never_connected(fault)
        raise failure from fault
    except (ValueError, RecursionError) as fault:
        raise errors.LettaError(failures.NOT_LETTA) from fault


@contextmanager
def _named_breaks() -> Iterator[None]:
    """Turns the exceptions of reading from an open stream into named errors. They are urllib3's own."""
    try:
        yield
    except urllib3.exceptions.ReadTimeoutError as fault:
        raise errors.LettaTimeout(failures.SILENT) from fault
    except urllib3.exceptions.HTTPError as fault:
        raise errors.LettaUnreachable(failures.CUT, code="stream_cut") from fault


def _timed_out(fault: Exception) -> bool:
    """Silence in the middle of an answer is a ConnectionError of requests, around the exception of urllib3."""
    inner = fault.args[0] if fault.args else None
    timeouts = (letta_client.APITimeoutError, requests.Timeout)
    return isinstance(fault, timeouts) or isinstance(inner, urllib3.exceptions.ReadTimeoutError)


def _never_connected(fault: Exception) -> bool:
    inner = fault.args[0] if fault.args else None
    refused = isinstance(getattr(inner, "reason", None), urllib3.exceptions.NewConnectionError)
    return refused or isinstance(fault.__cause__, httpx.ConnectError)


def _pieces(answer: requests.Response, trace: Trace) -> Iterator[bytes]:
    """Yields bytes as they arrive. `iter_content` waits for the end of the stream where the server does not chunk."""
    while True:
        with trace.measure_letta_call(), _named_breaks():
            piece = answer.raw.read1(PIECE, decode_content=True)
        if not piece:
            return
        yield piece


def path_template(path: str) -> str:
    """Returns the path with "{id}" for its ids and labels, so that there are as many templates as kinds of calls."""
    return "/".join(word if word in _FIXED_WORDS or not word else "{id}" for word in path.split("/"))


def _request_ids(trace: Trace) -> dict[str, str]:
    """Returns the headers by which Letta's logs and traces can be matched with the bridge's."""
    headers = {"X-Request-Id": trace.request_id}
    return {**headers, "traceparent": trace.traceparent} if trace.traceparent else headers


def _refusal(status: int, content: bytes) -> errors.BridgeError:
    """Returns the error for an answer other than 2xx. Letta's own words are in its note only, for the log."""
    words = content[:REASON].decode("utf-8", "replace")
    failure = failures.error_from_status(status, words)
    failure.add_note(f"Letta said: {words:.2000}")
    return failure


def as_object(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise errors.LettaError(failures.NOT_LETTA)
    return value


def as_objects(value: Any) -> list[JsonObject]:
    if not isinstance(value, list):
        raise errors.LettaError(failures.NOT_LETTA)
    return [as_object(item) for item in value]
