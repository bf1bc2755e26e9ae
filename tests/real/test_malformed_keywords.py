"""Tools in whose schemas keywords are malformed, or of an older draft."""

from __future__ import annotations

import json

import pytest

from tests.real.talk import WEATHER, tool
from tests.real.world import Agent, World

pytestmark = pytest.mark.real

OLDER = tool(
    "book",
    seats={"type": "INTEGER", "minimum": 0, "exclusiveMinimum": True, "maximum": "9", "x-order": 1},
    note={"type": "string", "nullable": True, "example": "by the window"},
)


@pytest.mark.one_type
def test_a_malformed_keyword_is_refused_and_the_agent_answers_the_next_message(world: World, agent: Agent) -> None:
    before = agent.fingerprint()
    for keyword, value in (("pattern", 5), ("not", 5), ("dependentRequired", [])):
        reply = agent.ask("Hello", tools=[WEATHER, tool("probe", a={"type": "string", keyword: value})])
        assert reply.status == 400
        for said in ("'probe'", f"tools[1].function.parameters.properties.a.{keyword}", "must be"):
            assert said in json.dumps(reply.error)
        assert agent.ask("bye", tools=[WEATHER]).text == "You said: bye"
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == before
    assert not world.model.refusals


@pytest.mark.one_type
def test_the_model_is_offered_what_keywords_of_an_older_draft_mean(world: World, agent: Agent) -> None:
    assert agent.ask("bye", tools=[OLDER]).text == "You said: bye"
    (shown,) = [
        one["function"]["parameters"]["properties"]
        for one in world.model.last_request().body["tools"]
        if one["function"]["name"].startswith("book")
    ]
    text = json.dumps(shown).lower()
    assert '"integer"' in text
    assert '"exclusiveminimum": 0' in text or "more than 0" in text
    assert '"maximum": 9' in text or "at most 9" in text
    assert "null" in json.dumps(shown["note"])
    assert "by the window" in text
    for left in ("x-order", "nullable", '"example"', '"maximum": "9"'):
        assert left not in text
    assert not world.model.refusals
