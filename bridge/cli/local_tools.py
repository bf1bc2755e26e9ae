"""Tools that run on this machine: functions of a Python file, or commands of a JSON file."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import subprocess
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
COMMAND_SECONDS = 120
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


class BadTools(Exception):
    """A file of tools is invalid. The text says where."""


@dataclass(frozen=True, slots=True)
class LocalTool:
    """`schema` is what the agent gets. `run` runs the tool. `shown` describes a call to the user, who must allow it."""

    schema: Json
    run: Callable[[Json], str]
    shown: Callable[[Json], str]

    @property
    def name(self) -> str:
        return str(self.schema["function"]["name"])


def load(path: Path) -> dict[str, LocalTool]:
    """Returns the tools by name. A Python file is run, so you must trust it."""
    tools = _functions(path) if path.suffix == ".py" else _commands(path)
    if not tools:
        raise BadTools(f"{path} has no tools: public functions in a .py file, or an array of tools in a .json file.")
    return {tool.name: tool for tool in tools}


# --- functions --------------------------------------------------------------------------------------------


def _functions(path: Path) -> list[LocalTool]:
    try:
        names = runpy.run_path(str(path), run_name="tools")
    except (OSError, SyntaxError) as fault:
        raise BadTools(f"{path} can't be run: {fault}") from fault
    own = [
        value
        for name, value in names.items()
        if isinstance(value, types.FunctionType) and not name.startswith("_") and value.__module__ == "tools"
    ]
    return [_function_tool(function) for function in own]


def _function_tool(function: types.FunctionType) -> LocalTool:
    schema = function_schema(function)

    def run(arguments: Json) -> str:
        returned = function(**arguments)
        return returned if isinstance(returned, str) else json.dumps(returned, default=str)

    return LocalTool(schema, run, lambda arguments: f"{function.__name__}({_written(arguments)})")


def function_schema(function: Callable[..., Any]) -> Json:
    """Describes a function as a tool, by its name, docstring, parameters and their types."""
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    properties = {one.name: _described(hints.get(one.name, str), one) for one in parameters}
    required = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    return {
        "type": "function",
        "function": {
            "name": function.__name__,
            "description": inspect.getdoc(function) or "",
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


def _described(hint: Any, parameter: inspect.Parameter) -> Json:
    described = _type(hint)
    default = parameter.default
    known = default is not inspect.Parameter.empty and default is not None
    return {**described, "default": default} if known else described


def _type(hint: Any) -> Json:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return _type(next(one for one in inner if one is not type(None)))
    if origin is list and inner:
        return {"type": "array", "items": _type(inner[0])}
    kind = _KINDS.get(origin or hint)
    return {"type": kind} if kind else {}


def _written(arguments: Json) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


# --- commands ---------------------------------------------------------------------------------------------


def _commands(path: Path) -> list[LocalTool]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise BadTools(f"{path} can't be read as JSON: {fault}") from fault
    rows = rows.get("tools") if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise BadTools(f"{path} must hold an array of OpenAI tools, each with a `command` next to its `function`.")
    return [_command_tool(row, f"{path}, tool {number}") for number, row in enumerate(rows, start=1)]


def _command_tool(row: Any, where: str) -> LocalTool:
    """`command` is a list of words. `{name}` in a word is replaced by an argument; the standard input gets all."""
    function = row.get("function") if isinstance(row, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadTools(f'{where} is not of the form {{"type": "function", "function": {{"name": ...}}}}')
    command = row.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise BadTools(f'{where} needs a `command`: a list of words such as ["cat", "{{path}}"]')

    def run(arguments: Json) -> str:
        return _run(_filled(command, arguments), json.dumps(arguments))

    def shown(arguments: Json) -> str:
        return " ".join(map(repr, _filled(command, arguments)))

    return LocalTool({"type": "function", "function": function}, run, shown)


def _filled(command: Sequence[str], arguments: Mapping[str, Any]) -> list[str]:
    """Puts the arguments into the words. No shell reads them, so an argument never becomes several words."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()}
    return [re.sub(r"\{([^{}]+)\}", lambda place: texts.get(place[1], place[0]), word) for word in command]


def _run(command: Sequence[str], given: str) -> str:
    # The user wrote the command, and allowed the call.
    done = subprocess.run(  # nosec B603
        command, input=given, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    said = done.stdout + done.stderr
    return said if done.returncode == 0 else f"exit code {done.returncode}\n{said}"
