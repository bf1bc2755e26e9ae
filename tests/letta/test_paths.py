from __future__ import annotations

import itertools

import pytest

from bridge.letta.paths import foreign_template, path_template


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/v1/agents/", "/v1/agents/"),
        ("/v1/agents/agent-1/messages/stream", "/v1/agents/{id}/messages/stream"),
        ("/v1/agents/agent-1/core-memory/blocks/my label", "/v1/agents/{id}/core-memory/blocks/{id}"),
        ("/openapi.json", "/openapi.json"),
    ],
)
def test_calls_are_counted_without_the_ids_in_their_paths(path: str, template: str) -> None:
    assert path_template(path) == template


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/v1/agents/", "/v1/agents"),
        ("/v1/models/embedding", "/v1/models/{id}"),
        ("/v1/agents/agent-1/messages", "/v1/agents/{id}/messages"),
        ("/v1/agents/agent-1/messages/stream", "/v1/agents/{id}/messages/..."),
        ("/v1/agents/agent-1/core-memory/blocks/my%20label", "/v1/agents/{id}/core-memory/..."),
        ("/v1/agents/agent-1/tools/", "/v1/agents/{id}/tools"),
        ("/v1/nowhere/x/y/z/", "/v1/{id}/{id}/{id}/..."),
    ],
)
def test_calls_of_clients_are_counted_by_the_beginning_of_their_path(path: str, template: str) -> None:
    assert foreign_template(path) == template


def test_clients_cannot_make_many_kinds_of_calls() -> None:
    words = ["agents", "messages", "tools", "x1", "x2", "x3"]
    paths = ["/v1/" + "/".join(parts) for length in range(1, 6) for parts in itertools.product(words, repeat=length)]
    assert len({foreign_template(path) for path in paths}) <= 4 + 4 + 2 * 4 * 4
