"""Puts an agent's turns together to the paths of its chats: the turns whose messages a chat has in its context. Pure.

A chat that parted from another one has the turns before the parting in common with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from bridge.heard.records import HeardTurn


def paths_of_chats(turns: Sequence[HeardTurn], root: str) -> dict[str, list[HeardTurn]]:
    """Returns the turns of each chat, the oldest first. `turns` are those of all chats, in their order. `root` is the
    id of the system prompt, after which the first turn of a chat begins.
    """
    paths: dict[str, list[HeardTurn]] = {}
    ends: dict[str, tuple[Sequence[HeardTurn], int]] = {}
    for turn in turns:
        if not turn.chat:
            continue
        path = paths.get(turn.chat)
        if path is None:
            before, length = ends.get(turn.after, ((), 0)) if turn.begins != root else ((), 0)
            path = paths[turn.chat] = list(before[:length])
        path.append(turn)
        if turn.turn:
            ends[turn.turn] = path, len(path)
    return paths


def is_whole(path: Sequence[HeardTurn], root: str) -> bool:
    """Returns whether all turns of a chat are noted, from the first on. Its notes may be lost, or too old."""
    return next((turn.begins for turn in path if turn.begins), "") == root


def parted_places(paths: Mapping[str, Sequence[HeardTurn]]) -> Mapping[str, list[tuple[str, int]]]:
    """Returns where each turn that has an id stands, as chats and places in their paths."""
    found: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for chat, path in paths.items():
        for place, turn in enumerate(path):
            if turn.turn:
                found[turn.turn].append((chat, place))
    return found
