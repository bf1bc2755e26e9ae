"""The OpenAI-compatible routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from flask import Blueprint, Flask, Response, current_app, g, jsonify, request

from bridge.config import Settings
from bridge.conversation import Conversation
from bridge.coordination.feed import Feed, run_in_thread
from bridge.directory import ALL, Directory, Visible
from bridge.errors import BridgeError
from bridge.openai.models import model_list, model_object
from bridge.openai.requests import parse_chat_request, parse_json
from bridge.trace import current
from bridge.turn import Turn
from bridge.web.account import Reader, accounted
from bridge.web.admission import Admission, placed
from bridge.web.bodies import body_of
from bridge.web.chat import Listener
from bridge.web.closing import EXTENSION
from bridge.web.security import client_key
from bridge.web.tracing import followed

STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-store"}
AROUND_A_SCHEMA = 8
ASIDE_HEADER = "X-Bridge-Aside"
# With it OpenCode and Kilo name the session for which a subagent works: a conversation of its own, within another.
PARENT_HEADER = "X-Parent-Session-Id"


def openai_api(
    settings: Settings,
    directory: Directory,
    conversation: Conversation,
    admission: Admission,
    readers: Sequence[Reader],
) -> Blueprint:
    api = Blueprint("openai", __name__, url_prefix="/v1")

    @api.before_request
    def need_key() -> None:
        if request.method != "OPTIONS":
            g.client_key = client_key(request, settings.api_keys)
            current().key_name = g.client_key.name if g.client_key else ""

    @api.get("/models")
    def list_models() -> Response:
        return jsonify(model_list(directory.models(_agents())))

    @api.get("/models/<path:model>")
    def show_model(model: str) -> Response:
        return jsonify(model_object(*directory.model(model, _agents())))

    @api.post("/chat/completions")
    def chat_completions() -> Response:
        place = admission.place(g.client_key)
        try:
            turn = admission.admitted(_asked(settings), g.client_key)
        except BaseException:
            place.leave()
            raise
        events = accounted(partial(conversation.events, turn), turn, current(), readers)
        feed = run_in_thread(followed(placed(events, place)))
        app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
        give_up = _giving_up(conversation, turn, feed, app)
        listener = Listener(feed, turn, request.environ, app.logger, give_up, app.extensions[EXTENSION])
        if not turn.stream:
            return _named(jsonify(listener.whole()), feed)
        listener.wait_for_first(settings.header_wait)
        frames = listener.frames(settings.ping_interval)
        return _named(Response(frames, mimetype="text/event-stream", headers=STREAM_HEADERS), feed)

    return api


def _asked(settings: Settings) -> Turn:
    body = parse_json(body_of(request, settings.max_body), settings.max_depth + AROUND_A_SCHEMA)
    turn = parse_chat_request(body, most_tools=settings.max_tools, image_urls=settings.image_urls)
    aside = request.headers.get(ASIDE_HEADER) == "1" or bool(request.headers.get(PARENT_HEADER))
    return replace(turn, aside=True) if aside else turn


def _agents() -> Visible:
    """What the client's key may see."""
    return g.client_key.agents if g.client_key else ALL


def _named(response: Response, feed: Feed) -> Response:
    response.headers["X-Bridge-Method"] = feed.method
    return response


def _giving_up(conversation: Conversation, turn: Turn, feed: Feed, app: Flask) -> Callable[[], None]:
    def give_up() -> None:
        feed.gone.set()
        if not feed.running:
            return
        try:
            conversation.cancel(turn, feed.run_id)
        except BridgeError as failure:
            app.logger.warning("a run that nobody waits for could not be cancelled: %s", failure.message)

    return give_up
