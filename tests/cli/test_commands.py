"""Every command, on a Letta in memory; on real servers they run in tests/real/test_commands.py."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from app import assemble_parts
from bridge.cli.group import make_command_group
from bridge.config import Settings, read_settings
from bridge.errors import LettaConflict, LettaRefusedCredentials, LettaUnreachable, ModelFailed
from bridge.letta.gateway import HELPER_PREFIX, Agent, Block, Say
from bridge.letta.trouble import make_error
from bridge.operation.actions import CHATS_STAY
from bridge.operation.doctor import TOOL
from bridge.sync.instructions import OWNER
from bridge.turn import Stopped, Text, Used
from tests.actors import Chat
from tests.admin import RecordedChat
from tests.test_complaints import held, tool
from tests.toolsets import SharedLetta

ROOT = Path(__file__).parents[2]
READ, WRITE = tool("read_file"), tool("write_file")

Run = Callable[..., Result]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_API_KEYS": "canary-key-1,phone:" + "a" * 64, "BRIDGE_ALLOW_ANONYMOUS": "0"}


@pytest.fixture
def letta() -> SharedLetta:
    fake = SharedLetta()
    ada = fake.has_agent("Ada")
    fake.attaches(ada, fake.has_tool("theirs"))
    return fake


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    return letta.agent(letta.agents_named("Ada")[0].id)


@pytest.fixture
def chat(app: Flask) -> Chat:
    return RecordedChat(app, "canary-key-1")


@pytest.fixture
def run(settings: Settings, letta: SharedLetta) -> Run:
    """Runs a command with its own parts, as a process beside the service has."""

    def run(*arguments: str, given: str | None = None) -> Result:
        return CliRunner().invoke(
            make_command_group(lambda: settings, lambda known: assemble_parts(known, letta)), arguments, given
        )

    return run


def bridge(*arguments: str, given: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Calls the program as people do."""
    whole = {"PATH": os.environ["PATH"], "DYNO": "no .env file", **environment}
    return subprocess.run(
        [ROOT / "letta-bridge", *arguments],
        cwd=ROOT,
        env=whole,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


# --- tools ------------------------------------------------------------------------------------------------


def test_tools_are_told_with_what_the_service_has_seen_of_them(run: Run, chat: Chat, letta: SharedLetta) -> None:
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[READ, WRITE])
    rows = json.loads(run("tools", "list", "--json").output)
    assert [(row["client_name"], row["calls"], row["state"]) for row in rows] == [
        ("read_file", 1, "attached"),
        ("write_file", 0, "attached"),
    ]
    assert rows == json.loads(run("tools", "--json").output)


def test_one_tool_is_shown_by_name_digest_or_id(run: Run, chat: Chat, letta: SharedLetta) -> None:
    letta.will(*held(("read_file", '{"city": "Oslo"}')))
    chat.ask(tools=[READ, WRITE])
    (whole,) = json.loads(run("tools", "show", "read_file", "--json").output)
    assert whole["as_sent"]["parameters"] == READ["function"]["parameters"]
    assert whole["last_calls"][0]["arguments"] == '{"city": "Oslo"}'
    for name in (whole["digest"][:10], whole["tool_id"]):
        shown = run("tools", "show", name)
        assert shown.exit_code == 0
        assert "read_file\n" in shown.output
        assert '{"city": "Oslo"}' in shown.output
        assert "attached: An agent has it." in shown.output


@pytest.mark.parametrize("name", ["theirs", "nothing", "a"])
def test_only_tools_of_clients_are_shown(run: Run, chat: Chat, name: str) -> None:
    chat.ask(tools=[READ])
    done = run("tools", "show", name)
    assert done.exit_code == 1
    assert done.output == f"Error: There is no tool of a client called {name}; `tools` lists them.\n"


def test_tools_that_are_gone_are_listed_separately(run: Run, chat: Chat, letta: SharedLetta) -> None:
    assert run("tools", "gone").output == "No tool is gone.\n"
    chat.ask(tools=[READ, WRITE])
    letta.delete_tool(letta.tool("write_file").id)
    assert [row["client_name"] for row in json.loads(run("tools", "gone", "--json").output)] == ["write_file"]
    assert [row["client_name"] for row in json.loads(run("tools", "--json").output)] == ["read_file"]


# --- agents -----------------------------------------------------------------------------------------------


def test_agents_are_listed_with_their_methods(run: Run, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    letta.has_agent("Charles", "memgpt_v2_agent")
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[READ], system="Be kind.")
    first, second = json.loads(run("agents", "--json").output)
    assert (first["name"], first["method"], first["own_tools"], first["our_tools"]) == ("Ada", "approval", 1, 1)
    assert (first["system_prompt"], first["waits_for"]) == (8, ["read_file"])
    assert (second["name"], second["method"], second["last_turn"]) == ("Charles", "rewrite", None)
    assert ada.id in run("agents").output


# --- settings and keys ------------------------------------------------------------------------------------


def test_the_settings_are_shown_without_secrets(run: Run) -> None:
    rows = {row["variable"]: row["value"] for row in json.loads(run("config", "--json").output)}
    assert rows["LETTA_BASE_URL"] == "http://letta.test:8283"
    assert rows["BRIDGE_API_KEYS"] == "key-1 (not shown), phone (not shown)"
    for arguments in (("config",), ("config", "--changed"), ("keys", "list"), ("keys", "list", "--json")):
        assert "canary" not in run(*arguments).output
    assert "BRIDGE_WAIT" not in run("config", "--changed").output


class TestChangedSettings:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        changed = {"BRIDGE_TURN_TIMEOUT": "86400", "BRIDGE_WAIT": "0.3", "BRIDGE_PING_INTERVAL": "5"}
        return {**environment, **changed}

    def test_a_setting_is_shown_in_the_form_in_which_it_is_set(self, run: Run) -> None:
        rows = {row["variable"]: row["value"] for row in json.loads(run("config", "--json").stdout)}
        assert (rows["BRIDGE_TURN_TIMEOUT"], rows["BRIDGE_WAIT"]) == ("86400", "0.3")
        assert rows["BRIDGE_FILES"] is None

    def test_a_variable_of_an_earlier_version_is_warned_of(self, run: Run) -> None:
        sentence = "BRIDGE_PING_INTERVAL is not a setting any more and is ignored: it is always 15 seconds."
        assert run("config").stderr == f"Warning: {sentence}\n"
        assert f"! settings: {sentence}\n" in run("doctor").output


class TestMisspeltSettings:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_METHD": "prompt"}

    def test_a_misspelt_setting_is_warned_of_with_the_nearest_one(self, run: Run) -> None:
        sentence = "BRIDGE_METHD is not a setting and is ignored; did you mean BRIDGE_METHOD?"
        assert run("config").stderr == f"Warning: {sentence}\n"
        assert f"! settings: {sentence}\n" in run("doctor").output


@pytest.mark.servers
def test_a_new_key_comes_with_its_entry() -> None:
    made = json.loads(bridge("keys", "new", "phone", "--json").stdout)
    assert made["entry"] == f"phone:{hashlib.sha256(made['key'].encode()).hexdigest()}"
    assert len(made["key"]) > 40
    assert made["key"] != json.loads(bridge("keys", "new", "phone", "--json").stdout)["key"]


def test_a_new_key_says_what_to_put_where() -> None:
    done = CliRunner().invoke(make_command_group(_not_needed, _not_needed), ["keys", "new", "phone"])
    client, key, variable, entry = done.output.splitlines()
    assert client == "For the client, as its API key. It is not shown again:"
    assert (
        variable == "For the bridge, in the variable BRIDGE_API_KEYS, with commas between the entries of several keys:"
    )
    assert entry.strip() == f"phone:{hashlib.sha256(key.strip().encode()).hexdigest()}"


def _not_needed(*_: object) -> Any:
    raise AssertionError("`keys new` must not need the service's settings")


@pytest.mark.servers
def test_a_key_can_be_hashed_without_showing_it() -> None:
    done = bridge("keys", "hash", "phone", given="my-own-secret\n")
    assert done.stdout == f"phone:{hashlib.sha256(b'my-own-secret').hexdigest()}\n"
    assert bridge("keys", "hash", given="short\n").returncode == 1
    assert "a name has 1 to 64" in bridge("keys", "new", "a b").stderr


@pytest.mark.servers
@pytest.mark.parametrize("arguments", [("keys", "new"), ("--help",), ("completion", "bash"), ("--version",)])
def test_some_commands_need_no_settings(arguments: tuple[str, ...]) -> None:
    assert bridge(*arguments).returncode == 0


@pytest.mark.servers
def test_commands_need_no_keys_for_clients(tmp_path: Path) -> None:
    known = {"LETTA_BASE_URL": "http://127.0.0.1:9", "BRIDGE_DATA_DIR": str(tmp_path)}
    assert bridge("config", **known).returncode == 0
    for arguments in (["flask", "--app", "app", "bridge", "config"], ["flask", "--app", "app", "bridge", "tools"]):
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "DYNO": "1", **known},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "BRIDGE_API_KEYS is not set" not in done.stderr
        assert "BRIDGE_ALLOW_ANONYMOUS" in done.stdout or "can't be reached" in done.stderr


@pytest.mark.servers
@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (("tools",), 1, "Error: The settings are wrong:\nLETTA_BASE_URL is not set"),
        (("doctor",), 1, "✗ settings: LETTA_BASE_URL is not set"),
        (("keys", "new"), 0, "For the client"),
    ],
)
def test_both_command_lines_report_wrong_settings_alike(arguments: tuple[str, ...], code: int, output: str) -> None:
    for program in ([ROOT / "letta-bridge"], [sys.executable, "-m", "flask", "--app", "app", "bridge"]):
        done = subprocess.run(
            [*program, *arguments],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "DYNO": "no .env file"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert (done.stdout + done.stderr).startswith(output)


@pytest.mark.servers
def test_flasks_run_command_needs_keys(tmp_path: Path) -> None:
    known = {"LETTA_BASE_URL": "http://127.0.0.1:9", "BRIDGE_DATA_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "flask", "--app", "app", "run", "--port", "0"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DYNO": "1", **known},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "BRIDGE_API_KEYS is not set" in done.stderr


# --- shell completion -------------------------------------------------------------------------------------


@pytest.mark.servers
def test_a_shell_completes_commands(tmp_path: Path) -> None:
    code = tmp_path / "completion.sh"
    code.write_text(bridge("completion", "bash").stdout)
    script = f"""
        . {code}
        COMP_WORDS=(letta-bridge tools s); COMP_CWORD=2
        _letta_bridge_completion letta-bridge
        printf '%s\\n' "${{COMPREPLY[@]}}"
        declare -F bridge
        cd /
        letta-bridge keys new phone --json
    """
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith('show\n{\n  "name": "phone"')


@pytest.mark.servers
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_call_the_same_program(shell: str) -> None:
    done = bridge("completion", shell)
    assert f"{shell}_complete" in done.stdout
    assert f" {ROOT / 'letta-bridge'})" in done.stdout


# --- doctor -----------------------------------------------------------------------------------------------


def round_trip(letta: SharedLetta) -> None:
    """Makes the model do what the doctor asks for."""
    letta.will(*held((TOOL.name, '{"word": "bridge"}')))
    letta.will(Text("It returned that the bridge works."), Used(10, 5), Stopped("end_turn"))


def test_the_doctor_checks_everything_and_leaves_nothing_behind(run: Run, letta: SharedLetta) -> None:
    before = {agent.id: agent for agent in letta.whole_agents()}
    round_trip(letta)
    done = run("doctor")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "✓ Letta: 0.16.1 at http://letta.test:8283" in lines
    assert "✓ agent Ada: letta_v1_agent: approval" in lines
    assert lines[-1].startswith("✓ tool round trip: call, result and answer by approval in ")
    assert {agent.id: agent for agent in letta.whole_agents()} == before
    assert [tool.name for tool in letta.tools()] == ["theirs"]


class TestTheDoctorBesideMakeRun:
    """A bridge without keys that only this machine reaches, as `make run` starts it."""

    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        alone = {"BRIDGE_API_KEYS": "", "BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_HOST": "127.0.0.1"}
        return {**environment, **alone, "BRIDGE_ADMIN_PASSWORD": "a-password"}

    def test_nothing_is_warned_of(self, run: Run, letta: SharedLetta) -> None:
        round_trip(letta)
        lines = run("doctor").output.splitlines()
        assert lines[0] == "✓ keys: none are needed: only this machine reaches the bridge"
        assert [line for line in lines if not line.startswith("✓")] == []

    @pytest.mark.parametrize("opened", [{"BRIDGE_HOST": "0.0.0.0"}, {"BRIDGE_PROXIES": "1"}], ids=str)
    def test_missing_keys_are_warned_of_where_others_reach_the_bridge(
        self, environment: dict[str, str], letta: SharedLetta, opened: dict[str, str]
    ) -> None:
        settings = read_settings({**environment, **opened})
        group = make_command_group(lambda: settings, lambda known: assemble_parts(known, letta))
        shown = CliRunner().invoke(group, ["doctor"]).output
        assert shown.startswith("! keys: none: everybody who reaches the port may talk to the agents\n")


class TestTheDoctorOfLettasOwnApi:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_LETTA_API": "agents"}

    def test_it_tries_the_api_with_a_round_trip_of_its_own(self, run: Run, letta: SharedLetta) -> None:
        round_trip(letta)
        round_trip(letta)
        done = run("doctor")
        assert done.exit_code == 0, done.output
        last = done.output.splitlines()[-1]
        assert last.startswith("✓ tool round trip by Letta's own API: call, result and answer by approval in ")
        assert [tool.name for tool in letta.tools()] == ["theirs"]

    def test_it_forces_a_call_that_the_model_does_not_make(self, run: Run, letta: SharedLetta) -> None:
        round_trip(letta)
        letta.will_say("I'd rather not.")
        round_trip(letta)
        assert run("doctor").exit_code == 0

    def test_a_model_that_does_not_call_fails_it(self, run: Run, letta: SharedLetta) -> None:
        round_trip(letta)
        letta.will_say("I'd rather not.")
        letta.will_say("I said no.")
        done = run("doctor")
        assert done.exit_code == 1
        assert "✗ tool round trip by Letta's own API: the agent did not call the tool" in done.output


def test_the_doctor_says_by_which_apis_turns_came(run: Run, letta: SharedLetta, app: Flask, chat: Chat) -> None:
    round_trip(letta)
    assert "✓ turns: none yet" in run("doctor").output.splitlines()
    client, headers = app.test_client(), {"Authorization": "Bearer canary-key-1"}
    client.post("/v1/responses", json={"model": "Ada", "input": "Hi"}, headers=headers)
    for _ in range(2):
        chat.ask()
    round_trip(letta)
    assert "✓ turns: the newest: 2 by chat completions, 1 by responses" in run("doctor").output.splitlines()


def test_the_doctor_warns_of_an_agent_that_codex_takes_for_a_model_of_its_own(run: Run, letta: SharedLetta) -> None:
    letta.has_agent("gpt-5.5")
    round_trip(letta)
    done = run("doctor")
    assert done.exit_code == 0
    assert "! agent gpt-5.5: letta_v1_agent: Codex has a model of that name\n    Give the agent" in done.output


def test_the_doctor_names_agents_as_clients_do(run: Run, letta: SharedLetta) -> None:
    letta.has_agent("Ada")
    round_trip(letta)
    assert "agent Ada: " not in (output := run("doctor").output)
    assert len(re.findall(r"^✓ agent Ada@\w+: letta_v1_agent: approval$", output, re.MULTILINE)) == 2


def test_the_doctor_forces_a_call_that_the_model_does_not_make(run: Run, letta: SharedLetta) -> None:
    letta.will_say("I'd rather not.")
    round_trip(letta)
    assert run("doctor").exit_code == 0
    assert "run_first" in [rule["type"] for rule in letta.rules_seen if rule["tool_name"] == TOOL.name]


@pytest.mark.parametrize(
    ("verb", "failure", "shown"),
    [
        ("features", LettaUnreachable("It is down."), "✗ Letta: It is down."),
        ("features", LettaRefusedCredentials("No."), "Set LETTA_API_KEY to the server's password."),
        ("whole_agents", LettaRefusedCredentials("No."), "✗ credentials: No."),
        ("make_helper", LettaUnreachable("No."), "✗ tool round trip: no agent could be made: No."),
        ("send_messages", ModelFailed("The agent's model failed."), "✗ tool round trip: The agent's model failed."),
    ],
)
def test_the_doctor_shows_what_is_wrong_and_what_to_do(
    run: Run, letta: SharedLetta, verb: str, failure: Exception, shown: str
) -> None:
    letta.fails(failure, at=verb)
    done = run("doctor")
    assert done.exit_code == 1
    assert shown in done.output
    assert "    " in done.output
    checks = json.loads(run("doctor", "--json").output)
    assert checks[-1]["verdict"] == "bad"
    assert checks[-1]["advice"]


def test_the_doctor_says_what_is_wrong_with_the_address_apart_from_what_to_do(run: Run, letta: SharedLetta) -> None:
    letta.fails(make_error("no TLS", "https://letta.test"), at="features")
    check = json.loads(run("doctor", "--json").output)[-1]
    assert check["found"] == "The Letta server at https://letta.test can't be reached: it does not speak TLS."
    assert check["advice"] == "Write http:// instead of https:// in LETTA_BASE_URL."


def test_the_doctor_deletes_its_agent_after_a_failed_round_trip(run: Run, letta: SharedLetta) -> None:
    letta.will(ModelFailed("The agent's model failed."))
    assert run("doctor").exit_code == 1
    assert [agent.name for agent in letta.whole_agents()] == ["Ada"]


def test_the_doctors_json_has_the_failure_that_stopped_it(run: Run, letta: SharedLetta) -> None:
    letta.fails(LettaUnreachable("The Letta server can't be reached."), at="delete_agent")
    done = run("doctor", "--json")
    assert done.exit_code == 1
    checks = json.loads(done.stdout)
    assert (checks[0]["name"], checks[-1]["found"]) == ("keys", "The Letta server can't be reached.")


def test_the_doctor_warns_about_clocks_that_differ(run: Run, letta: SharedLetta) -> None:
    letta.time = 1_500_000_000.0
    round_trip(letta)
    done = run("doctor")
    assert done.exit_code == 0
    assert "! clock: " in done.output
    assert "ahead of Letta's" in done.output


def test_without_an_agent_there_is_no_round_trip(run: Run, letta: SharedLetta, ada: Agent) -> None:
    letta.loses_agent(ada.id)
    done = run("doctor")
    assert done.exit_code == 0
    assert "! tool round trip: not tried" in done.output


@pytest.mark.servers
def test_the_doctor_reports_wrong_settings() -> None:
    done = bridge("doctor")
    assert done.returncode == 1
    assert done.stdout.startswith("✗ settings: LETTA_BASE_URL is not set")


# --- purge ------------------------------------------------------------------------------------------------


@pytest.fixture
def used(chat: Chat, letta: SharedLetta) -> None:
    """Leaves everything that the bridge can leave: tools, rules, a block, a helper agent, a block that no agent has."""
    letta.has_agent("Bob")
    chat.ask(tools=[READ, WRITE], system="Be kind.")
    chat.ask(model="Bob", tools=[READ])
    chat.ask(model="Bob", tools=[WRITE])
    letta.has_agent(f"{HELPER_PREFIX}0123")
    letta.loose_blocks += [Block("block-1", "client_instructions", "x", dict(OWNER)), Block("block-2", "theirs", "x")]


@pytest.mark.usefixtures("used")
def test_a_purge_removes_everything_of_the_bridge_and_nothing_else(run: Run, letta: SharedLetta, ada: Agent) -> None:
    done = run("purge", "--yes", "--json")
    assert done.exit_code == 0, done.output
    assert [tool.name for tool in letta.tools()] == ["theirs"]
    assert [agent.name for agent in letta.whole_agents()] == ["Ada", "Bob"]
    left = letta.agent(ada.id)
    assert ([tool.name for tool in left.tools], left.rules) == (["theirs"], ())
    assert [block.label for block in left.blocks] == ["persona"]
    assert [block.label for block in letta.loose_blocks] == ["theirs"]
    assert run("purge").output == "There is nothing of the bridge on this server.\n"


def test_a_purge_frees_an_agent_that_waits_for_a_client(run: Run, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[READ])
    assert run("purge", "--yes").exit_code == 0
    letta.will_say("Hello")
    says = letta.send_messages(ada.id, [Say("user", "Hello")], by_token=False)
    assert Text("Hello") in list(says)


def test_a_purge_does_not_close_a_call_of_the_agents_own_tool(
    run: Run, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    chat.ask(tools=[READ])
    letta.holds(ada, "theirs")
    assert run("purge", "--yes").exit_code == 0
    with pytest.raises(LettaConflict):
        letta.send_messages(ada.id, [Say("user", "Hello")], by_token=False)


def test_a_purge_switches_parallel_calls_off_again(run: Run, chat: Chat, letta: SharedLetta, ada: Agent) -> None:
    """It does so, too, when the agent has no tool of a client any more."""
    before = letta.agent(ada.id)
    chat.ask(tools=[READ])
    letta.detaches(ada, "read_file")
    letta.delete_tool(letta.tool("read_file").id)
    assert letta.agent(ada.id).parallel_calls
    assert run("purge", "--yes").exit_code == 0
    after = letta.agent(ada.id)
    assert (after.parallel_calls, after.metadata) == (before.parallel_calls, before.metadata)


@pytest.fixture
def several_chats(environment: dict[str, str]) -> None:
    environment["BRIDGE_CHATS"] = "each"


@pytest.mark.usefixtures("several_chats")
def test_a_purge_puts_the_main_chat_back_and_closes_its_call(
    run: Run, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    letta.holds(ada, "read_file")
    before = letta.agent(ada.id)
    chat.ask("Hello")
    letta.will(*held(("list_files", "{}")))
    chat.ask("Which files?", tools=[tool("list_files")])
    said = "the lists of chats of 1 agent (the main chat comes back into the context)"
    assert said in run("purge", "--dry-run").output
    assert before.message_ids[-1] not in letta.agent(ada.id).message_ids
    assert run("purge", "--yes").exit_code == 0
    after = letta.agent(ada.id)
    assert after.message_ids[: len(before.message_ids)] == before.message_ids
    assert (after.metadata, after.parallel_calls) == (before.metadata, before.parallel_calls)
    letta.will_say("Hello")
    assert Text("Hello") in list(letta.send_messages(ada.id, [Say("user", "Hello")], by_token=False))
    assert run("purge").output == "There is nothing of the bridge on this server.\n"


@pytest.mark.usefixtures("several_chats")
def test_a_purge_says_which_chats_stay_because_the_owner_has_to_decide(
    run: Run, chat: Chat, letta: SharedLetta, ada: Agent
) -> None:
    chat.ask(tools=[READ])
    letta.holds(ada, "theirs")
    context = letta.agent(ada.id).message_ids
    done = run("purge", "--yes")
    assert f"detached the bridge's tools from Ada. {CHATS_STAY}" in done.output
    assert ([one.name for one in letta.tools()], letta.agent(ada.id).message_ids) == (["theirs"], context)


@pytest.mark.usefixtures("used")
def test_a_purge_asks_before_and_has_a_dry_run(run: Run, letta: SharedLetta) -> None:
    shown = run("purge", "--dry-run")
    assert "read_file" in shown.output
    assert "2 tools of clients, what the bridge added to 2 agents, 1 helper agent, 1 memory block" in shown.output
    refused = run("purge", given="n\n")
    assert refused.exit_code == 1
    assert letta.has("read_file")
    assert run("purge", given="y\n").exit_code == 0
    assert not letta.has("read_file")


@pytest.mark.usefixtures("used")
@pytest.mark.parametrize("verb", ["tools", "change_agent", "delete_tool"])
def test_a_purge_that_fails_says_so_and_can_be_repeated(run: Run, letta: SharedLetta, verb: str) -> None:
    letta.fails(LettaUnreachable("It is down."), at=verb)
    done = run("purge", "--yes")
    assert done.exit_code == 1
    assert "Error: It is down." in done.output
    letta.recovers()
    assert run("purge", "--yes").exit_code == 0
    assert [tool.name for tool in letta.tools()] == ["theirs"]
