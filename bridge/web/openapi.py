"""The OpenAPI description of the API. Other fields are accepted, too; the README says what happens to each."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}
_ERROR = {
    "description": "An error, as OpenAI words it.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


def _answer(description: str, schema: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"description": description, "content": content}


_MESSAGE = {
    "type": "object",
    "required": ["role"],
    "properties": {
        "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
        "content": {"anyOf": [_TEXT, {"type": "array", "items": _OBJECT}, {"type": "null"}]},
        "tool_calls": {"type": "array", "items": _OBJECT},
        "tool_call_id": _TEXT,
    },
}

_REQUEST = {
    "type": "object",
    "required": ["model", "messages"],
    "properties": {
        "model": {"type": "string", "minLength": 1, "description": "The name or id of an agent."},
        "messages": {"type": "array", "minItems": 1, "items": _MESSAGE},
        "stream": {"type": "boolean"},
        "stream_options": {"type": "object", "properties": {"include_usage": {"type": "boolean"}}},
        "tools": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "function"],
                "properties": {
                    "type": {"const": "function"},
                    "function": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": _TEXT, "description": _TEXT, "parameters": _OBJECT},
                    },
                },
            },
        },
        "tool_choice": {"anyOf": [{"enum": ["none", "auto", "required"]}, _OBJECT]},
        "parallel_tool_calls": {"type": "boolean"},
    },
}

_ERROR_OBJECT = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": _TEXT,
                "type": _TEXT,
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}

DESCRIPTION: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Letta tool bridge", "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}},
    "security": [{"key": []}],
    "paths": {
        "/v1/models": {
            "get": {
                "summary": "List the agents.",
                "responses": {"200": _answer("All agents.", "Models"), "default": _ERROR},
            }
        },
        "/v1/models/{model}": {
            "get": {
                "summary": "One agent.",
                "parameters": [{"name": "model", "in": "path", "required": True, "schema": _TEXT}],
                "responses": {"200": _answer("The agent.", "Model"), "default": _ERROR},
            }
        },
        "/v1/chat/completions": {
            "post": {
                "summary": "Talk to an agent.",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ChatRequest"}}},
                },
                "responses": {
                    "200": {
                        "description": "The reply; with `stream`, as server-sent events.",
                        "content": {"application/json": {"schema": _OBJECT}, "text/event-stream": {"schema": _TEXT}},
                    },
                    "default": _ERROR,
                },
            }
        },
    },
    "components": {
        "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        "schemas": {
            "ChatRequest": _REQUEST,
            "Error": _ERROR_OBJECT,
            "Model": {
                "type": "object",
                "required": ["id", "object", "created", "owned_by"],
                "properties": {
                    "id": _TEXT,
                    "object": {"const": "model"},
                    "created": {"type": "integer"},
                    "owned_by": _TEXT,
                },
            },
            "Models": {
                "type": "object",
                "required": ["object", "data"],
                "properties": {
                    "object": {"const": "list"},
                    "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}},
                },
            },
        },
    },
}
