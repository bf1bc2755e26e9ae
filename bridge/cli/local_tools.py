"""Tools for the command `chat`, which run on this machine: functions of a Python file, or commands of a JSON file."""

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
_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


class BadTools(Exception):
    """A file of tools is invalid. The message names the file and the tool."""


@dataclass(frozen=True, slots=True)
class LocalTool:
    """A tool that runs on this machine. `schema` is the tool in OpenAI's form; `run` returns the result as text.
    `describe_call` returns a call as text for the user, who must allow the call.
    """

    schema: Json
    run: Callable[[Json], str]
    describe_call: Callable[[Json], str]

    @property
    def name(self) -> str:
        return str(self.schema["function"]["name"])


def load_tools(path: Path) -> dict[str, LocalTool]:
    """Returns the tools of a file, by name. A file that ends in .py is run, so you must trust it; others are JSON."""
    tools = _tools_from_python(path) if path.suffix == ".py" else _tools_from_json(path)
    if not tools:
        raise BadTools(f"{path} has no tools: public functions in a .py file, or an array of tools in a .json file.")
    return {tool.name: tool for tool in tools}


# --- functions --------------------------------------------------------------------------------------------


def _tools_from_python(path: Path) -> list[LocalTool]:
    """Runs a Python file and returns its public functions as tools. Functions that the file imports are left out."""
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
    schema = schema_of_function(function)

    def run(arguments: Json) -> str:
        returned = function(**arguments)
        return returned if isinstance(returned, str) else json.dumps(returned, default=str)

    return LocalTool(schema, run, lambda arguments: f"{function.__name__}({_arguments_as_text(arguments)})")


def schema_of_function(function: Callable[..., Any]) -> Json:
    """Returns a function as a tool in OpenAI's form, made from its name, docstring, parameters and their types.
    A parameter without a type counts as text. A parameter without a default is required.
    """
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    properties = {one.name: _schema_of_parameter(hints.get(one.name, str), one) for one in parameters}
    required = [one.name for one in parameters if one.default is inspect.Parameter.empty]
    return {
        "type": "function",
        "function": {
            "name": function.__name__,
            "description": inspect.getdoc(function) or "",
            "parameters": {"type": "object", "properties": properties, "required": required},
        },
    }


def _schema_of_parameter(hint: Any, parameter: inspect.Parameter) -> Json:
    described = _schema_of_type(hint)
    default = parameter.default
    known = default is not inspect.Parameter.empty and default is not None
    return {**described, "default": default} if known else described


def _schema_of_type(hint: Any) -> Json:
    """Returns the JSON Schema of a type hint: {}, which allows anything, for an unknown kind.
    Of a union such as `int | None`, only the first type that is not None counts.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return _schema_of_type(next(one for one in inner if one is not type(None)))
    if origin is list and inner:
        return {"type": "array", "items": _schema_of_type(inner[0])}
    kind = _JSON_TYPES.get(origin or hint)
    return {"type": kind} if kind else {}


def _arguments_as_text(arguments: Json) -> str:
    """Returns the arguments as Python writes them in a call: `a=1, b='x'`."""
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


# --- commands ---------------------------------------------------------------------------------------------


def _tools_from_json(path: Path) -> list[LocalTool]:
    """Reads tools from a JSON file: an array of OpenAI tools, or an object with this array as `tools`."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise BadTools(f"{path} can't be read as JSON: {fault}") from fault
    rows = rows.get("tools") if isinstance(rows, dict) else rows
    if not isinstance(rows, list):
        raise BadTools(f"{path} must hold an array of OpenAI tools, each with a `command` next to its `function`.")
    return [_command_tool(row, f"{path}, tool {number}") for number, row in enumerate(rows, start=1)]


def _command_tool(row: Any, where: str) -> LocalTool:
    """Returns the tool of one row of a JSON file. Its command gets all arguments as JSON on its standard input."""
    function = row.get("function") if isinstance(row, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadTools(f'{where} is not of the form {{"type": "function", "function": {{"name": ...}}}}')
    command = row.get("command")
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise BadTools(f'{where} needs a `command`: a list of words such as ["cat", "{{path}}"]')

    def run(arguments: Json) -> str:
        return _run_command(_fill_in_arguments(command, arguments), json.dumps(arguments))

    def describe_call(arguments: Json) -> str:
        return " ".join(map(repr, _fill_in_arguments(command, arguments)))

    return LocalTool({"type": "function", "function": function}, run, describe_call)


def _fill_in_arguments(command: Sequence[str], arguments: Mapping[str, Any]) -> list[str]:
    """Returns the command's words with the arguments in place of `{name}`. A missing argument leaves `{name}` there.
    No shell reads the words, so an argument never becomes several words.
    """
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()}
    return [re.sub(r"\{([^{}]+)\}", lambda place: texts.get(place[1], place[0]), word) for word in command]


def _run_command(command: Sequence[str], given: str) -> str:
    """Returns the standard output and then the error output of a command; first its exit code, unless it is 0."""
    # The user wrote the command, and allowed the call.
    done = subprocess.run(  # nosec B603
        command, input=given, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    said = done.stdout + done.stderr
    return said if done.returncode == 0 else f"exit code {done.returncode}\n{said}"
