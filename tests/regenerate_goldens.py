"""Writes the files of the golden tools again: run `python -m tests.regenerate_goldens`, then read the difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs.converter import make_stub
from tests.letta_schemas import AS_SENT, FORMS
from tests.stub_cases import BAD_TOOLS, golden, read, spec_of, stub_of, tool_folders


def write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def regenerate_tool(folder: Path) -> None:
    for old in folder.glob("stub*"):
        old.unlink()
    common = stub_of(folder, "verbatim").source_code
    (folder / "stub.py").write_text(common, encoding="utf-8")
    for form in FORMS:
        stub = stub_of(folder, form)
        write(folder / f"stub.{form}.json", golden(stub, form))
        if stub.source_code != common:
            (folder / f"stub.{form}.py").write_text(stub.source_code, encoding="utf-8")


def regenerate_bad_tool(path: Path) -> None:
    case = read(path)
    with pytest.raises(InvalidRequest) as caught:
        make_stub(spec_of(case["tool"]), AS_SENT, where="tools[2].function")
    refusal = {"param": caught.value.param, "message": caught.value.message}
    path.write_text(json.dumps({"tool": case["tool"], **refusal}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for tool in tool_folders():
        regenerate_tool(tool)
    for bad_tool in sorted(BAD_TOOLS.glob("*.json")):
        regenerate_bad_tool(bad_tool)
