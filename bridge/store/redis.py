"""The store of several machines: a Redis, at REDIS_URL. This is the only module that knows the library."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bridge.errors import StoreUnavailable

PREFIX = "letta-tool-bridge:"
# A Redis that needs longer for a call is useless: each turn makes several calls.
TIMEOUT_SECONDS = 2.0

_CLAIM = """
local there = redis.call('get', KEYS[1])
if there then
  if there == ARGV[1] then return false end
  return there
end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return false
"""
_SWAP = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3])
return 1
"""
_UNCLAIM = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])
"""


class RedisServer:
    """A connection that is opened with the first call, and used by many threads."""

    def __init__(self, url: str, verify: bool = True) -> None:
        self._redis = redis.Redis.from_url(
            url,
            decode_responses=True,
            protocol=2,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            # No call is made again: a call that got no answer may have been done. A connection that was lost earlier is
            # noticed before the call.
            retry=Retry(NoBackoff(), 0),
            **({} if verify or not url.startswith("rediss:") else {"ssl_cert_reqs": "none"}),
        )

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        try:
            yield self._redis
        except (redis.RedisError, OSError) as fault:
            raise StoreUnavailable(
                f"Redis (REDIS_URL), which the workers share, fails: {_describe_fault(fault)}."
            ) from fault

    def register_script(self, source: str) -> Any:
        return self._redis.register_script(source)


def _describe_fault(fault: BaseException) -> str:
    """Describes a fault without its own words, which may contain the address."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = cause.verify_message.partition(",")[0]
            return f"its certificate is refused ({why}); BRIDGE_REDIS_VERIFY=0 accepts any"
        cause = cause.__cause__ or cause.__context__
    return type(fault).__name__


class RedisStore:
    """Used by many threads and workers of many machines."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._claim = server.register_script(_CLAIM)
        self._swap = server.register_script(_SWAP)
        self._unclaim = server.register_script(_UNCLAIM)

    def get(self, key: str) -> str | None:
        with self._server.client() as client:
            found: Any = client.get(PREFIX + key)
            return None if found is None else str(found)

    def put(self, key: str, value: str, keep: float) -> None:
        with self._server.client() as client:
            client.set(PREFIX + key, value, px=milliseconds(keep))

    def claim(self, key: str, value: str, keep: float) -> str | None:
        with self._server.client():
            there = self._claim(keys=[PREFIX + key], args=[value, milliseconds(keep)])
            return None if there is None else str(there)

    def swap(self, key: str, old: str, new: str, keep: float) -> bool:
        with self._server.client():
            return bool(self._swap(keys=[PREFIX + key], args=[old, new, milliseconds(keep)]))

    def unclaim(self, key: str, value: str) -> bool:
        with self._server.client():
            return bool(self._unclaim(keys=[PREFIX + key], args=[value]))

    def remove(self, *keys: str) -> None:
        with self._server.client() as client:
            client.delete(*(PREFIX + key for key in keys))

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        with self._server.client() as client, client.pipeline(transaction=True) as pipeline:
            pipeline.rpush(PREFIX + key, item)
            pipeline.ltrim(PREFIX + key, -most, -1)
            pipeline.pexpire(PREFIX + key, milliseconds(keep))
            pipeline.execute()

    def items(self, key: str) -> list[str]:
        with self._server.client() as client:
            found: Any = client.lrange(PREFIX + key, 0, -1)
            return [str(item) for item in found]

    def count(self, key: str, by: int, keep: float) -> int:
        with self._server.client() as client, client.pipeline(transaction=True) as pipeline:
            pipeline.incrby(PREFIX + key, by)
            pipeline.pexpire(PREFIX + key, milliseconds(keep))
            return int(pipeline.execute()[0])

    def check(self) -> None:
        self.put("check", "", 1.0)


def milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))
