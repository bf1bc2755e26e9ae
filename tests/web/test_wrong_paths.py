"""What is said about a path without a route. tests/test_typical_mistakes.py asks for some of them."""

from __future__ import annotations

import pytest

from bridge.web.wrong_paths import error_for_path

EXAMPLE = "as in http://localhost:8080/v1."
MISSING = f"`/v1` is missing: the client's base URL must end in `/v1`, {EXAMPLE}"
TWICE = "`/v1` is there twice: this client adds it itself, so take it off the end of the client's base URL."
WHOLE = f"The client's base URL has a whole route in it: it must end in `/v1`, {EXAMPLE}"
MUCH = f"There is too much before `/v1`: the client's base URL must be the address and `/v1`, {EXAMPLE}"
ROUTES = "/v1/chat/completions, /v1/responses, /v1/models."


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("/chat/completions", MISSING),
        ("/models", MISSING),
        ("/models/Ada", MISSING),
        ("/responses/", MISSING),
        ("/completions", MISSING),
        ("/v1/v1", TWICE),
        ("/v1/v1/models", TWICE),
        ("/v1/v1/chat/completions", TWICE),
        ("/v1/chat/completions/chat/completions", WHOLE),
        ("/v1/chat/completions/models", WHOLE),
        ("/api/v1/chat/completions", MUCH),
        ("/openai/v1/models/", MUCH),
        ("/api/chat", f'This is Ollama\'s API. Choose "OpenAI compatible" in the client, with a base URL {EXAMPLE}'),
        (
            "/v1/messages",
            f'This is Anthropic\'s API. Choose "OpenAI compatible" in the client, with a base URL {EXAMPLE}',
        ),
        ("/v1/agents/", "Letta's own API is below `/letta`, and only if the operator has set BRIDGE_LETTA_API."),
        ("/letta/v1/agents/", "Letta's own API is below `/letta`, and only if the operator has set BRIDGE_LETTA_API."),
        ("/v1", f"This is the base URL for clients; its routes are {ROUTES}"),
        ("/v1/", f"This is the base URL for clients; its routes are {ROUTES}"),
        ("/v1/embeddings", f"The API is at {ROUTES}"),
        ("/nowhere", f"The API is at {ROUTES}"),
    ],
)
def test_a_path_without_a_route_is_told_what_the_base_url_should_be(path: str, advice: str) -> None:
    assert error_for_path(path, "").message == f"There is no such route. {advice}"


def test_the_prefix_of_the_bridge_is_part_of_the_base_url() -> None:
    said = error_for_path("/chat/completions", "/bridge").message
    assert "must end in `/bridge/v1`, as in http://localhost:8080/bridge/v1." in said
    assert "/bridge/v1/chat/completions, /bridge/v1/responses" in error_for_path("/nowhere", "/bridge").message
