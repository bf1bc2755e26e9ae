"""The routes of the Responses API: a new response, and those that are kept."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, Response, g, jsonify, request

from bridge.dialects.base import RequestRules
from bridge.dialects.responses.dialect import Responses
from bridge.dialects.responses.kept_items import list_items
from bridge.errors import InvalidRequest
from bridge.journal.kept import KeptResponses
from bridge.web.answer import Answers


def add_response_routes(api: Blueprint, answers: Answers, rules: RequestRules, kept: KeptResponses) -> None:
    """Adds the routes to the blueprint of OpenAI's APIs, which checks the client's key."""

    @api.post("/responses")
    def create_response() -> Response:
        g.dialect = dialect = Responses(rules, partial(kept.keeper, _client()))
        return answers.answer_request(request, dialect, g.client_key)

    @api.get("/responses/<response_id>")
    def read_response(response_id: str) -> Response:
        if request.args.get("stream") == "true":
            raise InvalidRequest("A kept response can't be streamed: leave `stream` out.", param="stream")
        return jsonify(kept.read(_client(), response_id).response)

    @api.delete("/responses/<response_id>")
    def delete_response(response_id: str) -> Response:
        kept.delete(_client(), response_id)
        return jsonify({"id": response_id, "object": "response", "deleted": True})

    @api.get("/responses/<response_id>/input_items")
    def read_input(response_id: str) -> Response:
        return jsonify(list_items(kept.read(_client(), response_id).items, request.args))


def _client() -> str:
    return g.client_key.name if g.client_key else ""
