"""Starts Letta servers for the length of a block.

    with running("0.16.1", model_url=model_url, progress=print) as server:
        requests.get(f"{server.base_url}/v1/agents/")

They end with the block. If the process ends earlier, even by SIGKILL, they end with it.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypedDict, Unpack

from testbed.cache import Cache, Progress, silent
from testbed.errors import StartFailed
from testbed.handle import Server
from testbed.owned import NO_MODEL, Options, OwnServer
from testbed.slots import Slot, claim_numbered
from testbed.up import find_up
from testbed.versions import recipe

__all__ = ["NO_MODEL", "RunOptions", "Server", "running", "running_all"]

AT_ONCE = 2


class RunOptions(TypedDict, total=False):
    """How to run a server. All options may be left out.

    model_url: an OpenAI API, ending in /v1, for agents that name no other.
    model_key: the key for that API.
    secure_password: the password that the server requires.
    slot: a name under which the data is kept for the next time; without it the server starts without agents.
    attach: use a server of this version and password that was brought `up` and answers, with whatever model.
    progress: gets each step as a line.
    cache: the folder for everything.
    """

    model_url: str
    model_key: str | None
    secure_password: str | None
    slot: str | None
    attach: bool
    progress: Progress
    cache: Cache


@contextmanager
def running(version: str, **how: Unpack[RunOptions]) -> Iterator[Server]:
    """Runs a server for the length of the block. Installs it first if needed."""
    server = _begin(version, how, threading.Event())
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def running_all(versions: Sequence[str], **how: Unpack[RunOptions]) -> Iterator[dict[str, Server]]:
    """Runs servers of several versions, installed and started two at a time. Yields them by version."""
    given_up = threading.Event()
    futures: list[Future[Server]] = []
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(_begin, version, how, given_up) for version in dict.fromkeys(versions)]
            try:
                servers = [future.result() for future in futures]
            except BaseException:
                given_up.set()
                pool.shutdown(cancel_futures=True)
                raise
        yield {server.version: server for server in servers}
    finally:
        for future in futures:
            if not future.cancelled() and future.exception() is None:
                future.result().stop()


def _begin(version: str, how: RunOptions, given_up: threading.Event) -> Server:
    cache, progress = how.get("cache") or Cache.default(), how.get("progress", silent)
    password, name = how.get("secure_password"), how.get("slot")
    found = find_up(version, cache) if how.get("attach") else None
    if found is not None and found.password == password:
        progress(f"using Letta {version}, which is already up at {found.base_url}")
        return found
    slot, lock = _claim(cache, version, name)
    options = Options(how.get("model_url", NO_MODEL), how.get("model_key"), password, fresh=name is None)
    server = OwnServer(slot, lock, options, progress)
    server.begin(given_up)
    return server


def _claim(cache: Cache, version: str, name: str | None) -> tuple[Slot, int]:
    recipe(version)
    if name is None:
        return claim_numbered(cache, version)
    slot = Slot(cache, version, name)
    lock = slot.claim()
    if lock is None:
        raise StartFailed(
            f"Letta {version} ({name}) is already running at {slot.read().base_url}, started by another process. "
            f"Stop it there (Ctrl-C) or with `python -m testbed down {version}`, which also ends what uses it."
        )
    return slot, lock
