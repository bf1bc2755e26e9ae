from __future__ import annotations

from bridge.sync.made_stubs import MadeStubs


def test_a_key_that_made_many_stubs_is_reported_once() -> None:
    made = MadeStubs(10)
    for key_name in ("alice", "bob"):
        made.add(key_name, 10)
    assert not made.are_many()
    made.add("bob", 1)
    assert [made.are_many() for _ in range(2)] == [True, False]
    made.add("alice", 10)
    assert not made.are_many()
