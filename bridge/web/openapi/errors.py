"""The errors of the API: each code with its status, and what it means for a client."""

from __future__ import annotations

from bridge.web.openapi.parts import TEXT, TEXT_OR_NULL, WHOLE_NUMBER, Schema, json_content, object_of, reference

ERROR = object_of(
    "error",
    error=object_of("message", "type", "param", "code", message=TEXT, type=TEXT, param=TEXT_OR_NULL, code=TEXT_OR_NULL),
)

# The codes of each status, and when a client gets them. An error without a code is an invalid request, too.
CODES: dict[int, dict[str, str]] = {
    400: {
        "context_length_exceeded": "the agent's context is full",
        "invalid_chunks": "a body in chunks is malformed",
        "invalid_encoding": "the body is not compressed as its Content-Encoding says",
        "invalid_json": "the body is no JSON object",
        "invalid_path": "the path can't be passed on to Letta",
        "invalid_query": "the query can't be passed on to Letta",
        "invalid_tool_call_ids": "results are for other calls than those that wait",
        "loop_detected": "the request comes from a bridge, whose LETTA_BASE_URL leads to a bridge",
        "method_not_possible": "the method that BRIDGE_METHOD names does not work for this agent",
        "nesting_too_deep": "the JSON, or the schema of a tool, has too many levels",
        "no_pending_call": "no call waits for this result",
        "not_passed_on": "Letta would work at a time that the bridge can't know",
        "previous_response_not_found": "previous_response_id names no response of this bridge",
        "previous_response_not_newest": "the agent has answered since, or the chat is not known any more",
        "schema_too_large": "the schema for the reply is too large",
        "tool_choice_not_possible": "the agent can't be made to call a tool",
        "tool_result_too_large": "a tool's result is too long",
        "tool_too_large": "a tool's schema is too large",
        "tools_too_complex": "the schemas of all tools together are too much work",
        "too_many_agents": "a request that is passed on to Letta changes too many agents",
        "too_many_tools": "more tools than the bridge, or the agent's model, takes",
        "too_many_values": "the JSON has too many fields and items",
        "unknown_host": "the bridge is not known by this host name; see BRIDGE_TRUSTED_HOSTS",
        "unsupported_parameter": "a field that no agent can obey",
    },
    401: {"invalid_api_key": "no key, or one that the bridge does not know"},
    403: {
        "not_allowed": "the key does not allow this",
        "origin_not_allowed": "a page of another site sent this; see BRIDGE_CORS_ORIGINS",
    },
    404: {
        "letta_missing": "Letta does not have the agent, or something of it, any more",
        "model_not_found": "no agent that this key may see has this name or id",
        "not_found": "there is no such route",
        "response_not_found": "no response with this id is kept for this key",
    },
    405: {"method_not_allowed": "the route exists, but not for this HTTP method"},
    408: {"request_timeout": "the request did not arrive in time"},
    409: {
        "PENDING_APPROVAL": "in Letta's own API: the agent's open calls must be answered first",
        "agent_busy": "Letta says that the agent is busy",
        "agent_waits_for_approval": "the agent waits until somebody approves or denies one of its own tools",
        "conflict": "another request prevents this one",
        "tool_name_taken": "on Letta, a tool of the bridge has the name that the client gives its own",
        "tool_result_pending": "the agent waits for another client's result, and BRIDGE_TOOL_WAIT refuses others",
    },
    413: {"request_too_large": "the body is too large"},
    415: {"unsupported_media_type": "without keys, the body must be declared as JSON"},
    422: {"idempotency_key_reused": "the Idempotency-Key came before, with another body"},
    426: {"no_websocket": "there are no web sockets here"},
    429: {
        "busy": "the agent is in another turn",
        "model_overloaded": "the agent's model takes no more requests now",
        "rate_limit_exceeded": "the key makes too many requests a minute",
        "too_many_turns": "the key has too many turns at once",
    },
    500: {"internal_error": "a fault of the bridge; its log says more"},
    502: {
        "letta_credentials": "Letta refuses the bridge's own password",
        "letta_error": "Letta failed",
        "letta_rejected": "Letta did not accept what the bridge sent",
        "letta_unreachable": "there is no connection to Letta",
        "model_failed": "the agent's model failed",
        "run_broken_off": "Letta lost the agent's run",
        "run_cancelled": "somebody cancelled the agent's run",
        "stream_cut": "the connection to Letta broke in the middle of an answer",
    },
    503: {
        "hold_lost": "the bridge lost its lock on the agent",
        "letta_unavailable": "Letta can't serve now",
        "shutting_down": "the bridge is being restarted",
        "store_unavailable": "what the bridge's workers share can't be read or written",
        "too_many_bytes": "a worker holds as many bytes of requests as it can",
        "too_many_requests": "a worker passes on as many requests to Letta as it can",
        "too_many_turns": "a worker runs as many turns as it can",
        "turn_lost": "the worker that ran the turn is gone",
        "work_failing": "a worker's own work fails",
    },
    504: {
        "letta_timeout": "Letta did not answer in time",
        "still_running": "the answer takes longer than a client is kept waiting; the same request gets it",
    },
}
# The only status that no operation has: it is that of operations which do not exist.
WRONG_METHOD = 405
# Statuses whose answers may say in a header when to try again.
TRY_AGAIN = (409, 429, 502, 503, 504)
_TITLES = {
    400: "The request is invalid.",
    401: "A key is needed.",
    403: "The key does not allow it.",
    404: "Not found.",
    405: "Wrong method.",
    408: "Too slow.",
    409: "Something else comes first.",
    413: "Too large.",
    415: "Not JSON.",
    422: "The Idempotency-Key is used already.",
    426: "No web sockets.",
    429: "Too much at once: try again later.",
    500: "A fault of the bridge.",
    502: "Letta, or the model behind it, failed.",
    503: "Not now: try again later.",
    504: "It took too long.",
}
_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_RETRY_AFTER: Schema = {"Retry-After": {"description": "Seconds after which to try again.", "schema": WHOLE_NUMBER}}


def error_responses() -> Schema:
    """Returns the responses of all statuses, by the names that `may_fail_with` refers to."""
    return {_name(status): _response(status, codes) for status, codes in CODES.items() if status != WRONG_METHOD}


def may_fail_with(*statuses: int) -> Schema:
    """Returns the responses of an operation for these statuses."""
    return {str(status): {"$ref": f"#/components/responses/{_name(status)}"} for status in sorted(statuses)}


def _name(status: int) -> str:
    return f"Error{status}"


def _response(status: int, codes: dict[str, str]) -> Schema:
    listed = "; ".join(f"`{code}`: {meaning}" for code, meaning in codes.items())
    code, meaning = next(iter(codes.items()))
    kind = _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    error = {"message": f"{meaning[0].upper()}{meaning[1:]}.", "type": kind, "param": None, "code": code}
    response: Schema = {
        "description": f"{_TITLES[status]} Codes: {listed}.",
        "content": json_content(reference("Error"), error={"error": error}),
    }
    return {**response, "headers": _RETRY_AFTER} if status in TRY_AGAIN else response
