"""Tables are CSV that spreadsheets read, and that can't make a spreadsheet do anything."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import pytest

from bridge.web.admin.tables import csv_text


@dataclass
class Row:
    text: str
    number: float | None = None


COLUMNS = {"text": "text", "number": "number", "length": lambda row: len(row.text)}


def written(*rows: Row) -> list[list[str]]:
    return list(csv.reader(io.StringIO(csv_text(COLUMNS, rows), newline="")))


def test_a_table_is_csv_with_a_line_of_names() -> None:
    assert csv_text(COLUMNS, [Row('a "b", c', 1.23456), Row("two\nlines")]) == (
        'text,number,length\r\n"a ""b"", c",1.235,8\r\n"two\nlines",,9\r\n'
    )
    assert csv_text(COLUMNS, []) == "text,number,length\r\n"


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "|", "%", "\t=", " =", "\n=", "\uff1d", "\uff0b", "\r="])
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(begin: str) -> None:
    ((cell, *_),) = written(Row(f'{begin}HYPERLINK("http://evil.test/")'))[1:]
    assert cell.startswith("'")
    assert cell.endswith('HYPERLINK("http://evil.test/")')


@pytest.mark.parametrize("cut", [";", "; ", ';"', "\n", "\t", "\n;;\n"])
def test_a_text_has_no_formula_where_other_separators_cut_it(cut: str) -> None:
    text = f"a{cut}=1+1"
    assert written(Row(text))[1][0] == f"a{cut}'=1+1"


@pytest.mark.parametrize("text", ["", "a=b", "a; b", "x;y=1", "1, -2", "read_file", "2 + 2", "'quoted'", "ä"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert written(Row(text))[1][0] == text


def test_negative_numbers_stay_numbers() -> None:
    assert written(Row("a", -1.5))[1][1] == "-1.5"


def test_invisible_characters_are_shown_as_codes() -> None:
    assert written(Row("a\u202eb\0c\x1b"))[1][0] == "a\\u202eb\\u0000c\\u001b"
