"""The routes of the Responses API, with examples."""

from __future__ import annotations

import json
from typing import Any

from bridge.dialects.responses.kept_items import MOST
from bridge.web.openapi import response_schemas
from bridge.web.openapi.errors import may_fail_with
from bridge.web.openapi.parts import TEXT, Schema, json_content, path_parameter, reference, stream_content
from bridge.web.openapi.turns import TURN_ERRORS, TURN_HEADERS, TURN_PARAMETERS

SCHEMAS = response_schemas.SCHEMAS

_ID = "resp_41d0"
_TOOL = {
    "type": "function",
    "name": "read_file",
    "description": "Reads a file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
_MESSAGE = {
    "type": "message",
    "id": "msg_90aa",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Buy milk.", "annotations": [], "logprobs": []}],
}
_CALL = {
    "type": "function_call",
    "id": "fc_1f0c",
    "status": "completed",
    "call_id": "call_1f0c",
    "name": "read_file",
    "arguments": '{"path": "notes.txt"}',
}
_EXAMPLE_USAGE = {
    "input_tokens": 2140,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 21,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2161,
}


def _response(*output: Schema, **more: Any) -> Schema:
    repeated: Schema = {
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "top_logprobs": 0,
        "top_p": 1.0,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "truncation": "disabled",
        "user": None,
        "model": "my-agent",
        "reasoning": {"effort": None, "summary": None},
        "tools": [],
    }
    answered = {
        "id": _ID,
        "object": "response",
        "created_at": 1763510400,
        "completed_at": 1763510402,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "output": [*output],
        "usage": _EXAMPLE_USAGE,
    }
    return {**answered, **repeated, **more}


def _event(number: int, kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields, 'sequence_number': number})}\n\n"


_PLACED = {"item_id": "msg_90aa", "output_index": 0, "content_index": 0}
_STREAM = _event(4, "response.output_text.delta", **_PLACED, delta="Buy ", logprobs=[]) + _event(
    5, "response.output_text.delta", **_PLACED, delta="milk.", logprobs=[]
)
_RESPONSE_ID = path_parameter("response_id", "The id of a response.")
_KEPT_ERRORS = may_fail_with(400, 401, 403, 404, 408, 429, 500, 503)

PATHS: dict[str, Schema] = {
    "/v1/responses": {
        "post": {
            "tags": ["Responses"],
            "operationId": "createResponse",
            "summary": "Talk to an agent, in the words of the Responses API.",
            "description": (
                "The response has the agent's text, or calls of the request's tools. Run them, and send their results"
                " as items of the type `function_call_output`, with the items before or with `previous_response_id`."
            ),
            "parameters": TURN_PARAMETERS,
            "requestBody": {
                "required": True,
                "content": json_content(
                    reference("ResponseRequest"),
                    question={"model": "my-agent", "input": "What is in notes.txt?", "tools": [_TOOL]},
                    result={
                        "model": "my-agent",
                        "previous_response_id": _ID,
                        "input": [{"type": "function_call_output", "call_id": "call_1f0c", "output": "Buy milk."}],
                        "tools": [_TOOL],
                    },
                ),
            },
            "responses": {
                "200": {
                    "description": (
                        "The response. With `stream` it comes as events, which end with `response.completed`,"
                        " `response.incomplete` or `response.failed`; the example has two in the middle."
                    ),
                    "headers": TURN_HEADERS,
                    "content": {
                        **json_content(reference("Response"), answer=_response(_MESSAGE), call=_response(_CALL)),
                        **stream_content("ResponseEvent", _STREAM),
                    },
                },
                **may_fail_with(*TURN_ERRORS, 426),
            },
        }
    },
    "/v1/responses/{response_id}": {
        "get": {
            "tags": ["Responses"],
            "operationId": "readResponse",
            "summary": "A response that is kept.",
            "description": "For an hour, with the key that asked for it, unless `store` was `false`.",
            "parameters": [_RESPONSE_ID],
            "responses": {
                "200": {
                    "description": "The response.",
                    "content": json_content(reference("Response"), answer=_response(_MESSAGE)),
                },
                **_KEPT_ERRORS,
            },
        },
        "delete": {
            "tags": ["Responses"],
            "operationId": "deleteResponse",
            "summary": "Forget a response.",
            "description": "The agent remembers what was said.",
            "parameters": [_RESPONSE_ID],
            "responses": {
                "200": {
                    "description": "It is forgotten.",
                    "content": json_content(
                        reference("DeletedResponse"), done={"id": _ID, "object": "response", "deleted": True}
                    ),
                },
                **_KEPT_ERRORS,
            },
        },
    },
    "/v1/responses/{response_id}/input_items": {
        "get": {
            "tags": ["Responses"],
            "operationId": "listInputItems",
            "summary": "The input of a response that is kept.",
            "parameters": [
                _RESPONSE_ID,
                {
                    "name": "limit",
                    "in": "query",
                    "description": "Items on a page.",
                    "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": 20},
                },
                {
                    "name": "order",
                    "in": "query",
                    "description": "`desc`: the newest first.",
                    "schema": {"enum": ["asc", "desc"], "default": "desc"},
                },
                {"name": "after", "in": "query", "description": "The id of the last item seen.", "schema": TEXT},
            ],
            "responses": {
                "200": {
                    "description": "One page of the items.",
                    "content": json_content(
                        reference("InputItems"),
                        page={
                            "object": "list",
                            "data": [
                                {
                                    "id": "item_0",
                                    "type": "message",
                                    "role": "user",
                                    "content": [{"type": "input_text", "text": "What is in notes.txt?"}],
                                }
                            ],
                            "first_id": "item_0",
                            "last_id": "item_0",
                            "has_more": False,
                        },
                    ),
                },
                **_KEPT_ERRORS,
            },
        },
    },
}
