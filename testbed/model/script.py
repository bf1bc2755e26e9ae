r"""The script language: a message to the agent dictates what its model will do.

Lines that start with `!` and a command are the script; everything else in the message is left alone, so a client
may wrap the message as it likes. A script in a message of a user (or of a system message that is not the first
message) is in force until a newer message carries one.

    !call NAME {"a": 1}    call a tool; the JSON object goes out exactly as written; none at all means {};
                           several calls in one step are parallel calls
    !raw NAME TEXT         call a tool with TEXT as the argument text, however broken
    !say TEXT              answer: by calling send_message where that is offered, else as plain content;
                           beside a call in the same step it is the content next to the call
    !plain TEXT            plain content, even where send_message is offered or a tool call is demanded
    !answer                answer with the results of the newest tool calls, freed of Letta's packing
    !think TEXT            the thought of this step: the `thinking` or `inner_thoughts` argument of its calls
                           where their tools have one, else content beside the call
    !reason TEXT           the `reasoning_content` that some endpoints send
    !next                  here ends the step; what follows is the next turn of the model
    !delay SECONDS         wait before the answer
    !slow SECONDS          pause behind each delta of a streamed answer; a delta is about a word
    !status CODE [TEXT]    answer with an HTTP error as OpenAI words it; TEXT may be a known code such as
                           context_length_exceeded, insufficient_quota or rate_limit_exceeded
    !cut                   drop the connection in the middle of the answer
    !disobey               call tools that are not offered, and ignore tool_choice and parallel_tool_calls in this step

TEXT reaches to the end of the line. In it `\n` stands for a newline; written as a JSON string ("...") it is taken
exactly. `call-NONCE` in it becomes the tag in which the newest message asks for calls written into the text. NAME may
hold `*`, which stands for the first offered tool that fits. Commands may follow each other in one line where it is
clear where the first one ends: after a JSON object, a JSON string, a number, or a command that takes nothing.

    !call get_weather {"city": "Oslo"} !next !answer

The model has no memory. Its step is the number of assistant turns after the message that carries the script, so a
repeated request gets the same answer. An answer by send_message is a turn like any other. When the steps are used
up it says `Done.` after a tool's result, and `You said: ...` after a user's message; the latter is also what it
says where there is no script at all.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

# Letta's prompts and other people's files may hold lines such as `!important` or `!README`; only these are ours.
COMMAND = re.compile(r"!([a-z]+)(?=\s|$)")


class ScriptError(ValueError):
    """A line of a script that cannot be read; the text says which and why."""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A dictated tool call with its argument text; `raw` text is sent untouched."""

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
    """What the model does in one turn."""

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

    steps: tuple[ScriptStep, ...] = field(default=(ScriptStep(),))

    def step(self, number: int) -> ScriptStep | None:
        """The step of that number, counted from 0, or None behind the last."""
        return self.steps[number] if number < len(self.steps) else None


def parse_script(text: str) -> Script | None:
    """The script that a message carries, None if it carries none, ScriptError if it cannot be read."""
    lines = [
        (number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if COMMAND.match(line.strip())
    ]
    if not any(_word(line) in COMMANDS for _, line in lines):
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
            raise ScriptError(f"unknown command; there are {', '.join(sorted(COMMANDS))}")
        if line and not COMMAND.match(line):
            raise ScriptError(f"unexpected {line[:40]!r} behind !{word}")


def _json_at_start(text: str) -> tuple[object, int] | None:
    """The JSON value at the start of a text and where it ends."""
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
            raise ScriptError("the arguments are no JSON object; use !raw for broken ones")
        arguments, rest = rest[: found[1]], rest[found[1] :].strip()
    return replace(step, calls=(*step.calls, ScriptedCall(name, arguments))), rest


def _raw(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    name, rest = _name(rest)
    return replace(step, calls=(*step.calls, ScriptedCall(name, rest, raw=True))), ""


def _say(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    text, left = _text(rest)
    return replace(step, text=text), left


def _plain(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    text, left = _text(rest)
    return replace(step, text=text, plain=True), left


def _answer(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    return replace(step, answer=True), rest


def _think(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    text, left = _text(rest)
    return replace(step, thought=text), left


def _reason(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    text, left = _text(rest)
    return replace(step, reasoning=text), left


def _seconds(rest: str) -> tuple[float, str]:
    word, _, left = rest.partition(" ")
    try:
        seconds = float(word)
    except ValueError:
        raise ScriptError("a number of seconds is missing") from None
    if not 0 <= seconds <= 3600:
        raise ScriptError("the seconds must lie between 0 and 3600")
    return seconds, left.strip()


def _delay(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    seconds, left = _seconds(rest)
    return replace(step, delay=seconds), left


def _slow(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    seconds, left = _seconds(rest)
    return replace(step, slow=seconds), left


def _status(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    code, _, text = rest.partition(" ")
    if not re.fullmatch(r"[45]\d\d", code):
        raise ScriptError("a status code between 400 and 599 is missing")
    said, left = _text(text.strip())
    return replace(step, failure=Failure(int(code), said)), left


def _cut(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    return replace(step, cut=True), rest


def _disobey(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    return replace(step, disobey=True), rest


def _next(step: ScriptStep, rest: str) -> tuple[ScriptStep, str]:
    raise ScriptError("!next ends a step and is handled by the reader of lines")


COMMANDS: dict[str, Callable[[ScriptStep, str], tuple[ScriptStep, str]]] = {
    "call": _call,
    "raw": _raw,
    "say": _say,
    "plain": _plain,
    "answer": _answer,
    "think": _think,
    "reason": _reason,
    "next": _next,
    "delay": _delay,
    "slow": _slow,
    "status": _status,
    "cut": _cut,
    "disobey": _disobey,
}
