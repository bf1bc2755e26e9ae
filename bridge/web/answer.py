"""Answers a request to a dialect's route. It is the same for every dialect, streamed or whole."""

from __future__ import annotations

from dataclasses import dataclass
from logging import Logger

from flask import Request, Response

from bridge.config import Settings
from bridge.dialects.base import Dialect
from bridge.keys import ApiKey
from bridge.limits.gate import Slot
from bridge.operation.background import BackgroundWork
from bridge.turns.admission import Admission
from bridge.turns.identity import KEY_HEADER, identity_of
from bridge.turns.turns import Turns
from bridge.web.bodies import read_body
from bridge.web.json_body import parse_json_body
from bridge.web.listener import Listener
from bridge.web.shutdown import Shutdown

STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-store"}
LEVELS_AROUND_SCHEMA = 8
ASIDE_HEADER = "X-Bridge-Aside"
# OpenCode and Kilo name with it the session for which a subagent works. The subagent's conversation is its own.
PARENT_HEADER = "X-Parent-Session-Id"


@dataclass(frozen=True, slots=True)
class Answers:
    """Turns requests into replies, for all routes of this worker."""

    settings: Settings
    admission: Admission
    turns: Turns
    shutdown: Shutdown
    sweeps: BackgroundWork
    log: Logger

    def answer_request(self, request: Request, dialect: Dialect, key: ApiKey | None) -> Response:
        slot = self.admission.enter(key)
        try:
            response = self._reply_to_turn(request, dialect, key, slot)
        except BaseException:
            slot.leave()
            raise
        response.call_on_close(slot.leave)
        response.call_on_close(self.sweeps.start_if_due)
        return response

    def _reply_to_turn(self, request: Request, dialect: Dialect, key: ApiKey | None, slot: Slot) -> Response:
        settings = self.settings
        body = parse_json_body(read_body(request, settings.max_body), settings.max_depth + LEVELS_AROUND_SCHEMA)
        aside = request.headers.get(ASIDE_HEADER) == "1" or bool(request.headers.get(PARENT_HEADER))
        parsed = dialect.parse(body, aside=aside)
        turn = self.admission.admitted(parsed.turn, key)
        identity = identity_of(request.headers.get(KEY_HEADER, ""), dialect, body, turn)
        part = self.turns.begin(turn, dialect, identity, slot)
        listener = Listener(part, parsed.reply, request.environ, self.log, self.shutdown)
        if turn.stream:
            listener.wait_before_headers(settings.header_wait)
            frames = listener.stream_frames(settings.ping_interval)
            response = Response(frames, mimetype="text/event-stream", headers=STREAM_HEADERS)
        else:
            whole = listener.whole_reply(settings.reply_wait)
            headers = {"Content-Length": str(len(whole))}
            response = Response(listener.send_whole(whole), mimetype="application/json", headers=headers)
        response.headers["X-Bridge-Method"] = part.method
        return response
