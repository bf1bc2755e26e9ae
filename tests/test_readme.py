from __future__ import annotations

from functools import partial
from pathlib import Path

import httpx2
import openai
import pytest
from flask import Flask

from bridge.config import variable_rows
from bridge.dialects.chat_completions.parameters import PARAMETERS
from bridge.dialects.responses.parameters import PARAMETERS as RESPONSES_PARAMETERS
from tests.fakes import FakeGateway
from tests.readme import README, examples, printed_by, promised
from tests.test_complaints import held

DOCS = README.parent / "docs"
SETTINGS = DOCS / "settings.md"
ROWS = [
    *((DOCS / "fields.md", row) for row in PARAMETERS),
    *((DOCS / "responses.md", row) for row in RESPONSES_PARAMETERS),
]


def test_the_examples_print_what_they_say(app: Flask, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    letta.has_agent("sample-letta-v1", "letta_v1_agent")
    letta.has_agent("sample-memgpt-v2", "memgpt_v2_agent")
    letta.will_say("Hello!")
    letta.will(*held(("read_file", '{"path": "notes.txt"}')))
    letta.will_say("Buy milk.")
    with httpx2.Client(transport=httpx2.WSGITransport(app)) as http:
        monkeypatch.setattr(openai, "OpenAI", partial(openai.OpenAI, http_client=http))
        assert printed_by(examples()) == ["Hello!", *promised()]
    assert len(promised()) == 2


@pytest.mark.parametrize("row", variable_rows(), ids=lambda row: row["variable"])
def test_the_table_of_settings_has_each_setting(row: dict[str, str]) -> None:
    default = row["default"] if row["default"] in ("", "(required)") else f"`{row['default']}`"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in SETTINGS.read_text().splitlines()]
    assert [f"`{row['variable']}`", default, row["meaning"]] in cells


def test_the_table_of_settings_has_no_other_variable() -> None:
    listed = {line.split("`")[1] for line in SETTINGS.read_text().splitlines() if line.startswith("| `")}
    named = {name for name in listed if name.isupper()}
    assert named == {row["variable"] for row in variable_rows()}


@pytest.mark.parametrize(("page", "row"), ROWS)
def test_the_table_of_fields_has_each_row_of_the_code(page: Path, row: tuple[str, str, str]) -> None:
    rows = [line.replace("`", "") for line in page.read_text().splitlines() if line.startswith("| ")]
    assert f"| {' | '.join(row)} |".replace("`", "") in rows
