from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
import requests

from bridge import errors
from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.letta import client, connection
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from bridge.letta.gateway import Agent, AgentSummary, Block, CallResult, Gateway, Results
from bridge.turn import Message
from tests.letta_http import HEALTH, OPENAPI, LettaHttp

ID = "agent-00000000-0000-4000-8000-000000000001"
AGENT = {"id": ID, "name": "Ada", "agent_type": "letta_v1_agent", "created_at": "2026-11-18T11:42:41Z"}
BLOCK = {"id": "block-1", "label": "notes", "value": "be kind", "metadata": {"owner": "me"}}
HTML = httpx.Response(200, text="<html>Please sign in</html>")


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "LETTA_API_KEY": "canary-secret"}


@pytest.fixture
def http_of() -> Iterator[Callable[[str], LettaHttp]]:
    """Makes the HTTP side of a server of some version."""
    with ExitStack() as stack:
        yield lambda version: stack.enter_context(LettaHttp(version))


@pytest.fixture
def http(http_of: Callable[[str], LettaHttp]) -> LettaHttp:
    return http_of("0.16.1")


@pytest.fixture
def server(settings: Settings, http: LettaHttp) -> LettaServer:
    return LettaServer(settings, Connection(settings, http.transport))


@pytest.fixture
def features_expire_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FEATURES_KEPT_SECONDS", 0.0)


# --- what the server can do -------------------------------------------------------------------------------


def test_no_call_is_made_before_it_is_needed(server: LettaServer, http: LettaHttp) -> None:
    assert http.calls == []


def test_the_features_are_read_from_the_version_and_the_openapi_document(server: LettaServer, http: LettaHttp) -> None:
    http.on(*OPENAPI, {"paths": {"/v1/agents/{agent_id}/recompile": {}}})
    assert server.features().recompile
    assert server.features().version == (0, 16, 1)
    assert http.calls == ["GET /v1/health/", "GET /openapi.json"]


def test_the_features_are_kept_for_a_while(server: LettaServer, http: LettaHttp) -> None:
    assert server.features() is server.features()
    assert len(http.calls) == 2


@pytest.mark.usefixtures("features_expire_at_once")
def test_after_a_while_only_the_version_is_read_again(server: LettaServer, http: LettaHttp) -> None:
    assert server.features() is server.features()
    assert http.calls == ["GET /v1/health/", "GET /openapi.json", "GET /v1/health/"]


@pytest.mark.usefixtures("features_expire_at_once")
def test_a_new_version_of_the_server_is_noticed(server: LettaServer, http: LettaHttp) -> None:
    server.features()
    http.on(*HEALTH, {"version": "0.16.8"})
    http.on(*OPENAPI, {"paths": {"/v1/agents/{agent_id}/recompile": {}}})
    assert (server.features().version, server.features().recompile) == ((0, 16, 8), True)


def test_features_that_could_not_be_read_are_read_again(server: LettaServer, http: LettaHttp) -> None:
    http.on(*OPENAPI, httpx.Response(503), {})
    with pytest.raises(errors.LettaUnavailable):
        server.features()
    assert server.features().version == (0, 16, 1)


# --- agents -----------------------------------------------------------------------------------------------


def rows(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": f"agent-{number}", "name": f"Ada {number}", "created_at": None} for number in numbers]


def paged(total: int, *, obeys_after: bool) -> Callable[[httpx.Request], httpx.Response]:
    """Answers with one page of a list, on a server that supports `after` or ignores it."""

    def answer(request: httpx.Request) -> httpx.Response:
        query = request.url.params
        after = query.get("after") if obeys_after else None
        first = int(after.removeprefix("agent-")) + 1 if after else 0
        return httpx.Response(200, json=rows(*range(first, min(total, first + int(query["limit"])))))

    return answer


@pytest.mark.parametrize("total", [0, 1, 2, 3, 4, 5, 20, 21, 39])
@pytest.mark.parametrize("obeys_after", [True, False])
def test_all_agents_are_listed_whatever_the_page(
    server: LettaServer, http: LettaHttp, monkeypatch: pytest.MonkeyPatch, total: int, obeys_after: bool
) -> None:
    monkeypatch.setattr(connection, "PAGE_SIZE", 2)
    http.on("GET", "/v1/agents/", paged(total, obeys_after=obeys_after))
    assert [agent.name for agent in server.agents()] == [f"Ada {number}" for number in range(total)]


def test_a_list_that_fits_a_page_is_one_call_without_tools_and_blocks(server: LettaServer, http: LettaHttp) -> None:
    http.on("GET", "/v1/agents/", [AGENT])
    assert server.agents() == [AgentSummary(ID, "Ada", 1795002161)]
    assert http.queries == [{"limit": ["200"], "include_relationships": ["tags"]}]


def test_an_agent_is_found_by_its_whole_name(server: LettaServer, http: LettaHttp) -> None:
    """Old servers return other agents, too."""
    http.on("GET", "/v1/agents/", [{"id": name, "name": name} for name in ("ada", "Ada", "Ada Lovelace", "")])
    assert [agent.name for agent in server.agents_named("Ada")] == ["Ada"]
    assert http.queries[0]["name"] == ["Ada"]


@pytest.mark.parametrize("name", ["a b", "a&limit=1", "\u00fc\U0001f600", "a/b?c#d", "%2e%2e"])
def test_a_name_may_have_any_characters(server: LettaServer, http: LettaHttp, name: str) -> None:
    http.on("GET", "/v1/agents/", [{**AGENT, "name": name}])
    assert [agent.id for agent in server.agents_named(name)] == [ID]
    assert http.queries[0]["name"] == [name]


def test_an_agent_comes_with_its_tools_and_blocks(server: LettaServer, http: LettaHttp) -> None:
    http.on("GET", f"/v1/agents/{ID}", {**AGENT, "memory": {"blocks": [BLOCK]}})
    assert server.agent(ID) == Agent(
        ID, "Ada", "letta_v1_agent", blocks=(Block("block-1", "notes", "be kind", {"owner": "me"}),)
    )
    assert http.queries == [{"include_relationships": ["tools", "memory"]}]


def test_an_agent_that_does_not_exist_is_reported_as_missing(server: LettaServer) -> None:
    with pytest.raises(errors.LettaNotFound):
        server.agent(ID)


@pytest.mark.parametrize(
    "agent_id", ["", "Ada", "\0", "a\nb", "..", f"{ID}/../{ID}", f"{ID}?a=b", "\ud800", "x" * 70_000]
)
def test_text_that_is_not_an_agent_id_is_reported_as_missing_without_a_call(
    server: LettaServer, http: LettaHttp, agent_id: str
) -> None:
    for ask in (server.agent, lambda name: server.make_helper(name, "You help.")):
        with pytest.raises(errors.LettaNotFound, match="There is no agent with the id"):
            ask(agent_id)
    assert http.calls == []


MADE = f"{ID[:-1]}2"
IMPORT = ("POST", "/v1/agents/import")


@pytest.mark.parametrize("answer", [{"agent_ids": [MADE]}, {**AGENT, "id": MADE}], ids=["a list", "an agent"])
def test_a_helper_with_a_history_is_imported(server: LettaServer, http: LettaHttp, answer: dict[str, Any]) -> None:
    http.on("GET", f"/v1/agents/{ID}", {**AGENT, "llm_config": {"model": "m"}, "embedding_config": {}})
    http.on(*IMPORT, answer)
    http.on("GET", f"/v1/agents/{MADE}", {**AGENT, "id": MADE})
    assert server.make_helper(ID, "You help.", [Message("user", "Hello"), Message("assistant", "Hi")]).id == MADE
    assert http.calls == [
        *(f"GET /v1/agents/{ID}", "GET /v1/health/", "GET /openapi.json"),
        *("POST /v1/agents/import", f"GET /v1/agents/{MADE}"),
    ]
    (sent,) = [request.content for request in http.requests if request.method == "POST"]
    assert sent.count(b"\r\n\r\nfalse\r\n") == 2  # no other name, and no change of tools that exist


@pytest.mark.parametrize("answer", [{}, {"agent_ids": []}, {"agent_ids": [7]}, {"id": None}, [], "done"])
def test_an_import_without_a_valid_answer_is_an_error(server: LettaServer, http: LettaHttp, answer: Any) -> None:
    http.on("GET", f"/v1/agents/{ID}", {**AGENT, "llm_config": {"model": "m"}, "embedding_config": {}})
    http.on(*IMPORT, answer)
    with pytest.raises(errors.LettaError):
        server.make_helper(ID, "You help.", [Message("user", "Hello"), Message("assistant", "Hi")])


def test_whole_agents_are_all_agents_in_one_call_with_hidden_ones(server: LettaServer, http: LettaHttp) -> None:
    http.on("GET", "/v1/agents/", [AGENT])
    assert [agent.id for agent in server.whole_agents()] == [ID]
    assert http.queries == [{"limit": ["1000000"], "include_relationships": ["tools"], "show_hidden_agents": ["true"]}]


@pytest.mark.parametrize(
    ("answer", "tokens"), [({"prompt_tokens": 900}, 900), ({"prompt_tokens": None}, None), ({}, None)]
)
def test_the_size_of_a_step_is_returned_where_it_is_known(
    server: LettaServer, http: LettaHttp, answer: dict[str, Any], tokens: int | None
) -> None:
    http.on("GET", "/v1/steps/step-1", answer)
    assert server.step_prompt_tokens("step-1") == tokens


# --- messages ---------------------------------------------------------------------------------------------

MESSAGES = f"/v1/agents/{ID}/messages"


@pytest.mark.parametrize(
    ("version", "including", "asked"),
    [
        ("0.16.8", "", [["20"]]),
        ("0.16.8", "message-2", [["20"]]),
        ("0.16.8", "message-1", [["20"], ["20", "default"]]),
        ("0.16.1", "message-1", [["20"]]),
    ],
)
def test_a_message_that_is_off_the_list_is_searched_in_the_default_conversation(
    settings: Settings,
    http_of: Callable[[str], LettaHttp],
    version: str,
    including: str,
    asked: list[list[str]],
) -> None:
    http = http_of(version)
    http.on("GET", MESSAGES, *([{"id": name, "message_type": "user_message"}] for name in ("message-2", "message-1")))
    server = LettaServer(settings, Connection(settings, http.transport))
    found = server.newest_messages(ID, 20, including=including)
    queries = [query for query, call in zip(http.queries, http.calls, strict=True) if call == f"GET {MESSAGES}"]
    assert [[one for values in query.values() for one in values] for query in queries] == asked
    assert [message.id for message in found] == ["message-1" if len(asked) == 2 else "message-2"]


# --- runs -------------------------------------------------------------------------------------------------

RUNS = [{"id": "run-1", "conversation_id": None}, {"id": "run-2", "conversation_id": "conv-1"}]
CANCEL = f"/v1/agents/{ID}/messages/cancel"


@pytest.mark.parametrize(
    ("version", "runs", "run_id", "bodies"),
    [
        ("0.16.8", RUNS, "", [{"run_ids": ["run-1"]}]),
        ("0.16.8", RUNS[1:], "", []),
        ("0.16.8", RUNS, "run-3", [{"run_ids": ["run-3"]}]),
        ("0.16.1", [{"id": "run-1"}], "", [{}]),
    ],
)
def test_runs_of_other_conversations_are_neither_listed_nor_cancelled(
    settings: Settings,
    http_of: Callable[[str], LettaHttp],
    version: str,
    runs: list[dict[str, Any]],
    run_id: str,
    bodies: list[Any],
) -> None:
    http = http_of(version)
    http.on("GET", "/v1/runs/active", runs)
    http.on("POST", CANCEL, {})
    server = LettaServer(settings, Connection(settings, http.transport))
    assert server.runs_under_way(ID) == [run["id"] for run in runs if not run.get("conversation_id")]
    server.cancel_runs(ID, run_id)
    assert [body for body, call in zip(http.bodies, http.calls, strict=True) if call == f"POST {CANCEL}"] == bodies


# --- blocks -----------------------------------------------------------------------------------------------

ATTACH = f"/v1/agents/{ID}/core-memory/blocks/attach/block-1"
BY_LABEL = f"/v1/agents/{ID}/core-memory/blocks/notes"
OTHER = f"/v1/agents/{ID}/core-memory/blocks/of/others"
RECOMPILE = f"/v1/agents/{ID}/recompile"


@pytest.fixture
def server_of(
    settings: Settings, http_of: Callable[[str], LettaHttp]
) -> Callable[[str], tuple[LettaServer, LettaHttp]]:
    def make(version: str) -> tuple[LettaServer, LettaHttp]:
        http = http_of(version)
        http.on(*OPENAPI, {"paths": {"/v1/agents/{agent_id}/recompile": {}}} if version == "0.16.8" else {})
        http.on("POST", "/v1/blocks/", BLOCK)
        http.on("DELETE", "/v1/blocks/block-1", None)
        http.on("GET", f"/v1/agents/{ID}/core-memory/blocks", [{**BLOCK, "label": "of/others"}])
        for method, path in (("PATCH", ATTACH), ("PATCH", BY_LABEL), ("PATCH", OTHER), ("POST", RECOMPILE)):
            http.on(method, path, {})
        return LettaServer(settings, Connection(settings, http.transport)), http

    return make


def changes(http: LettaHttp) -> list[str]:
    return [call for call in http.calls if not call.startswith("GET")]


@pytest.mark.parametrize(
    ("version", "added", "removed"),
    [
        ("0.6.54", [f"PATCH {BY_LABEL}"], [f"PATCH {BY_LABEL}", "DELETE /v1/blocks/block-1", f"PATCH {OTHER}"]),
        ("0.8.17", [], ["DELETE /v1/blocks/block-1"]),
        ("0.16.1", [], ["DELETE /v1/blocks/block-1"]),
        (
            "0.16.8",
            [f"PATCH {BY_LABEL}"],
            [f"PATCH {BY_LABEL}", "DELETE /v1/blocks/block-1", f"POST {RECOMPILE}"],
        ),
    ],
)
def test_a_block_is_shown_and_hidden_as_each_server_needs_it(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]], version: str, added: list[str], removed: list[str]
) -> None:
    server, http = server_of(version)
    block = server.add_block(ID, "notes", "be kind", "What to do", {"owner": "me"})
    assert changes(http) == ["POST /v1/blocks/", f"PATCH {ATTACH}", *added]
    http.requests.clear()
    server.remove_block(ID, block)
    assert changes(http) == removed


@pytest.mark.parametrize("version", ["0.6.54", "0.16.8"])
def test_a_block_gets_its_value_only_when_the_model_sees_it(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]], version: str
) -> None:
    """The bridge or the server may stop between two of these calls."""
    server, http = server_of(version)
    http.on("PATCH", BY_LABEL, httpx.Response(503))
    http.on("POST", RECOMPILE, httpx.Response(503))
    with pytest.raises(errors.LettaUnavailable):
        server.add_block(ID, "notes", "be kind", "What to do", {"owner": "me"})
    assert next(body for body in http.bodies if body)["value"] == ""


def test_a_removed_block_is_emptied_before_calls_that_may_fail(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]],
) -> None:
    server, http = server_of("0.16.8")
    http.on("POST", RECOMPILE, httpx.Response(503))
    with pytest.raises(errors.LettaUnavailable):
        server.remove_block(ID, Block("block-1", "notes", "be kind"))
    assert changes(http)[0] == f"PATCH {BY_LABEL}"
    assert next(body for body in http.bodies if body)["value"] == ""


def test_removing_a_block_that_is_gone_is_not_an_error(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]],
) -> None:
    """The connection breaks after the server has removed it, and the call is repeated."""
    server, http = server_of("0.16.1")
    http.on("DELETE", "/v1/blocks/block-1", httpx.ReadError("reset"), httpx.Response(404))
    server.remove_block(ID, Block("block-1", "notes", "be kind"))
    assert changes(http) == ["DELETE /v1/blocks/block-1"] * 2


def test_memory_is_compiled_again_by_an_empty_change_of_another_block(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]],
) -> None:
    server, http = server_of("0.7.29")
    server.remove_block(ID, Block("block-1", "notes", "x"))
    assert http.requests[-1].url.raw_path.endswith(b"/core-memory/blocks/of%2Fothers")
    assert http.bodies[-1] == {}


def test_a_new_block_is_read_only_and_long_enough(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]],
) -> None:
    server, http = server_of("0.16.1")
    server.add_block(ID, "notes", "be kind", "What to do", {"owner": "me"})
    assert next(body for body in http.bodies if body) == {
        "label": "notes",
        "value": "be kind",
        "limit": 20_000,
        "description": "What to do",
        "read_only": True,
        "metadata": {"owner": "me"},
    }


@pytest.mark.parametrize(("length", "limit"), [(0, 20_000), (19_999, 20_000), (20_000, 20_001), (10**6, 10**6 + 1)])
def test_the_limit_of_a_changed_block_fits_its_value(
    server_of: Callable[[str], tuple[LettaServer, LettaHttp]], length: int, limit: int
) -> None:
    server, http = server_of("0.16.1")
    server.set_block(ID, "notes", "x" * length)
    assert http.calls == [f"PATCH {BY_LABEL}"]
    assert http.bodies == [{"value": "x" * length, "limit": limit}]


# --- failures ---------------------------------------------------------------------------------------------

READS: list[Callable[[Gateway], object]] = [
    lambda server: server.features(),
    lambda server: server.agents(),
    lambda server: server.agents_named("Ada"),
    lambda server: server.agent(ID),
    lambda server: server.step_prompt_tokens("step-1"),
    lambda server: server.tools(),
]
PATHS = ["/v1/health/", "/v1/agents/", "/v1/agents/", f"/v1/agents/{ID}", "/v1/steps/step-1", "/v1/tools/"]

RESPONSES: list[tuple[httpx.Response, type[BridgeError]]] = [
    (httpx.Response(400, json={"detail": "no"}), errors.LettaRejected),
    (httpx.Response(401, json={"detail": "Unauthorized"}), errors.LettaRefusedCredentials),
    (httpx.Response(403), errors.LettaRefusedCredentials),
    (httpx.Response(409, json={"detail": {"code": "PENDING_APPROVAL"}}), errors.LettaConflict),
    (httpx.Response(422, json={"detail": []}), errors.LettaRejected),
    (httpx.Response(429), errors.ModelOverloaded),
    (httpx.Response(500, text="\xff" * 100_000), errors.LettaError),
    (httpx.Response(502, json={"error": {"type": "llm_error"}}), errors.ModelFailed),
    (httpx.Response(503), errors.LettaUnavailable),
    (httpx.Response(504), errors.LettaTimeout),
    (httpx.Response(307, headers={"Location": "http://169.254.169.254/"}), errors.LettaUnreachable),
    (HTML, errors.LettaError),
    (httpx.Response(200, text=""), errors.LettaError),
    (httpx.Response(200, text="null"), errors.LettaError),
    (httpx.Response(200, text='"text"'), errors.LettaError),
    (httpx.Response(200, text="[1, 2]"), errors.LettaError),
    (httpx.Response(200, text="[" * 100_000 + "]" * 100_000), errors.LettaError),
    (httpx.Response(200, content=b'{"a": "\xff"}'), errors.LettaError),
]


@pytest.mark.fault("Letta answers a message with a status")
def test_a_decision_that_is_answered_with_404_has_lost_its_run(server: LettaServer, http: LettaHttp) -> None:
    words = "StepMetrics not found"
    http.on("POST", f"/v1/agents/{ID}/messages", httpx.Response(404, json={"detail": words}))
    for decide in (
        lambda: server.deny_call(ID, "message-1", "no"),
        lambda: server.approve_call(ID, "message-1"),
        lambda: server.give_results(ID, Results((CallResult("call_1", "12 degrees", ok=True),))),
    ):
        with pytest.raises(errors.RunBrokenOff) as caught:
            decide()
        assert words in caught.value.__notes__[0]


@pytest.mark.fault("Letta answers a message with a status")
@pytest.mark.parametrize(("response", "kind"), RESPONSES)
@pytest.mark.parametrize(("read", "path"), [*zip(READS, PATHS, strict=True)])
def test_a_refusal_and_a_malformed_answer_become_named_errors(
    server: LettaServer,
    http: LettaHttp,
    read: Callable[[Gateway], object],
    path: str,
    response: httpx.Response,
    kind: type[BridgeError],
) -> None:
    http.on("GET", path, response)
    with pytest.raises(kind) as caught:
        read(server)
    assert type(caught.value) is kind


@pytest.mark.parametrize(("read", "path"), [*zip(READS, PATHS, strict=True)])
def test_a_server_without_the_routes_of_every_letta_is_no_letta(
    server: LettaServer, http: LettaHttp, read: Callable[[Gateway], object], path: str
) -> None:
    http.on("GET", path, httpx.Response(404, json={"detail": "Not Found"}))
    with pytest.raises(errors.LettaError) as caught:
        read(server)
    is_found_everywhere = path.endswith("s/") or path == "/v1/health/"
    assert type(caught.value) is (errors.LettaError if is_found_everywhere else errors.LettaNotFound)
    assert ("is not Letta" in caught.value.message) == is_found_everywhere


def test_a_read_is_tried_once_more_when_its_connection_breaks(server: LettaServer, http: LettaHttp) -> None:
    """Letta closes a kept connection after its own errors; the next call notices."""
    http.on("GET", f"/v1/agents/{ID}", requests.ConnectionError("closed"), AGENT)
    assert server.agent(ID).name == "Ada"
    assert len(http.calls) == 2


def test_a_read_is_not_tried_a_third_time(server: LettaServer, http: LettaHttp) -> None:
    http.on("GET", f"/v1/agents/{ID}", requests.ConnectionError("refused"))
    with pytest.raises(errors.LettaUnreachable):
        server.agent(ID)
    assert len(http.calls) == 2


@pytest.mark.fault("Letta answers a message with a status")
@pytest.mark.parametrize("status", [400, 404, 409, 429, 500, 502, 503, 504])
def test_a_read_that_got_an_answer_is_not_repeated(server: LettaServer, http: LettaHttp, status: int) -> None:
    http.on("GET", f"/v1/agents/{ID}", httpx.Response(status, headers={"Retry-After": "0"}))
    with pytest.raises(errors.LettaError):
        server.agent(ID)
    assert len(http.calls) == 1


CHANGES: list[tuple[Callable[[Gateway], object], tuple[str, str]]] = [
    (lambda server: server.set_block(ID, "notes", "x"), ("PATCH", BY_LABEL)),
    (lambda server: server.add_block(ID, "notes", "x", "", {}), ("POST", "/v1/blocks/")),
    (lambda server: server.remove_block(ID, Block("block-1", "notes", "x")), ("DELETE", "/v1/blocks/block-1")),
    (lambda server: server.delete_tool("tool-1"), ("DELETE", "/v1/tools/tool-1")),
    (lambda server: server.tag_tool("tool-1", []), ("PATCH", "/v1/tools/tool-1")),
]


@pytest.mark.parametrize(("write", "call"), CHANGES)
@pytest.mark.parametrize("fault", [httpx.ReadError("reset"), httpx.ReadTimeout("slow")])
def test_a_change_that_may_have_arrived_is_repeated_only_if_it_is_idempotent(
    server: LettaServer,
    http: LettaHttp,
    write: Callable[[Gateway], object],
    call: tuple[str, str],
    fault: Exception,
) -> None:
    http.on(*call, fault)
    with pytest.raises(errors.LettaError):
        write(server)
    again = isinstance(fault, httpx.ReadError) and call[0] == "DELETE"
    assert changes(http) == [" ".join(call)] * (2 if again else 1)


@pytest.mark.fault("Letta refuses connections, or has no address")
@pytest.mark.parametrize(("write", "call"), CHANGES)
def test_a_change_that_was_not_sent_is_tried_once_more(
    server: LettaServer, http: LettaHttp, write: Callable[[Gateway], object], call: tuple[str, str]
) -> None:
    http.on(*call, httpx.ConnectError("refused"))
    with pytest.raises(errors.LettaUnreachable):
        write(server)
    assert changes(http) == [" ".join(call)] * 2


def test_the_key_is_sent_to_letta_and_never_shown(server: LettaServer, http: LettaHttp) -> None:
    for answer in (httpx.Response(401, text="canary-words"), requests.ConnectionError("refused"), HTML):
        http.on("GET", f"/v1/agents/{ID}", answer)
        with pytest.raises(BridgeError) as caught:
            server.agent(ID)
        shown = [caught.value.message, str(caught.value), *getattr(caught.value, "__notes__", ())]
        assert "canary-secret" not in "".join(shown)
        assert "canary-words" not in caught.value.message
    assert {request.headers["Authorization"] for request in http.requests} == {"Bearer canary-secret"}


def test_the_path_of_the_address_is_kept(environment: dict[str, str], request: pytest.FixtureRequest) -> None:
    environment["LETTA_BASE_URL"] = "http://letta.test/behind/a/proxy/"
    http, server = request.getfixturevalue("http"), request.getfixturevalue("server")
    http.on("GET", f"/behind/a/proxy/v1/agents/{ID}", AGENT)
    assert server.agent(ID).name == "Ada"


def test_the_address_is_named_when_the_server_is_unreachable(server: LettaServer, http: LettaHttp) -> None:
    http.on("GET", f"/v1/agents/{ID}", requests.ConnectionError("refused"))
    with pytest.raises(errors.LettaUnreachable, match=r"http://letta\.test:8283 can't be reached"):
        server.agent(ID)
