"""Shows agents to Letta Code in a way that does not make it change them: their model, and their tool rules."""

from __future__ import annotations

from bridge.passthrough.hiding import with_model_handle
from bridge.turn import JsonObject

SOURCE_HEADER = "X-Letta-Source"
LETTA_CODE = "letta-code"


def is_letta_code(source: str) -> bool:
    """Returns whether a request with this value of SOURCE_HEADER is Letta Code's."""
    return source.lower() == LETTA_CODE


def shown_to_letta_code(agent: JsonObject) -> JsonObject:
    """Returns an agent with a handle of its model, parallel calls, and no rules. [Read in Letta Code 0.32.18: it sets
    the model if either is missing, and removes all rules of an agent that it has tagged as its own.]
    """
    settings = agent.get("model_settings")
    parallel = {**(settings if isinstance(settings, dict) else {}), "parallel_tool_calls": True}
    return {**with_model_handle(agent), "model_settings": parallel, "tool_rules": []}
