"""Makes OpenAI's list of models. Each model is a Letta agent."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.turn import JsonObject


def model_object(model: str, created: int) -> JsonObject:
    """Returns one agent as OpenAI describes a model. `created` is the Unix time when the agent was made."""
    return {"id": model, "object": "model", "created": created, "owned_by": "letta"}


def model_list(models: Iterable[tuple[str, int]]) -> JsonObject:
    """Returns agents as OpenAI's list of models. Each agent is a pair: its model name, its Unix time of creation."""
    return {"object": "list", "data": [model_object(model, created) for model, created in models]}
