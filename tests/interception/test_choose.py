from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from bridge.interception.choose import explain_method, possible_methods
from bridge.letta.capabilities import Loop
from bridge.turn import Method
from tests.fakes import FEATURES

# Of a server that can do everything.
ABLE = replace(FEATURES, client_tools=True)


@pytest.mark.parametrize("method", sorted({*get_args(Method)} - {"auto"}))
def test_every_method_is_possible_somewhere_and_has_a_reason(method: Method) -> None:
    loops: list[Loop] = [loop for loop in get_args(Loop) if method in possible_methods(ABLE, loop)]
    assert loops
    assert possible_methods(ABLE, loops[0])[method].name == method
    assert explain_method(method, ABLE, loops[0], "auto")
