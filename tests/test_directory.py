from __future__ import annotations

import pytest

from bridge.directory import Directory, model_names
from bridge.errors import LettaUnreachable, UnknownModel
from bridge.letta.gateway import AgentSummary
from tests.fakes import FakeGateway

ID = "agent-00000000-0000-4000-8000-000000000001"
OTHER = "agent-00000000-0000-4000-8000-000000000002"


@pytest.fixture
def directory(letta: FakeGateway) -> Directory:
    return Directory(letta)


@pytest.mark.parametrize(
    ("agents", "names"),
    [
        ([(ID, "Ada")], ["Ada"]),
        ([(ID, "Ada"), (OTHER, "Bob")], ["Ada", "Bob"]),
        ([(ID, "Ada"), (OTHER, "Ada")], [ID, OTHER]),
        ([(ID, "Ada"), (OTHER, "ada")], ["Ada", "ada"]),
        ([(ID, OTHER), (OTHER, "Bob")], [ID, "Bob"]),
        ([(ID, "")], [ID]),
        ([(ID, " Ada")], [ID]),
        ([(ID, "Ada:aside"), (OTHER, "Ada")], [ID, "Ada"]),
        ([], []),
    ],
)
def test_a_model_has_its_agents_name_if_the_name_is_unambiguous(
    agents: list[tuple[str, str]], names: list[str]
) -> None:
    assert model_names([AgentSummary(agent_id, name) for agent_id, name in agents]) == names


def test_every_listed_model_leads_to_its_agent(letta: FakeGateway, directory: Directory) -> None:
    letta.has_agent("Bob", created=5)
    letta.has_agent("Bob", created=6)
    letta.has_agent("with blank")
    listed = directory.models()
    assert [created for _, created in listed] == [1_700_000_000, 5, 6, 1_700_000_000]
    assert {directory.find(name).id for name, _ in listed} == {agent.id for agent in letta.agents()}


def test_an_agent_is_found_by_its_name_and_by_its_id(letta: FakeGateway, directory: Directory) -> None:
    bob = letta.has_agent("Bob")
    assert directory.find("Bob").id == directory.find(bob.id).id == bob.id


def test_an_agent_made_a_second_ago_is_found(letta: FakeGateway, directory: Directory) -> None:
    with pytest.raises(UnknownModel):
        directory.find("Bob")
    bob = letta.has_agent("Bob")
    assert directory.find("Bob").id == bob.id


def test_a_known_name_costs_one_call(letta: FakeGateway, directory: Directory) -> None:
    directory.find("Ada")
    letta.calls.clear()
    directory.find("Ada")
    assert letta.calls == ["agent"]


def test_a_name_leads_to_the_agent_that_has_it_now(letta: FakeGateway, directory: Directory) -> None:
    ada = directory.find("Ada")
    letta.renames_agent(ada.id, "Eve")
    bob = letta.has_agent("Ada")
    assert directory.find("Ada").id == bob.id
    assert directory.find("Eve").id == ada.id


def test_a_deleted_agent_is_unknown(letta: FakeGateway, directory: Directory) -> None:
    ada = directory.find("Ada")
    letta.loses_agent(ada.id)
    with pytest.raises(UnknownModel):
        directory.find("Ada")
    again = letta.has_agent("Ada")
    assert directory.find("Ada").id == again.id


def test_a_known_name_that_gets_a_second_agent_still_leads_to_the_first(
    letta: FakeGateway, directory: Directory
) -> None:
    ada = directory.find("Ada")
    letta.has_agent("Ada")
    assert directory.find("Ada").id == ada.id


@pytest.mark.parametrize("model", ["Bob", "ada", "Ad", ID, "agent-1", "", "x" * 10_000, "\ufffd"])
def test_an_unknown_model_is_an_error(directory: Directory, model: str) -> None:
    with pytest.raises(UnknownModel, match="no agent with the name or id") as caught:
        directory.find(model)
    assert (caught.value.status, caught.value.param, caught.value.code) == (404, "model", "model_not_found")
    assert len(caught.value.message) < 250


def test_a_name_of_several_agents_is_refused_with_their_ids(letta: FakeGateway, directory: Directory) -> None:
    ids = [letta.has_agent("Bob").id for _ in range(7)]
    with pytest.raises(UnknownModel, match="7 agents have the name 'Bob'") as caught:
        directory.find("Bob")
    assert [agent_id in caught.value.message for agent_id in ids] == [True] * 5 + [False] * 2


@pytest.mark.parametrize("verb", ["agent", "agents_named"])
def test_a_server_that_is_down_does_not_make_a_model_unknown(
    letta: FakeGateway, directory: Directory, verb: str
) -> None:
    directory.find("Ada")
    letta.fails(LettaUnreachable("It is down."), at=verb)
    with pytest.raises(LettaUnreachable):
        directory.find("Ada" if verb == "agent" else "Bob")


def test_the_list_is_kept_for_a_second(letta: FakeGateway) -> None:
    now = [0.0]
    directory = Directory(letta, clock=lambda: now[0])
    before = directory.models()
    letta.has_agent("Bob")
    now[0] = 0.9
    assert directory.models() == before
    assert letta.calls.count("agents") == 1
    now[0] = 1.0
    assert [name for name, _ in directory.models()] == ["Ada", "Bob"]
    assert directory.model("Bob")[0] == "Bob"
