"""Tests that the model refuses what OpenAI refuses, in OpenAI's words."""

from typing import Any

import pytest

from testbed.model.strictness import ARGUMENTS, ModelLimits, refusal, strict_violations

USER = {"role": "user", "content": "Hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def call(call_id: Any = "call_1", name: Any = "f", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}} | more


def asks(*calls: Any, content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def says(call_id: Any = "call_1", content: Any = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool(name: Any = "f", parameters: Any = SCHEMA, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": None, "parameters": parameters} | more}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o-mini", "messages": list(messages) or [USER]} | more


def bad_name(where: str) -> str:
    return (
        f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'."
    )


def empty_array(where: str) -> str:
    return f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead."


VALID = {
    "the least": body(),
    "all roles": body(
        {"role": "developer", "content": "d"},
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {"role": "user", "content": "u", "name": "ada"},
        asks(call("call_1"), call("call_2"), content="one moment"),
        says("call_2"),
        says("call_1", [{"type": "text", "text": "r"}]),
        {"role": "assistant", "content": "a"},
        USER,
        asks(call("call_1")),
        says("call_1", ""),
    ),
    "an image": body(
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}
    ),
    "broken argument text": body(asks(call(arguments='{"a": ')), says()),
    "tools": body(
        tools=[
            tool(),
            tool("g", {"type": "object", "properties": {}}),
            {"type": "function", "function": {"name": "h"}},
        ],
        tool_choice={"type": "function", "function": {"name": "h"}},
        parallel_tool_calls=False,
    ),
    "nulls": body(tools=None, tool_choice=None, parallel_tool_calls=None, stream_options=None),
    "a loose schema": body(
        tools=[tool(parameters=SCHEMA | {"properties": {"a": {"oneOf": [{}]}, "b": {"type": "object"}, "c": {}}})]
    ),
    "a long description": body(tools=[tool(description="d" * 5000)]),
    "every known argument": body(**dict.fromkeys(ARGUMENTS - {"model", "messages"})),
}


@pytest.mark.parametrize("request_body", VALID.values(), ids=VALID.keys())
def test_a_valid_request_is_not_refused(request_body: dict[str, Any]) -> None:
    assert refusal(request_body, ModelLimits()) is None


NOT_ANSWERED = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: "
)
ORPHAN = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."

MALFORMED = {
    "unanswered at the end": (body(USER, asks(call())), NOT_ANSWERED + "call_1", "messages.[2].role"),
    "unanswered before a user": (body(asks(call()), USER, says()), NOT_ANSWERED + "call_1", "messages.[1].role"),
    "half answered": (
        body(asks(call("a"), call("b"), call("c")), says("b"), USER),
        NOT_ANSWERED + "a, c",
        "messages.[2].role",
    ),
    "another call between": (body(asks(call("a")), asks(call("b")), says("b")), NOT_ANSWERED + "a", None),
    "an orphan": (body(USER, says()), ORPHAN, "messages.[1].role"),
    "an orphan after an answer": (body(asks(call()), says(), USER, says()), ORPHAN, "messages.[3].role"),
    "answered twice": (
        body(asks(call("a"), call("b")), says("a"), says("a")),
        "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[1] and messages[2].",
        "messages.[2].tool_call_id",
    ),
    "another id": (
        body(asks(call("a")), says("x")),
        "Invalid parameter: 'tool_call_id' of 'x' not found in 'tool_calls' of previous message.",
        "messages.[1].tool_call_id",
    ),
    "one id for two calls": (
        body(asks(call("a"), call("a")), says("a")),
        "Invalid parameter: Duplicate value for 'id' in 'tool_calls' of messages[0].",
        None,
    ),
    "an empty id": (
        body(asks(call("")), says("")),
        "Invalid 'messages[0].tool_calls[0].id': empty string. Expected a string with minimum length 1, but got an "
        "empty string instead.",
        "messages[0].tool_calls[0].id",
    ),
    "a long id": (
        body(asks(call("c" * 41)), says("c" * 41)),
        "Invalid 'messages[0].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a "
        "string with length 41 instead.",
        None,
    ),
    "no id": (body(asks(call(None))), "Missing required parameter: 'messages[0].tool_calls[0].id'.", None),
    "a result without an id": (
        body({"role": "tool", "content": "r"}),
        "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
        None,
    ),
    "no calls": (body(asks(content="x")), empty_array("messages[0].tool_calls"), "messages[0].tool_calls"),
    "arguments that are not text": (
        body(asks(call(arguments={})), says()),
        "Invalid type for 'messages[0].tool_calls[0].function.arguments': expected a string, but got an object "
        "instead.",
        None,
    ),
    "a called name with a dot": (
        body(asks(call(name="a.b")), says()),
        bad_name("messages[0].tool_calls[0].function.name"),
        None,
    ),
    "a call without a type": (
        body(asks(call(type=None)), says()),
        "Invalid value: 'None'. Supported values are: 'function'.",
        "messages[0].tool_calls[0].type",
    ),
    "null content": (
        body({"role": "user", "content": None}),
        "Invalid value for 'content': expected a string, got null.",
        "messages.[0].content",
    ),
    "an empty turn": (
        body({"role": "assistant", "content": None}),
        "Invalid value for 'content': expected a string, got null.",
        None,
    ),
    "no parts": (body({"role": "user", "content": []}), empty_array("messages[0].content"), None),
    "a part without a type": (
        body({"role": "user", "content": [{"text": "x"}]}),
        "Missing required parameter: 'messages[0].content[0].type'.",
        None,
    ),
    "an image for the assistant": (
        body({"role": "assistant", "content": [{"type": "image_url"}]}),
        "Invalid value: 'image_url'. Supported values are: 'text', and 'refusal'.",
        "messages[0].content[0].type",
    ),
    "content that is an object": (
        body({"role": "user", "content": {"text": "x"}}),
        "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got dict instead.",
        None,
    ),
    "a text that is too long": (
        body({"role": "user", "content": "x" * 10_485_761}),
        "Invalid 'messages[0].content': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 10485761 instead.",
        None,
    ),
    "an unknown role": (
        body({"role": "agent", "content": "x"}),
        "Invalid value: 'agent'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and "
        "'developer'.",
        "messages[0].role",
    ),
    "no role": (body({"content": "x"}), "Missing required parameter: 'messages[0].role'.", None),
    "a name with a blank": (
        body(USER | {"name": "a b"}),
        "Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern "
        "'^[^\\s<|\\\\/>]+$'.",
        None,
    ),
    "no messages": ({"model": "m", "messages": []}, empty_array("messages"), "messages"),
    "messages missing": ({"model": "m"}, "Missing required parameter: 'messages'.", "messages"),
    "messages that are a text": (
        {"model": "m", "messages": "Hi"},
        "Invalid type for 'messages': expected an array of objects, but got a string instead.",
        None,
    ),
}


@pytest.mark.parametrize(("request_body", "message", "param"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_transcript_is_refused(request_body: Any, message: str, param: str | None) -> None:
    found = refusal(request_body, ModelLimits())
    assert found is not None
    assert (found.message, found.status, found.type) == (message, 400, "invalid_request_error")
    assert param in (None, found.param)


def schema(text: str) -> str:
    return f"Invalid schema for function 'f': {text}."


TOP = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level"

BAD_TOOLS = {
    "no tool": ([], empty_array("tools")),
    "too many": (
        [tool(f"f{number}") for number in range(129)],
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 "
        "instead.",
    ),
    "one name twice": ([tool(), tool()], "Invalid 'tools': tool names must be unique, but 'f' is given twice."),
    "no type": ([{"function": {"name": "f"}}], "Missing required parameter: 'tools[0].type'."),
    "no function": ([{"type": "function", "name": "f"}], "Missing required parameter: 'tools[0].function'."),
    "another type": ([{"type": "web"}], "Invalid value: 'web'. Supported values are: 'function'."),
    "no name": ([tool(None)], "Missing required parameter: 'tools[0].function.name'."),
    "an empty name": ([tool("")], bad_name("tools[0].function.name")),
    "a dotted name": ([tool(), tool("a.b")], bad_name("tools[1].function.name")),
    "a name that ends with a newline": ([tool("f\n")], bad_name("tools[0].function.name")),
    "a long name": (
        [tool("f" * 65)],
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a "
        "string with length 65 instead.",
    ),
    "a description that is not text": (
        [tool(description=1)],
        "Invalid type for 'tools[0].function.description': expected a string, but got an integer instead.",
    ),
    "null parameters": ([tool(parameters=None)], schema("None is not of type 'object', 'boolean'")),
    "a list of parameters": ([tool(parameters=[])], schema("[] is not of type 'object', 'boolean'")),
    "no type of parameters": (
        [tool(parameters={"properties": {}})],
        schema("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'"),
    ),
    "no properties": ([tool(parameters={"type": "object"})], schema("In context=(), object schema missing properties")),
    "anyOf at the top": ([tool(parameters=SCHEMA | {"anyOf": [{}]})], schema(TOP)),
    "an array without items": (
        [tool(parameters=SCHEMA | {"properties": {"a": {"type": "object", "properties": {"b": {"type": "array"}}}}})],
        schema("In context=('properties', 'a', 'properties', 'b'), array schema missing items"),
    ),
    "an array among types": (
        [tool(parameters={"type": "object", "properties": {"a": {"type": ["string", "array"]}}})],
        schema("In context=('properties', 'a', 'type', '1'), array schema missing items"),
    ),
    "an array in an alternative": (
        [tool(parameters={"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}]}}})],
        schema("In context=('properties', 'a', 'anyOf', '0'), array schema missing items"),
    ),
    "an unknown type": (
        [tool(parameters={"type": "object", "properties": {"a": {"type": "str"}}})],
        schema("In context=('properties', 'a'), 'str' is not valid under any of the given schemas"),
    ),
    "required that is not a list": (
        [tool(parameters={"type": "object", "properties": {"a": {"type": "string", "required": True}}})],
        schema("In context=('properties', 'a'), True is not of type 'array'"),
    ),
}


@pytest.mark.parametrize(("tools", "message"), BAD_TOOLS.values(), ids=BAD_TOOLS.keys())
def test_an_invalid_tool_is_refused(tools: Any, message: str) -> None:
    found = refusal(body(tools=tools), ModelLimits())
    assert found is not None
    assert (found.message, found.status) == (message, 400)


def test_more_tools_are_allowed_if_the_limit_is_raised() -> None:
    tools = [tool(f"f{number}") for number in range(512)]
    assert refusal(body(tools=tools), ModelLimits(max_tools=512)) is None


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a choice without tools": (
        {"tool_choice": "auto"},
        "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
    ),
    "parallel calls without tools": (
        {"parallel_tool_calls": False},
        "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
    ),
    "an unknown choice": (
        {"tools": [tool()], "tool_choice": "any"},
        "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
    ),
    "a tool that is not offered": (
        {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "Tool choice 'g' not found in 'tools' parameter.",
    ),
    "a choice without a name": (
        {"tools": [tool()], "tool_choice": {"type": "function", "name": "f"}},
        "Missing required parameter: 'tool_choice.function.name'.",
    ),
    "parallel calls that are not a boolean": (
        {"tools": [tool()], "parallel_tool_calls": "yes"},
        "Invalid type for 'parallel_tool_calls': expected a boolean, but got a string instead.",
    ),
    "an unknown argument": ({"tool_rules": []}, "Unrecognized request argument supplied: tool_rules"),
    "no model": ({"model": None}, "you must provide a model parameter"),
    "stream options without a stream": (
        {"stream_options": {"include_usage": True}},
        "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    ),
}


@pytest.mark.parametrize(("settings", "message"), BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys())
def test_an_invalid_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    found = refusal(body(**settings), ModelLimits())
    assert found is not None
    assert found.message == message


def test_an_unknown_model_is_refused_only_if_the_limits_say_so() -> None:
    request = body(model="gpt-9")
    assert refusal(request, ModelLimits()) is None
    found = refusal(request, ModelLimits(only_these_models=True))
    assert found is not None
    assert (found.status, found.code) == (404, "model_not_found")


def test_a_body_that_is_not_an_object_is_refused() -> None:
    found = refusal([1], ModelLimits())
    assert found is not None
    assert found.message.startswith("We could not parse the JSON body of your request.")


def strict(parameters: Any) -> dict[str, Any]:
    return body(tools=[tool(parameters=parameters, strict=True)])


CLOSED: dict[str, Any] = {"type": "object", "additionalProperties": False}
REQUIRED = "'required' is required to be supplied and to be an array including every key in properties"

NOT_STRICT = {
    "open": (SCHEMA, "In context=(), 'additionalProperties' is required to be supplied and to be false"),
    "an optional property": (
        CLOSED | {"properties": {"a": {"type": "string"}}, "required": []},
        f"In context=(), {REQUIRED}. Missing 'a'",
    ),
    "no required": (CLOSED | {"properties": {"a": {"type": "string"}}}, f"In context=(), {REQUIRED}. Missing 'a'"),
    "an unknown required property": (
        CLOSED | {"properties": {}, "required": ["b"]},
        f"In context=(), {REQUIRED}. Extra required key 'b' supplied",
    ),
    "an open object within an array": (
        CLOSED
        | {"properties": {"a": {"type": "array", "items": {"type": "object", "properties": {}}}}, "required": ["a"]},
        "In context=('properties', 'a', 'items'), 'additionalProperties' is required to be supplied and to be false",
    ),
    "an object without properties": (
        CLOSED | {"properties": {"a": CLOSED}, "required": ["a"]},
        "In context=('properties', 'a'), object schema missing properties",
    ),
    "oneOf": (
        CLOSED | {"properties": {"a": {"oneOf": [{"type": "string"}]}}, "required": ["a"]},
        "In context=('properties', 'a'), 'oneOf' is not permitted",
    ),
    "no type": (
        CLOSED | {"properties": {"a": {"description": "d"}}, "required": ["a"]},
        "In context=('properties', 'a'), schema must have a 'type' key",
    ),
    "an open definition": (
        CLOSED
        | {"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"], "$defs": {"A": {"type": ["object", "null"]}}},
        "In context=('$defs', 'A'), 'additionalProperties' is required to be supplied and to be false",
    ),
}


@pytest.mark.parametrize(("parameters", "finding"), NOT_STRICT.values(), ids=NOT_STRICT.keys())
def test_a_strict_function_with_a_loose_schema_is_recorded_or_refused(parameters: Any, finding: str) -> None:
    request = strict(parameters)
    assert strict_violations(request)[0] == schema(finding)
    assert refusal(request, ModelLimits()) is None
    refused = refusal(request, ModelLimits(strict_schemas="enforce"))
    assert refused is not None
    assert (refused.message, refused.param) == (schema(finding), "tools[0].function.parameters")


def test_a_strict_schema_has_no_violation() -> None:
    parameters = CLOSED | {
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "b": CLOSED | {"properties": {}, "required": []},
            "c": {"enum": ["x"]},
            "d": {"$ref": "#/$defs/D"},
        },
        "required": ["a", "b", "c", "d"],
        "$defs": {"D": {"type": "array", "items": {"type": "integer"}}},
    }
    assert strict_violations(strict(parameters)) == ()
    assert refusal(strict(parameters), ModelLimits(strict_schemas="enforce")) is None


def test_functions_that_are_not_strict_may_have_loose_schemas() -> None:
    assert strict_violations(body(tools=[tool()])) == ()
