"""Makes OpenAI's list of models."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.turn import JsonObject


def model_object(model: str, created: int) -> JsonObject:
    return {"id": model, "object": "model", "created": created, "owned_by": "letta"}


def model_list(models: Iterable[tuple[str, int]]) -> JsonObject:
    return {"object": "list", "data": [model_object(model, created) for model, created in models]}
