r"""The script language: a message to the agent dictates what its model will do.

Lines that start with `!` and a command are the script. Other lines are ignored, so a client may wrap the message as it
likes. A script in a user message (or in a system message that is not the first message) holds until a newer message
has one.

    !call NAME {"a": 1}    call a tool; the JSON object is sent exactly as written and may be left out for {};
                           several calls in one step are parallel calls
    !raw NAME TEXT         call a tool with TEXT as the argument text, which may be broken JSON
    !say TEXT              answer: by calling send_message if that is offered, else as plain content;
                           with a call in the same step it is the content beside the call
    !plain TEXT            plain content, even if send_message is offered or a tool call is demanded
    !answer                answer with the results of the newest tool calls, without Letta's wrapping
    !think TEXT            the thought of this step: the `thinking` or `inner_thoughts` argument of its calls
                           if their tools have one, else content beside the call
    !reason TEXT           the `reasoning_content` that some endpoints send
    !next                  end the step; the following commands are for the next turn of the model
    !delay SECONDS         wait before the answer
    !slow SECONDS          pause after each delta of a streamed answer; a delta is about a word
    !status CODE [TEXT]    answer with an HTTP error as OpenAI words it; TEXT may be a known code such as
                           context_length_exceeded, insufficient_quota or rate_limit_exceeded
    !cut                   drop the connection in the middle of the answer
    !disobey               call tools that are not offered, and ignore tool_choice and parallel_tool_calls in this step

TEXT reaches to the end of the line. In it `\n` means a newline; a JSON string ("...") is taken exactly. `call-NONCE`
in it becomes the tag that the newest message wants around calls written as text. NAME may contain `*`; it means the
first offered tool that fits. Several commands may follow each other in one line if the end of each is clear: after a
JSON object, a JSON string, a number, or a command without arguments.

    !call get_weather {"city": "Oslo"} !next !answer

The model has no memory. Its step is the number of assistant turns after the message with the script, so a repeated
request gets the same answer. An answer by send_message is a turn like any other. After the last step it says `Done.`
after a tool's result, and `You said: ...` after a user's message. Without any script it says `You said: ...`, too.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

# Letta's prompts and other files may contain lines such as `!important` or `!README`: only known commands count.
COMMAND = re.compile(r"!([a-z]+)(?=\s|$)")


class ScriptError(ValueError):
    """A line of a script cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A dictated tool call with its argument text. `raw` text is sent unchanged."""

    name: str
    arguments: str = "{}"
    raw: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A dictated HTTP error."""

    status: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """The model's behaviour in one turn."""

    text: str | None = None
    plain: bool = False
    answer: bool = False
    thought: str | None = None
    reasoning: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    delay: float = 0.0
    slow: float = 0.0
    failure: Failure | None = None
    cut: bool = False
    disobey: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of one message."""

    steps: tuple[ScriptStep, ...] = (ScriptStep(),)

    def step(self, number: int) -> ScriptStep | None:
        """Returns the step of that number, counted from 0, or None after the last."""
        return self.steps[number] if number < len(self.steps) else None


Command = Callable[[ScriptStep, str], tuple[ScriptStep, str]]


def parse_script(text: str) -> Script | None:
    """Reads the script in a message. None if there is no script, ScriptError if it cannot be read."""
    lines = [
        (number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if COMMAND.match(line.strip())
    ]
    if not any(_word(line) in WORDS for _, line in lines):
        return None
    steps = [ScriptStep()]
    for number, line in lines:
        try:
            _read_line(steps, line)
        except ScriptError as error:
            raise ScriptError(f"line {number} of the message, {line[:80]!r}: {error}") from None
    return Script(tuple(steps))


def _word(line: str) -> str:
    found = COMMAND.match(line)
    return found.group(1) if found else ""


def _read_line(steps: list[ScriptStep], line: str) -> None:
    while line:
        word = _word(line)
        rest = line[len(word) + 1 :].strip()
        if word == "next":
            steps.append(ScriptStep())
            line = rest
        elif word in COMMANDS:
            steps[-1], line = COMMANDS[word](steps[-1], rest)
        else:
            raise ScriptError(f"unknown command; there are {', '.join(WORDS)}")
        if line and not COMMAND.match(line):
            raise ScriptError(f"unexpected {line[:40]!r} after !{word}")


def _json_at_start(text: str) -> tuple[object, int] | None:
    """Returns the JSON value at the start of a text, and where it ends."""
    try:
        return json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None


def _text(rest: str) -> tuple[str, str]:
    if rest.startswith('"'):
        found = _json_at_start(rest)
        if found is not None:
            value, end = found
            left = rest[end:].strip()
            if isinstance(value, str) and (not left or COMMAND.match(left)):
                return value, left
    return rest.replace("\\n", "\n"), ""


def _name(rest: str) -> tuple[str, str]:
    name, _, left = rest.partition(" ")
    if not name:
        raise ScriptError("the name of a tool is missing")
    return name, left.strip()


def _call(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    name, rest = _name(rest)
    arguments = "{}"
    if rest.startswith("{"):
        found = _json_at_start(rest)
        if found is None:
            raise ScriptError("the arguments are not a JSON object; use !raw for broken ones")
        arguments, rest = rest[: found[1]], rest[found[1] :].strip()
    return replace(step, calls=(*step.calls, ScriptedCall(name, arguments))), rest


def _raw(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    name, rest = _name(rest)
    return replace(step, calls=(*step.calls, ScriptedCall(name, rest, raw=True))), ""


def _status(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    code, _, text = rest.partition(" ")
    if not re.fullmatch(r"[45]\d\d", code):
        raise ScriptError("a status code between 400 and 599 is missing")
    said, left = _text(text.strip())
    return replace(step, failure=Failure(int(code), said)), left


def _seconds(rest: str) -> tuple[float, str]:
    word, _, left = rest.partition(" ")
    try:
        seconds = float(word)
    except ValueError:
        raise ScriptError("a number of seconds is missing") from None
    if not 0 <= seconds <= 3600:
        raise ScriptError("the seconds must lie between 0 and 3600")
    return seconds, left.strip()


def _sets(name: str, read: Callable[[str], tuple[Any, str]], **more: Any) -> Command:
    """A command that sets the field `name` of its step to what `read` finds behind the command."""

    def command(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
        value, left = read(rest)
        fields: dict[str, Any] = {name: value, **more}
        return replace(step, **fields), left

    return command


def _true(rest: str) -> tuple[bool, str]:
    return True, rest


COMMANDS: dict[str, Command] = {
    "call": _call,
    "raw": _raw,
    "say": _sets("text", _text),
    "plain": _sets("text", _text, plain=True),
    "answer": _sets("answer", _true),
    "think": _sets("thought", _text),
    "reason": _sets("reasoning", _text),
    "delay": _sets("delay", _seconds),
    "slow": _sets("slow", _seconds),
    "status": _status,
    "cut": _sets("cut", _true),
    "disobey": _sets("disobey", _true),
}
WORDS = sorted([*COMMANDS, "next"])
