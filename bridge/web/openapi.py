"""The OpenAPI description of the API. Requests may have other fields, too; the README says what each of them does."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _object_schema(*required: str, **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _array_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _json_content(schema: Schema) -> Schema:
    return {"content": {"application/json": {"schema": schema}}}


def _schema_reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_NUMBER_OR_NULL = {"type": ["number", "null"]}
_WHOLE_NUMBER_OR_NULL = {"type": ["integer", "null"]}
_FLAG = {"type": "boolean"}
_ANY_OBJECT = {"type": "object"}
_OBJECT_OR_NULL = {"type": ["object", "null"]}
_ERROR = {"description": "An error, as OpenAI words it.", **_json_content(_schema_reference("Error"))}

_FUNCTION = _object_schema("name", name=_TEXT, description=_TEXT, parameters=_ANY_OBJECT)
_MESSAGE = _object_schema(
    "role",
    role={"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
    content={"anyOf": [_TEXT, _array_schema(_ANY_OBJECT), {"type": "null"}]},
    tool_calls=_array_schema(_ANY_OBJECT),
    tool_call_id=_TEXT,
)
_REPLY_FORMAT = _object_schema(
    "type",
    type={"enum": ["text", "json_object", "json_schema"]},
    json_schema=_object_schema("schema", schema=_ANY_OBJECT),
)
_CHAT_REQUEST = _object_schema(
    "model",
    "messages",
    model={**_TEXT, "minLength": 1, "description": "The name or id of an agent."},
    messages={**_array_schema(_MESSAGE), "minItems": 1},
    stream=_FLAG,
    stream_options={"type": "object", "properties": {"include_usage": _FLAG}},
    tools=_array_schema(_object_schema("type", "function", type={"const": "function"}, function=_FUNCTION)),
    tool_choice={"anyOf": [{"enum": ["none", "auto", "required"]}, _ANY_OBJECT]},
    parallel_tool_calls=_FLAG,
    **dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), _NUMBER_OR_NULL),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "seed"), _WHOLE_NUMBER_OR_NULL),
    **dict.fromkeys(("user", "reasoning_effort", "verbosity", "service_tier"), _TEXT_OR_NULL),
    stop={"anyOf": [_TEXT, _array_schema(_TEXT), {"type": "null"}]},
    response_format={"anyOf": [_REPLY_FORMAT, {"type": "null"}]},
)
_RESPONSE_REQUEST = _object_schema(
    "model",
    "input",
    model={**_TEXT, "minLength": 1, "description": "The name or id of an agent."},
    input={"anyOf": [_TEXT, {**_array_schema(_ANY_OBJECT), "minItems": 1}]},
    instructions=_TEXT_OR_NULL,
    stream=_FLAG,
    store=_FLAG,
    previous_response_id=_TEXT_OR_NULL,
    conversation={"anyOf": [_TEXT_OR_NULL, _object_schema("id", id=_TEXT)]},
    tools=_array_schema(_object_schema("type", type=_TEXT, name=_TEXT, parameters=_ANY_OBJECT)),
    tool_choice={"anyOf": [{"enum": ["none", "auto", "required"]}, _ANY_OBJECT]},
    parallel_tool_calls=_FLAG,
    text={"type": "object", "properties": {"format": _ANY_OBJECT}},
    **dict.fromkeys(("temperature", "top_p"), _NUMBER_OR_NULL),
    **dict.fromkeys(("max_output_tokens", "max_tool_calls"), _WHOLE_NUMBER_OR_NULL),
    **dict.fromkeys(("user", "truncation", "service_tier", "prompt_cache_key", "safety_identifier"), _TEXT_OR_NULL),
    metadata=_OBJECT_OR_NULL,
    reasoning=_OBJECT_OR_NULL,
)
_RESPONSE_ID = {"name": "response_id", "in": "path", "required": True, "schema": _TEXT}
_ERROR_FIELDS = _object_schema(
    "message", "type", "param", "code", message=_TEXT, type=_TEXT, param=_TEXT_OR_NULL, code=_TEXT_OR_NULL
)
_MODEL = _object_schema(
    "id",
    "object",
    "created",
    "owned_by",
    id=_TEXT,
    object={"const": "model"},
    created={"type": "integer"},
    owned_by=_TEXT,
)

DESCRIPTION: Schema = {
    "openapi": "3.1.0",
    "info": {"title": "Letta tool bridge", "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
    "security": [{"key": []}],
    "paths": {
        "/v1/models": {
            "get": {
                "summary": "List the agents.",
                "responses": {
                    "200": {"description": "All agents.", **_json_content(_schema_reference("Models"))},
                    "default": _ERROR,
                },
            }
        },
        "/v1/models/{model}": {
            "get": {
                "summary": "One agent.",
                "parameters": [{"name": "model", "in": "path", "required": True, "schema": _TEXT}],
                "responses": {
                    "200": {"description": "The agent.", **_json_content(_schema_reference("Model"))},
                    "default": _ERROR,
                },
            }
        },
        "/v1/chat/completions": {
            "post": {
                "summary": "Talk to an agent.",
                "requestBody": {"required": True, **_json_content(_schema_reference("ChatRequest"))},
                "responses": {
                    "200": {
                        "description": "The reply; with `stream`, as server-sent events.",
                        "content": {
                            "application/json": {"schema": _ANY_OBJECT},
                            "text/event-stream": {"schema": _TEXT},
                        },
                    },
                    "default": _ERROR,
                },
            }
        },
        "/v1/responses": {
            "post": {
                "summary": "Talk to an agent, in the words of the Responses API.",
                "requestBody": {"required": True, **_json_content(_schema_reference("ResponseRequest"))},
                "responses": {
                    "200": {
                        "description": "The response; with `stream`, as server-sent events.",
                        "content": {
                            "application/json": {"schema": _ANY_OBJECT},
                            "text/event-stream": {"schema": _TEXT},
                        },
                    },
                    "default": _ERROR,
                },
            }
        },
        "/v1/responses/{response_id}": {
            "get": {
                "summary": "A response that is kept.",
                "parameters": [_RESPONSE_ID],
                "responses": {
                    "200": {"description": "The response.", **_json_content(_ANY_OBJECT)},
                    "default": _ERROR,
                },
            },
            "delete": {
                "summary": "Forget a response.",
                "parameters": [_RESPONSE_ID],
                "responses": {"200": {"description": "Done.", **_json_content(_ANY_OBJECT)}, "default": _ERROR},
            },
        },
        "/v1/responses/{response_id}/input_items": {
            "get": {
                "summary": "The input of a response that is kept.",
                "parameters": [_RESPONSE_ID],
                "responses": {
                    "200": {"description": "The items, in pages.", **_json_content(_ANY_OBJECT)},
                    "default": _ERROR,
                },
            },
        },
    },
    "components": {
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            "ChatRequest": _CHAT_REQUEST,
            "ResponseRequest": _RESPONSE_REQUEST,
            "Error": _object_schema("error", error=_ERROR_FIELDS),
            "Model": _MODEL,
            "Models": _object_schema(
                "object", "data", object={"const": "list"}, data=_array_schema(_schema_reference("Model"))
            ),
        },
    },
}
