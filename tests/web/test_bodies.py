from __future__ import annotations

import gzip
import threading
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest
from flask import Request
from werkzeug.test import EnvironBuilder

from bridge.config import Settings
from bridge.errors import BodyTooLarge, InvalidRequest, TooManyBytes
from bridge.turn import JsonObject
from bridge.web.bodies import MOST_UNPACKED, Bodies
from bridge.web.room import LARGE, SMALL, Room

LETTERS = "".join(Random(1).choices("abcdefgh", k=LARGE))


def request_with(body: bytes, encoding: str = "") -> Request:
    headers = {"Content-Encoding": encoding} if encoding else {}
    return Request(EnvironBuilder(method="POST", data=body, headers=headers).get_environ())


def read(bodies: Bodies, body: bytes, encoding: str = "") -> JsonObject:
    with ExitStack() as until_sent:
        return bodies.read(request_with(body, encoding), until_sent)


@pytest.mark.fault("bodies too large, too deep, or no JSON")
def test_a_body_that_grows_too_much_when_unpacked_is_refused(settings: Settings) -> None:
    bodies = Bodies(settings, Room())
    packed = gzip.compress(b'{"a": "' + b"x" * 10 * LARGE + b'"}')
    assert len(packed) * MOST_UNPACKED < 2 * LARGE
    with pytest.raises(BodyTooLarge, match=f"{MOST_UNPACKED} times its size"):
        read(bodies, packed, "gzip")
    repeated = b'{"a": "' + b"x" * (LARGE - 100) + b'"}'
    assert len(read(bodies, gzip.compress(repeated), "gzip")["a"]) == LARGE - 100
    usual = b'{"a": "' + LETTERS.encode() * 15 + b'"}'
    assert len(read(bodies, gzip.compress(usual, 1), "gzip")["a"]) == 15 * LARGE


def test_what_unpacking_adds_is_held_until_the_reply_was_sent(settings: Settings) -> None:
    room = Room(4 * LARGE)
    bodies, packed = Bodies(settings, room), gzip.compress(b'{"a": "' + LETTERS.encode() * 2 + b'"}', 1)
    with ExitStack() as until_sent:
        bodies.read(request_with(packed, "gzip"), until_sent)
        assert LARGE < room.held < 2 * LARGE
        bodies.read(request_with(b'{"a": "' + LETTERS.encode() + b'"}'), until_sent)
        assert room.held < 2 * LARGE, "the worker counts what it has received"
        with pytest.raises(TooManyBytes), ExitStack() as other:
            bodies.read(request_with(gzip.compress(b'{"a": "' + LETTERS.encode() * 4 + b'"}', 1), "gzip"), other)
        assert room.held < 2 * LARGE
    assert room.held == 0


def test_nothing_is_held_for_a_body_that_is_refused(settings: Settings) -> None:
    room = Room()
    with pytest.raises(InvalidRequest):
        read(Bodies(settings, room), gzip.compress(b"no JSON" * 100), "gzip")
    assert room.held == 0


@pytest.mark.parametrize(
    ("size", "encoding", "at_once"), [(SMALL + 1, "", 1), (10, "gzip", 1), (SMALL // 2, "", 4)], ids=str
)
def test_bodies_that_may_be_large_are_parsed_one_after_the_other(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, size: int, encoding: str, at_once: int
) -> None:
    body = b'{"a": "' + b"x" * size + b'"}'
    bodies, inside, most, counting = Bodies(settings, Room()), 0, 0, threading.Lock()
    together = threading.Barrier(at_once)

    def parse(*_: Any) -> JsonObject:
        nonlocal inside, most
        with counting:
            inside += 1
            most = max(most, inside)
        together.wait(20)
        with counting:
            inside -= 1
        return {}

    monkeypatch.setattr("bridge.web.bodies.parse_json_body", parse)
    sent = gzip.compress(body) if encoding else body
    threads = [threading.Thread(target=read, args=(bodies, sent, encoding)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == at_once
