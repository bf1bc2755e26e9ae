"""The OpenAI-compatible routes below /v1."""

from __future__ import annotations

from flask import Blueprint, Response, g, jsonify, request

from bridge.config import Settings
from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.dialect import ChatCompletions
from bridge.dialects.openai.models import model_list, model_object
from bridge.directory import ALL, Directory, Visible
from bridge.journal.kept import KeptResponses
from bridge.trace import current_trace
from bridge.web.answer import Answers
from bridge.web.other_sites import refuse_pages
from bridge.web.responses_api import add_response_routes
from bridge.web.security import client_key


def openai_routes(
    settings: Settings, directory: Directory, answers: Answers, rules: RequestRules, kept: KeptResponses
) -> Blueprint:
    """Returns the routes of models and of both APIs. They need a client's key if the settings have keys."""
    api = Blueprint("openai", __name__, url_prefix="/v1")
    chat = ChatCompletions(rules)

    @api.before_request
    def check_key() -> None:
        if not settings.api_keys:
            refuse_pages(request, settings.cors_origins)
        if request.method != "OPTIONS":
            g.client_key = client_key(request, settings.api_keys)
            current_trace().key_name = g.client_key.name if g.client_key else ""
            answers.admission.count_request(g.client_key)

    @api.get("/models")
    def list_models() -> Response:
        return jsonify(model_list(directory.models(_visible_agents())))

    @api.get("/models/<path:model>")
    def show_model(model: str) -> Response:
        return jsonify(model_object(*directory.model(model, _visible_agents())))

    @api.post("/chat/completions")
    def chat_completions() -> Response:
        g.dialect = chat
        return answers.answer_request(request, chat, g.client_key)

    add_response_routes(api, answers, rules, kept)
    return api


def _visible_agents() -> Visible:
    return g.client_key.agents if g.client_key else ALL
