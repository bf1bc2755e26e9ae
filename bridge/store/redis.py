"""The store for workers on several machines: a Redis server at REDIS_URL. Only this module imports `redis`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bridge.errors import StoreUnavailable

# All our keys in Redis begin so.
PREFIX = "letta-tool-bridge:"
# The longest time for one call to Redis. A slower Redis would be useless: each turn makes several calls.
TIMEOUT_SECONDS = 2.0

_PUT_IF_FREE = """
local there = redis.call('get', KEYS[1])
if there then
  if there == ARGV[1] then return false end
  return there
end
redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
return false
"""
_REPLACE_IF_UNCHANGED = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3])
return 1
"""
_REMOVE_IF_UNCHANGED = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])
"""


class RedisServer:
    """Calls the Redis server at `url`, for many threads."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url,
            decode_responses=True,
            protocol=2,
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            # No call is repeated: Redis may have done a call that got no answer. The library notices before a call that
            # a connection was lost earlier.
            retry=Retry(NoBackoff(), 0),
        )

    @contextmanager
    def client(self) -> Iterator[redis.Redis]:
        """Yields the library's client. Raises StoreUnavailable if a call to Redis fails in the `with` block."""
        try:
            yield self._redis
        except (redis.RedisError, OSError) as fault:
            raise StoreUnavailable(
                f"Redis (REDIS_URL), which the workers share, fails: {_describe_fault(fault)}."
            ) from fault

    def register_script(self, source: str) -> Any:
        """Returns a function that runs the Lua script in Redis. Call the function inside a `with client()` block."""
        return self._redis.register_script(source)


def _describe_fault(fault: BaseException) -> str:
    """Returns the exception's class, or why a certificate is refused; not the message, which may have the address."""
    cause: BaseException | None = fault
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = cause.verify_message.partition(",")[0]
            return f"its certificate is refused ({why}); ?ssl_cert_reqs=none at the end of REDIS_URL accepts any"
        cause = cause.__cause__ or cause.__context__
    return type(fault).__name__


class RedisStore:
    """Implements `bridge.store.port.Store` in Redis."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._put_if_free = server.register_script(_PUT_IF_FREE)
        self._replace_if_unchanged = server.register_script(_REPLACE_IF_UNCHANGED)
        self._remove_if_unchanged = server.register_script(_REMOVE_IF_UNCHANGED)

    def get(self, key: str) -> str | None:
        with self._server.client() as client:
            found: Any = client.get(PREFIX + key)
            return None if found is None else str(found)

    def get_all(self, *keys: str) -> list[str | None]:
        with self._server.client() as client:
            found: Any = client.mget([PREFIX + key for key in keys]) if keys else []
            return [None if value is None else str(value) for value in found]

    def put(self, key: str, value: str, keep: float) -> None:
        with self._server.client() as client:
            client.set(PREFIX + key, value, px=milliseconds(keep))

    def put_if_free(self, key: str, value: str, keep: float) -> str | None:
        with self._server.client():
            there = self._put_if_free(keys=[PREFIX + key], args=[value, milliseconds(keep)])
            return None if there is None else str(there)

    def replace_if_unchanged(self, key: str, old: str, new: str, keep: float) -> bool:
        with self._server.client():
            return bool(self._replace_if_unchanged(keys=[PREFIX + key], args=[old, new, milliseconds(keep)]))

    def remove_if_unchanged(self, key: str, value: str) -> bool:
        with self._server.client():
            return bool(self._remove_if_unchanged(keys=[PREFIX + key], args=[value]))

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

    def add_to_counter(self, key: str, by: int, keep: float) -> int:
        with self._server.client() as client, client.pipeline(transaction=True) as pipeline:
            pipeline.incrby(PREFIX + key, by)
            pipeline.pexpire(PREFIX + key, milliseconds(keep))
            return int(pipeline.execute()[0])

    def check_writable(self) -> None:
        self.put("check", "", 1.0)


def milliseconds(seconds: float) -> int:
    """Returns the seconds in milliseconds, at least 1, because Redis allows no shorter time."""
    return max(1, round(seconds * 1000))
