"""Tests of what `make run` prints."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from bridge.config import read_settings
from bridge.directory import name_with_digits
from bridge.errors import LettaUnreachable
from testbed import welcome as module
from testbed.welcome import find_agents, welcome
from tests.toolsets import SharedLetta

URL = "http://127.0.0.1:8080"
ALONE = {"BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_HOST": "127.0.0.1"}
KEYS = {"BRIDGE_API_KEYS": f"roo:{'a' * 64},phone:{'b' * 64}"}


def text_for(*agents: str, trouble: str = "", **environment: str) -> str:
    settings = read_settings({"LETTA_BASE_URL": "http://letta.test", **environment})
    return welcome(URL, settings, agents, trouble, "secret")


def example(text: str) -> list[str]:
    """Returns the words of the `curl` in the text, as a shell reads them."""
    (line,) = [line for line in text.splitlines() if line.startswith("  try it")]
    return shlex.split(line.removeprefix("  try it"))


def question(text: str) -> Any:
    return json.loads(example(text)[-1])


def test_it_says_all_that_a_client_needs() -> None:
    lines = text_for("ada", "bob", **ALONE).splitlines()
    assert lines[1] == "The bridge is ready."
    assert lines[3:10] == [
        f"  base URL   {URL}/v1",
        "  API key    anything: none is needed",
        "  model      the name of an agent: ada, bob",
        "  clients    docs/clients.md says what to fill in: Roo Code, Open WebUI, Codex and others",
        f"  admin      {URL}/admin/ (password: secret)",
        "  check it   ./letta-bridge doctor",
        f"  try it     {' '.join(map(shlex.quote, example(text_for('ada', **ALONE))))}",
    ]


@pytest.mark.parametrize("agent", ["ada", "Ada's \u00e9 $HOME `x`"])
def test_the_example_works_when_it_is_pasted(agent: str) -> None:
    words = example(text_for(agent, **ALONE))
    assert words[:4] == ["curl", f"{URL}/v1/chat/completions", "-H", "Content-Type: application/json"]
    assert question(text_for(agent, **ALONE))["model"] == agent


def test_the_example_quotes_an_address_that_a_shell_would_read_as_a_pattern() -> None:
    settings = read_settings({"LETTA_BASE_URL": "http://letta.test", **ALONE, "BRIDGE_HOST": "::1"})
    text = welcome("http://[::1]:8080", settings, ["ada"], "", "secret")
    assert "curl 'http://[::1]:8080/v1/chat/completions' -H" in text


def test_with_keys_their_names_are_shown_and_the_example_has_a_place_for_one() -> None:
    text = text_for("ada", **KEYS)
    assert "  API key    one of BRIDGE_API_KEYS (roo, phone)\n" in text
    assert "Authorization: Bearer YOUR_KEY" in example(text)
    assert "a" * 64 not in text


def test_many_agents_are_not_all_named() -> None:
    text = text_for(*"abcdefg", **ALONE)
    assert f"the name of an agent: a, b, c, d, e and 2 more, which {URL}/v1/models lists\n" in text


def test_trouble_comes_first() -> None:
    text = text_for(trouble="Letta is down.", **ALONE)
    assert text.startswith("\nLetta is down.\n")
    assert question(text)["model"] == "YOUR_AGENT"


# --- agents -----------------------------------------------------------------------------------------------


def test_the_example_takes_a_sample_agent_and_a_name_that_is_unique() -> None:
    letta = SharedLetta()
    twins = [letta.has_agent("twin"), letta.has_agent("twin")]
    letta.has_agent("sample")
    agents, trouble = find_agents(letta, ["missing", "sample"])
    assert (agents[0], sorted(agents[1:]), trouble) == ("sample", sorted(map(name_with_digits, twins)), "")


def test_a_letta_without_agents_or_that_does_not_answer_is_trouble() -> None:
    letta = SharedLetta()
    assert find_agents(letta, []) == ([], "The bridge is ready, but this Letta has no agent yet: make one.")
    letta.fails(LettaUnreachable("Letta can't be reached."), at="agents")
    agents, trouble = find_agents(letta, [])
    assert agents == []
    assert trouble.startswith("The bridge runs, but can't serve yet: Letta can't be reached.\nIt serves as soon as")


# --- other machines ---------------------------------------------------------------------------------------


def test_without_keys_it_says_how_others_can_reach_it() -> None:
    text = text_for("ada", **ALONE)
    assert "Only this machine reaches it." in text
    assert "`./letta-bridge keys new NAME` makes a key." in text
    assert "BRIDGE_HOST=0.0.0.0 BRIDGE_API_KEYS=NAME:... make run\n" in text


def test_with_keys_only_the_address_is_missing() -> None:
    text = text_for("ada", **KEYS, BRIDGE_HOST="127.0.0.1")
    assert "start with: BRIDGE_HOST=0.0.0.0 make run\n" in text
    assert "keys new" not in text


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_a_bridge_on_all_addresses_has_one_for_each_place(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setattr(module, "address_in_the_network", lambda: "192.0.2.7")
    text = text_for("ada", **KEYS, BRIDGE_HOST=host, BRIDGE_URL_PREFIX="/letta")
    assert "  elsewhere  http://192.0.2.7:8080/letta/v1 on other machines\n" in text
    assert "http://host.docker.internal:8080/letta/v1 in Docker" in text
    assert "--add-host host.docker.internal:host-gateway" in text
    assert "Only this machine" not in text


def test_a_machine_without_a_network_shows_no_address_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "address_in_the_network", lambda: None)
    assert "elsewhere" not in text_for("ada", **KEYS)


@pytest.mark.parametrize(("setting", "shown"), [("agents", True), ("all", True), ("off", False), ("", False)])
def test_the_address_for_letta_s_programs_is_shown_if_they_may_use_it(setting: str, shown: bool) -> None:
    assert (f"  Letta API  {URL}/letta " in text_for("ada", **KEYS, BRIDGE_LETTA_API=setting)) == shown
