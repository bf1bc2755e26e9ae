"""The same content of one client is the same turn, in whatever order its fields are, as a stream or not."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.dialect import ChatCompletions
from bridge.journal.claims import Identity
from bridge.turn import Message
from bridge.turns.identity import request_identity
from tests.asked import turn_of

ASKED: dict[str, Any] = {"model": "Ada", "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
REORDERED: dict[str, Any] = {"temperature": 0, "messages": [{"content": "Hello", "role": "user"}], "model": "Ada"}


def identity(body: dict[str, Any], client: str = "roo") -> Identity:
    turn = turn_of(Message("user", "Hello"), client=client)
    return request_identity("", ChatCompletions(RequestRules()), body, turn)


@pytest.mark.parametrize("again", [REORDERED, {**ASKED, "stream": True}], ids=["another order", "as a stream"])
def test_the_same_content_is_the_same_turn(again: dict[str, Any]) -> None:
    assert identity(again) == identity(ASKED)


def test_other_content_and_another_client_are_other_turns() -> None:
    assert identity({**ASKED, "temperature": 1}) != identity(ASKED)
    assert identity(ASKED, "another") != identity(ASKED)
