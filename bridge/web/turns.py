"""One request to the chat route: a turn is begun or joined, and its client listened to."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from logging import Logger

from flask import Request, Response

from bridge.config import Settings
from bridge.conversation import Conversation
from bridge.dialects.chat_completions.request import parse_chat_request, parse_json
from bridge.errors import BridgeError
from bridge.history.recorder import Recorder
from bridge.journal.journal import Identity, Journal
from bridge.journal.stream import TurnStream, run_in_thread
from bridge.keys import ApiKey
from bridge.limits.gate import Gate, Slot
from bridge.turn import AgentEvent, Turn
from bridge.turns.admission import Admission
from bridge.turns.identity import KEY_HEADER, identity_of
from bridge.web.account import Reader, accounted
from bridge.web.bodies import body_of
from bridge.web.listener import Listener
from bridge.web.shutdown import Closing
from bridge.web.tracing import followed

STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-store"}
AROUND_A_SCHEMA = 8
ASIDE_HEADER = "X-Bridge-Aside"
# With it OpenCode and Kilo name the session for which a subagent works: a conversation of its own, within another.
PARENT_HEADER = "X-Parent-Session-Id"


@dataclass(frozen=True, slots=True)
class Told:
    """Who is told of turns, and what tells them to end."""

    recorder: Recorder
    readers: Sequence[Reader]
    log: Logger
    closing: Closing


class Turns:
    """The turns of this worker."""

    def __init__(
        self, settings: Settings, conversation: Conversation, journal: Journal, admission: Admission, told: Told
    ) -> None:
        self._settings = settings
        self._conversation = conversation
        self._journal = journal
        self._admission = admission
        self._told = told
        self._gate = Gate(settings.turns_at_once)

    def answer(self, request: Request, key: ApiKey | None) -> Response:
        place = self._admission.place(key)
        try:
            slot = self._gate.enter(place.leave)
        except BaseException:
            place.leave()
            raise
        try:
            response = self._answer(request, key, slot)
        except BaseException:
            slot.leave()
            raise
        response.call_on_close(slot.leave)
        return response

    def _answer(self, request: Request, key: ApiKey | None, slot: Slot) -> Response:
        settings = self._settings
        body = parse_json(body_of(request, settings.max_body), settings.max_depth + AROUND_A_SCHEMA)
        turn = parse_chat_request(body, most_tools=settings.max_tools, image_urls=settings.image_urls)
        if request.headers.get(ASIDE_HEADER) == "1" or request.headers.get(PARENT_HEADER):
            turn = replace(turn, aside=True)
        turn = self._admission.admitted(replace(turn, client=key.name if key else ""), key)
        listener = self._listener(
            request, turn, identity_of(request.headers.get(KEY_HEADER, ""), key, body, turn), slot
        )
        if not turn.stream:
            whole = listener.whole(settings.reply_wait)
            headers = {"Content-Length": str(len(whole))}
            return _named(Response(listener.sent(whole), mimetype="application/json", headers=headers), listener.feed)
        listener.wait_for_first(settings.header_wait)
        frames = listener.frames(settings.ping_interval)
        return _named(Response(frames, mimetype="text/event-stream", headers=STREAM_HEADERS), listener.feed)

    def _listener(self, request: Request, turn: Turn, identity: Identity, slot: Slot) -> Listener:
        def run(turn_id: str, repeated: bool, gone: threading.Event) -> Iterator[AgentEvent]:
            begun = replace(turn, id=turn_id, repeated=repeated)
            watched = self._told.recorder.watch(begun, self._conversation.events(begun, gone))
            return accounted(watched, begun, gone, self._told.readers)

        def events(gone: threading.Event) -> Iterator[AgentEvent]:
            with slot.turn():
                yield from attempt.events(gone)

        def give_up() -> None:
            feed.gone.set()
            if attempt.leave() and feed.running:
                self._cancel(turn, feed.run_id)

        log = self._told.log
        attempt = self._journal.attempt(identity, run)
        feed = run_in_thread(followed(events))
        return Listener(
            feed, turn, request.environ, log, attempt.delivered, give_up, attempt.step_back, self._told.closing
        )

    def _cancel(self, turn: Turn, run_id: str) -> None:
        try:
            self._conversation.cancel(turn, run_id)
        except BridgeError as failure:
            self._told.log.warning("a run that nobody waits for could not be cancelled: %s", failure.message)


def _named(response: Response, feed: TurnStream) -> Response:
    response.headers["X-Bridge-Method"] = feed.method
    return response
