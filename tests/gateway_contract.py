"""Tests of every Gateway. They run on the in-memory one and on real servers, so that the fake behaves as they do."""

from __future__ import annotations

import json
import uuid
from typing import Protocol

import pytest

from bridge import errors
from bridge.letta.capabilities import agent_loop, streams_tokens_faithfully
from bridge.letta.gateway import (
    HELPER_PREFIX,
    AgentChange,
    Block,
    CallResult,
    ForeignCall,
    Gateway,
    Results,
    Say,
    StoredMessage,
)
from bridge.stubs.converter import make_stub
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    Message,
    SchemaForm,
    Stopped,
    Stub,
    Text,
    ToolCall,
    ToolSpec,
    Used,
)

ODD = 'He said "hi" \\ caf\u00e9 \U0001f600 50% <b> {"status": "OK"}\n\t\u2028 end'
LONG = " ".join(f"word{number}" for number in range(3_000))
NOBODY = "agent-00000000-0000-4000-8000-000000000000"
MARK = {"owner": "contract", "purpose": "test"}


class PreparedTurn(Protocol):
    """A gateway, one agent on its server, and what a test needs to script and to check."""

    gateway: Gateway
    agent_id: str
    agent_name: str

    def make_agent(self, name: str) -> str:
        """Makes another agent; returns its id."""

    def to_say(self, text: str) -> str:
        """Returns a message that makes the agent answer with `text`."""

    def to_note_first(self, text: str) -> str:
        """Returns a message that makes the agent call its core_memory_append before it answers."""

    def to_fail(self) -> str:
        """Returns a message that makes the model fail."""

    def shown(self, text: str) -> bool:
        """Returns whether the model was shown `text` in its last call."""


def new_name() -> str:
    return f"agent-of-contract-{uuid.uuid4().hex[:8]}"


def new_stub(city: str = "city") -> Stub:
    name = f"get_weather_{uuid.uuid4().hex[:8]}"
    parameters = {"type": "object", "properties": {city: {"type": "string"}}, "required": [city]}
    return make_stub(ToolSpec(name, "Tells the weather.", parameters), SchemaForm())


def blocks_of(scene: PreparedTurn) -> dict[str, Block]:
    return {block.label: block for block in scene.gateway.agent(scene.agent_id).blocks}


def holders_of(scene: PreparedTurn, tool_id: str) -> list[str]:
    """Returns the ids of the agents that have the tool."""
    agents = scene.gateway.whole_agents()
    return [agent.id for agent in agents if tool_id in {tool.id for tool in agent.tools}]


def _rows_in_context(gateway: Gateway, agent_id: str) -> list[StoredMessage]:
    places = {message_id: place for place, message_id in enumerate(gateway.agent(agent_id).message_ids)}
    return sorted(
        (row for row in gateway.newest_messages(agent_id, 20) if row.id in places), key=lambda r: places[r.id]
    )


class GatewayContract:
    """Subclasses have a fixture `scene`."""

    def tell(self, scene: PreparedTurn, text: str, *, by_token: bool = False) -> list[AgentEvent]:
        return list(scene.gateway.send_messages(scene.agent_id, [Say("user", text)], by_token=by_token))

    def say(self, scene: PreparedTurn, text: str, *, by_token: bool = False) -> str:
        events = self.tell(scene, scene.to_say(text), by_token=by_token)
        return "".join(event.text for event in events if isinstance(event, Text))

    # Server and agents

    def test_the_features_of_a_server_do_not_change(self, scene: PreparedTurn) -> None:
        features = scene.gateway.features()
        assert (0, 6, 0) <= features.version < (1, 0, 0)
        assert scene.gateway.features() == features

    def test_a_server_that_answers_passes_the_check(self, scene: PreparedTurn) -> None:
        scene.gateway.check_server()

    def test_a_new_agent_is_listed_and_found(self, scene: PreparedTurn) -> None:
        name = new_name()
        assert scene.gateway.agents_named(name) == []
        agent_id = scene.make_agent(name)
        assert [agent.id for agent in scene.gateway.agents_named(name)] == [agent_id]
        assert (agent_id, name) in [(agent.id, agent.name) for agent in scene.gateway.agents()]
        assert scene.gateway.agent(agent_id).name == name

    def test_an_agent_is_found_only_by_its_whole_name(self, scene: PreparedTurn) -> None:
        for other in (scene.agent_name[:-1], scene.agent_name.upper(), f"{scene.agent_name} ", "%", "_" * 5, "*"):
            assert scene.gateway.agents_named(other) == []

    def test_all_agents_with_the_same_name_are_found(self, scene: PreparedTurn) -> None:
        name = new_name()
        ids = {scene.make_agent(name), scene.make_agent(name)}
        assert {agent.id for agent in scene.gateway.agents_named(name)} == ids

    def test_agents_of_all_pages_are_listed(self, scene: PreparedTurn) -> None:
        ids = {scene.make_agent(new_name()) for _ in range(5)}
        listed = [agent.id for agent in scene.gateway.agents()]
        assert ids <= set(listed)
        assert len(listed) == len(set(listed))

    def test_an_unknown_agent_is_not_found(self, scene: PreparedTurn) -> None:
        with pytest.raises(errors.LettaNotFound):
            scene.gateway.agent(NOBODY)

    def test_an_agent_comes_with_its_blocks_messages_and_tools(self, scene: PreparedTurn) -> None:
        agent = scene.gateway.agent(scene.agent_id)
        assert (agent.id, agent.name) == (scene.agent_id, scene.agent_name)
        assert agent.blocks
        assert agent.message_ids
        assert all(block.id and block.label for block in agent.blocks)
        assert all(tool.id and tool.name and tool.json_schema for tool in agent.tools)

    def test_a_helper_agent_has_no_blocks_and_can_be_deleted(self, scene: PreparedTurn) -> None:
        helper = scene.gateway.make_helper(scene.agent_id, "You give titles.")
        assert helper.name.startswith(HELPER_PREFIX)
        assert helper.blocks == ()
        (listed,) = [agent for agent in scene.gateway.helpers() if agent.id == helper.id]
        assert listed.name == helper.name
        list(scene.gateway.send_messages(helper.id, [Say("user", scene.to_say("A title"))], by_token=False))
        assert scene.gateway.agent(scene.agent_id).message_ids
        scene.gateway.delete_agent(helper.id)
        scene.gateway.delete_agent(helper.id)
        assert helper.id not in [agent.id for agent in scene.gateway.helpers()]
        with pytest.raises(errors.LettaNotFound):
            scene.gateway.agent(helper.id)

    def test_a_helper_agent_has_its_history_in_its_context(self, scene: PreparedTurn) -> None:
        system, texts = "You go on.", ["Read a and b.", ODD, "Thanks.", "You are welcome."]
        calls = (ToolCall("call_1", "read", '{"path": "a"}'), ToolCall("call_2", "read", '{"path": "b"}'))
        history = [
            Message("user", texts[0]),
            Message("assistant", tool_calls=calls),
            Message("tool", texts[1], tool_call_id="call_1"),
            Message("tool", "No such file.", tool_call_id="call_2", is_error=True),
            Message("user", texts[2]),
            Message("assistant", texts[3]),
        ]
        helper = scene.gateway.make_helper(scene.agent_id, system, history)
        assert helper.name.startswith(HELPER_PREFIX)
        assert helper.blocks == ()
        assert helper.id in [agent.id for agent in scene.gateway.helpers()]
        rows = _rows_in_context(scene.gateway, helper.id)
        assert [row.text for row in rows if row.text] == [system, *texts[:2], "No such file.", *texts[2:]]
        called = [(call.name, json.loads(call.arguments)) for row in rows for call in row.calls]
        assert called == [("read", {"path": "a"}), ("read", {"path": "b"})]
        list(scene.gateway.send_messages(helper.id, [Say("user", scene.to_say("A title"))], by_token=False))
        assert all(scene.shown(text) for text in texts)
        scene.gateway.delete_agent(helper.id)

    def test_a_helper_agent_goes_on_after_the_result_that_ends_its_history(self, scene: PreparedTurn) -> None:
        holds = scene.gateway.features().imports_held_calls
        call = ToolCall("call_1", "read", '{"path": "a"}')
        history = [Message("user", scene.to_say("Read.")), Message("assistant", tool_calls=(call,))]
        result = Message("tool", "text of a", tool_call_id="call_1")
        helper = scene.gateway.make_helper(scene.agent_id, "You go on.", [*history, *([] if holds else [result])])
        request = _rows_in_context(scene.gateway, helper.id)[-1]
        assert (request.kind == "approval_request_message") == holds
        given = tuple(CallResult(one.call_id, result.text) for one in request.calls)
        first = Results(given) if holds else Say("system", "Go on.")
        events = list(scene.gateway.send_messages(helper.id, [first], by_token=False))
        assert "".join(event.text for event in events if isinstance(event, Text))
        assert "text of a" in [row.text for row in _rows_in_context(scene.gateway, helper.id)]
        scene.gateway.delete_agent(helper.id)

    # Calls of clients

    def test_a_clients_call_gets_lettas_own_answer(self, scene: PreparedTurn) -> None:
        answer = scene.gateway.forward(ForeignCall("GET", f"/v1/agents/{scene.agent_id}"))
        assert answer.status == 200
        assert "application/json" in [text for name, text in answer.headers if name.lower() == "content-type"]
        row = json.loads(answer.read(1_000_000))
        assert (row["id"], row["name"]) == (scene.agent_id, scene.agent_name)

    def test_a_status_of_letta_is_an_answer_and_not_an_error(self, scene: PreparedTurn) -> None:
        answer = scene.gateway.forward(ForeignCall("GET", f"/v1/agents/{NOBODY}"), patient=True)
        assert answer.status == 404
        assert "detail" in json.loads(answer.read(1_000_000))

    def test_a_clients_answer_is_not_read_beyond_its_limit(self, scene: PreparedTurn) -> None:
        answer = scene.gateway.forward(ForeignCall("GET", f"/v1/agents/{scene.agent_id}"))
        with pytest.raises(errors.LettaError, match="more than 10 bytes"):
            answer.read(10)

    def test_an_answer_may_be_closed_unread(self, scene: PreparedTurn) -> None:
        scene.gateway.forward(ForeignCall("GET", f"/v1/agents/{scene.agent_id}")).close()
        assert scene.gateway.agent(scene.agent_id).name == scene.agent_name

    # Messages

    def test_the_run_ends_with_a_stop_event(self, scene: PreparedTurn) -> None:
        events = self.tell(scene, scene.to_say("Hello"))
        assert "".join(event.text for event in events if isinstance(event, Text)) == "Hello"
        (used,) = [event for event in events if isinstance(event, Used)]
        assert used.prompt_tokens > 0
        assert used.completion_tokens > 0
        assert events[-1] == Stopped("end_turn")

    @pytest.mark.parametrize("text", [ODD, LONG], ids=["odd", "long"])
    def test_a_text_arrives_unchanged(self, scene: PreparedTurn, text: str) -> None:
        assert self.say(scene, text) == text

    def test_a_text_arrives_unchanged_by_token_where_the_server_can_do_that(self, scene: PreparedTurn) -> None:
        loop = agent_loop(scene.gateway.features().version, scene.gateway.agent(scene.agent_id).type)
        assert self.say(scene, ODD, by_token=streams_tokens_faithfully(loop)) == ODD

    def test_messages_reach_the_model_unchanged(self, scene: PreparedTurn) -> None:
        for text in (ODD, "second"):
            list(scene.gateway.send_messages(scene.agent_id, [Say("user", text), Say("user", "last")], by_token=False))
            assert scene.shown(text)
            assert scene.shown("last")

    def test_a_system_message_reaches_the_model(self, scene: PreparedTurn) -> None:
        messages = [Say("system", "Be kind to birds."), Say("user", scene.to_say("Yes"))]
        list(scene.gateway.send_messages(scene.agent_id, messages, by_token=False))
        assert scene.shown("Be kind to birds.")

    def test_a_turn_is_kept_in_the_context(self, scene: PreparedTurn) -> None:
        before = scene.gateway.agent(scene.agent_id).message_ids
        self.say(scene, "Hello")
        after = scene.gateway.agent(scene.agent_id).message_ids
        assert after[: len(before)] == before
        assert len(after) > len(before)
        assert {message.id for message in scene.gateway.newest_messages(scene.agent_id, 2)} & set(after[len(before) :])

    def test_a_message_and_its_answer_are_found_by_the_mark(self, scene: PreparedTurn) -> None:
        mark = f"turn-{uuid.uuid4().hex}-0"
        list(scene.gateway.send_messages(scene.agent_id, [Say("user", scene.to_say("Yes"), otid=mark)], by_token=False))
        places = {message_id: n for n, message_id in enumerate(scene.gateway.agent(scene.agent_id).message_ids)}
        rows = sorted(scene.gateway.newest_messages(scene.agent_id, 20), key=lambda row: places[row.id])
        assert [row.kind for row in rows if row.otid == mark] == ["user_message"]
        place = next(number for number, row in enumerate(rows) if row.otid == mark)
        assert "Yes" in [row.text for row in rows[place + 1 :] if row.kind == "assistant_message"]

    def test_an_agent_at_rest_has_no_run_under_way(self, scene: PreparedTurn) -> None:
        self.say(scene, "Hello")
        assert scene.gateway.runs_under_way(scene.agent_id) == []

    def test_the_agents_own_tools_run_on_the_server(self, scene: PreparedTurn) -> None:
        events = self.tell(scene, scene.to_note_first("Noted."))
        calls = [event for event in events if isinstance(event, AgentCall)]
        returns = [event for event in events if isinstance(event, AgentReturn)]
        assert [(call.name, call.held) for call in calls] == [("core_memory_append", False)]
        assert [(one.call_id, one.ok) for one in returns] == [(calls[0].call_id, True)]
        assert [event.text for event in events if isinstance(event, Text)] == ["Noted."]
        (used,) = [event for event in events if isinstance(event, Used)]
        assert used.steps == 2

    def test_a_failing_model_is_an_error_and_the_agent_goes_on(self, scene: PreparedTurn) -> None:
        with pytest.raises(errors.LettaError):
            self.tell(scene, scene.to_fail())
        assert self.say(scene, "Hello again") == "Hello again"

    def test_a_message_to_an_unknown_agent_is_not_found(self, scene: PreparedTurn) -> None:
        with pytest.raises(errors.LettaNotFound):
            scene.gateway.send_messages(NOBODY, [Say("user", "Hello")], by_token=False)

    # Blocks

    def test_the_model_sees_a_changed_block_in_its_next_call(self, scene: PreparedTurn) -> None:
        own = blocks_of(scene)
        block = scene.gateway.add_block(scene.agent_id, "notes", "Value the first.", "What to heed.", MARK)
        self.say(scene, "one")
        assert scene.shown("Value the first.")
        assert blocks_of(scene) == {**own, "notes": block}

        scene.gateway.set_block(scene.agent_id, "notes", "Value the second.")
        self.say(scene, "two")
        assert scene.shown("Value the second.")
        assert not scene.shown("Value the first.")

        scene.gateway.remove_block(scene.agent_id, block)
        self.say(scene, "three")
        assert not scene.shown("Value the second.")
        assert blocks_of(scene) == own

    def test_a_block_keeps_its_metadata(self, scene: PreparedTurn) -> None:
        scene.gateway.add_block(scene.agent_id, "notes", ODD, "What to heed.", MARK)
        found = blocks_of(scene)["notes"]
        assert (found.value, found.metadata) == (ODD, MARK)

    def test_a_block_can_be_of_any_length(self, scene: PreparedTurn) -> None:
        scene.gateway.add_block(scene.agent_id, "notes", "short", "What to heed.", MARK)
        scene.gateway.set_block(scene.agent_id, "notes", LONG)
        self.say(scene, "one")
        assert scene.shown(LONG)

    def test_a_removed_block_can_be_added_again(self, scene: PreparedTurn) -> None:
        for value in ("Value the first.", "Value the second."):
            block = scene.gateway.add_block(scene.agent_id, "notes", value, "What to heed.", MARK)
            self.say(scene, "one")
            assert scene.shown(value)
            scene.gateway.remove_block(scene.agent_id, block)

    def test_an_agent_cannot_have_two_blocks_with_the_same_label(self, scene: PreparedTurn) -> None:
        scene.gateway.add_block(scene.agent_id, "notes", "one", "What to heed.", MARK)
        with pytest.raises(errors.LettaError):
            scene.gateway.add_block(scene.agent_id, "notes", "two", "What to heed.", MARK)

    # Tools

    def test_a_tool_can_be_put_found_tagged_and_deleted(self, scene: PreparedTurn) -> None:
        stub = new_stub()
        assert scene.gateway.tools_named([stub.name]) == []
        tool = scene.gateway.put_tool(stub, ["one", "two"])
        assert (tool.name, tool.type, sorted(tool.tags)) == (stub.name, "custom", ["one", "two"])
        assert tool.json_schema["parameters"]["properties"] == stub.json_schema["parameters"]["properties"]
        assert [found.id for found in scene.gateway.tools_named(["nothing-of-that-name", stub.name])] == [tool.id]
        assert tool.id in [found.id for found in scene.gateway.tools()]

        scene.gateway.tag_tool(tool.id, ["three"])
        (tagged,) = scene.gateway.tools_named([stub.name])
        assert (tagged.tags, tagged.json_schema) == (("three",), tool.json_schema)

        scene.gateway.delete_tool(tool.id)
        scene.gateway.delete_tool(tool.id)
        assert scene.gateway.tools_named([stub.name]) == []

    def test_a_tool_that_is_put_again_keeps_its_id_and_gets_the_new_schema(self, scene: PreparedTurn) -> None:
        first, second = new_stub(), new_stub("town")
        renamed = make_stub(
            ToolSpec(first.name, "Tells it better.", second.spec.parameters),
            SchemaForm(),
        )
        tool = scene.gateway.put_tool(first, ["one"])
        again = scene.gateway.put_tool(renamed, ["two"])
        assert (again.id, again.tags) == (tool.id, ("two",))
        assert set(again.json_schema["parameters"]["properties"]) == {"town"}
        scene.gateway.delete_tool(tool.id)

    def test_tools_and_rules_of_an_agent_are_set_in_one_call(self, scene: PreparedTurn) -> None:
        own = scene.gateway.agent(scene.agent_id)
        tool = scene.gateway.put_tool(new_stub(), ["one"])
        rule = {"type": "exit_loop", "tool_name": tool.name}
        own_ids = [one.id for one in own.tools]
        changed = scene.gateway.change_agent(
            scene.agent_id, AgentChange(tool_ids=[*own_ids, tool.id], rules=[*own.rules, rule])
        )
        for found in (changed, scene.gateway.agent(scene.agent_id)):
            assert {one.id for one in found.tools} == {*own_ids, tool.id}
            assert (rule["type"], rule["tool_name"]) in [(one["type"], one["tool_name"]) for one in found.rules]
        assert holders_of(scene, tool.id) == [scene.agent_id]

        scene.gateway.delete_tool(tool.id)
        assert {one.id for one in scene.gateway.agent(scene.agent_id).tools} == set(own_ids)
        assert holders_of(scene, tool.id) == []
        back = scene.gateway.change_agent(scene.agent_id, AgentChange(tool_ids=own_ids, rules=own.rules))
        assert {one.id for one in back.tools} == set(own_ids)
        assert (len(back.rules), back.message_ids) == (len(own.rules), own.message_ids)

    def test_variables_are_replaced_as_a_whole(self, scene: PreparedTurn) -> None:
        assert scene.gateway.variables(scene.agent_id) == {}
        # 0.6 can't remove all variables; only servers with approvals need variables.
        none: list[dict[str, str]] = [{}] if scene.gateway.features().approvals else []
        for variables in ({"ONE": "sk-1", "TWO": "sk-2"}, {"TWO": "sk-3"}, *none):
            scene.gateway.change_agent(scene.agent_id, AgentChange(variables=variables))
            assert scene.gateway.variables(scene.agent_id) == variables

    def test_messages_can_be_taken_out_of_the_context(self, scene: PreparedTurn) -> None:
        before = scene.gateway.agent(scene.agent_id).message_ids
        self.say(scene, "Nightingale")
        scene.gateway.change_agent(scene.agent_id, AgentChange(message_ids=before))
        assert scene.gateway.agent(scene.agent_id).message_ids == before
        self.say(scene, "Blackbird")
        assert not scene.shown("Nightingale")
