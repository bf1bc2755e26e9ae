"""Locks between machines: leases in Redis. A lease is a lock that expires unless its holder renews it.

A holder whose process was paused for long, or that lost its connection to Redis, knows by its own clock that its lease
is over. It does nothing to the agent then. Waiting turns are in a queue in Redis. A turn that has not asked again for
SILENCE_LIMIT seconds is removed from the queue.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from bridge.errors import StoreUnavailable
from bridge.lasting_thread import LastingThread
from bridge.locks.agents import HeldLock, TurnEnd
from bridge.store.port import Change, Put, Remove
from bridge.store.redis import PREFIX, RedisServer, condition, milliseconds, step_of

log = logging.getLogger(__name__)

# All times are in seconds. A lease lasts for LEASE, and is renewed every RENEWAL.
LEASE = 15.0
RENEWAL = 4.0
# The holder counts its lease as over so long before Redis does.
MARGIN = 2.0
# A waiting turn is removed from the queue if it has not asked for so long.
SILENCE_LIMIT = 3.0
# The pause of a waiting turn before it asks again, at first and at most.
POLL = 0.02
SLOWEST_POLL = 0.15
# So long Redis keeps the mark how the last turn of an agent ended.
MARK_KEPT = 7 * 86400.0

_TAKE = """
local lock, queue, heard, turn = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, lease, silence_limit, mark_kept = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- A time in the future, or a lock that lasts for longer than a lease: the clock was put back since then.
for _, span in ipairs({{'-inf', now - silence_limit}, {now + silence_limit, '+inf'}}) do
  for _, silent in ipairs(redis.call('zrangebyscore', heard, span[1], span[2])) do
    redis.call('zrem', queue, silent)
    redis.call('zrem', heard, silent)
  end
end
if redis.call('pttl', lock) > tonumber(lease) then redis.call('pexpire', lock, lease) end
local first = redis.call('zrange', queue, 0, 0)[1]
if redis.call('exists', lock) == 0 and (not first or first == token) then
  redis.call('set', lock, token, 'px', lease)
  redis.call('zrem', queue, token)
  redis.call('zrem', heard, token)
  local previous = redis.call('get', turn) or 'unknown'
  redis.call('set', turn, 'lost', 'px', mark_kept)
  return {1, previous}
end
if not redis.call('zscore', queue, token) then
  local last = redis.call('zrange', queue, -1, -1, 'withscores')
  redis.call('zadd', queue, (last[2] or 0) + 1, token)
end
redis.call('zadd', heard, now, token)
redis.call('pexpire', queue, silence_limit * 10)
redis.call('pexpire', heard, silence_limit * 10)
return {0, ''}
"""
_LEAVE = """
redis.call('zrem', KEYS[1], ARGV[1])
redis.call('zrem', KEYS[2], ARGV[1])
"""
_RENEW = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])
"""


class LeaseLocker:
    """Takes leases in one Redis. One thread of each worker renews all leases of the worker."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._take = server.register_script(_TAKE)
        self._leave = server.register_script(_LEAVE)
        self._renewal = server.register_script(_RENEW)
        self._leases: set[_Lease] = set()
        self._guard = threading.Lock()
        self.thread = LastingThread("leases", self._wait_for_renewal, self.renew_all, "leases can't be renewed")

    def take_lock(self, name: str, keep_waiting: Callable[[], bool]) -> HeldLock | None:
        self.thread.start()  # before there is a lease: without the thread, no lease is taken
        token = secrets.token_hex(12)
        pause = POLL
        while True:
            lease = self._try_to_take(name, token)
            if lease is not None:
                return lease
            if not keep_waiting():
                with suppress(StoreUnavailable), self._server.client():
                    self._leave(keys=[_redis_key("queue", name), _redis_key("heard", name)], args=[token])
                return None
            time.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_POLL)

    def _try_to_take(self, name: str, token: str) -> HeldLock | None:
        """Takes the lease if it is free and this turn is the first in the queue. Otherwise queues the turn."""
        asked = time.monotonic()
        keys = [_redis_key(kind, name) for kind in ("lock", "queue", "heard", "turn")]
        with self._server.client():
            times = map(milliseconds, (LEASE, SILENCE_LIMIT, MARK_KEPT))
            taken, previous = self._take(keys=keys, args=[token, *times])
        if not taken:
            return None
        lease = _Lease(self, name, token, previous, asked + LEASE - MARGIN)
        with self._guard:
            self._leases.add(lease)
        return lease

    def _renew_lease(self, lease: _Lease) -> None:
        """Makes the lease last for LEASE seconds from now. Ends the lease if Redis does not know it any more."""
        asked = time.monotonic()
        with self._server.client():
            renewed = self._renewal(keys=[_redis_key("lock", lease.name)], args=[lease.token, milliseconds(LEASE)])
        lease.until = asked + LEASE - MARGIN if renewed else 0.0

    def release(self, lease: _Lease, end: TurnEnd, notes: Sequence[Change]) -> None:
        """Makes the notes and then removes the lease, with one request. If Redis fails, only logs that: the lease is
        not renewed any more and expires.
        """
        with self._guard:
            self._leases.discard(lease)
        lock = _key("lock", lease.name)
        mark = Put(_key("turn", lease.name), end, MARK_KEPT)
        steps = [condition(lock, lease.token), step_of(Remove(lock)), step_of(mark)]
        try:
            self._server.take_steps([*map(step_of, notes), *steps])
        except StoreUnavailable as fault:
            if notes:  # a Redis that is full refuses them, and may yet remove the lease
                log.warning("what a turn leaves for the next could not be noted: %s", fault.message)
                return self.release(lease, end, ())
            log.warning("a lease could not be given back, and will expire: %s", fault.message)
        return None

    def _wait_for_renewal(self) -> bool:
        time.sleep(RENEWAL)
        return True

    def renew_all(self) -> None:
        """Renews all leases of this worker. If Redis fails, leaves the other leases to the next call."""
        with self._guard:
            leases = [*self._leases]
        for lease in leases:
            self._renew_lease(lease)


class _Lease:
    """A lease that this worker holds, by its clock until `until`. `token` names its holder in Redis."""

    def __init__(self, locker: LeaseLocker, name: str, token: str, previous: TurnEnd, until: float) -> None:
        self._locker = locker
        self.name = name
        self.token = token
        self.previous = previous
        self.until = until

    def holds(self) -> bool:
        return time.monotonic() < self.until

    def release(self, end: TurnEnd, notes: Sequence[Change] = ()) -> None:
        self._locker.release(self, end, notes)


def _key(kind: str, name: str) -> str:
    """Returns the key in the store for the "lock", the "queue", "heard" (when each turn asked last) or the "turn"
    (how the last one ended).
    """
    return f"{kind}:{{{name}}}"


def _redis_key(kind: str, name: str) -> str:
    return PREFIX + _key(kind, name)
