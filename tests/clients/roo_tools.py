"""The tools of the Roo-like client: 13, strict, every parameter required. Data only."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer"}
YES_OR_NO: Json = {"type": "boolean"}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _tool(name: str, description: str, **parameters: Json) -> Json:
    function = {"name": name, "description": description, "strict": True, "parameters": _object(**parameters)}
    return {"type": "function", "function": function}


TOOLS: list[Json] = [
    _tool("apply_diff", "Changes a file by search and replace blocks.", path=TEXT, diff=TEXT),
    _tool(
        "ask_followup_question",
        "Asks the user, with suggested answers.",
        question=TEXT,
        follow_up={"type": "array", "items": _object(text=TEXT, mode=TEXT), "minItems": 1, "maxItems": 4},
    ),
    _tool("attempt_completion", "Ends the task with its result.", result=TEXT),
    _tool("execute_command", "Runs a command in the shell.", command=TEXT, cwd=TEXT),
    _tool("list_files", "Lists a folder.", path=TEXT, recursive=YES_OR_NO),
    _tool("new_task", "Begins a task in another mode.", mode=TEXT, message=TEXT, todos=TEXT),
    _tool("read_command_output", "", artifact_id=TEXT, search=TEXT, offset=NUMBER, limit=NUMBER),
    _tool(
        "read_file",
        "Reads a file, by lines or around a place.",
        path=TEXT,
        mode={"type": "string", "enum": ["slice", "indentation"]},
        offset=NUMBER,
        limit=NUMBER,
        indentation=_object(anchor_line=NUMBER, max_levels=NUMBER, include_header=YES_OR_NO),
    ),
    _tool("skill", "Loads a skill.", skill=TEXT, args=TEXT),
    _tool("search_files", "Searches files by a regular expression.", path=TEXT, regex=TEXT, file_pattern=TEXT),
    _tool("switch_mode", "Goes on in another mode.", mode_slug=TEXT, reason=TEXT),
    _tool("update_todo_list", "Replaces the list of what is to do.", todos=TEXT),
    _tool("write_to_file", "Writes a whole file.", path=TEXT, content=TEXT),
]
