"""The golden tools in cases/tools: what a client sends, what Letta gets, what comes back.

`tool.json` and `calls.json` are written by hand; regenerate_goldens writes `stub.<form>.json` and the `.py` files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.stubs.converter import make_stub
from bridge.turn import Stub, ToolSpec
from tests.letta_schemas import FORMS, seen_by_model

TOOLS = Path(__file__).parent / "cases" / "tools"
BAD_TOOLS = Path(__file__).parent / "cases" / "tools_bad"


@dataclass(frozen=True)
class Call:
    """The model's arguments, and those that the client must get, as texts."""

    model: str
    client: str


def tool_folders() -> list[Path]:
    return sorted(path for path in TOOLS.iterdir() if path.is_dir())


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def spec_of(tool: dict[str, Any]) -> ToolSpec:
    function = tool["function"]
    return ToolSpec(
        name=function["name"],
        description=function.get("description") or "",
        parameters=function.get("parameters"),
        strict=function.get("strict") is True,
    )


def stub_of(folder: Path, form: str) -> Stub:
    return make_stub(spec_of(read(folder / "tool.json")), FORMS[form])


def calls_of(folder: Path, form: str) -> list[Call]:
    entries = [entry for entry in read(folder / "calls.json") if form in entry.get("dialects", FORMS)]
    return [Call(_text(entry["model"]), _text(entry["client"])) for entry in entries]


def golden(stub: Stub, form: str) -> dict[str, Any]:
    """Returns the content of a stub's golden file; its source is in another one."""
    seen = seen_by_model(stub.json_schema, form)
    return {
        "json_schema": stub.json_schema,
        "renamed": stub.renamed,
        "as_text": sorted(map(list, stub.as_text)),
        "changes": list(stub.changes),
        "model_sees": "the same" if seen["parameters"] == stub.json_schema["parameters"] else seen["parameters"],
        "strict": seen.get("strict", False),
    }


def source_file(folder: Path, form: str) -> Path:
    """One file for all forms, except for those that give the tool another name."""
    own = folder / f"stub.{form}.py"
    return own if own.exists() else folder / "stub.py"


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
