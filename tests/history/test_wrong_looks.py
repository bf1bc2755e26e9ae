"""Which results of tools are marked as looking like an error, and which are not."""

from __future__ import annotations

import time

import pytest

from bridge.history.wrong_looks import looks_like_error


@pytest.mark.parametrize(
    "text",
    [
        "Error: no such file",
        "  \n error: no such file",
        "ERROR: it failed",
        "[ERROR] it failed",
        "Error executing command: it timed out",
        "Error reading file",
        "TypeError: x is not a function",
        "java.lang.IllegalStateException: closed",
        "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
        'Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n' + "    f()\n" * 100,
        "<error>The file does not exist</error>",
        "<tool_error>it failed</tool_error>",
        "fatal: not a git repository",
        "panic: runtime error: index out of range",
        '{"error": "it failed"}',
        '{ "error":{"code":404}}',
        '{"errors": ["one"]}',
        '{"isError": true, "content": []}',
        '{"success": false}',
        '{"status": "error", "message": "The tool execution failed"}',
        "ENOENT: no such file or directory, open 'x'",
        "Could not open it: EACCES: permission denied, open '/root/x'",
        "cat: /etc/shadow: Permission denied",
        "Permission denied.",
        "Exit code: 127\nbash: foo: command not found",
        "ls: cannot access 'x': No such file or directory\n",
        "curl: (7) Failed to connect to localhost port 1: Connection refused",
    ],
)
def test_a_result_that_reads_like_an_error_is_marked(text: str) -> None:
    assert looks_like_error(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "0 errors, 0 warnings",
        "No error was found.",
        "Errors are values: a talk about Go",
        "error handling is described in chapter 4",
        "src/errors.py",
        "class NotFoundError(Exception):\n    pass\n",
        "def f() -> None:\n    raise ValueError('x')\n",
        '{"error": null, "result": 5}',
        '{"error": ""}',
        '{"error": false}',
        '{"errors": []}',
        '{"errors": {}}',
        '{"error": 0}',
        '{"result": {"error": "of a row"}}',
        '{"success": true}',
        '{"status": "ok"}',
        "ENOENT is the name of a fault",
        "If the system says 'Permission denied', call the operator.",
        "12 degrees",
        "The log has these lines:\none\ntwo\nthree\ncat: x: Permission denied",
        "x" * 500 + "\nPermission denied",
        "README.md\nsrc/permission_denied.py",
        '1 | throw new Error("Permission denied");',
    ],
)
def test_other_results_are_not_marked(text: str) -> None:
    assert not looks_like_error(text)


@pytest.mark.parametrize("piece", ["a.", " ", "{", "Error", '{"error"', "_", "\n", "E(", "uncaught "])
def test_a_hostile_result_takes_no_time(piece: str) -> None:
    began = time.thread_time()
    looks_like_error(piece * 1_000_000)
    assert time.thread_time() - began < 5
