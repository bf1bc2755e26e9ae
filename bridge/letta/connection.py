"""HTTP to one Letta server: the only place that knows the libraries and what they raise.

letta-client makes the control calls, by its plain verbs: its typed answers drop what a later server adds, and its
paging never ends on servers that ignore `after`. What every turn does goes past the upper floors of the libraries,
which cost more than the call: reads through the transport of letta-client's calls, message streams through the
adapter of `requests`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

import httpx
import letta_client
import requests
import urllib3
from requests.structures import CaseInsensitiveDict

from bridge import errors, sse
from bridge.config import Settings
from bridge.letta import failures
from bridge.letta.transport import PooledTransport
from bridge.trace import Trace, current
from bridge.turn import JsonObject

PAGE = 200
MOST_URLS = 1024
IDEMPOTENT = ("GET", "PUT", "DELETE")
# Between two tries, so that many turns do not come back at the same moment.
PAUSE = (0.05, 0.25)
# The words of Letta's paths; what stands between them is somebody's id or label.
_WORDS = frozenset(
    {
        *("v1", "agents", "attach", "blocks", "cancel", "core-memory", "health", "messages"),
        *("openapi.json", "recompile", "steps", "stream", "tools", "runs"),
    }
)

_SILENCE = (
    *(letta_client.APITimeoutError, httpx.TimeoutException),
    *(requests.ReadTimeout, urllib3.exceptions.ReadTimeoutError),
)

Observer = Callable[[str, float], None]
T = TypeVar("T")


class Connection:
    """Used by many threads; opens nothing before its first call. `transport` carries the control calls.

    `observe` is told of every call, as in "GET /v1/agents/{id}", and how long its answer took to begin.
    """

    def __init__(
        self,
        settings: Settings,
        transport: httpx.BaseTransport | None = None,
        observe: Observer = lambda call, seconds: None,
    ) -> None:
        self._base_url = settings.letta_base_url
        self._observe = observe
        self._connect_timeout = settings.connect_timeout
        self._turn_timeout = settings.turn_timeout
        authorization = {"Authorization": f"Bearer {settings.letta_api_key}"} if settings.letta_api_key else {}
        timeout = httpx.Timeout(settings.letta_timeout, connect=settings.connect_timeout)
        self._transport = transport or PooledTransport(settings.threads)
        self._sdk = letta_client.Letta(
            base_url=self._base_url,
            api_key=settings.letta_api_key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=httpx.Client(
                timeout=timeout, transport=self._transport, trust_env=False, follow_redirects=False
            ),
        )
        self._url = lru_cache(maxsize=MOST_URLS)(httpx.URL)
        self._reading = {"Accept": "application/json", **authorization}
        self._reading_limits = {"timeout": timeout.as_dict()}
        self._streaming = {"Content-Type": "application/json", "Accept": "text/event-stream", **authorization}
        self._adapter = requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=settings.threads)

    def close(self) -> None:
        """Let go of the connections that are kept open for the next call."""
        self._sdk.close()
        self._adapter.close()

    def stream(self, path: str, body: JsonObject) -> Iterator[JsonObject | None]:
        """The messages of a stream as they come, then None when the server says that it is done.

        Raises before it returns when the server refuses, so nothing was begun then.
        """
        sent, trace = json.dumps(body).encode(), current()
        answer = _safely_again(lambda: self._post(path, sent, trace), idempotent=False)
        if answer.status_code != 200:
            words = ""
            # 0.11 refuses with a 500 and breaks off: then the status is all there is.
            with answer, suppress(errors.LettaError), _naming_faults(self._base_url):
                words = answer.raw.read(20_000, decode_content=True).decode("utf-8", "replace")
            raise _noted(failures.from_status(answer.status_code, words), words)
        return self._read(answer, trace)

    def _post(self, path: str, sent: bytes, trace: Trace) -> requests.Response:
        request = requests.PreparedRequest()
        request.method, request.url, request.body = "POST", self._base_url + path, sent
        request.headers = CaseInsensitiveDict({**self._streaming, **_names(trace), "Content-Length": str(len(sent))})
        with _naming_faults(self._base_url), self._counted(trace, "POST", path):
            return self._adapter.send(request, stream=True, timeout=(self._connect_timeout, self._turn_timeout))

    def _read(self, answer: requests.Response, trace: Trace) -> Iterator[JsonObject | None]:
        with answer, _naming_faults(self._base_url):
            for _, data in self._timely(answer, trace):
                yield None if data == sse.DONE else as_object(json.loads(data))

    def _timely(self, answer: requests.Response, trace: Trace) -> Iterator[tuple[str, str]]:
        """The events of a stream. What counts is that they come: a server may send bytes for ever and say nothing."""
        latest = time.monotonic() + self._turn_timeout

        def pieces() -> Iterator[bytes]:
            for piece in _pieces(answer, trace):
                if time.monotonic() > latest:
                    raise errors.LettaTimeout("The Letta server did not answer in time.")
                yield piece

        for event in sse.decode(pieces()):
            yield event
            latest = time.monotonic() + self._turn_timeout

    def call(self, verb: str, path: str, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The decoded answer."""
        return _safely_again(lambda: self._call_once(verb, path, params, body), idempotent=verb in IDEMPOTENT)

    def header(self, path: str, name: str) -> str:
        """A header of the answer to a GET, "" when it has none of that name."""
        trace = current()
        with _naming_faults(self._base_url), self._counted(trace, "GET", path):
            answer = self._sdk.get(path, cast_to=httpx.Response, options={"headers": _names(trace)})
        return str(answer.headers.get(name, ""))

    def _call_once(self, verb: str, path: str, params: Mapping[str, Any] | None, body: Any) -> Any:
        with _naming_faults(self._base_url):
            return self._call_unnamed(verb, path, params, body)

    def _call_unnamed(self, verb: str, path: str, params: Mapping[str, Any] | None, body: Any) -> Any:
        trace = current()
        with self._counted(trace, verb, path):
            answer = (
                self._get(path, params, _names(trace))
                if verb == "GET"
                else self._change(verb, path, body, _names(trace))
            )
        return answer.json() if answer.content else None

    def _get(self, path: str, params: Mapping[str, Any] | None, names: Mapping[str, str]) -> httpx.Response:
        query = f"?{self._sdk.qs.stringify(params)}" if params else ""
        url = self._url(f"{self._base_url}{path}{query}")
        request = httpx.Request("GET", url, headers={**self._reading, **names}, extensions=self._reading_limits)
        answer = self._transport.handle_request(request)
        answer.read()
        if not answer.is_success:
            raise _noted(failures.from_status(answer.status_code, answer.text), answer.text)
        return answer

    def _change(self, verb: str, path: str, body: Any, names: Mapping[str, str]) -> httpx.Response:
        verbs: dict[str, Callable[..., httpx.Response]] = {
            "POST": self._sdk.post,
            "PUT": self._sdk.put,
            "PATCH": self._sdk.patch,
            "DELETE": self._sdk.delete,
        }
        sent = {} if body is None else {"body": body}
        return verbs[verb](path, cast_to=httpx.Response, options={"headers": names}, **sent)

    @contextmanager
    def _counted(self, trace: Trace, verb: str, path: str) -> Iterator[None]:
        call = f"{verb} {template_of(path)}"
        trace.count_call(call)
        begun = time.perf_counter()
        try:
            with trace.calling_letta():
                yield
        finally:
            self._observe(call, time.perf_counter() - begun)

    def pages(self, path: str, **params: Any) -> list[JsonObject]:
        """All rows of a list. A server that ignores `after` repeats itself: it is asked for a larger page."""
        found: dict[str, JsonObject] = {}
        limit, after = PAGE, dict[str, str]()
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


def _safely_again(call: Callable[[], T], *, idempotent: bool) -> T:
    """Once more where that does nothing twice. Letta closes kept-alive connections after its own errors."""
    try:
        return call()
    except errors.LettaUnreachable as fault:
        if not idempotent and not fault.nothing_sent:
            raise
    time.sleep(random.uniform(*PAUSE))  # nosec B311 # a pause is no secret
    return call()


@contextmanager
def _naming_faults(base_url: str) -> Iterator[None]:
    """Faults of letta-client, httpx, requests and urllib3 -> our errors; around the reading of a stream, too."""
    try:
        yield
    except letta_client.APIStatusError as fault:
        raise _noted(failures.from_status(fault.status_code, fault.response.text), fault.response.text) from fault
    except _SILENCE as fault:
        raise errors.LettaTimeout("The Letta server did not answer in time.") from fault
    except (letta_client.APIConnectionError, requests.ConnectionError, requests.Timeout, httpx.TransportError) as fault:
        failure = errors.LettaUnreachable(f"The Letta server at {base_url} can't be reached.")
        failure.nothing_sent = _never_connected(fault)
        raise failure from fault
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as fault:
        raise errors.LettaUnreachable(failures.CUT, code="stream_cut") from fault
    except (ValueError, RecursionError) as fault:
        raise errors.LettaError(failures.NOT_LETTA) from fault


def _never_connected(fault: Exception) -> bool:
    reason = getattr(fault.args[0], "reason", None) if fault.args else None
    opening = isinstance(fault, httpx.ConnectError) or isinstance(fault.__cause__, httpx.ConnectError)
    return opening or isinstance(reason, urllib3.exceptions.NewConnectionError)


def _pieces(answer: requests.Response, trace: Trace) -> Iterator[bytes]:
    """The bytes as they arrive: `iter_content` would wait for a full buffer where the server does not chunk."""
    while True:
        with trace.calling_letta():
            piece = answer.raw.read1(65536, decode_content=True)
        if not piece:
            return
        yield piece


def template_of(path: str) -> str:
    """The path without what differs from agent to agent: there are as many as the bridge has verbs."""
    return "/".join(word if word in _WORDS or not word else "{id}" for word in path.split("/"))


def _names(trace: Trace) -> dict[str, str]:
    """So that Letta's logs and traces can be laid beside the bridge's."""
    named = {"X-Request-Id": trace.request_id}
    return {**named, "traceparent": trace.traceparent} if trace.traceparent else named


def _noted(failure: errors.BridgeError, words: str) -> errors.BridgeError:
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
