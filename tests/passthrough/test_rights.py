from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.errors import Forbidden, InvalidRequest, UnknownPath
from bridge.keys import ApiKey, LettaRight
from bridge.letta.gateway import HELPER_PREFIX, ForeignCall
from bridge.passthrough.rights import check_right, right_of

ID = "agent-00000000-0000-4000-8000-000000000001"
AGENT = f"/v1/agents/{ID}"
KEY = ApiKey("roo", "ab" * 32)
CLIENTS = {"limited": True, "unlimited": False}

# The paths of Letta's agents from 0.6.54 to 0.16.8, and which keys with the right "agents" may use them.
EVERYBODY = """
GET
GET archival-memory
GET archival-memory/search
GET context
GET core-memory
GET core-memory/blocks
GET core-memory/blocks/human
GET files
GET folders
GET messages
GET sources
GET tools
PATCH
PATCH core-memory/blocks/human
PATCH reset-messages
POST archival-memory
POST messages
POST messages/async
POST messages/cancel
POST messages/stream
POST summarize
"""
UNLIMITED = """
DELETE archival-memory/passage-1
GET groups
PATCH archival-memory/passage-1
PATCH messages/message-1
"""
NOBODY = """
DELETE
DELETE archival
GET export
PATCH archives/attach/archive-1
PATCH archives/detach/archive-1
PATCH core-memory/blocks/attach/block-1
PATCH core-memory/blocks/detach/block-1
PATCH files/close-all
PATCH files/file-1/close
PATCH files/file-1/open
PATCH folders/attach/source-1
PATCH folders/detach/source-1
PATCH identities/attach/identity-1
PATCH identities/detach/identity-1
PATCH sources/attach/source-1
PATCH sources/detach/source-1
PATCH tools/approval/send_message
PATCH tools/attach/tool-1
PATCH tools/detach/tool-1
POST export
POST generate
POST messages/capture
POST messages/preview-raw-payload
POST recompile
POST system-prompt/recompile
POST tools/send_message/run
"""
# What a client could try next, and paths that reach more than one agent.
ATTACKS = [
    ("PUT", AGENT),
    ("POST", AGENT),
    ("PUT", f"{AGENT}/messages"),
    ("DELETE", f"{AGENT}/messages"),
    ("GET", f"{AGENT}/messages/message-1"),
    ("GET", f"{AGENT}/export/"),
    ("GET", f"{AGENT}/secrets"),
    ("GET", f"{AGENT}/core-memory/blocks/a/b"),
    ("GET", f"{AGENT}/MESSAGES"),
    ("GET", f"{AGENT}/agents/{ID}"),
    ("GET", f"/v1/agents/{ID}x"),
    ("GET", "/v1/agents/agent-2"),
    ("GET", "/v1/agents/count"),
    ("POST", "/v1/agents/"),
    ("POST", "/v1/agents/import"),
    ("POST", "/v1/agents/messages/search"),
    ("GET", "/v1/tools/"),
    ("PUT", "/v1/tools/"),
    ("POST", "/v1/tools/add-base-tools"),
    ("GET", "/v1/blocks/block-1"),
    ("GET", f"/v1/blocks/{ID}/agents"),
    ("GET", "/v1/messages/message-1"),
    ("GET", "/v1/runs/"),
    ("GET", "/v1/runs/run-1/stream"),
    ("GET", "/v1/steps/step-1"),
    ("GET", "/v1/providers/"),
    ("GET", "/v1/sandbox-config/"),
    ("GET", "/v1/identities/"),
    ("GET", "/v1/users/"),
    ("POST", "/v1/groups/group-1/messages"),
    ("POST", "/v1/conversations/conv-1/messages"),
    ("POST", "/v1/messages/batches"),
    ("POST", f"/v1/voice-beta/{ID}/chat/completions"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/models/"),
    ("DELETE", "/v1/health/"),
    ("GET", "/v1/health/x"),
    ("GET", "/v1/models/embedding/x"),
    ("GET", "/v1/"),
]


def calls_of(table: str) -> list[tuple[str, str]]:
    rows = [line.partition(" ") for line in table.strip().splitlines()]
    return [(verb, f"{AGENT}/{part}".rstrip("/")) for verb, _, part in rows]


def check(verb: str, path: str, right: LettaRight = "agents", *, limited: bool = True, body: Any = None) -> None:
    sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    check_right(ForeignCall(verb, path, body=sent), right, limited=limited)


# --- which right a key has --------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["off", "agents", "all"])
def test_the_setting_decides_without_an_option_of_the_key(setting: LettaRight) -> None:
    assert right_of(None, setting) == right_of(KEY, setting) == setting


@pytest.mark.parametrize("setting", ["off", "agents", "all"])
@pytest.mark.parametrize("option", ["off", "agents", "all"])
def test_the_option_of_a_key_stands_above_the_setting(option: LettaRight, setting: LettaRight) -> None:
    assert right_of(ApiKey("roo", KEY.sha256, letta=option), setting) == option


@pytest.mark.parametrize(("given", "kept"), [("off", "off"), ("agents", "agents"), ("all", "agents")])
def test_a_key_limited_to_agents_has_at_most_their_paths(given: LettaRight, kept: LettaRight) -> None:
    assert right_of(ApiKey("roo", KEY.sha256, frozenset({"Ada"}), letta=given), "all") == kept
    assert right_of(ApiKey("roo", KEY.sha256, frozenset({"Ada"})), given) == kept


# --- what a right allows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "path"), [("GET", "/v1/health/"), *calls_of(EVERYBODY), *calls_of(NOBODY), *ATTACKS])
def test_without_a_right_no_path_exists(verb: str, path: str) -> None:
    with pytest.raises(UnknownPath) as caught:
        check(verb, path, "off")
    assert "letta" not in caught.value.message.lower()


@pytest.mark.parametrize(("verb", "path"), [*calls_of(EVERYBODY), *calls_of(NOBODY), *ATTACKS])
def test_with_all_rights_every_path_is_allowed(verb: str, path: str) -> None:
    check(verb, path, "all", limited=False, body=b"not JSON")


@pytest.mark.parametrize("limited", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize(("verb", "path"), calls_of(EVERYBODY))
def test_every_key_may_talk_to_its_agents(verb: str, path: str, limited: bool) -> None:
    check(verb, path, limited=limited, body=None if verb == "GET" else {})
    check(verb, f"{path}/", limited=limited)


@pytest.mark.parametrize(("verb", "path"), calls_of(UNLIMITED))
def test_ids_that_letta_does_not_compare_with_the_agent_are_not_for_limited_keys(verb: str, path: str) -> None:
    check(verb, path, limited=False)
    with pytest.raises(Forbidden):
        check(verb, path, limited=True)


@pytest.mark.parametrize("limited", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize(("verb", "path"), [*calls_of(NOBODY), *ATTACKS])
def test_what_reaches_more_than_an_agent_needs_all_rights(verb: str, path: str, limited: bool) -> None:
    with pytest.raises(Forbidden, match="letta=all") as caught:
        check(verb, path, limited=limited)
    assert (caught.value.status, caught.value.code) == (403, "not_allowed")
    assert path in caught.value.message


@pytest.mark.parametrize("path", ["/v1/agents/", "/v1/agents", "/v1/health/", "/v1/health", "/v1/models/embedding"])
@pytest.mark.parametrize("verb", ["GET", "HEAD"])
def test_paths_that_show_nothing_of_others_are_harmless(verb: str, path: str) -> None:
    check(verb, path)


def test_a_head_request_is_allowed_where_a_read_is() -> None:
    check("HEAD", f"{AGENT}/messages")
    with pytest.raises(Forbidden):
        check("HEAD", f"{AGENT}/export")


# --- bodies -----------------------------------------------------------------------------------------------

REACHING = [
    *("tool_ids", "block_ids", "source_ids", "folder_ids", "identity_ids", "message_ids", "tool_rules"),
    *("secrets", "project_id", "hidden"),
]
ENDPOINTS = ["llm_config", "embedding_config", "tool_exec_environment_variables", "what_a_later_letta_has"]


@pytest.mark.parametrize("limited", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("field", [*REACHING, *ENDPOINTS])
def test_an_agent_does_not_get_objects_of_others_by_a_change(field: str, limited: bool) -> None:
    with pytest.raises(Forbidden, match=field):
        check("PATCH", AGENT, limited=limited, body={"tags": ["origin:letta-code"], field: None})


def test_a_limited_key_may_change_only_what_decides_nothing() -> None:
    check("PATCH", AGENT, body={"tags": ["a"], "description": "b", "timezone": "UTC"})
    for field in ("name", "system", "model", "metadata"):
        with pytest.raises(Forbidden, match=field):
            check("PATCH", AGENT, body={field: "x"})
        check("PATCH", AGENT, limited=False, body={field: "x"})


def test_an_agent_cannot_get_the_name_of_the_bridges_own_agents() -> None:
    with pytest.raises(Forbidden, match=HELPER_PREFIX):
        check("PATCH", AGENT, limited=False, body={"name": f"{HELPER_PREFIX}1"})


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"1",
        b'"tool_ids"',
        b"{",
        b'{"tags": [], "tags": []}',
        b'{"metadata": {"a": 1, "a": 2}}',
        b"tags=a",
        b"\xff\xfe",
        b"\x1f\x8b\x08\x00",
        b"[" * 100_000,
        b"1" * 5000,
    ],
)
def test_a_body_that_is_not_one_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        check("PATCH", AGENT, limited=False, body=body)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_body_in_another_encoding_is_read_as_letta_reads_it(encoding: str) -> None:
    check("PATCH", AGENT, body='{"tags": []}'.encode(encoding))
    with pytest.raises(Forbidden, match="tool_ids"):
        check("PATCH", AGENT, body='{"tool_ids": []}'.encode(encoding))


@pytest.mark.parametrize("limited", CLIENTS.values(), ids=CLIENTS)
def test_letta_is_not_made_to_call_addresses_of_clients(limited: bool) -> None:
    check("POST", f"{AGENT}/messages/async", limited=limited, body={"messages": []})
    with pytest.raises(Forbidden, match="callback_url"):
        check("POST", f"{AGENT}/messages/async", limited=limited, body={"callback_url": "http://10.0.0.1/"})


def check_query(path: str, query: str) -> None:
    check_right(
        ForeignCall("GET" if path != "messages/async" else "POST", f"{AGENT}/{path}", query), "agents", limited=True
    )


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("context", "conversation_id=conv-1"),
        ("context", "a=b&conversation%5Fid="),
        ("messages/async", "callback_url=http://10.0.0.1/"),
    ],
)
def test_a_query_reaches_no_others(path: str, query: str) -> None:
    check_query("messages", "conversation_id=default&limit=5")
    check_query("context", "limit=5")
    with pytest.raises(Forbidden, match="query"):
        check_query(path, query)


def test_a_body_of_very_many_values_is_not_parsed() -> None:
    with pytest.raises(InvalidRequest, match="100,000"):
        check("PATCH", AGENT, body=b'{"tags":[' + b"[]," * 100_000 + b"[]]}")


def test_a_body_that_is_known_is_not_parsed_again() -> None:
    call = ForeignCall("POST", f"{AGENT}/messages/async", body=b"not JSON")
    check_right(call, "agents", {"messages": []}, limited=True)
    with pytest.raises(Forbidden, match="callback_url"):
        check_right(call, "agents", {"callback_url": "http://10.0.0.1/"}, limited=True)


@pytest.mark.parametrize("field", ["label", "metadata", "tags", "read_only", "project_id", "is_template"])
def test_of_a_block_only_the_value_can_be_changed(field: str) -> None:
    check("PATCH", f"{AGENT}/core-memory/blocks/human", body={"value": "x", "limit": 5000, "description": "y"})
    with pytest.raises(Forbidden, match=field):
        check("PATCH", f"{AGENT}/core-memory/blocks/human", limited=False, body={"value": "x", field: "y"})


def test_a_passage_cannot_be_moved_to_another_owner() -> None:
    path = f"{AGENT}/archival-memory/passage-1"
    check("PATCH", path, limited=False, body={"id": "passage-1", "text": "x"})
    with pytest.raises(Forbidden, match="source_id"):
        check("PATCH", path, limited=False, body={"id": "passage-1", "source_id": "source-1"})


def test_a_limited_key_cannot_end_runs_of_other_agents() -> None:
    path = f"{AGENT}/messages/cancel"
    for body in (None, b"", b"null", b"{}"):
        check("POST", path, body=body)
    with pytest.raises(Forbidden, match="run_ids"):
        check("POST", path, body={"run_ids": ["run-1"]})
    with pytest.raises(InvalidRequest):  # Letta 0.8 takes the ids as a bare array
        check("POST", path, body=["run-1"])
    check("POST", path, limited=False, body=["run-1"])
