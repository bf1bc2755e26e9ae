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
from bridge.errors import BodyTooLarge, InvalidRequest, TooManyBytes, TooManyTurns
from bridge.limits.gate import Gate
from bridge.turn import JsonObject
from bridge.web.bodies import MOST_UNPACKED, Bodies
from bridge.web.room import LARGE, SMALL, Room
from tests.memory import measured, memory_held

LETTERS = "".join(Random(1).choices("abcdefgh", k=LARGE))


def request_with(body: bytes, encoding: str = "") -> Request:
    headers = {"Content-Encoding": encoding} if encoding else {}
    return Request(EnvironBuilder(method="POST", data=body, headers=headers).get_environ())


def read(bodies: Bodies, body: bytes, encoding: str = "") -> JsonObject:
    with ExitStack() as until_over:
        return bodies.read(request_with(body, encoding), until_over, until_over)


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
        bodies.read(request_with(packed, "gzip"), until_sent, until_sent)
        assert LARGE < room.held < 2 * LARGE
        bodies.read(request_with(b'{"a": "' + LETTERS.encode() + b'"}'), until_sent, until_sent)
        assert room.held < 2 * LARGE, "the worker counts what it has received"
        packed = gzip.compress(b'{"a": "' + LETTERS.encode() * 4 + b'"}', 1)
        with pytest.raises(TooManyBytes), ExitStack() as other:
            bodies.read(request_with(packed, "gzip"), other, other)
        assert room.held < 2 * LARGE
    assert room.held == 0


def test_what_a_turn_keeps_is_held_until_the_turn_is_over(settings: Settings) -> None:
    """Its client may leave before, and the worker then counts nothing of the request any more."""
    room, slot = Room(), Gate(1, lambda: TooManyTurns("Too many.")).enter()
    body = b'{"a": "' + LETTERS.encode() + b'"}'
    with ExitStack() as until_sent:
        until_sent.callback(slot.leave)
        slot.share()
        Bodies(settings, room).read(request_with(body), until_sent, slot.until_free)
        assert room.held == 0, "the worker counts what it has received"
    assert room.held == len(body)
    slot.leave()
    assert room.held == 0


def test_a_body_of_many_values_is_held_as_what_it_takes_in_memory(settings: Settings) -> None:
    room = Room()
    body = b'{"a":[' + b'{"b":0},' * 100_000 + b"0]}"

    def read() -> tuple[int, int]:
        with ExitStack() as until_over:
            parsed = Bodies(settings, room).read(request_with(body), until_over, until_over)
            assert len(parsed["a"]) == 100_001
            return room.held + len(body), memory_held()

    counted, taken = measured(read)
    assert 0.7 * taken < counted < 1.5 * taken
    with ExitStack() as until_over:
        for _ in range(3):
            Bodies(settings, room).read(request_with(body), until_over, until_over)
        with pytest.raises(TooManyBytes):
            Bodies(settings, room).read(request_with(body), until_over, until_over)
    assert room.held == 0


def test_a_small_body_is_read_whatever_is_held(settings: Settings) -> None:
    room = Room(LARGE)
    room.add(2 * LARGE)
    body = b'{"a":[' + b"{}," * (SMALL // 3 - 10) + b"{}]}"
    assert len(body) < SMALL
    with ExitStack() as until_over:
        Bodies(settings, room).read(request_with(body), until_over, until_over)
        assert room.held > 3 * LARGE
    assert room.held == 2 * LARGE


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

    monkeypatch.setattr("bridge.web.bodies.parse_rest", parse)
    sent = gzip.compress(body) if encoding else body
    threads = [threading.Thread(target=read, args=(bodies, sent, encoding)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == at_once
