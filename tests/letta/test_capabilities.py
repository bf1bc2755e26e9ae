from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge.letta.capabilities import (
    V1_AGENT,
    AgentModel,
    Loop,
    ServerFeatures,
    Version,
    agent_loop,
    features_for_agent,
    parse_version,
    read_features,
    schema_form,
    streams_tokens_faithfully,
)
from bridge.turn import SchemaForm

# The parts of each server's OpenAPI document that its features are read from: fields of LettaRequest, fields of
# ApprovalCreate (empty: the schema is missing), whether messages can be changed, parameters of the list of tools,
# further paths.
Document = tuple[list[str], list[str], str, list[str], list[str]]
RECOMPILE = "/v1/agents/{agent_id}/recompile"
LEGACY = ["approve", "approval_request_id", "reason", "type"]

DOCUMENTS: dict[str, Document] = {
    "0.6.54": (["messages"], [], "yes", ["name", "limit"], []),
    "0.7.29": (["messages"], [], "yes", ["name", "limit"], []),
    "0.8.17": (["messages", "max_steps"], [], "yes", ["name", "limit"], []),
    "0.11.7": (["messages", "max_steps"], LEGACY, "yes", ["name", "names", "limit"], []),
    "0.12.1": (["messages", "max_steps"], LEGACY, "yes", ["name", "names", "limit"], []),
    "0.13.0": (["messages", "max_steps"], [*LEGACY, "approvals"], "yes", ["names", "limit"], []),
    "0.14.0": (["messages", "input"], [*LEGACY, "approvals", "group_id"], "yes", ["names", "limit"], []),
    "0.15.1": (["messages", "input"], [*LEGACY, "approvals", "group_id"], "yes", ["names", "limit"], []),
    "0.16.1": (["messages", "input"], [*LEGACY, "approvals", "group_id"], "yes", ["names", "limit"], []),
    "0.16.2": (["input", "client_tools"], [*LEGACY, "approvals", "group_id"], "yes", ["names"], []),
    "0.16.4": (["input", "client_tools"], [*LEGACY, "approvals", "group_id"], "yes", ["names"], []),
    "0.16.8": (["input", "client_tools"], [*LEGACY, "approvals", "group_id"], "deprecated", ["names"], [RECOMPILE]),
}

#          client_tools, approvals, tool_returns, message_rewrite, recompile, tools_by_names
FEATURES = {
    "0.6.54": (False, False, False, True, False, False),
    "0.7.29": (False, False, False, True, False, False),
    "0.8.17": (False, False, False, True, False, False),
    "0.11.7": (False, True, False, True, False, True),
    "0.12.1": (False, True, False, True, False, True),
    "0.13.0": (False, True, False, True, False, True),
    "0.14.0": (False, True, True, True, False, True),
    "0.15.1": (False, True, True, True, False, True),
    "0.16.1": (False, True, True, True, False, True),
    "0.16.2": (True, True, True, True, False, True),
    "0.16.4": (True, True, True, True, False, True),
    "0.16.8": (True, True, True, False, True, True),
}


def openapi(version: str) -> dict[str, Any]:
    fields, approval_fields, rewrite, tool_parameters, paths = DOCUMENTS[version]
    patch = {"deprecated": True} if rewrite == "deprecated" else {"operationId": "modify_message"}
    schemas: dict[str, Any] = {"LettaRequest": {"properties": {name: {} for name in fields}}}
    if approval_fields:
        schemas["ApprovalCreate"] = {"properties": {name: {} for name in approval_fields}}
    return {
        "components": {"schemas": schemas},
        "paths": {
            "/v1/agents/{agent_id}/messages/{message_id}": {"patch": patch},
            "/v1/tools/": {"get": {"parameters": [{"name": name, "in": "query"} for name in tool_parameters]}},
            **{path: {"post": {}} for path in paths},
        },
    }


@pytest.mark.parametrize("version", DOCUMENTS)
def test_the_features_of_a_server_are_read_from_its_openapi_document(version: str) -> None:
    read = read_features(version, openapi(version))
    assert read == ServerFeatures(parse_version(version), *FEATURES[version])


def test_the_form_of_agent_files_follows_from_the_answer_to_an_import() -> None:
    answer: dict[str, Any] = {"ImportedAgentsResponse": {"properties": {"agent_ids": {}}}}
    assert read_features("0.11.7", {"components": {"schemas": answer}}).lists_in_agent_files
    assert not read_features("0.8.17", {"components": {"schemas": {}}}).lists_in_agent_files


@pytest.mark.parametrize("openapi", [{}, {"components": None, "paths": []}, {"paths": {"/v1/tools/": {"get": None}}}])
def test_an_empty_or_malformed_document_gives_no_features(openapi: dict[str, Any]) -> None:
    read = read_features("0.16.8", openapi)
    assert read == ServerFeatures((0, 16, 8), False, False, False, False, False, False)


VERSIONS: list[tuple[str, Version]] = [
    ("0.16.1", (0, 16, 1)),
    ("v0.8.17", (0, 8, 17)),
    ("0.12", (0, 12, 0)),
    ("0.16.1.dev3", (0, 16, 1)),
    ("1.0.0", (1, 0, 0)),
    ("", (0, 16, 8)),
    ("unknown", (0, 16, 8)),
]


@pytest.mark.parametrize(("text", "version"), VERSIONS)
def test_a_version_is_read_and_a_hidden_one_counts_as_the_newest(text: str, version: Version) -> None:
    assert parse_version(text) == version


def test_versions_are_compared_as_numbers() -> None:
    assert parse_version("0.8.17") < parse_version("0.11.7") < parse_version("0.16.1")


def test_a_version_is_written_as_it_was_read() -> None:
    assert [read_features(version, {}).version_text for version in DOCUMENTS] == list(DOCUMENTS)


@pytest.mark.parametrize("version", DOCUMENTS)
def test_some_abilities_follow_from_the_version(version: str) -> None:
    known = read_features(version, openapi(version))
    old = version in ("0.6.54", "0.7.29")
    assert known.attached_block_is_late == old
    assert known.continues_without_message == (old or version == "0.8.17")
    assert known.block_change_needs_recompile == (version == "0.16.8")
    assert known.lists_active_runs == (not old and version != "0.8.17")
    assert known.ends_runs_with_connection == (version == "0.8.17")
    assert known.has_v1_agents == known.lists_runs_of_one_agent
    assert known.has_v1_agents == (known.lists_active_runs and version != "0.11.7")
    assert known.packs_user_messages == old
    assert known.helper_type == (V1_AGENT if known.has_v1_agents else "memgpt_agent")
    assert known.imports_held_calls == (version in ("0.16.4", "0.16.8"))
    assert known.cancels_runs == (version in ("0.14.0", "0.15.1", "0.16.1", "0.16.2", "0.16.4", "0.16.8"))


LOOPS: list[tuple[str, str, Loop]] = [
    ("0.6.54", "memgpt_agent", "old"),
    ("0.7.29", "memgpt_agent", "old"),
    ("0.7.29", "sleeptime_agent", "old"),
    ("0.8.17", "memgpt_agent", "v2"),
    ("0.8.17", "memgpt_v2_agent", "v2"),
    ("0.11.7", "memgpt_v2_agent", "v2"),
    ("0.12.1", "memgpt_v2_agent", "v2"),
    ("0.12.1", "letta_v1_agent", "v3"),
    ("0.12.1", "sleeptime_agent", "v2"),
    ("0.13.0", "sleeptime_agent", "v2"),
    ("0.14.0", "sleeptime_agent", "v3"),
    ("0.16.8", "memgpt_v2_agent", "v2"),
    ("0.16.8", "react_agent", "v2"),
    ("0.16.8", "", "v2"),
    ("0.16.8", "letta_v1_agent", "v3"),
]


@pytest.mark.parametrize(("version", "agent_type", "loop"), LOOPS)
def test_the_loop_of_an_agent_depends_on_its_type_and_on_the_version(version: str, agent_type: str, loop: Loop) -> None:
    assert agent_loop(parse_version(version), agent_type) == loop


@pytest.mark.parametrize("version", ["0.11.7", "0.12.1", "0.13.0", "0.14.0"])
@pytest.mark.parametrize("sleeptime", [True, False])
def test_calls_are_not_held_for_an_agent_with_sleeptime_before_0_14(version: str, sleeptime: bool) -> None:
    features = replace(read_features(version, {}), approvals=True)
    assert features_for_agent(features, sleeptime=sleeptime).approvals == (version == "0.14.0" or not sleeptime)


def test_only_the_v3_loop_streams_by_token_without_damage() -> None:
    loops: list[Loop] = ["old", "v2", "v3"]
    assert [loop for loop in loops if streams_tokens_faithfully(loop)] == ["v3"]


# --- the form of a tool's schema ----------------------------------------------------------------------

AS_SENT = SchemaForm()
LETTA_CONVERTS = SchemaForm(letta_converts=True)
STRICT = SchemaForm(as_sent=False)
PYTHON_NAMES = SchemaForm(as_sent=False, nullable_types=False, python_names=True)


@pytest.mark.parametrize(
    ("version", "loop", "model", "form"),
    [
        ("0.6.54", "old", "gpt-4o-mini", PYTHON_NAMES),
        ("0.7.29", "old", "gpt-4o-mini", PYTHON_NAMES),
        ("0.8.17", "v2", "gpt-4o-mini", STRICT),
        ("0.11.7", "v2", "gpt-4o-mini", STRICT),
        ("0.12.1", "v3", "gpt-4o-mini", STRICT),
        ("0.13.0", "v2", "gpt-4o-mini", LETTA_CONVERTS),
        ("0.16.1", "v3", "gpt-4o-mini", LETTA_CONVERTS),
        ("0.16.2", "v3", "gpt-4o-mini", LETTA_CONVERTS),
        ("0.16.1", "v3", "gpt-5-mini", STRICT),
        ("0.16.1", "v2", "gpt-5-mini", LETTA_CONVERTS),
        ("0.16.4", "v3", "gpt-5-mini", AS_SENT),
        ("0.16.8", "v2", "gpt-4o-mini", AS_SENT),
    ],
)
def test_the_form_of_a_schema_depends_on_server_loop_and_model(
    version: str, loop: Loop, model: str, form: SchemaForm
) -> None:
    features = read_features(version, openapi(version))
    assert schema_form(features, loop, AgentModel(model, "openai"), runs_stubs=False) == form
    assert schema_form(features, loop, AgentModel(model, "openai"), runs_stubs=True) == PYTHON_NAMES


def test_a_schema_for_google_has_no_lists_of_types() -> None:
    features = read_features("0.16.8", openapi("0.16.8"))
    form = schema_form(features, "v3", AgentModel("gemini", "google_ai"), runs_stubs=False)
    assert form == SchemaForm(as_sent=False, nullable_types=False)
