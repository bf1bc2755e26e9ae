"""The values that pass between the rooms. Each is checked where it is made, and trusted afterwards."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

JsonObject = Mapping[str, Any]
Method = Literal["auto", "native", "approval", "rewrite", "relay", "prompt", "message"]
SystemPromptMode = Literal["block", "message", "ignore"]
Meanwhile = Literal["wait", "refuse", "close"]

# After the name of an agent: the request must not reach the agent's memory.
ASIDE_SUFFIX = ":aside"


# --- what the client asks for -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the client described it. `parameters` is its JSON Schema, unchanged; None if the client sent none.

    `schema_key` identifies a schema that was checked (see stubs/cache.py). It is empty before that.
    """

    name: str
    description: str = ""
    parameters: JsonObject | None = None
    strict: bool = False
    schema_key: bytes = field(default=b"", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Which tools the model may or must call in this turn. `name` is set only with mode "function"."""

    mode: Literal["auto", "none", "required", "function"] = "auto"
    name: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call for the client to run, under the client's own names. `arguments` is always a JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the client's tool returned for the call `call_id`. `name` and `arguments` are as in the transcript."""

    call_id: str
    text: str
    is_error: bool = False
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: its `data` in base64 with their media type, or its `url`."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = "auto"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """One message of the user."""

    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class NewInput:
    """The part of a client's transcript that the agent has not heard yet.

    `instructions` are the system and developer messages of the whole transcript, joined; "" if there are none.
    `opens_conversation` is true if the transcript has no assistant message yet.
    """

    user_messages: tuple[UserMessage, ...]
    results: tuple[ToolResult, ...] = ()
    instructions: str = ""
    opens_conversation: bool = True


class CallIds(Protocol):
    """The form in which a dialect writes the ids of calls.

    From an id, the bridge can find Letta's message without remembering anything. Letta's own id of a call comes from
    the model and may occur twice in a conversation; its message ids are unique.
    """

    def id_in_message(self, message_id: str, index: int) -> str:
        """Returns the id of the call number `index` in one of Letta's messages."""

    def message_and_index(self, call_id: str) -> tuple[str, int] | None:
        """Returns the (message id, index) of such an id, None for any other id."""

    def new_id_without_message(self) -> str:
        """Returns a new id for a call that Letta does not know, because it was read from the agent's text."""

    def new_ending_id(self) -> str:
        """Returns a new id for a call that contains the agent's plain answer (see interception/ending.py)."""

    def is_ending_id(self, call_id: str) -> bool:
        """Returns whether the id was made by `new_ending_id`."""


class PlainCallIds:
    """Call ids for turns without a client's API, such as those of the doctor."""

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
    """One request of a client, checked and free of its wire format.

    `aside`: the request must not reach the agent's memory. `side_rule` names the rule by which the bridge recognised
    that, "" if the client said so itself. `reply_format` tells the agent which form its reply must have.
    `known_calls` are the ids of all calls in the transcript, `closed_calls` counts those of its last assistant message.
    `ends_with_result`: the transcript ends with a tool's result. A call is made once, so such a request is a repeat
    whenever it comes again. `methods` are the methods that may catch the calls, empty for all. `client` is the name of
    the client's key. `id` is the same for every attempt at this turn. `repeated`: it is not known what became of an
    earlier attempt.
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
    """Describes a kind of request that is not for the agent: a title, a summary, an extraction of memories.

    The first message of `role` begins with `begins`, and each text of `contains` is in some message. With `last`, the
    last message of all is meant instead of the first of its role. With `alone`, it is the only message apart from
    system prompts. With `tools` false, the request offers no tools. Every condition has to be true.
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
    """The form in which a Letta server needs a tool's schema, so that the model sees all of it.

    bridge/letta/capabilities.py chooses it, bridge/stubs/ makes it.

    `as_sent`: the schema can reach the model as the client sent it. If not, the server converts every schema to
    OpenAI's strict form: one type for each property, everything required, and no references, alternatives, maps or
    constraints. What that form cannot express is then said in words.
    `letta_converts`: the server converts every schema that it can to the strict form, and passes on only the others
    unchanged. It matters with `as_sent`.
    `nullable_types`: `"type": ["string", "null"]` reaches the model. It matters without `as_sent`.
    `python_names`: the server runs the stub in a script that uses the names of the tool and of its parameters as
    Python names. They must be identifiers that the script does not use itself.
    """

    as_sent: bool = True
    letta_converts: bool = False
    nullable_types: bool = True
    python_names: bool = False


StubKind = Literal["placeholder", "relay"]
ArgumentPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stub:
    """A client's tool in the form that Letta keeps: a Python tool that is never meant to do anything.

    `digest` identifies the tool, whatever its name on the server: it is made from the client's name, the schema as
    Letta gets it, and the template. `renamed` maps parameter names that the model sees to the client's names. At the
    places `as_text`, the model gives JSON text instead of a value that the schema could not describe; they are in the
    client's names, with "*" for any item of a list. `changes` says in sentences what differs from the client's tool.
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
    """A stub under the name and id that it has on the server."""

    stub: Stub
    tool_id: str


# --- what happens in a turn ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MethodChosen:
    """The method by which this turn's tool calls are caught. The agent has not answered yet."""

    method: str


@dataclass(frozen=True, slots=True)
class ToolsOffered:
    """The agent has the tools of this turn, under the names of `bindings`. `results` are those that the client gave."""

    agent_id: str
    agent_name: str
    bindings: tuple[Binding, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the agent's thoughts. `item_id` is the message on the server to which it belongs."""

    text: str
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of what the agent says to the user. `item_id` is the message on the server to which it belongs."""

    text: str
    item_id: str = ""


def separated_text(piece: Text | Reasoning, last: Text | Reasoning | None) -> str:
    """Returns the text of a piece, after an empty line if it begins another message. `last` is the piece before it."""
    return piece.text if last is None or last.item_id == piece.item_id else f"\n\n{piece.text}"


@dataclass(frozen=True, slots=True)
class AgentCall:
    """The agent calls a tool, under the server's names. `held`: the call waits for an approval and has not run.

    `index` counts the calls of one message.
    """

    message_id: str
    call_id: str
    name: str
    arguments: str
    held: bool = False
    index: int = 0


@dataclass(frozen=True, slots=True)
class AgentReturn:
    """A tool of the server has returned to the agent."""

    message_id: str
    call_id: str
    text: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The server gave the run a name, by which it can be cancelled or looked up."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Used:
    """Tokens as the server counts them: the sum over all `steps` of the run. Each step is a call of the model."""

    prompt_tokens: int
    completion_tokens: int
    steps: int = 1
    last_step_id: str = ""


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run has ended. `reason` is Letta's word for it."""

    reason: str


AgentEvent = MethodChosen | Reasoning | Text | AgentCall | AgentReturn | ToolCall | RunStarted | Used | Stopped
# What a turn yields: events for the client, and one for the record only.
TurnEvent = AgentEvent | ToolsOffered
