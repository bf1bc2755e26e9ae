"""Answers the requests to the routes of all dialects: takes a slot, parses the request, begins its turn, replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from logging import Logger
from typing import cast

from flask import Request, Response

from bridge.config import Settings
from bridge.dialects.base import Dialect
from bridge.keys import ApiKey
from bridge.limits.gate import Slot
from bridge.operation.background import BackgroundWork
from bridge.turn import JsonObject, Turn
from bridge.turns.admission import Admission
from bridge.turns.identity import KEY_HEADER, Identities
from bridge.turns.stream import FORMAT_KNOWN, SHOWN
from bridge.turns.turns import Turns
from bridge.web.bodies import Bodies
from bridge.web.listener import FORMAT_HEADER, Listener
from bridge.web.prefix import Environ
from bridge.web.shutdown import Shutdown

STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-store"}
# "1": the request is a request aside, which must not reach the agent's memory.
ASIDE_HEADER = "X-Bridge-Aside"
# OpenCode, Kilo and Codex send these headers with the requests of a subagent. A subagent has a conversation of its own,
# so its requests are requests aside.
PARENT_HEADERS = ("X-Parent-Session-Id", "X-Codex-Parent-Thread-Id", "X-OpenAI-Subagent")
# The headers in which clients name their conversation: OpenCode and Kilo, Codex, older Codex, Open WebUI. Several
# threads of Codex may be in one session.
SESSION_HEADERS = ("X-Session-Id", "Thread-Id", "Session-Id", "X-OpenWebUI-Chat-Id")
LONGEST_SESSION = 200


def _environ_key(header: str) -> str:
    return f"HTTP_{header.upper().replace('-', '_')}"


# Most requests have none of these headers. Flask would raise an exception inside for each that is missing.
_ASIDE_KEY, _IDEMPOTENCY_KEY = _environ_key(ASIDE_HEADER), _environ_key(KEY_HEADER)
_PARENT_KEYS = tuple(map(_environ_key, PARENT_HEADERS))
_SESSION_KEYS = tuple(map(_environ_key, SESSION_HEADERS))


class TurnResponse(Response):
    """Has its body made by a generator, from which the server takes the frames itself. Flask would have two iterators
    between them, for each frame.
    """

    def get_app_iter(self, environ: Environ) -> Iterable[bytes]:
        return _Frames(cast("Iterable[bytes]", self.response), self.close)


@dataclass(frozen=True, slots=True)
class _Frames:
    """The body of a response for the server. `close` closes the response."""

    frames: Iterable[bytes]
    close: Callable[[], None]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.frames)


@dataclass(frozen=True, slots=True)
class Answers:
    """Makes the response to each request for a turn. One object serves all routes of a worker."""

    settings: Settings
    bodies: Bodies
    admission: Admission
    identities: Identities
    turns: Turns
    shutdown: Shutdown
    sweeps: BackgroundWork
    log: Logger

    def answer_request(self, request: Request, dialect: Dialect, key: ApiKey | None) -> Response:
        """Returns the response to a request for a turn. `key` is None if the service runs without keys.
        The request holds its slot until the response was sent.
        """
        with ExitStack() as until_sent:
            slot = self.enter(key, until_sent)
            return self.answer_body(
                request, lambda: self.bodies.read(request, until_sent, slot.until_free), dialect, key, slot, until_sent
            )

    def enter(self, key: ApiKey | None, until_sent: ExitStack) -> Slot:
        """Takes a slot for a request that may take long. The slot is free again when `until_sent` is closed."""
        slot = self.admission.enter(key)
        until_sent.callback(slot.leave)
        return slot

    def enter_passed_on(self, key: ApiKey | None, until_sent: ExitStack, *, only_reads: bool) -> None:
        """Takes a slot for a request that is passed on, until `until_sent` is closed."""
        until_sent.callback(self.admission.enter_passed_on(key, only_reads=only_reads).leave)

    def answer_body(
        self,
        request: Request,
        read_body: Callable[[], JsonObject],
        dialect: Dialect,
        key: ApiKey | None,
        slot: Slot,
        until_sent: ExitStack,
    ) -> Response:
        """Returns the response to a request that has a slot. `until_sent` is closed when the response was sent. After
        that, a sweep of unused stubs begins if it is due.
        """
        turn, listener = self._begin_turn(request, read_body, dialect, key, slot)
        response = self._reply_to_turn(turn, listener)
        response.call_on_close(until_sent.pop_all().close)
        response.call_on_close(self.sweeps.start_if_due)
        return response

    def _begin_turn(
        self,
        request: Request,
        read_body: Callable[[], JsonObject],
        dialect: Dialect,
        key: ApiKey | None,
        slot: Slot,
    ) -> tuple[Turn, Listener]:
        """Begins the request's turn. The turn keeps some of the parsed body, such as the messages and the tools."""
        body = read_body()
        environ = request.environ
        aside = environ.get(_ASIDE_KEY) == "1" or any(map(environ.get, _PARENT_KEYS))
        parsed = dialect.parse(body, aside=aside)
        # A message to Letta's own API is of the conversation in its path, in which its calls are looked for, too.
        named = "" if parsed.turn.answers_all_calls else next(filter(None, map(environ.get, _SESSION_KEYS)), "")
        session = (named or parsed.turn.session)[:LONGEST_SESSION]
        turn = self.admission.admit(replace(parsed.turn, session=session), key)
        identity = self.identities.identify(environ.get(_IDEMPOTENCY_KEY, ""), dialect, body, turn)
        part = self.turns.begin(turn, dialect, identity, slot)
        parsed.reply.begin(part.turn_id)
        return turn, Listener(part, parsed.reply, environ, self.log, self.shutdown)

    def _reply_to_turn(self, turn: Turn, listener: Listener) -> Response:
        """Returns the turn's response. A stream's early failure is raised here, to get its own status."""
        settings, part = self.settings, listener.part
        if turn.stream:
            listener.wait_before_headers(settings.header_wait, FORMAT_KNOWN if turn.reply_format else SHOWN)
            outcome = part.format_outcome
            frames = listener.stream_frames(settings.ping_interval, format_told=outcome is not None)
            response = TurnResponse(frames, mimetype="text/event-stream", headers=STREAM_HEADERS)
        else:
            whole = listener.whole_reply(settings.reply_wait)
            outcome = part.format_outcome
            headers = {"Content-Length": str(len(whole))}
            response = TurnResponse(listener.send_whole(whole), mimetype="application/json", headers=headers)
        chosen = part.chosen
        if chosen:
            response.headers["X-Bridge-Method"] = chosen.method
        if chosen and chosen.told:
            response.headers["X-Bridge-Told"] = str(chosen.told)
        if chosen and chosen.chat:
            response.headers["X-Bridge-Chat"] = chosen.chat
        if outcome is not None:
            response.headers[FORMAT_HEADER] = outcome
        return response
