from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from flask.testing import FlaskClient

from app import create_app
from bridge import errors
from bridge.config import read_settings
from bridge.sse import decode_events
from bridge.turn import Reasoning, Stopped, Text, Used
from bridge.web.openapi.errors import CODES
from tests.described import DESCRIPTION, check_described, fits
from tests.fakes import FakeGateway
from tests.sse_checker import Json
from tests.test_complaints import WEATHER, held

BRIDGE = Path(errors.__file__).parent
ANSWERED_BY_LETTA = {"letta.pass_on", "letta.message_others"}
HELLO = {"model": "Ada", "messages": [{"role": "user", "content": "Hello"}]}


def client_of(environment: dict[str, str], letta: FakeGateway, **settings: str) -> FlaskClient:
    return create_app(read_settings({**environment, **settings}), letta).test_client()


def described(client: FlaskClient) -> Json:
    answer: Json = client.get("/openapi.json").get_json()
    return answer


# --- the whole --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letta_api", ["off", "agents"])
def test_the_description_is_valid_openapi(environment: dict[str, str], letta: FakeGateway, letta_api: str) -> None:
    description = described(client_of(environment, letta, BRIDGE_LETTA_API=letta_api))
    schemathesis.openapi.from_dict(description).validate()


@pytest.mark.parametrize("wrong", [{"paths": 3}, {"info": {}}, {"paths": {"/x": {"get": {"responses": []}}}}])
def test_the_validator_refuses_what_is_not_openapi(wrong: Json) -> None:
    with pytest.raises(Exception, match=r"not of type|required"):
        schemathesis.openapi.from_dict({**DESCRIPTION, **wrong}).validate()


@pytest.mark.parametrize("letta_api", ["off", "agents"])
def test_it_names_exactly_the_routes_of_the_api(
    environment: dict[str, str], letta: FakeGateway, letta_api: str
) -> None:
    client = client_of(environment, letta, BRIDGE_LETTA_API=letta_api)
    routes = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), verb.lower())
        for rule in client.application.url_map.iter_rules()
        if rule.rule.startswith(("/v1", "/letta/", "/healthz", "/readyz")) and rule.endpoint not in ANSWERED_BY_LETTA
        for verb in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert {(path, verb) for path, item in described(client)["paths"].items() for verb in item} == routes


@pytest.mark.parametrize("letta_api", ["off", "agents"])
def test_every_reference_leads_to_a_part_and_every_part_is_used(
    environment: dict[str, str], letta: FakeGateway, letta_api: str
) -> None:
    description = described(client_of(environment, letta, BRIDGE_LETTA_API=letta_api))
    components = description["components"]
    parts = {f"#/components/{kind}/{name}" for kind in ("schemas", "responses") for name in components[kind]}
    assert set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(description))) == parts


def test_it_says_where_the_service_is_and_whether_a_key_is_needed(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    plain = described(client_of(environment, letta))
    assert (plain["servers"], plain["security"]) == ([{"url": "/"}], [])
    keyed = {"BRIDGE_API_KEYS": "a-long-enough-key", "BRIDGE_URL_PREFIX": "/bridge"}
    below = described(client_of(environment, letta, **keyed))
    assert (below["servers"], below["security"]) == ([{"url": "/bridge"}], [{"key": []}])
    assert below["paths"]["/healthz"]["get"]["security"] == []


# --- examples ---------------------------------------------------------------------------------------------


def contents(part: Any = DESCRIPTION["paths"]) -> Iterator[tuple[str, Json]]:
    """Yields each content of a request or reply, with its type."""
    for value in part.values() if isinstance(part, dict) else ():
        if isinstance(value, dict):
            yield from value.get("content", {}).items()
            yield from contents(value)


EXAMPLES = [
    (content["schema"]["$ref"].rpartition("/")[2], title, example["value"])
    for kind, content in [*contents(), *contents(DESCRIPTION["components"]["responses"])]
    if kind == "application/json"
    for title, example in content.get("examples", {}).items()
]
STREAMS = [content for kind, content in contents() if kind == "text/event-stream"]


@pytest.mark.parametrize(("schema", "title", "value"), EXAMPLES)
def test_every_example_fits_its_schema(schema: str, title: str, value: Any) -> None:
    check_described(schema, value)


@pytest.mark.parametrize("content", STREAMS)
def test_every_event_of_an_example_fits_its_schema(content: Json) -> None:
    events = [data for _, data in decode_events([content["example"].encode()]) if data != "[DONE]"]
    assert events
    for event in events:
        check_described(content["x-event-schema"]["$ref"].rpartition("/")[2], json.loads(event))


def test_every_operation_has_an_example_of_its_reply() -> None:
    """Apart from replies that Letta writes."""
    without = [
        f"{verb} {path}"
        for path, item in DESCRIPTION["paths"].items()
        for verb, operation in item.items()
        if "examples" not in operation["responses"]["200"]["content"]["application/json"]
        and operation["responses"]["200"]["description"] != "As Letta answers."
    ]
    assert without == []


def questions() -> Iterator[tuple[str, str, Json]]:
    """Yields path, title and body of the example requests that an agent can answer which has heard nothing yet."""
    for path, item in DESCRIPTION["paths"].items():
        content = item.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
        for title, example in content.get("examples", {}).items():
            if title != "result" and "conversation_id" not in path:
                yield path, title, example["value"]


@pytest.mark.parametrize(("path", "title", "sent"), list(questions()))
def test_the_agent_answers_the_questions_of_the_examples(
    environment: dict[str, str], letta: FakeGateway, path: str, title: str, sent: Json
) -> None:
    agent = letta.has_agent("my-agent")
    letta.will_say("Buy milk.")
    client = client_of(environment, letta, BRIDGE_LETTA_API="all")
    answer = client.post(path.replace("{agent_id}", agent.id), json=sent)
    assert answer.status_code == 200
    assert "Buy milk." in answer.text


# --- replies ----------------------------------------------------------------------------------------------
# Those of both OpenAI APIs are checked in every test that reads one: see `check_described`.


def test_the_replies_about_models_and_health_are_as_described(client: FlaskClient, letta: FakeGateway) -> None:
    check_described("Models", client.get("/v1/models").json)
    check_described("Model", client.get("/v1/models/Ada").json)
    check_described("Health", client.get("/healthz").json)
    check_described("Readiness", client.get("/readyz").json)


def test_a_service_that_is_not_ready_says_so_as_described(client: FlaskClient, letta: FakeGateway) -> None:
    letta.fails(errors.LettaUnreachable("It is down."), at="check_server")
    answer = client.get("/readyz")
    assert answer.status_code == 503
    check_described("Readiness", answer.json)


def test_the_replies_about_kept_responses_are_as_described(client: FlaskClient, letta: FakeGateway) -> None:
    letta.will(Reasoning("hm"), Text("Hi"), Used(100, 10), Stopped("end_turn"))
    made = client.post("/v1/responses", json={"model": "Ada", "input": "Hello"}).get_json()
    check_described("Response", client.get(f"/v1/responses/{made['id']}").json)
    check_described("InputItems", client.get(f"/v1/responses/{made['id']}/input_items").json)
    check_described("DeletedResponse", client.delete(f"/v1/responses/{made['id']}").json)


@pytest.mark.parametrize("streams", [False, True])
def test_the_replies_of_lettas_own_api_are_as_described(
    environment: dict[str, str], letta: FakeGateway, streams: bool
) -> None:
    client = client_of(environment, letta, BRIDGE_LETTA_API="all")
    agent = letta.agents_named("Ada")[0]
    path = f"/letta/v1/agents/{agent.id}/messages{'/stream' if streams else ''}"
    letta.will(Reasoning("hm"), *held(("get_weather", '{"city": "Oslo"}')))
    tools = [{**WEATHER["function"]}]
    answer = client.post(path, json={"messages": HELLO["messages"], "client_tools": tools})
    assert answer.status_code == 200
    if not streams:
        assert fits("LettaReply", answer.json)
        return
    events = [json.loads(data) for _, data in decode_events([answer.data]) if data != "[DONE]"]
    assert {"approval_request_message", "usage_statistics"} <= {event["message_type"] for event in events}
    assert [event for event in events if not fits("LettaEvent", event)] == []


def test_the_errors_of_lettas_own_api_are_as_described(environment: dict[str, str], letta: FakeGateway) -> None:
    client = client_of(environment, letta, BRIDGE_LETTA_API="all")
    body = {"messages": HELLO["messages"], "client_tools": [WEATHER["function"]]}
    answer = client.post("/letta/v1/agents/agent-00000000-0000-0000-0000-000000000000/messages", json=body)
    assert answer.status_code == 404
    check_described("LettaError", answer.json)


def test_a_conversation_of_lettas_own_api_is_as_described(environment: dict[str, str], letta: FakeGateway) -> None:
    client = client_of(environment, letta, BRIDGE_LETTA_API="all")
    agent = letta.agents_named("Ada")[0]
    made = client.post(f"/letta/v1/conversations/?agent_id={agent.id}", json={})
    assert made.status_code == 200
    assert fits("LettaConversation", made.json)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ChatCompletion", {}),
        ("Error", {"error": {"message": "No."}}),
        ("Model", {"id": 3, "object": "model", "created": 1, "owned_by": "letta"}),
        ("Health", {"status": "ok", "more": 1}),
    ],
)
def test_a_reply_that_is_not_as_described_is_noticed(name: str, wrong: Json) -> None:
    with pytest.raises(AssertionError, match=r"as /openapi\.json describes it"):
        check_described(name, wrong)


# --- errors -----------------------------------------------------------------------------------------------


def classes(of: type[errors.BridgeError] = errors.BridgeError) -> Iterator[type[errors.BridgeError]]:
    for one in of.__subclasses__():
        yield one
        yield from classes(one)


def test_every_kind_of_error_is_described_with_its_status() -> None:
    """Apart from the one for a client that has left, which nobody gets."""
    kinds = {(one.status, one.code) for one in classes() if one.code and one is not errors.ClientGone}
    assert {pair for pair in kinds if pair[1] not in CODES.get(pair[0], {})} == set()


def test_every_code_in_the_source_is_described() -> None:
    """Apart from that of the admin page."""
    sources = [file.read_text() for file in BRIDGE.rglob("*.py")]
    named = {code for text in sources for code in re.findall(r"\bcode=\"(\w+)\"", text)} - {"wrong_password"}
    assert named <= {code for codes in CODES.values() for code in codes}


def test_every_described_code_is_in_the_source() -> None:
    text = "\n".join(file.read_text() for file in BRIDGE.rglob("*.py") if "openapi" not in file.parts)
    assert [code for codes in CODES.values() for code in codes if f'"{code}"' not in text] == []


@pytest.mark.parametrize("field", ["temperature", "tools", "response_format", "model"])
def test_each_field_of_a_request_says_what_becomes_of_it(field: str) -> None:
    words = DESCRIPTION["components"]["schemas"]["ChatRequest"]["properties"][field]["description"]
    assert re.match(r"(Enforced|Checked|Accepted): ", words)
