"""Chat Completions and models: what a request may have, what a reply has, and examples."""

from __future__ import annotations

import json
from typing import Any

from bridge.dialects.chat_completions.parameters import PARAMETERS
from bridge.web.openapi.errors import may_fail_with
from bridge.web.openapi.parts import (
    ANY_OBJECT,
    FLAG,
    NULL,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    WHOLE_NUMBER,
    WHOLE_NUMBER_OR_NULL,
    Schema,
    all_of_object,
    array_of,
    described,
    json_content,
    object_of,
    path_parameter,
    reference,
    stream_content,
    with_treatments,
)
from bridge.web.openapi.turns import TURN_ERRORS, TURN_HEADERS, TURN_PARAMETERS

_FUNCTION = object_of("name", name=TEXT, description=TEXT, parameters=ANY_OBJECT)
_MESSAGE = object_of(
    "role",
    role={"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
    content={"anyOf": [TEXT, array_of(ANY_OBJECT), NULL]},
    tool_calls=array_of(ANY_OBJECT),
    tool_call_id=TEXT,
)
_REPLY_FORMAT = object_of(
    "type",
    type={"enum": ["text", "json_object", "json_schema"]},
    json_schema=object_of("schema", schema=ANY_OBJECT),
)
_REQUEST = object_of(
    "model",
    "messages",
    model={**TEXT, "minLength": 1},
    messages={**array_of(_MESSAGE), "minItems": 1},
    stream=FLAG,
    stream_options={"type": "object", "properties": {"include_usage": FLAG}},
    tools=array_of(object_of("type", "function", type={"const": "function"}, function=_FUNCTION)),
    tool_choice={"anyOf": [{"enum": ["none", "auto", "required"]}, ANY_OBJECT]},
    parallel_tool_calls=FLAG,
    **dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), NUMBER_OR_NULL),
    **dict.fromkeys(("max_tokens", "max_completion_tokens", "seed"), WHOLE_NUMBER_OR_NULL),
    **dict.fromkeys(("user", "reasoning_effort", "verbosity", "service_tier"), TEXT_OR_NULL),
    stop={"anyOf": [TEXT, array_of(TEXT), NULL]},
    response_format={"anyOf": [_REPLY_FORMAT, NULL]},
)
_CALLED = all_of_object(name=TEXT, arguments=described(TEXT, "JSON, in the form of the client's own schema."))
_FINISH_REASONS = ["stop", "length", "tool_calls"]
_USAGE = all_of_object(
    prompt_tokens=described(WHOLE_NUMBER, "The size of the agent's last prompt."),
    completion_tokens=WHOLE_NUMBER,
    total_tokens=WHOLE_NUMBER,
)
_REPLY_MESSAGE = object_of(
    "role",
    "content",
    "refusal",
    role={"const": "assistant"},
    content=described(TEXT_OR_NULL, "Null only if there are calls and no text."),
    refusal=NULL,
    reasoning_content=described(TEXT, "The agent's thoughts, if it has any."),
    tool_calls=array_of(all_of_object(id=TEXT, type={"const": "function"}, function=_CALLED)),
)
_HEAD: dict[str, Schema] = {
    "id": described(TEXT, "The reply's id."),
    "created": described(WHOLE_NUMBER, "Unix time."),
    "model": described(TEXT, "As in the request."),
}
_COMPLETION = all_of_object(
    object={"const": "chat.completion"},
    **_HEAD,
    choices=array_of(
        all_of_object(
            index={"const": 0}, message=_REPLY_MESSAGE, logprobs=NULL, finish_reason={"enum": _FINISH_REASONS}
        )
    ),
    usage=_USAGE,
)
_DELTA = object_of(
    role={"const": "assistant"},
    content=TEXT,
    reasoning_content=TEXT,
    tool_calls=array_of(all_of_object(index=WHOLE_NUMBER, id=TEXT, type={"const": "function"}, function=_CALLED)),
)
_CHUNK = object_of(
    *("object", *_HEAD, "choices"),
    object={"const": "chat.completion.chunk"},
    **_HEAD,
    choices=array_of(
        all_of_object(index={"const": 0}, delta=_DELTA, logprobs=NULL, finish_reason={"enum": [*_FINISH_REASONS, None]})
    ),
    usage=described(_USAGE, "In the last chunk, if `stream_options` asks for it."),
)
_MODEL = all_of_object(
    id=described(TEXT, "The agent's name, or its id if another agent has the same name."),
    object={"const": "model"},
    created=described(WHOLE_NUMBER, "Unix time when the agent was made."),
    owned_by={"const": "letta"},
)
SCHEMAS: dict[str, Schema] = {
    "ChatRequest": with_treatments(_REQUEST, PARAMETERS),
    "ChatCompletion": _COMPLETION,
    "ChatChunk": _CHUNK,
    "Model": _MODEL,
    "Models": all_of_object(object={"const": "list"}, data=array_of(reference("Model"))),
}

_READ_FILE = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Reads a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
_ASKED = {"role": "user", "content": "What is in notes.txt?"}
_CALL: dict[str, Any] = {
    "id": "call_1f0c",
    "type": "function",
    "function": {"name": "read_file", "arguments": '{"path": "notes.txt"}'},
}
_EXAMPLE_HEAD = {"id": "chatcmpl-7d1f", "object": "chat.completion", "created": 1763510400, "model": "my-agent"}


def _completion(finish_reason: str, **message: Any) -> Schema:
    whole = {"role": "assistant", "content": None, "refusal": None, **message}
    choice = {"index": 0, "message": whole, "logprobs": None, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 2140, "completion_tokens": 21, "total_tokens": 2161}
    return {**_EXAMPLE_HEAD, "choices": [choice], "usage": usage}


def _chunk(finish_reason: str | None = None, **delta: Any) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    chunk = {**_EXAMPLE_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n"


_STREAM = _chunk(role="assistant", content="Buy ") + _chunk(content="milk.") + _chunk("stop") + "data: [DONE]\n\n"
_EXAMPLE_MODEL = {"id": "my-agent", "object": "model", "created": 1763424000, "owned_by": "letta"}

PATHS: dict[str, Schema] = {
    "/v1/models": {
        "get": {
            "tags": ["Models"],
            "operationId": "listModels",
            "summary": "List the agents.",
            "description": "Each agent that the key may use is a model.",
            "responses": {
                "200": {
                    "description": "The agents.",
                    "content": json_content(reference("Models"), agents={"object": "list", "data": [_EXAMPLE_MODEL]}),
                },
                **may_fail_with(400, 401, 403, 408, 429, 500, 502, 503, 504),
            },
        }
    },
    "/v1/models/{model}": {
        "get": {
            "tags": ["Models"],
            "operationId": "showModel",
            "summary": "One agent.",
            "parameters": [path_parameter("model", "The agent's name or id.")],
            "responses": {
                "200": {
                    "description": "The agent.",
                    "content": json_content(reference("Model"), agent=_EXAMPLE_MODEL),
                },
                **may_fail_with(400, 401, 403, 404, 408, 429, 500, 502, 503, 504),
            },
        }
    },
    "/v1/chat/completions": {
        "post": {
            "tags": ["Chat Completions"],
            "operationId": "createChatCompletion",
            "summary": "Talk to an agent.",
            "description": (
                "The reply has the agent's text, or calls of the request's tools. Run them, and send the transcript"
                " again with their results as messages of the role `tool`. Fields that are not listed are ignored."
            ),
            "parameters": TURN_PARAMETERS,
            "requestBody": {
                "required": True,
                "content": json_content(
                    reference("ChatRequest"),
                    question={"model": "my-agent", "messages": [_ASKED], "tools": [_READ_FILE]},
                    result={
                        "model": "my-agent",
                        "messages": [
                            _ASKED,
                            {"role": "assistant", "content": None, "tool_calls": [_CALL]},
                            {"role": "tool", "tool_call_id": _CALL["id"], "content": "Buy milk."},
                        ],
                        "tools": [_READ_FILE],
                    },
                    stream={"model": "my-agent", "messages": [_ASKED], "stream": True},
                ),
            },
            "responses": {
                "200": {
                    "description": (
                        "The reply. With `stream` it comes in pieces, and ends with `[DONE]`; a reply that fails after"
                        " its beginning ends with an error object instead. Comments keep a quiet stream open."
                    ),
                    "headers": TURN_HEADERS,
                    "content": {
                        **json_content(
                            reference("ChatCompletion"),
                            answer=_completion("stop", content="Buy milk."),
                            call=_completion("tool_calls", tool_calls=[_CALL]),
                        ),
                        **stream_content("ChatChunk", _STREAM),
                    },
                },
                **may_fail_with(*TURN_ERRORS),
            },
        }
    },
}
