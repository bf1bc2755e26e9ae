from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.history.records import TurnRecord
from bridge.operation.codex_names import is_a_model_of_codex, warn_of_name


@pytest.mark.parametrize("name", ["gpt-5.5", "gpt-5.6-sol", "gpt-5.4-mini", "gpt-daybreak-1", "codex-mini"])
def test_models_of_codex_are_known(name: str) -> None:
    assert is_a_model_of_codex(name)


@pytest.mark.parametrize("name", ["Ada", "gpt-5.55", "my-gpt-5.5", "gpt-4o", "sample-letta-v1", "GPT-5.5"])
def test_names_of_other_agents_are_none_of_them(name: str) -> None:
    assert not is_a_model_of_codex(name)


def test_the_log_warns_once_of_such_an_agent(caplog: pytest.LogCaptureFixture) -> None:
    record = TurnRecord(id="turn-1", started=0.0, dialect="responses", model="gpt-5.6-terra")
    for turn in (record, record, replace(record, dialect="chat_completions", model="gpt-5.6-luna")):
        warn_of_name(turn)
    assert [entry.args and entry.args[0] for entry in caplog.records] == ["gpt-5.6-terra"]
