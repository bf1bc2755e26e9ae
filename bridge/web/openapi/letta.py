"""The part of Letta's own API that the bridge answers itself: messages with client tools, and conversations."""

from __future__ import annotations

import json
from typing import Any

from bridge.web.api_paths import LETTA_PATH
from bridge.web.openapi.parts import (
    ANY_OBJECT,
    FLAG,
    TEXT,
    TEXT_OR_NULL,
    WHOLE_NUMBER,
    Schema,
    all_of_object,
    array_of,
    described,
    json_content,
    object_of,
    path_parameter,
    reference,
    stream_content,
)
from bridge.web.openapi.turns import TURN_HEADERS

_TOOL = object_of("name", name=TEXT, description=TEXT, parameters=ANY_OBJECT)
_REQUEST = object_of(
    messages=described(
        {**array_of(ANY_OBJECT), "minItems": 1},
        "What the agent is told, and the results of its calls: items of the type `approval`.",
    ),
    input=described({"anyOf": [TEXT, array_of(ANY_OBJECT)]}, "In place of `messages`: what the user says."),
    client_tools=described(
        array_of(_TOOL), "Tools that the client runs. Without them, and without results of them, Letta answers itself."
    ),
    streaming=FLAG,
    stream_tokens=described(FLAG, "Text in pieces."),
)
_CALL = all_of_object(name=TEXT_OR_NULL, arguments=TEXT_OR_NULL, tool_call_id=TEXT)
_KINDS = [
    *("assistant_message", "reasoning_message", "approval_request_message"),
    *("tool_call_message", "tool_return_message"),
]
_MESSAGE = object_of(
    "message_type",
    "id",
    message_type={"enum": _KINDS},
    id=TEXT,
    content=described(TEXT, "Of an `assistant_message`."),
    reasoning=described(TEXT, "Of a `reasoning_message`."),
    tool_call=described(_CALL, "Of an `approval_request_message`: the first call of the client's tools."),
    tool_calls=described({"anyOf": [array_of(_CALL), _CALL]}, "All its calls; in a stream, one piece of a call."),
    tool_return=described(TEXT, "Of a `tool_return_message`: what a tool returned."),
    status=described({"enum": ["success", "error"]}, "Of a `tool_return_message`."),
    run_id=described(TEXT_OR_NULL, "Letta's id of the run."),
)
_STOP = all_of_object(message_type={"const": "stop_reason"}, stop_reason=TEXT)
_USAGE = all_of_object(
    message_type={"const": "usage_statistics"},
    completion_tokens=WHOLE_NUMBER,
    prompt_tokens=described(WHOLE_NUMBER, "The size of the agent's last prompt."),
    total_tokens=WHOLE_NUMBER,
    step_count=WHOLE_NUMBER,
    run_ids={"type": ["array", "null"]},
    context_tokens=WHOLE_NUMBER,
)
_PING = object_of("message_type", "id", message_type={"const": "ping"}, id=TEXT)
_FAILED = all_of_object(
    message_type={"const": "error_message"}, run_id=TEXT, error_type=TEXT, message=TEXT, detail=TEXT
)
_DETAIL = {
    "anyOf": [TEXT, all_of_object(code={"const": "PENDING_APPROVAL"}, message=TEXT, pending_request_id=TEXT_OR_NULL)]
}
_CONVERSATION = object_of("id", "agent_id", id=TEXT, agent_id=TEXT)
SCHEMAS: dict[str, Schema] = {
    "LettaRequest": _REQUEST,
    "LettaReply": all_of_object(messages=array_of(reference("LettaMessage")), stop_reason=_STOP, usage=_USAGE),
    "LettaMessage": _MESSAGE,
    "LettaEvent": {"oneOf": [reference("LettaMessage"), _PING, _STOP, _USAGE, _FAILED]},
    "LettaError": object_of("detail", detail=_DETAIL, code=TEXT_OR_NULL, param=TEXT_OR_NULL),
    "LettaConversation": _CONVERSATION,
}

_AGENT_ID = path_parameter("agent_id", "The id of an agent.")
_CONVERSATION_ID = path_parameter("conversation_id", "The id of a conversation, or `default`.")
_SAID = {"role": "user", "content": "What is in notes.txt?"}
_READ_FILE = {
    "name": "read_file",
    "description": "Reads a file",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
_RESULT = {"type": "tool", "tool_call_id": "call_1f0c", "tool_return": "Buy milk.", "status": "success"}
_HEAD = {"id": "message-5d0e", "run_id": "run-77c1"}
_CALLED = {"name": "read_file", "arguments": '{"path": "notes.txt"}', "tool_call_id": "call_1f0c"}
_ASKS = {**_HEAD, "message_type": "approval_request_message", "tool_call": _CALLED, "tool_calls": [_CALLED]}
_SAYS = {**_HEAD, "message_type": "assistant_message", "content": "Buy milk."}
_ENDED = {"message_type": "stop_reason", "stop_reason": "end_turn"}
_USED = {
    "message_type": "usage_statistics",
    "completion_tokens": 21,
    "prompt_tokens": 2140,
    "total_tokens": 2161,
    "step_count": 1,
    "run_ids": None,
    "context_tokens": 2161,
}
_STREAM = "".join(f"data: {json.dumps(event)}\n\n" for event in (_SAYS, _ENDED, _USED)) + "data: [DONE]\n\n"
_REPLY = {
    "description": "The reply. Its last message may be an `approval_request_message` with calls of the client's tools.",
    "headers": TURN_HEADERS,
    "content": {
        **json_content(
            reference("LettaReply"),
            answer={"messages": [_SAYS], "stop_reason": _ENDED, "usage": _USED},
            call={
                "messages": [_ASKS],
                "stop_reason": {**_ENDED, "stop_reason": "requires_approval"},
                "usage": _USED,
            },
        ),
        **stream_content("LettaEvent", _STREAM),
    },
}
_BODY = {
    "required": True,
    "content": json_content(
        reference("LettaRequest"),
        question={"messages": [_SAID], "client_tools": [_READ_FILE]},
        result={"messages": [{"type": "approval", "approvals": [_RESULT]}], "client_tools": [_READ_FILE]},
    ),
}
_FAULTS = {"default": {"$ref": "#/components/responses/LettaError"}}
RESPONSES: dict[str, Schema] = {
    "LettaError": {
        "description": "An error in Letta's form. Statuses and codes are those of the other APIs.",
        "content": json_content(
            reference("LettaError"),
            error={"detail": "no agent that this key may see has this id", "code": "model_not_found", "param": None},
            open={"detail": {"code": "PENDING_APPROVAL", "message": "...", "pending_request_id": "message-5d0e"}},
        ),
    }
}


def _operation(name: str, summary: str, *parameters: Schema, reply: Schema, **more: Any) -> Schema:
    return {
        "tags": ["Letta's own API"],
        "operationId": name,
        "summary": summary,
        "parameters": [*parameters],
        **more,
        "responses": {"200": reply, **_FAULTS},
    }


def _message(name: str, summary: str, parameter: Schema) -> Schema:
    return {"post": _operation(name, summary, parameter, requestBody=_BODY, reply=_REPLY)}


_AS_LETTA = {"description": "As Letta answers.", "content": json_content({})}
_ONE_CONVERSATION = {
    "description": "The conversation.",
    "content": json_content(reference("LettaConversation"), made={"id": "conv-0c4b", "agent_id": "agent-11d2"}),
}
_BELOW = f"{LETTA_PATH}/v1"
PATHS: dict[str, Schema] = {
    f"{_BELOW}/agents/{{agent_id}}/messages": _message("messageAgent", "Talk to an agent.", _AGENT_ID),
    f"{_BELOW}/agents/{{agent_id}}/messages/stream": _message("streamMessage", "The same as a stream.", _AGENT_ID),
    f"{_BELOW}/agents/{{agent_id}}/messages/async": {
        "post": _operation(
            "messageInBackground",
            "Begin a run of an agent, without `client_tools`.",
            _AGENT_ID,
            requestBody={"required": True, "content": json_content(reference("LettaRequest"))},
            reply=_AS_LETTA,
        )
    },
    f"{_BELOW}/conversations": {
        "post": _operation(
            "beginConversation",
            "Begin a conversation with an agent.",
            {"name": "agent_id", "in": "query", "required": True, "schema": TEXT, "description": "The id of an agent."},
            reply=_ONE_CONVERSATION,
        )
    },
    f"{_BELOW}/conversations/{{conversation_id}}": {
        "get": _operation("showConversation", "One conversation.", _CONVERSATION_ID, reply=_ONE_CONVERSATION)
    },
    f"{_BELOW}/conversations/{{conversation_id}}/messages": {
        **_message("messageConversation", "Talk to an agent in a conversation.", _CONVERSATION_ID),
        "get": _operation("listConversation", "The messages of a conversation.", _CONVERSATION_ID, reply=_AS_LETTA),
    },
    f"{_BELOW}/conversations/{{conversation_id}}/cancel": {
        "post": _operation("cancelConversation", "End the run of a conversation.", _CONVERSATION_ID, reply=_AS_LETTA)
    },
    f"{_BELOW}/messages/{{message_id}}": {
        "get": _operation("showMessage", "One message.", path_parameter("message_id", "Its id."), reply=_AS_LETTA)
    },
    f"{_BELOW}/tools/add-base-tools": {
        "post": _operation("addBaseTools", "Does nothing unless the key may do everything.", reply=_AS_LETTA)
    },
}
