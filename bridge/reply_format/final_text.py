"""Holds the agent's final text until it has the form that the client wants, and asks the agent again if need be."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from bridge.reply_format.checker import CheckedReply
from bridge.turn import (
    FormatChecked,
    OriginalReply,
    Stopped,
    Text,
    ToolCall,
    TurnEvent,
    Used,
    joined_text,
    sum_used,
)

# Checks the text of a reply.
Check = Callable[[str], CheckedReply]
Run = Iterator[TurnEvent]
# Tells the agent what is wrong with its reply, and returns the events of its next run; None if it is not asked again.
AskAgain = Callable[[str], Run | None]


def with_checked_text(run: Run, check: Check, ask_again: AskAgain) -> Iterator[TurnEvent]:
    """Yields the events of a turn, with the agent's text at the end: FormatChecked, and then only the JSON of the text.
    A text that is not valid is yielded as it is if the agent is not asked again, which `ask_again` decides.
    A turn that calls a tool of the client has no final text yet, so its text is passed on and not checked.
    The tokens of all runs are summed.
    """
    used: Used | None = None
    next_run: Run | None = run
    while next_run is not None:
        text = _FinalText()
        yield from text.without_text(next_run)
        used = sum_used(used, text.used)
        next_run = None if text.called else (yield from _deliver_text(text, check, ask_again))
    if used is not None:
        yield used
    if text.stopped is not None:
        yield text.stopped


class _FinalText:
    """Reads one run of the agent. `held` is its text if it called no tool of the client (`called`)."""

    def __init__(self) -> None:
        self.held: list[Text] = []
        self.called = False
        self.used: Used | None = None
        self.stopped: Stopped | None = None

    def without_text(self, run: Run) -> Run:
        """Yields the run's events as they come, apart from its tokens, its end and the held text."""
        for event in run:
            match event:
                case Text() if not self.called:
                    self.held.append(event)
                case Used():
                    self.used = sum_used(self.used, event)
                case Stopped():
                    self.stopped = event
                case ToolCall():
                    self.called = True
                    yield from self.held
                    self.held.clear()
                    yield event
                case _:
                    yield event


def _deliver_text(text: _FinalText, check: Check, ask_again: AskAgain) -> Generator[TurnEvent, None, Run | None]:
    """Checks the text. Returns the next run of the agent if it is asked again, else yields the text for the client."""
    said = joined_text(text.held)
    checked = check(said)
    is_whole = text.stopped is None or not text.stopped.is_cut_short
    next_run = ask_again(checked.fault) if checked.outcome == "invalid" and is_whole else None
    if next_run is not None:
        yield OriginalReply(said, checked.fault)
        return next_run
    if checked.value and checked.value != said.strip():
        yield OriginalReply(said)
    yield FormatChecked(checked.outcome)
    yield from [Text(checked.value, text.held[-1].item_id)] if checked.value else text.held
    return None
