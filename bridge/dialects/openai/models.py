"""Makes OpenAI's list of models. Each model is a Letta agent."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.turn import JsonObject


def model_object(model: str, created: int) -> JsonObject:
    """Returns one agent as OpenAI describes a model. `created` is a Unix time."""
    return {"id": model, "object": "model", "created": created, "owned_by": "letta"}


def model_list(models: Iterable[tuple[str, int]]) -> JsonObject:
    """Returns the list for agents, each given by its name and its Unix time of creation."""
    return {"object": "list", "data": [model_object(model, created) for model, created in models]}
