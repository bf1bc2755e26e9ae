"""The adapter to a real Letta server.

letta-client makes the control calls, by its plain verbs: its typed answers drop what a later server adds, and its
paging never ends on servers that ignore `after`. `requests` reads the message streams, which costs a seventh of
the SDK's typed streaming.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import letta_client
import requests
import urllib3

from bridge import errors, sse
from bridge.config import Settings
from bridge.letta import failures, rows
from bridge.letta.capabilities import ServerFeatures, read_features
from bridge.letta.events import read_run
from bridge.letta.gateway import Agent, AgentSummary, Block, Outgoing
from bridge.turn import Event, JsonObject

FEATURES_KEPT_SECONDS = 60.0
PAGE = 200
_RELATIONS = ("tools", "memory")


class LettaServer:
    """The Gateway to one server. Used by many threads; opens no connection before its first call."""

    def __init__(self, settings: Settings) -> None:
        self._base_url = settings.letta_base_url
        self._connect_timeout = settings.connect_timeout
        self._turn_timeout = settings.turn_timeout
        timeout = httpx.Timeout(settings.letta_timeout, connect=settings.connect_timeout)
        limits = httpx.Limits(max_connections=settings.threads, max_keepalive_connections=settings.threads)
        self._sdk = letta_client.Letta(
            base_url=self._base_url,
            api_key=settings.letta_api_key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=httpx.Client(timeout=timeout, limits=limits, trust_env=False, follow_redirects=False),
        )
        self._session = requests.Session()
        self._session.trust_env = False
        if settings.letta_api_key:
            self._session.headers["Authorization"] = f"Bearer {settings.letta_api_key}"
        adapter = requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=settings.threads)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)
        self._features: tuple[ServerFeatures, float] | None = None
        self._features_lock = threading.Lock()

    # --- server ---------------------------------------------------------------------------------------

    def features(self) -> ServerFeatures:
        known = self._features
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        with self._features_lock:
            known = self._features
            if known is not None and time.monotonic() < known[1]:
                return known[0]
            version = rows.text(_mapping(self._call("GET", "/v1/health/")).get("version"))
            if known is None or known[0].version_text != version:
                features = read_features(version, _mapping(self._call("GET", "/openapi.json")))
            else:
                features = known[0]
            self._features = (features, time.monotonic() + FEATURES_KEPT_SECONDS)
            return features

    # --- agents ---------------------------------------------------------------------------------------

    def agents(self) -> list[AgentSummary]:
        found: dict[str, AgentSummary] = {}
        after: dict[str, Any] = {}
        while True:
            page = _list(self._call("GET", "/v1/agents/", {"limit": PAGE, "include_relationships": "", **after}))
            fresh = [row for row in map(rows.agent_summary, page) if row.id not in found]
            found.update((row.id, row) for row in fresh)
            if len(page) < PAGE or not fresh:
                return list(found.values())
            after = {"after": fresh[-1].id}

    def agents_named(self, name: str) -> list[AgentSummary]:
        page = _list(self._call("GET", "/v1/agents/", {"name": name, "limit": PAGE, "include_relationships": ""}))
        return [row for row in map(rows.agent_summary, page) if row.name == name]

    def agent(self, agent_id: str) -> Agent:
        return rows.agent(_mapping(self._call("GET", f"/v1/agents/{agent_id}", {"include_relationships": _RELATIONS})))

    def step_prompt_tokens(self, step_id: str) -> int | None:
        tokens = _mapping(self._call("GET", f"/v1/steps/{step_id}")).get("prompt_tokens")
        return tokens if isinstance(tokens, int) else None

    # --- messages -------------------------------------------------------------------------------------

    def send(self, agent_id: str, messages: Sequence[Outgoing], *, by_token: bool) -> Iterator[Event]:
        body = {
            "messages": [{"role": message.role, "content": message.text} for message in messages],
            "stream_tokens": by_token,
        }
        with _naming_faults(self._base_url):
            answer = self._session.post(
                f"{self._base_url}/v1/agents/{agent_id}/messages/stream",
                data=json.dumps(body).encode(),
                headers={"Content-Type": "application/json", "Accept": "text/event-stream"},
                stream=True,
                allow_redirects=False,
                timeout=(self._connect_timeout, self._turn_timeout),
            )
        if answer.status_code != 200:
            with answer, _naming_faults(self._base_url):
                words = answer.raw.read(20_000, decode_content=True).decode("utf-8", "replace")
            raise _noted(failures.from_status(answer.status_code, words), words)
        return self._read(answer)

    def _read(self, answer: requests.Response) -> Iterator[Event]:
        with answer, _naming_faults(self._base_url):
            yield from read_run(_messages(_pieces(answer)))

    # --- blocks ---------------------------------------------------------------------------------------

    def add_block(self, agent_id: str, label: str, value: str, description: str, metadata: Mapping[str, Any]) -> Block:
        body = {
            "label": label,
            "value": value,
            "limit": _limit(value),
            "description": description,
            "read_only": True,
            "metadata": dict(metadata),
        }
        block = rows.block(_mapping(self._call("POST", "/v1/blocks/", body=body)))
        self._call("PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/attach/{block.id}")
        features = self.features()
        if features.attached_block_is_late:
            self.set_block(agent_id, label, value)
        elif features.block_change_needs_recompile:
            self._recompile(agent_id)
        return block

    def set_block(self, agent_id: str, label: str, value: str) -> None:
        self._call(
            "PATCH", f"/v1/agents/{agent_id}/core-memory/blocks/{label}", body={"value": value, "limit": _limit(value)}
        )

    def remove_block(self, agent_id: str, block: Block) -> None:
        features = self.features()
        if features.attached_block_is_late:
            self.set_block(agent_id, block.label, "")
        self._call("DELETE", f"/v1/blocks/{block.id}")
        if features.block_change_needs_recompile:
            self._recompile(agent_id)

    def _recompile(self, agent_id: str) -> None:
        self._call("POST", f"/v1/agents/{agent_id}/recompile")

    # --- one control call -----------------------------------------------------------------------------

    def _call(self, verb: str, path: str, params: Mapping[str, Any] | None = None, body: Any = None) -> Any:
        """The decoded answer. Reads are tried once more: Letta closes kept-alive connections after its own errors."""
        try:
            with _naming_faults(self._base_url):
                return self._call_once(verb, path, params, body)
        except errors.LettaUnreachable:
            if verb != "GET":
                raise
        with _naming_faults(self._base_url):
            return self._call_once(verb, path, params, body)

    def _call_once(self, verb: str, path: str, params: Mapping[str, Any] | None, body: Any) -> Any:
        verbs: dict[str, Callable[..., httpx.Response]] = {
            "GET": self._sdk.get,
            "POST": self._sdk.post,
            "PUT": self._sdk.put,
            "PATCH": self._sdk.patch,
            "DELETE": self._sdk.delete,
        }
        sent = {} if body is None else {"body": body}
        answer = verbs[verb](path, cast_to=httpx.Response, options={"params": params} if params else {}, **sent)
        return answer.json() if answer.content else None


@contextmanager
def _naming_faults(base_url: str) -> Iterator[None]:
    """Faults of letta-client, httpx, requests and urllib3 -> our errors; around the reading of a stream, too."""
    try:
        yield
    except letta_client.APIStatusError as fault:
        raise _noted(failures.from_status(fault.status_code, fault.response.text), fault.response.text) from fault
    except (letta_client.APITimeoutError, requests.ReadTimeout, urllib3.exceptions.ReadTimeoutError) as fault:
        raise errors.LettaTimeout("The Letta server did not answer in time.") from fault
    except (letta_client.APIConnectionError, requests.ConnectionError, requests.Timeout, httpx.TransportError) as fault:
        raise errors.LettaUnreachable(f"The Letta server at {base_url} can't be reached.") from fault
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as fault:
        raise errors.LettaUnreachable(failures.CUT, code="stream_cut") from fault
    except ValueError as fault:
        raise errors.LettaError("The Letta server answered with something that is not its protocol.") from fault


def _pieces(answer: requests.Response) -> Iterator[bytes]:
    """The bytes as they arrive: `iter_content` would wait for a full buffer where the server does not chunk."""
    while piece := answer.raw.read1(65536, decode_content=True):
        yield piece


def _messages(pieces: Iterator[bytes]) -> Iterator[JsonObject | None]:
    for _, data in sse.decode(pieces):
        if data == sse.DONE:
            yield None
        else:
            yield _mapping(json.loads(data))


def _noted(failure: errors.BridgeError, words: str) -> errors.BridgeError:
    failure.add_note(f"Letta said: {words:.2000}")
    return failure


def _limit(value: str) -> int:
    """Letta's limit of characters for a block: its default where that is enough."""
    return max(20_000, len(value) + 1)


def _mapping(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError("a JSON object was expected")
    return value


def _list(value: Any) -> list[JsonObject]:
    if not isinstance(value, list):
        raise ValueError("a JSON array was expected")
    return [_mapping(item) for item in value]
