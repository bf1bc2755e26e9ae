"""The store for workers on several machines: a Redis server at REDIS_URL. Only this module imports `redis`."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from bridge.errors import StoreUnavailable
from bridge.store.port import Add, Append, Change, Put, Remove, RemoveList

# All our keys in Redis begin so.
PREFIX = "letta-tool-bridge:"
# The longest time for one call to Redis. A slower Redis would be useless: each turn makes six calls or more.
TIMEOUT_SECONDS = 2.0

# Takes steps. Each has two keys and four arguments (see `_step`).
_CHANGE = """
for step = 1, #KEYS / 2 do
  local key, other = KEYS[2 * step - 1], KEYS[2 * step]
  local kind, text, number, keep = ARGV[4 * step - 3], ARGV[4 * step - 2], ARGV[4 * step - 1], ARGV[4 * step]
  if kind == 'needs' then
    if redis.call('exists', key) == 0 then return 0 end
  elseif kind == 'is' then
    if redis.call('get', key) ~= text then return 0 end
  elseif kind == 'is free' then
    if redis.call('exists', key) == 1 then return 0 end
  elseif kind == 'put' then
    redis.call('set', key, text, 'px', keep)
  elseif kind == 'append' then
    redis.call('rpush', key, text)
    redis.call('ltrim', key, -number, -1)
    redis.call('pexpire', key, keep)
  elseif kind == 'add' then
    redis.call('incrby', key, number)
    redis.call('pexpire', key, keep)
  elseif kind == 'remove' then
    redis.call('del', key)
  elseif kind == 'remove value' then
    if redis.call('get', key) == text then redis.call('del', key) end
  elseif kind == 'remove list' then
    if key == other or redis.call('exists', other) == 0 then redis.call('del', key) end
  end
end
return 1
"""
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


# The keys and the arguments of a step of the script _CHANGE.
Step = tuple[tuple[str, str], tuple[str, str, int, int]]


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
        self._take_steps = self._redis.register_script(_CHANGE)

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

    def take_steps(self, steps: Sequence[Step]) -> bool:
        """Takes the steps in this order, with one request. A condition that does not hold ends that: the steps before
        it are taken, those after it are not. Returns whether all were taken.
        """
        if not steps:
            return True
        keys = [key for keys, _ in steps for key in keys]
        args = [argument for _, arguments in steps for argument in arguments]
        with self.client():
            return bool(self._take_steps(keys=keys, args=args))


def condition(key: str, value: str | None) -> Step:
    """Returns the step that ends the steps, unless the key has this value (None: is free)."""
    return _step("is free", key) if value is None else _step("is", key, value)


def _step(kind: str, key: str, text: str = "", number: int = 0, keep: float = 0.0, other: str = "") -> Step:
    """Returns the keys and the arguments of a step of the script that makes changes."""
    return (PREFIX + key, PREFIX + (other or key)), (kind, text, number, milliseconds(keep))


def step_of(change: Change) -> Step:
    """Returns the step that makes the change."""
    match change:
        case Put(key, value, keep):
            return _step("put", key, value, keep=keep)
        case Append(key, item, most, keep):
            return _step("append", key, item, most, keep)
        case Add(key, by, keep):
            return _step("add", key, number=by, keep=keep)
        case Remove(key, None):
            return _step("remove", key)
        case Remove(key, value):
            return _step("remove value", key, value or "")
        case RemoveList(key, unless):
            return _step("remove list", key, other=unless)


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

    def change(
        self, changes: Sequence[Change], needs: str = "", unchanged: Mapping[str, str | None] | None = None
    ) -> bool:
        steps = [_step("needs", needs)] if needs else []
        steps += (condition(key, value) for key, value in (unchanged or {}).items())
        return self._server.take_steps([*steps, *map(step_of, changes)])

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

    def remove(self, *keys: str) -> None:
        with self._server.client() as client:
            client.delete(*(PREFIX + key for key in keys))

    def append(self, key: str, item: str, most: int, keep: float) -> None:
        self.change([Append(key, item, most, keep)])

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
