from __future__ import annotations

import pytest

from bridge import directory as module
from bridge.directory import ALL, Directory, Visible, model_names, name_with_digits
from bridge.errors import LettaUnreachable, UnknownModel
from bridge.letta.gateway import AgentSummary
from tests.fakes import FakeGateway

ID = "agent-00000000-0000-4000-8000-000000000001"
OTHER = "agent-00000000-0000-4000-8000-000000000002"

FAR = "agent-1234abcd-0000-4000-8000-000000000001"


@pytest.fixture
def directory(letta: FakeGateway) -> Directory:
    return Directory(letta)


@pytest.mark.parametrize(
    ("agents", "names"),
    [
        ([(ID, "Ada")], ["Ada"]),
        ([(ID, "Ada"), (OTHER, "Bob")], ["Ada", "Bob"]),
        ([(ID, "Ada"), (OTHER, "Ada")], [ID, OTHER]),
        ([(ID, "Ada"), (FAR, "Ada")], ["Ada@00000000", "Ada@1234abcd"]),
        ([(ID, "Ada"), (OTHER, "Ada"), (FAR, "Ada")], [ID, OTHER, "Ada@1234abcd"]),
        ([(ID, "Ada"), (FAR, "Ada"), (OTHER, "Ada@1234abcd")], ["Ada@00000000", FAR, "Ada@1234abcd"]),
        ([(FAR, "Ada"), (OTHER, "Ada@1234abcd")], ["Ada", "Ada@1234abcd"]),
        ([(ID, " Ada"), (FAR, " Ada")], [ID, FAR]),
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


# --- several agents of one name ---------------------------------------------------------------------------


def test_agents_of_one_name_are_told_apart_and_found(letta: FakeGateway, directory: Directory) -> None:
    twins = [letta.has_agent("Bob") for _ in range(2)]
    names = [name_with_digits(twin) for twin in twins]
    assert [name for name, _ in directory.models()] == ["Ada", *names]
    for twin, name in zip(twins, names, strict=True):
        assert directory.find(name).id == directory.find_id(name) == directory.find(twin.id).id == twin.id
        assert directory.model(name) == directory.model(twin.id) == (name, 1_700_000_000)
    with pytest.raises(UnknownModel, match="Use one of these, or an id, as the model") as caught:
        directory.model("Bob")
    assert all(repr(name) in caught.value.message for name in names)


def test_a_name_with_digits_stays_valid_without_the_other_agent(letta: FakeGateway, directory: Directory) -> None:
    name = name_with_digits(letta.agents_named("Ada")[0])
    assert directory.find(name).name == "Ada"
    assert directory.model(name)[0] == "Ada"
    letta.calls.clear()
    directory.find(name)
    assert letta.calls == ["agent"]
    letta.renames_agent(directory.find_id(name), "Eve")
    with pytest.raises(UnknownModel):
        directory.find(name)


def test_an_agent_that_really_has_such_a_name_comes_first(letta: FakeGateway, directory: Directory) -> None:
    name = name_with_digits(letta.agents_named("Ada")[0])
    other = letta.has_agent(name)
    assert directory.find(name).id == other.id
    assert directory.find(directory.model(other.id)[0]).id == other.id


# --- what the error about a wrong name says ---------------------------------------------------------------


def message_about(directory: Directory, model: str, visible: Visible | None = ALL) -> str:
    """Asks twice, as a turn does."""
    for _ in range(2):
        with pytest.raises(UnknownModel) as caught:
            directory.find(model, visible)
    assert len(caught.value.message) < 1500
    return caught.value.message


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("MyAgent", "my-agent"),
        ("my_agent", "my-agent"),
        ("ada", "Ada"),
        ("openai/my-agent", "my-agent"),
        ("adda", "Ada"),
    ],
)
def test_the_error_about_a_wrong_name_has_the_nearest_one(
    letta: FakeGateway, directory: Directory, asked: str, nearest: str
) -> None:
    letta.has_agent("my-agent")
    assert message_about(directory, asked) == (
        f"There is no agent with the name or id {asked!r}; did you mean {nearest!r}? Your agents: 'Ada', 'my-agent'."
    )


@pytest.mark.parametrize("asked", ["Zebulon", "", "x" * 10_000])
def test_the_error_about_a_name_that_is_like_no_other_has_the_first_names(
    letta: FakeGateway, directory: Directory, asked: str
) -> None:
    twins = [name_with_digits(letta.has_agent("Twin")) for _ in range(2)]
    message = message_about(directory, asked)
    assert "did you mean" not in message
    assert message.endswith(f". Your agents: 'Ada', {twins[0]!r}, {twins[1]!r}.")


def test_the_error_lists_few_names_and_none_that_is_long(letta: FakeGateway, directory: Directory) -> None:
    letta.has_agent("x" * 101)
    for number in range(1000):
        letta.has_agent(f"agent {number}")
    message = message_about(directory, "agent 2000")
    assert "did you mean 'agent 200'?" in message
    listed = ", ".join(repr(f"agent {number}") for number in range(9))
    assert message.endswith(f"The first of your agents: 'Ada', {listed}; GET /v1/models lists all.")


def test_a_name_that_is_gone_is_not_offered_again(letta: FakeGateway, directory: Directory) -> None:
    directory.models()
    letta.loses_agent(directory.find("Ada").id)
    assert message_about(directory, "Ada").endswith("'Ada'. GET /v1/models lists the agents.")


def test_the_error_has_only_names_that_the_client_may_see(letta: FakeGateway, directory: Directory) -> None:
    letta.has_agent("my-agent")
    letta.has_agent("my-agents")
    for visible in (frozenset({"Ada", "my-agents"}), frozenset({"my-agents", "MyAgent"})):
        for message in (message_about(directory, "MyAgent", visible), message_about(directory, OTHER, visible)):
            assert "'my-agents'" in message
            assert "'my-agent'" not in message
    assert "my-agent" not in message_about(directory, "MyAgent", None)


def test_the_names_in_the_error_cost_no_further_call(
    letta: FakeGateway, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn asks twice for a missing agent; the second answer has the names. Later, they are known."""
    message_about(directory, "ada")
    message_about(directory, "bda")
    assert letta.calls == ["agents_named", "agents", "agents_named", "agents_named"]
    monkeypatch.setattr(module, "NAMES_KEPT_SECONDS", 0.0)
    letta.has_agent("bda")
    assert directory.find("bda").name == "bda"


def test_an_agent_that_is_found_costs_no_list_of_names(letta: FakeGateway, directory: Directory) -> None:
    directory.find("Ada", ALL)
    directory.find_id("Ada", ALL)
    assert "agents" not in letta.calls


def test_names_that_were_not_found_do_not_pile_up(directory: Directory) -> None:
    for number in range(module.MOST_MISSED * 2):
        with pytest.raises(UnknownModel):
            directory.find_id(f"Nobody {number}")
    assert len(directory._missed) == module.MOST_MISSED
