from __future__ import annotations

from dataclasses import replace

import pytest
from flask import Flask

from bridge.history.records import TurnRecord
from bridge.operation.codex_names import is_a_model_of_codex, warn_of_name
from tests.fakes import FakeGateway
from tests.responses_actor import ResponsesClient


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5.5",
        "gpt-5.6-sol",
        "gpt-5.4-mini",
        "gpt-5.5-of-mine",
        "gpt-daybreak-1",
        "codex-mini",
        "gpt-6.1-sol",
        "my_own-1/gpt-5.5",
    ],
)
def test_models_of_codex_are_known(name: str) -> None:
    assert is_a_model_of_codex(name)


@pytest.mark.parametrize(
    "name", ["Ada", "my-gpt-5.5", "gpt-4o", "sample-letta-v1", "GPT-5.5", "a/b/gpt-5.5", "my own/gpt-5.5"]
)
def test_names_of_other_agents_are_none_of_them(name: str) -> None:
    assert not is_a_model_of_codex(name)


def test_the_log_warns_once_of_such_an_agent(caplog: pytest.LogCaptureFixture) -> None:
    record = TurnRecord(id="turn-1", started=0.0, dialect="responses", model="gpt-5.6-terra", agent_id="agent-1")
    other_api = replace(record, dialect="chat_completions", model="gpt-5.6-luna")
    no_agent = replace(record, model="gpt-5.6-nobody", agent_id="")
    for turn in (record, record, other_api, no_agent):
        warn_of_name(turn)
    assert [entry.args and entry.args[0] for entry in caplog.records] == ["gpt-5.6-terra"]


def test_a_request_for_such_an_agent_has_the_log_warn_of_it(
    app: Flask, letta: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    letta.has_agent("gpt-5.4-of-mine")
    for _ in range(2):
        ResponsesClient(app.test_client()).ask(model="gpt-5.4-of-mine")
    assert sum("gpt-5.4-of-mine" in line for line in caplog.messages) == 1
