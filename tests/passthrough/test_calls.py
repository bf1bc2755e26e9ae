from __future__ import annotations

import pytest

from bridge.errors import InvalidRequest, UnknownPath
from bridge.letta.gateway import ForeignCall
from bridge.passthrough.calls import agent_of, changes_agent, part_of_agent, read_call

ID = "agent-00000000-0000-4000-8000-000000000001"
AGENT = f"/v1/agents/{ID}"


def read(path: str = AGENT, verb: str = "GET", query: str = "", **headers: str) -> ForeignCall:
    return read_call(verb, path, query, headers, None)


def test_a_request_is_passed_on_with_its_verb_path_query_and_body() -> None:
    call = read_call("POST", f"{AGENT}/messages", "a=1&b=%20x", {"content-type": "application/json"}, b"{}")
    headers = {"Content-Type": "application/json"}
    assert call == ForeignCall("POST", f"{AGENT}/messages", "a=1&b=%20x", headers, b"{}")


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/v1/agents/", "/v1/agents/"),
        (f"{AGENT}/core-memory/blocks/my label", f"{AGENT}/core-memory/blocks/my%20label"),
        (f"{AGENT}/core-memory/blocks/caf\u00e9", f"{AGENT}/core-memory/blocks/caf%C3%A9"),
        ("/v1/tools/a;b:c@d&e=f~g", "/v1/tools/a%3Bb%3Ac%40d%26e%3Df~g"),
        ("/v1/tools/...", "/v1/tools/..."),
    ],
)
def test_a_path_is_sent_percent_encoded(path: str, sent: str) -> None:
    assert read(path).path == sent


@pytest.mark.parametrize(
    "path",
    [
        "/v1/agents/../tools/",
        "/v1/..",
        f"{AGENT}/messages/..",
        f"{AGENT}/./messages",
        "/v1//tools",
        "/v1/agents//",
        "/v1//",
        f"{AGENT}/%2e%2e/tools",
        f"{AGENT}%2Ftools",
        f"{AGENT}\\tools",
        f"{AGENT}?a=b",
        f"{AGENT}#tools",
        f"{AGENT}\x00",
        f"{AGENT}\r\nHost: elsewhere",
        f"{AGENT}\x7f",
        f"{AGENT}\x85",
        f"{AGENT}/\ufffd",
        f"{AGENT}/{chr(0xDCFF)}",
    ],
)
def test_a_path_that_letta_could_read_otherwise_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest, match="The path is not passed on"):
        read(path)


@pytest.mark.parametrize(
    "path", ["", "/", "/v1", "/openapi.json", "/V1/agents/", "v1/agents/", "//v1/agents/", "/v2/x"]
)
def test_only_the_versioned_api_of_letta_is_passed_on(path: str) -> None:
    with pytest.raises(UnknownPath):
        read(path)


@pytest.mark.parametrize("verb", ["OPTIONS", "TRACE", "CONNECT", "get", "", "GET /v1/tools/ HTTP/1.1\r\n"])
def test_other_verbs_are_refused(verb: str) -> None:
    with pytest.raises(InvalidRequest, match="is not passed on"):
        read(verb=verb)


@pytest.mark.parametrize("query", ["a b", "a#b", "a\r\nb", "\u00e9", "\x00"])
def test_a_query_that_is_not_encoded_is_refused(query: str) -> None:
    with pytest.raises(InvalidRequest, match="The query is not passed on"):
        read(query=query)


@pytest.mark.parametrize("query", ["", "limit=5&order=desc", "include=agent.tools&include=agent.tags", "a=[1]&b={}|~"])
def test_a_query_is_passed_on_as_it_came(query: str) -> None:
    assert read(query=query).query == query


def test_only_headers_on_which_lettas_answer_depends_are_passed_on() -> None:
    passed = {
        "Accept": "text/event-stream",
        "Content-Type": "multipart/form-data; boundary=x",
        "User-Agent": "letta-client/1.12.1",
        "X-Stainless-Package-Version": "1.12.1",
    }
    own = [
        *("Authorization", "X-BARE-PASSWORD", "Cookie", "user_id", "User-Id", "X-Project-Id", "X-Organization-Id"),
        *("Host", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Letta-Source", "Origin", "X-Request-Id"),
        *("Connection", "Transfer-Encoding", "TE", "Upgrade", "Expect", "Content-Length", "Content-Encoding"),
        *("Accept-Encoding", "Range", "traceparent", "X-Experimental-Message-Async"),
    ]
    assert read(**passed, **dict.fromkeys(own, "x")).headers == passed


@pytest.mark.parametrize("text", ["a\r\nuser_id: user-1", "a\x00", "caf\u00e9", "x" * 1001, "", "   "])
def test_a_header_that_cannot_be_passed_on_as_it_is_is_left_out(text: str) -> None:
    assert read(**{"Content-Type": text, "accept": " */* "}).headers == {"Accept": "*/*"}


# --- the agent of a path ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (AGENT, ""),
        (f"{AGENT}/", ""),
        (f"{AGENT}/messages", "messages"),
        (f"{AGENT}/messages/stream/", "messages/stream"),
        (f"{AGENT}/core-memory/blocks/agents", "core-memory/blocks/agents"),
    ],
)
def test_a_path_below_an_agent_names_the_agent_and_its_part(path: str, part: str) -> None:
    assert (agent_of(path), part_of_agent(path)) == (ID, part)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/agents/",
        "/v1/agents/import",
        "/v1/agents/count",
        "/v1/agents/messages/search",
        f"/v1/agents/{ID.upper()}",
        f"/v1/agents/{ID}x",
        f"/v1/agents/x/{ID}",
        f"/v1/groups/{ID}",
        f"/v1/x/v1/agents/{ID}",
        f"/v1/agents/{ID}\n",
        f"agents/{ID}",
        "",
    ],
)
def test_other_paths_name_no_agent(path: str) -> None:
    assert (agent_of(path), part_of_agent(path)) == ("", "")


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("PATCH", AGENT),
        ("DELETE", f"{AGENT}/"),
        ("POST", f"{AGENT}/messages"),
        ("POST", f"{AGENT}/messages/stream"),
        ("POST", f"{AGENT}/messages/async"),
        ("PATCH", f"{AGENT}/tools/attach/tool-1"),
        ("PATCH", f"{AGENT}/core-memory/blocks/human"),
        ("PUT", f"{AGENT}/what-a-later-letta-has"),
    ],
)
def test_changes_of_an_agent_and_messages_wait_for_it(verb: str, path: str) -> None:
    assert changes_agent(verb, path)


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", AGENT),
        ("HEAD", f"{AGENT}/messages"),
        ("POST", f"{AGENT}/messages/cancel"),
        ("POST", f"{AGENT}/messages/preview-raw-payload"),
        ("POST", "/v1/agents/messages/search"),
        ("POST", "/v1/agents/"),
        ("DELETE", "/v1/tools/tool-1"),
    ],
)
def test_reads_and_requests_about_no_agent_do_not_wait(verb: str, path: str) -> None:
    assert not changes_agent(verb, path)
