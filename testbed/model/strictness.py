"""Refuses what OpenAI refuses. Pure.

The wordings are those of the API, as far as reports of the years 2024 to 2026 quote them. Two rules are stricter than
anything known of the API: two tools of one name, and a forced tool that is not offered, are refused here because no
correct client sends either. Descriptions of any length are accepted, as by OpenAI since May 2025.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from testbed.model.refusal import Refusal
from testbed.model.schemas import schema_findings, strict_findings
from testbed.model.transcript import transcript_refusals
from testbed.model.values import array_refusal, invalid_type, invalid_value, missing, name_refusals

ARGUMENTS = frozenset(
    (
        *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
        *("max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n"),
        *("parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options"),
        *("prompt_cache_retention", "reasoning_effort", "response_format", "safety_identifier", "seed"),
        *("service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools"),
        *("top_logprobs", "top_p", "user", "verbosity", "web_search_options"),
    )
)


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """How strict the model is.

    `max_tools` is 128 at OpenAI. If a function is `strict` but its schema is not, strict_schemas "record" accepts it
    and records the findings with the request; "enforce" refuses it as OpenAI does.
    """

    max_tools: int = 128
    strict_schemas: Literal["record", "enforce"] = "record"
    models: tuple[str, ...] = (
        "gpt-4o-mini",
        "gpt-4o",
        "gpt-4.1",
        "gpt-4.1-mini",
        "text-embedding-3-small",
        "text-embedding-ada-002",
    )
    only_these_models: bool = False


def refusal(body: Any, limits: ModelLimits) -> Refusal | None:
    """Returns the first reason to refuse a request for a chat completion, or None if it is valid."""
    return next(_refusals(body, limits), None)


def strict_violations(body: Any) -> tuple[str, ...]:
    """Returns the findings in the schemas of functions that are `strict`."""
    if not isinstance(body, Mapping):
        return ()
    return tuple(finding for _, finding in _strict(body.get("tools")))


def _strict(tools: Any) -> Iterator[tuple[int, str]]:
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and function.get("strict") is True:
            for finding in strict_findings(str(function.get("name")), function.get("parameters")):
                yield index, finding


def _refusals(body: Any, limits: ModelLimits) -> Iterator[Refusal]:
    if not isinstance(body, Mapping):
        yield Refusal(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your "
            "HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
        )
        return
    yield from _head(body, limits)
    yield from transcript_refusals(body.get("messages"))
    yield from _tools(body.get("tools"), limits)
    yield from _choice(body)
    if limits.strict_schemas == "enforce":
        for index, finding in _strict(body.get("tools")):
            yield _invalid_parameters(index, finding)


def _head(body: Mapping[str, Any], limits: ModelLimits) -> Iterator[Refusal]:
    for name in body:
        if name not in ARGUMENTS:
            yield Refusal(f"Unrecognized request argument supplied: {name}")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        yield Refusal("you must provide a model parameter")
    if limits.only_these_models and model not in limits.models:
        yield Refusal(
            f"The model `{model}` does not exist or you do not have access to it.",
            None,
            "model_not_found",
            404,
        )
    if "messages" not in body:
        yield missing("messages")
    yield from _flags(body)


def _flags(body: Mapping[str, Any]) -> Iterator[Refusal]:
    for name in ("stream", "parallel_tool_calls", "store", "logprobs"):
        if body.get(name) is not None and not isinstance(body[name], bool):
            yield invalid_type(name, "a boolean", body[name])
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield Refusal("The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options")


def _tools(tools: Any, limits: ModelLimits) -> Iterator[Refusal]:
    if tools is None:
        return
    yield from array_refusal("tools", tools, limits.max_tools)
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        yield from _tool(f"tools[{index}]", tool)
        function = tool["function"]
        name = function["name"]
        if name in seen:
            yield Refusal(f"Invalid 'tools': tool names must be unique, but '{name}' is given twice.", "tools")
        seen.add(name)
        if "parameters" in function:
            for finding in schema_findings(name, function["parameters"]):
                yield _invalid_parameters(index, finding)


def _invalid_parameters(index: int, finding: str) -> Refusal:
    return Refusal(finding, f"tools[{index}].function.parameters", "invalid_function_parameters")


def _tool(where: str, tool: Any) -> Iterator[Refusal]:
    if not isinstance(tool, Mapping):
        yield invalid_type(where, "an object", tool)
        return
    if "type" not in tool:
        yield missing(f"{where}.type")
    elif tool["type"] != "function":
        yield invalid_value(f"{where}.type", tool["type"], ("function",))
    function = tool.get("function")
    if not isinstance(function, Mapping):
        yield missing(f"{where}.function")
        return
    yield from name_refusals(f"{where}.function.name", function.get("name"))
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        yield invalid_type(f"{where}.function.description", "a string", description)
    if function.get("strict") is not None and not isinstance(function["strict"], bool):
        yield invalid_type(f"{where}.function.strict", "a boolean", function["strict"])


def _choice(body: Mapping[str, Any]) -> Iterator[Refusal]:
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and body.get("tools") is None:
            yield Refusal(f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.", name)
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping):
        yield from _named_choice(choice, body)
    elif choice is not None and choice not in ("none", "auto", "required"):
        yield invalid_value("tool_choice", choice, ("none", "auto", "required"))


def _named_choice(choice: Mapping[str, Any], body: Mapping[str, Any]) -> Iterator[Refusal]:
    if choice.get("type") != "function":
        yield invalid_value("tool_choice.type", choice.get("type"), ("function",))
    function = choice.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        yield missing("tool_choice.function.name")
    elif name not in [tool["function"]["name"] for tool in body["tools"]]:
        yield Refusal(f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice")
