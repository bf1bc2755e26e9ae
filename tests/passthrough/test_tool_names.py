"""A request of Letta's own API does not overwrite a stub by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge import errors
from bridge.letta.gateway import ForeignCall
from bridge.passthrough.tool_names import check_tool_name
from bridge.sync.ownership import OWNER
from tests.fakes import FakeGateway

SOURCE = "import os\n\ndef helper():\n    def inner(): ...\n\nasync def read(path: str) -> str:\n    return path\n"


@pytest.fixture
def letta() -> FakeGateway:
    made = FakeGateway()
    made.has_tool("read", tags=[OWNER])
    made.has_tool("write")
    return made


def call(verb: str, path: str, body: Any = None) -> ForeignCall:
    content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    return ForeignCall(verb, f"/v1/tools{path}", body=content)


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("PUT", "/", {"source_code": "...", "json_schema": {"name": "read"}}),
        ("POST", "/", {"source_code": "...", "json_schema": {"name": "read"}}),
        ("POST", "", {"name": "read"}),
        ("PUT", "/", {"source_code": SOURCE}),
        ("POST", "/", {"source_code": "export async function read(path: string) {}", "source_type": "typescript"}),
        ("PATCH", "/tool-1", {"json_schema": {"name": "read"}}),
        ("PATCH", "/tool-1", {"name": "read"}),
        ("PATCH", "/tool-1", {"source_code": SOURCE}),
        ("POST", "/mcp/servers/files/read", None),
        ("POST", "/composio/READ", None),
    ],
)
def test_the_name_of_a_stub_is_refused(letta: FakeGateway, verb: str, path: str, body: Any) -> None:
    with pytest.raises(errors.ToolNameTaken) as refused:
        check_tool_name(call(verb, path, body), letta)
    assert "'read'" in refused.value.message


@pytest.mark.parametrize(
    "source",
    [
        "def \\\nread(path): ...",
        "\\\ndef read(path): ...",
        "async \\\r\n def\tread(path): ...",
        "x = 1\rdef read(path): ...",
        "\ufeffdef read(path): ...",
        "\fdef read(path): ...",
        "def re\uff41d(path): ...",
        "".join(f"def a{number}(): ...\n" for number in range(200)) + "def read(path): ...",
        "def read(path): ...\n" + "".join(f"def a{number}(): ...\n" for number in range(200)),
    ],
)
def test_a_function_is_found_however_it_is_written(letta: FakeGateway, source: str) -> None:
    with pytest.raises(errors.ToolNameTaken):
        check_tool_name(call("PUT", "/", {"source_code": source}), letta)


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("PUT", "/", {"source_code": "def write(): ...", "json_schema": {"name": "write"}}),
        ("PUT", "/", {"source_code": "def new():\n    def read(): ...\n"}),
        ("POST", "/", b"no JSON"),
        ("POST", "/", []),
        ("PUT", "/", {"json_schema": [], "source_code": 5, "name": None}),
        ("GET", "/", {"name": "read"}),
        ("POST", "/run", {"source_code": SOURCE}),
        ("POST", "/generate-schema", {"code": SOURCE}),
        ("PUT", "/mcp/servers", {"server_name": "read"}),
        ("POST", "/mcp/servers/read/write", None),
        ("POST", "/mcp/servers/read/resync", None),
    ],
)
def test_other_requests_pass(letta: FakeGateway, verb: str, path: str, body: Any) -> None:
    check_tool_name(call(verb, path, body), letta)
