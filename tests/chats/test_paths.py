"""The turns of an agent are put together to the paths of its chats."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bridge.chats.paths import parted_places, paths_of_chats
from bridge.heard.records import HeardTurn, TurnKind

ROOT = "message-system"


def turn(name: str, chat: str, begins: str, kind: TurnKind = "ended", *, after: str = "") -> HeardTurn:
    """A turn that begins at the end of another one, such as "end-a1", comes after that one, if `after` names none."""
    return HeardTurn(kind, chat=chat, begins=begins, turn=name, after=after or begins.removeprefix("end-"))


def aside(name: str, chat: str, kind: TurnKind = "aside") -> HeardTurn:
    return HeardTurn(kind, chat=chat, turn=name)


def names(turns: Sequence[HeardTurn], root: str = ROOT) -> dict[str, list[str]]:
    return {chat: [one.turn for one in path] for chat, path in paths_of_chats(turns, root).items()}


def test_without_turns_there_are_no_paths() -> None:
    assert paths_of_chats([], ROOT) == {}


def test_turns_of_other_chats_do_not_mix() -> None:
    turns = [turn("a1", "A", ROOT), turn("b1", "B", ROOT), turn("a2", "A", "end-a1"), turn("b2", "B", "end-b1")]
    turns += [turn("b3", "B", "end-b2"), turn("a3", "A", "end-a2")]
    assert names(turns) == {"A": ["a1", "a2", "a3"], "B": ["b1", "b2", "b3"]}


def test_turns_of_an_agent_with_one_context_belong_to_no_path() -> None:
    turns = [HeardTurn("ended", turn="x"), turn("a1", "A", ROOT), HeardTurn("ended"), turn("a2", "A", "end-a1")]
    assert names(turns) == {"A": ["a1", "a2"]}


def test_a_chat_that_parted_has_the_turns_before_in_common() -> None:
    turns = [turn("a1", "A", ROOT), turn("a2", "A", "end-a1"), turn("a3", "A", "end-a2")]
    turns += [turn("b3", "B", "end-a2"), turn("a4", "A", "end-a3"), turn("b4", "B", "end-b3")]
    paths = paths_of_chats(turns, ROOT)
    assert names(turns) == {"A": ["a1", "a2", "a3", "a4"], "B": ["a1", "a2", "b3", "b4"]}
    assert paths["B"][1] is paths["A"][1]


def test_a_chat_that_parts_at_the_end_of_another_has_all_its_turns_in_common() -> None:
    turns = [turn("a1", "A", ROOT), turn("b2", "B", "end-a1"), turn("a2", "A", "end-a1"), turn("b3", "B", "end-b2")]
    assert names(turns) == {"A": ["a1", "a2"], "B": ["a1", "b2", "b3"]}


def test_a_chat_may_part_from_one_that_parted_itself() -> None:
    turns = [turn("a1", "A", ROOT), turn("a2", "A", "end-a1"), turn("b2", "B", "end-a1"), turn("b3", "B", "end-b2")]
    turns += [
        turn("c3", "C", "end-b2"),
        turn("c4", "C", "end-c3"),
        turn("d4", "D", "end-c3"),
        turn("e2", "E", "end-a1"),
    ]
    assert names(turns) == {
        "A": ["a1", "a2"],
        "B": ["a1", "b2", "b3"],
        "C": ["a1", "b2", "c3", "c4"],
        "D": ["a1", "b2", "c3", "d4"],
        "E": ["a1", "e2"],
    }


def test_chats_that_part_at_the_system_prompt_have_nothing_in_common() -> None:
    turns = [turn("a1", "A", ROOT), turn("a2", "A", "end-a1"), turn("b1", "B", ROOT), turn("c1", "C", ROOT)]
    assert names(turns) == {"A": ["a1", "a2"], "B": ["b1"], "C": ["c1"]}


def test_a_chat_that_begins_after_an_unknown_message_has_only_its_own_turns() -> None:
    turns = [turn("a1", "A", ROOT), turn("a2", "A", "end-a1"), turn("b9", "B", "gone"), turn("b10", "B", "end-b9")]
    assert names(turns) == {"A": ["a1", "a2"], "B": ["b9", "b10"]}


def test_an_aside_belongs_to_the_path_of_its_chat() -> None:
    turns = [turn("a1", "A", ROOT), aside("title", "A"), turn("b1", "B", ROOT), turn("a2", "A", "end-a1")]
    turns += [aside("summary", "A", "summary"), turn("a3", "A", "end-a2"), aside("other", "")]
    assert names(turns) == {"A": ["a1", "title", "a2", "summary", "a3"], "B": ["b1"]}


def test_a_chat_that_parted_has_the_asides_before_in_common_and_not_those_after() -> None:
    turns = [turn("a1", "A", ROOT), aside("before", "A"), turn("a2", "A", "end-a1"), aside("after", "A")]
    turns += [turn("b2", "B", "end-a1", after="before")]
    assert names(turns) == {"A": ["a1", "before", "a2", "after"], "B": ["a1", "before", "b2"]}


def test_nothing_parts_at_an_aside() -> None:
    turns = [turn("a1", "A", ROOT), aside("a-aside", "A"), aside("b-aside", "B"), turn("b1", "B", ROOT)]
    assert names(turns) == {"A": ["a1", "a-aside"], "B": ["b-aside", "b1"]}


def test_a_second_attempt_after_the_same_message_leaves_the_place_of_parting() -> None:
    turns = [turn("a1", "A", ROOT), turn("a2", "A", "end-a1", "broken off"), turn("a2 again", "A", "end-a1")]
    turns += [turn("b2", "B", "end-a1")]
    assert names(turns) == {"A": ["a1", "a2", "a2 again"], "B": ["a1", "b2"]}


def test_paths_of_chats_without_their_beginning_have_the_turns_that_are_left() -> None:
    turns = [turn("a1", "A", ROOT), turn("a2", "A", "end-a1"), turn("a3", "A", "end-a2"), turn("b3", "B", "end-a2")]
    assert names(turns[1:]) == {"A": ["a2", "a3"], "B": ["a2", "b3"]}


def test_the_places_of_a_turn_are_those_in_all_chats_that_have_it() -> None:
    paths = paths_of_chats(
        [turn("a1", "A", ROOT), turn("a2", "A", "end-a1"), turn("b2", "B", "end-a1"), turn("c1", "C", ROOT)], ROOT
    )
    assert parted_places(paths) == {"a1": [("A", 0), ("B", 0)], "a2": [("A", 1)], "b2": [("B", 1)], "c1": [("C", 0)]}


@pytest.mark.parametrize("name", ["", "other"])
def test_a_turn_without_an_id_has_no_place(name: str) -> None:
    places = parted_places({"A": [turn("", "A", ROOT), turn("a2", "A", "end-a1")]})
    assert list(places.get(name, ())) == []
    assert places["a2"] == [("A", 1)]
