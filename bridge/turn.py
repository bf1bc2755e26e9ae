"""The values that the packages of the bridge pass to each other: requests, tools, stubs and what an agent does.

A value is checked where it is made. The packages that get the value trust it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

JsonObject = Mapping[str, Any]
# The interception methods: how the agent's calls of a client's tools are caught (see bridge/interception/).
Method = Literal["auto", "native", "approval", "rewrite", "relay", "prompt", "message"]
# What happens to a client's system prompt (BRIDGE_SYSTEM_PROMPT).
SystemPromptMode = Literal["block", "message", "ignore"]
# What happens to another client's turn while a client runs a tool for the agent (BRIDGE_MEANWHILE).
Meanwhile = Literal["wait", "refuse", "close"]

# A client adds this to the agent's name in `model` if the request must not reach the agent's memory.
ASIDE_SUFFIX = ":aside"


# --- what the client asks for -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the client described it.

    `parameters` is the JSON Schema of the tool's arguments, unchanged; None if the client sent no schema. `strict`: the
    client asks for OpenAI's strict mode. `schema_key` identifies a schema that was checked (see stubs/cache.py); it is
    empty before the check.
    """

    name: str
    description: str = ""
    parameters: JsonObject | None = None
    strict: bool = False
    schema_key: bytes = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools the model may or must call in this turn: OpenAI's `tool_choice`.

    `name` is the tool that the model must call with the mode "function". It is "" with the other modes.
    """

    mode: Literal["auto", "none", "required", "function"] = "auto"
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a client's tool, which the client has to run.

    The tool and its arguments have the names that the client gave them. `arguments` is always a JSON text.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a client's tool returned for the call `call_id`.

    `is_error`: the tool failed. `name` and `arguments` are those of the call in the client's transcript; "" if the
    transcript does not say them.
    """

    call_id: str
    text: str
    is_error: bool = False
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in a message: either `data`, in base64, with `media_type`, or `url`.

    `detail` is OpenAI's field for how exactly the model looks at the picture: "low", "high" or "auto".
    """

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = "auto"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """One message of the user: its text and its pictures."""

    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class NewInput:
    """The part of a client's transcript that the agent has not heard yet.

    `results` are what the client's tools returned. `instructions` are the system and developer messages of the whole
    transcript, joined; "" if there are none. `opens_conversation`: the transcript has no assistant message yet.
    """

    user_messages: tuple[UserMessage, ...]
    results: tuple[ToolResult, ...] = ()
    instructions: str = ""
    opens_conversation: bool = True


class CallIds(Protocol):
    """Makes and reads the ids that a dialect gives to calls.

    The id of a call contains the id of the Letta message with the call or with its return. So the bridge finds that
    message again without any data of its own. Letta's own call ids can't be used: they come from the model and may
    occur twice in a conversation. Letta's message ids are unique.
    """

    def id_in_message(self, message_id: str, index: int) -> str:
        """Returns the client's id of a call: the call number `index`, from 0, of the Letta message `message_id`."""

    def message_and_index(self, call_id: str) -> tuple[str, int] | None:
        """Returns the message id and the index that the call id contains, None if `id_in_message` did not make it."""

    def new_id_without_message(self) -> str:
        """Returns a new id for a call that is in no Letta message, because the bridge read it from the agent's text."""

    def new_ending_id(self) -> str:
        """Returns a new id for a call that the bridge made of the agent's plain text (see interception/ending.py)."""

    def is_ending_id(self, call_id: str) -> bool:
        """Returns whether `new_ending_id` made this id."""


class PlainCallIds:
    """Implements `CallIds` for turns that no client's API asked for, such as the turns of the doctor."""

    def id_in_message(self, message_id: str, index: int) -> str:
        return f"{message_id}/{index}"

    def message_and_index(self, call_id: str) -> tuple[str, int] | None:
        message_id, _, index = call_id.partition("/")
        return (message_id, int(index)) if message_id.startswith("message-") and index.isdigit() else None

    def new_id_without_message(self) -> str:
        return f"text/{secrets.token_hex(12)}"

    def new_ending_id(self) -> str:
        return f"end/{secrets.token_hex(12)}"

    def is_ending_id(self, call_id: str) -> bool:
        return call_id.startswith("end/")


PLAIN_CALL_IDS = PlainCallIds()


@dataclass(frozen=True, slots=True)
class Turn:
    """What one request of a client asks of an agent, checked, and in the same form for every dialect.

    - `model`: the name or the id of the agent.
    - `aside`: the request must not reach the agent's memory. `side_rule` is the name of the `SideRule` that recognised
      such a request; it is "" if the client itself said `aside`.
    - `reply_format`: a text that tells the agent which form its reply must have, "" for any form.
    - `parallel_tool_calls`: the client takes several calls in one reply.
    - `stream`: the client wants the reply as a stream.
    - `known_calls`: the ids of all calls in the transcript, also of calls of which only the result is there.
    - `closed_calls`: the number of calls in the last assistant message of the transcript.
    - `ends_with_result`: the transcript ends with a tool's result. The agent makes a call only once, so a second
      request with the same results is always a repeat of the first.
    - `call_ids`: makes and reads the ids of calls for this turn.
    - `methods`: the interception methods by which the calls may be caught; empty for all methods.
    - `client`: the name of the client's key, "" without a key.
    - `id`: names this turn. Every attempt at the turn has the same id. It is "" until an attempt begins.
    - `repeated`: there was an earlier attempt, and it is not known whether its messages reached the agent.
    """

    model: str
    new_input: NewInput
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    stream: bool = False
    aside: bool = False
    side_rule: str = ""
    reply_format: str = ""
    known_calls: frozenset[str] = frozenset()
    closed_calls: int = 0
    ends_with_result: bool = False
    call_ids: CallIds = PLAIN_CALL_IDS
    methods: frozenset[Method] = frozenset()
    client: str = ""
    id: str = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class SideRule:
    """Recognises requests that must not reach the agent's memory, such as a client's request for a title or a summary.

    `name` is the name of the rule in records. A request fits if all of this is true: the first message with this `role`
    begins with `begins`; each text of `contains` is in some message; with `tools` false, the request offers no tools.
    With `last`, the last message of the transcript must have the role and the beginning, instead of the first message
    with the role. With `alone`, the transcript has at most one message apart from system prompts.
    """

    name: str
    role: Literal["system", "user"]
    begins: str
    contains: tuple[str, ...] = ()
    last: bool = False
    alone: bool = False
    tools: bool = False


# --- a client's tool as it is on the Letta server -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """The form that a stub's schema must have on a certain Letta server, so that the model sees the whole schema.

    bridge/letta/capabilities.py chooses the form, bridge/stubs/ writes the schema in it.

    - `as_sent`: the schema can reach the model as the client sent it. If not, the server converts every schema to
      OpenAI's strict mode: one type for each property, every property required, and no references, alternatives, maps
      or constraints. The bridge then says in the description what strict mode can't express.
    - `letta_converts`: the server converts every schema that it can to strict mode, and passes only the others on
      unchanged. Used only with `as_sent`.
    - `nullable_types`: a type such as `"type": ["string", "null"]` reaches the model. Used only without `as_sent`.
    - `python_names`: the server runs the stub in a script that uses the names of the tool and of its parameters as
      Python names. These names must be identifiers that the script does not use itself.
    """

    as_sent: bool = True
    letta_converts: bool = False
    nullable_types: bool = True
    python_names: bool = False


# What the code of a stub returns: a fixed text, or the client's result (see bridge/stubs/source.py).
StubKind = Literal["placeholder", "relay"]
# The place of a value in the arguments: names of properties from the outermost to the innermost.
ArgumentPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stub:
    """The Python tool on the Letta server that represents a client's tool. It never does the work of the client's tool.

    - `spec`: the client's tool. `name`: the name of the stub on the server, which the model sees.
    - `digest`: a hash of the client's name, the schema that Letta gets, and the template of the code. It identifies the
      stub under any name.
    - `json_schema`: what Letta gives the model: name, description and parameters.
    - `source_code`: the Python code of the stub. `kind` says what the code returns.
    - `renamed`: maps the names of parameters that the model sees to the client's names.
    - `as_text`: the places of arguments for which the model writes JSON text, because the schema could not describe
      their values. The places have the client's names, and "*" for any item of a list.
    - `changes`: sentences that say what differs from the client's tool.
    """

    spec: ToolSpec
    name: str
    digest: str
    json_schema: JsonObject
    source_code: str
    kind: StubKind = "placeholder"
    renamed: Mapping[str, str] = field(default_factory=dict)
    as_text: frozenset[ArgumentPath] = frozenset()
    changes: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        return str(self.json_schema.get("description", ""))


@dataclass(frozen=True, slots=True)
class Binding:
    """A stub, under the name that the agent's model sees, and the id of its tool on the Letta server.

    `tool_id` is "" if the interception method sends the tools with each message: then no stub is on the server.
    """

    stub: Stub
    tool_id: str


# --- what happens in a turn ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MethodChosen:
    """The bridge chose the interception method `method` for this turn. Always the first event of a turn.

    `method` is "none" if no agent is asked.
    """

    method: str


@dataclass(frozen=True, slots=True)
class ToolsOffered:
    """The agent has the tools in `bindings` from now on. `results` are the client's results that came with the request.

    This event is for the record of the turn. The client does not get it.
    """

    agent_id: str
    agent_name: str
    bindings: tuple[Binding, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the agent's thoughts. `item_id` is the id of the Letta message that contains the piece."""

    text: str
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of what the agent says to the user. `item_id` is the id of the Letta message that contains the piece."""

    text: str
    item_id: str = ""


def separated_text(piece: Text | Reasoning, last: Text | Reasoning | None) -> str:
    """Returns the text of `piece`, with an empty line before the text if `last` belongs to another message.

    `last` is the piece that came before, None if `piece` is the first. Without `last`, there is no empty line.
    """
    return piece.text if last is None or last.item_id == piece.item_id else f"\n\n{piece.text}"


@dataclass(frozen=True, slots=True)
class AgentCall:
    """The agent calls a tool on the Letta server, which may be a stub.

    `call_id`, `name` and `arguments` are as Letta has them. `held`: the call waits for an approval and has not run.
    `index` is the number of the call in its message, from 0.
    """

    message_id: str
    call_id: str
    name: str
    arguments: str
    held: bool = False
    index: int = 0


@dataclass(frozen=True, slots=True)
class AgentReturn:
    """A tool on the Letta server returned `text` to the agent. `ok` is false if the tool failed."""

    message_id: str
    call_id: str
    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class RunStarted:
    """Letta started the run `run_id`. By this id, the run can be cancelled or looked up."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Used:
    """The tokens that a run used, as Letta counts them: the sum over all steps of the run.

    A step is one call of the model, and `steps` is their number. `last_step_id` is Letta's id of the last step, "" if
    the id is not known. For the client, `Conversation` replaces `prompt_tokens` by those of the last step.
    """

    prompt_tokens: int
    completion_tokens: int
    steps: int = 1
    last_step_id: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ended. `reason` is Letta's stop reason, such as "end_turn"."""

    reason: str


AgentEvent = MethodChosen | Reasoning | Text | AgentCall | AgentReturn | ToolCall | RunStarted | Used | Stopped
# What a turn yields: the events for the client, and ToolsOffered for the record of the turn only.
TurnEvent = AgentEvent | ToolsOffered
