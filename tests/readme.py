"""The README's examples in Python, as a user would run them: one after the other in one program."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def examples() -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.M | re.S))


def printed_by(program: str) -> list[str]:
    """Returns the lines that the program prints."""
    output = StringIO()
    with redirect_stdout(output):
        exec(compile(program, str(README), "exec"), {})
    return output.getvalue().splitlines()


def promised() -> list[str]:
    """Returns the lines that the examples say they print, in comments after `print(...)`."""
    return re.findall(r"^print\(.*\)  # (.*)$", examples(), re.M)
