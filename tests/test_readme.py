from __future__ import annotations

from pathlib import Path

import pytest

from bridge.config import variable_rows
from bridge.dialects.chat_completions.parameters import PARAMETERS
from bridge.dialects.responses.parameters import PARAMETERS as RESPONSES_PARAMETERS

README = Path(__file__).parent.parent / "README.md"
RESPONSES = README.parent / "docs" / "responses.md"
ROWS = [*((README, row) for row in PARAMETERS), *((RESPONSES, row) for row in RESPONSES_PARAMETERS)]


@pytest.mark.parametrize("row", variable_rows(), ids=lambda row: row["variable"])
def test_the_table_of_settings_has_each_setting(row: dict[str, str]) -> None:
    default = row["default"] if row["default"] in ("", "(required)") else f"`{row['default']}`"
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in README.read_text().splitlines()]
    assert [f"`{row['variable']}`", default, row["meaning"]] in cells


def test_the_table_of_settings_has_no_other_variable() -> None:
    listed = {line.split("`")[1] for line in README.read_text().splitlines() if line.startswith("| `")}
    named = {name for name in listed if name.isupper()}
    assert named == {row["variable"] for row in variable_rows()}


@pytest.mark.parametrize(("page", "row"), ROWS)
def test_the_table_of_fields_has_each_row_of_the_code(page: Path, row: tuple[str, str, str]) -> None:
    rows = [line.replace("`", "") for line in page.read_text().splitlines() if line.startswith("| ")]
    assert f"| {' | '.join(row)} |".replace("`", "") in rows
