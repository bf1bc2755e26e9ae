from __future__ import annotations

import pytest

from bridge.web.api_paths import is_api_path, is_letta_path


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v1/models", "/letta/v1", "/letta/v1/", "/letta/v1/agents/"])
def test_the_apis_of_bridge_and_letta_are_recognised(path: str) -> None:
    assert is_api_path(path)
    assert is_letta_path(path) == path.startswith("/letta")


@pytest.mark.parametrize(
    "path", ["", "/", "/healthz", "/admin/v1/", "/v1x", "/letta", "/letta/", "/lettav1", "/x/letta/v1"]
)
def test_other_paths_are_of_no_api(path: str) -> None:
    assert not is_api_path(path)
