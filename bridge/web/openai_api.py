"""The OpenAI-compatible routes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from logging import Logger
from typing import Any

from flask import Blueprint, Response, current_app, jsonify, request

from bridge import sse
from bridge.config import Settings
from bridge.conversation import Conversation
from bridge.coordination.feed import Feed, run_in_thread
from bridge.directory import Directory
from bridge.errors import ClientGone, UnknownModel
from bridge.openai.errors import error_object
from bridge.openai.models import model_list, model_object
from bridge.openai.requests import parse_chat_request, parse_json
from bridge.openai.responses import Envelope, Reply, completion
from bridge.turn import Event, Turn
from bridge.web.faults import as_told
from bridge.web.hangup import client_is_gone
from bridge.web.security import client_key

TICK = 0.5
STREAM_HEADERS = {"X-Accel-Buffering": "no", "Cache-Control": "no-cache, no-store"}


def openai_api(settings: Settings, directory: Directory, conversation: Conversation) -> Blueprint:
    api = Blueprint("openai", __name__, url_prefix="/v1")

    @api.before_request
    def need_key() -> None:
        client_key(request, settings.api_keys)

    @api.get("/models")
    def list_models() -> Response:
        return jsonify(model_list(directory.models()))

    @api.get("/models/<path:model>")
    def show_model(model: str) -> Response:
        found = directory.find(model)
        listed = dict(directory.models())
        name = next((name for name in (model, found.name, found.id) if name in listed), None)
        if name is None:
            raise UnknownModel(f"There is no model {model!r:.100}.", param="model")
        return jsonify(model_object(name, listed[name]))

    @api.post("/chat/completions")
    def chat_completions() -> Response:
        turn = parse_chat_request(parse_json(request.get_data(cache=False)), most_tools=settings.max_tools)
        feed = run_in_thread(conversation.events(turn))
        if turn.stream:
            return _streamed(feed, turn, settings)
        response = jsonify(completion(_while_connected(feed, request.environ), Envelope(turn.model)))
        response.headers["X-Bridge-Method"] = feed.method
        return response

    return api


def _streamed(feed: Feed, turn: Turn, settings: Settings) -> Response:
    feed.wait_for_first(settings.header_wait)
    frames = _frames(feed, turn, settings.ping_interval, request.environ, current_app.logger)
    headers = {**STREAM_HEADERS, "X-Bridge-Method": feed.method}
    return Response(frames, mimetype="text/event-stream", headers=headers)


def _frames(feed: Feed, turn: Turn, ping_interval: float, environ: Mapping[str, Any], log: Logger) -> Iterator[bytes]:
    reply = Reply(Envelope(turn.model), include_usage=turn.include_usage)
    quiet_since = time.monotonic()
    try:
        for event in feed.read(TICK):
            if event is not None:
                for chunk in reply.chunks(event):
                    yield sse.encode(chunk)
                    quiet_since = time.monotonic()
            elif client_is_gone(environ):
                return
            elif time.monotonic() - quiet_since >= ping_interval:
                yield sse.PING
                quiet_since = time.monotonic()
        for chunk in reply.end():
            yield sse.encode(chunk)
        yield sse.END
    except Exception as fault:  # the status is sent; what is left is to end with an error
        yield sse.encode(error_object(as_told(fault, log)))


def _while_connected(feed: Feed, environ: Mapping[str, Any]) -> Iterator[Event]:
    for event in feed.read(TICK):
        if event is not None:
            yield event
        elif client_is_gone(environ):
            raise ClientGone("The client closed the connection before the agent had finished.")
