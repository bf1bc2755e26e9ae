from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask
from werkzeug.routing import Rule

from bridge.config import Settings
from bridge.keys import parse_api_keys
from bridge.web.body_limits import BODY_LIMITS, BodyLimits
from bridge.web.room import SMALL

KEY = "key-of-the-only-client"
LINE = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x"
ALLOWED = b"\r\nAuthorization: Bearer " + KEY.encode()


@pytest.fixture
def limits(app: Flask, settings: Settings) -> BodyLimits:
    return BodyLimits(replace(settings, api_keys=parse_api_keys(KEY), url_prefix="/bridge"), app.url_map)


@pytest.mark.parametrize(
    "head",
    [
        LINE + ALLOWED,
        LINE + b"\r\nAUTHORIZATION:\t bearer  " + KEY.encode() + b" ",
        LINE.replace(b"/v1", b"/bridge/v1") + ALLOWED,
        LINE.replace(b"completions ", b"completions/?a=b ") + ALLOWED,
        LINE.replace(b"/chat", b"/%63hat") + ALLOWED,
        LINE.replace(b"/v1", b"http://bridge.test/v1") + ALLOWED,
    ],
)
def test_a_client_with_a_key_may_send_a_large_body(limits: BodyLimits, settings: Settings, head: bytes) -> None:
    assert limits.largest_body(head) == settings.max_body


@pytest.mark.parametrize(
    "head",
    [
        LINE,
        LINE + b"\r\nAuthorization: Bearer wrong",
        LINE + b"\r\nAuthorization: Basic " + KEY.encode(),
        LINE + b"\r\nX-Authorization: Bearer " + KEY.encode(),
        LINE + ALLOWED + b"\r\nAuthorization: Bearer wrong",
        LINE.replace(b"completions", b"nothing") + ALLOWED,
        LINE.replace(b"POST", b"GET") + ALLOWED,
        LINE.replace(b"/v1/chat/completions", b"/healthz") + ALLOWED,
        LINE.replace(b"/v1/chat/completions", b"/admin/sign-in") + ALLOWED,
        LINE.replace(b"/v1/chat/completions", b"http://[") + ALLOWED,
        b"\xff",
        b"",
    ],
)
def test_for_a_request_that_the_app_refuses_little_is_read(limits: BodyLimits, head: bytes) -> None:
    assert limits.largest_body(head) == SMALL


LETTA_LINE = LINE.replace(b"/v1/chat/completions", b"/letta/v1/agents/agent-1/messages")


@pytest.fixture
def letta_limits(app: Flask, settings: Settings) -> Callable[..., BodyLimits]:
    """Makes the limits of a service that has a route for Letta's own API."""
    app.url_map.add(Rule("/letta/<path:path>", endpoint="letta", methods=["POST"]))
    return lambda **changes: BodyLimits(replace(settings, **changes), app.url_map)


def test_a_client_with_a_right_may_send_a_large_body_to_letta(
    letta_limits: Callable[..., BodyLimits], settings: Settings
) -> None:
    assert letta_limits(letta_api="agents").largest_body(LETTA_LINE) == settings.max_body
    key = replace(parse_api_keys(KEY)[0], letta="all")
    assert letta_limits(api_keys=(key,)).largest_body(LETTA_LINE + ALLOWED) == settings.max_body


def test_for_a_client_without_a_right_little_is_read(letta_limits: Callable[..., BodyLimits]) -> None:
    keys = parse_api_keys(KEY)
    assert letta_limits().largest_body(LETTA_LINE) == SMALL
    assert letta_limits(letta_api="all", api_keys=keys).largest_body(LETTA_LINE) == SMALL
    off = (replace(keys[0], letta="off"),)
    assert letta_limits(letta_api="all", api_keys=off).largest_body(LETTA_LINE + ALLOWED) == SMALL


def test_without_keys_everybody_may_send_a_large_body(app: Flask, settings: Settings) -> None:
    assert app.extensions[BODY_LIMITS].largest_body(LINE) == settings.max_body
