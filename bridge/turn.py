"""The values that the packages of the bridge pass to each other. Checked where they are made, and trusted then."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

JsonObject = Mapping[str, Any]
# The interception methods: how the agent's calls of a client's tools are caught (see bridge/interception/).
Method = Literal["auto", "native", "approval", "rewrite", "relay", "prompt", "message"]
# What happens to a client's system prompt (BRIDGE_SYSTEM_PROMPT).
SystemPromptMode = Literal["block", "message", "ignore"]
# Whether an agent has one context for all, or one for each chat (BRIDGE_CHATS). With "each+main", the main chat is put
# back into the context after each turn, for programs that talk to Letta itself.
ChatsMode = Literal["one", "each", "each+main"]
# What a turn may wait for before the agent can work for it.
WaitCause = Literal["another turn", "another client's tool result", "a run under way"]

# A client adds this to the agent's name in `model` if the request must not reach the agent's memory.
ASIDE_SUFFIX = ":aside"


# --- what the client asks for -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A client's tool. `parameters` is its JSON Schema, None if there was none. `strict`: the client asks for OpenAI's
    strict mode. `schema_key` identifies a schema that was checked (see stubs/cache.py), b"" before the check. `place`:
    the field of the request that has the schema.
    """

    name: str
    description: str = ""
    parameters: JsonObject | None = None
    strict: bool = False
    schema_key: bytes = field(default=b"", compare=False, repr=False)
    place: str = field(default="parameters", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """OpenAI's `tool_choice`. `name` is the tool that the mode "function" asks for, "" with other modes."""

    mode: Literal["auto", "none", "required", "function"] = "auto"
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """The form that the client wants for the agent's final text: one JSON value. `instruction` asks the agent for it.
    `schema`: the value's JSON Schema as JSON text, "" for any object. `field`: the field of the request that has it.
    """

    instruction: str
    schema: str = ""
    field: str = ""


# What the check of a final text found. "unchecked": the check reached its limit of time or memory.
FormatOutcome = Literal["valid", "invalid", "unchecked"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the client has to run, with the client's names. `arguments` is always a JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a client's tool returned for a call. `name` and `arguments` are "" if the transcript does not say them."""

    call_id: str
    text: str
    is_error: bool = False
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: base64 `data` with `media_type`, or `url`. `detail` is OpenAI's field: "low", "high" or "auto"."""

    media_type: str = ""
    data: str = ""
    url: str = ""
    detail: str = "auto"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message that the agent gets. `role` is "system" if the client's API has such messages beside the user's."""

    text: str
    images: tuple[Image, ...] = ()
    role: Literal["user", "system"] = "user"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a client's transcript, with all its text joined. `tool_call_id` and `is_error` are those of a
    tool's result. `name` is the client's optional name; in a tool message, some clients give the tool's name there.
    `digests` keeps what bridge/fingerprints.py makes of the message, because a message never changes.
    """

    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    is_error: bool = False
    images: tuple[Image, ...] = ()
    digests: dict[str, str] = field(default_factory=dict, init=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class NewInput:
    """The part of a client's transcript that the agent has not heard yet. `instructions` are all system and developer
    messages of the transcript, joined. `opens_conversation`: the agent has said nothing in the transcript. `unheard`
    are older messages, in the words in which the agent is told them before the user's (see heard/telling.py).
    """

    user_messages: tuple[UserMessage, ...]
    results: tuple[ToolResult, ...] = ()
    instructions: str = ""
    opens_conversation: bool = True
    unheard: tuple[UserMessage, ...] = ()


class CallIds(Protocol):
    """Makes and reads a dialect's call ids. An id contains the id of the Letta message with the call or its return, so
    the bridge finds that message without data of its own. Letta's call ids come from the model and may occur twice.
    """

    def id_in_message(self, message_id: str, index: int) -> str:
        """Returns the client's id of the call number `index`, from 0, of the Letta message."""

    def message_and_index(self, call_id: str) -> tuple[str, int] | None:
        """Returns the message's id and the call's number in it, from an id of `id_in_message`; None for other ids."""

    def new_ending_id(self) -> str:
        """Returns a new id for a call that the bridge made of the agent's text (see interception/ending.py)."""

    def is_ending_id(self, call_id: str) -> bool:
        """Returns whether `new_ending_id` made this id."""


class PlainCallIds:
    """The call ids of turns that no client's API asked for, such as the turns of the doctor."""

    def id_in_message(self, message_id: str, index: int) -> str:
        return f"{message_id}/{index}"

    def message_and_index(self, call_id: str) -> tuple[str, int] | None:
        message_id, _, index = call_id.partition("/")
        return (message_id, int(index)) if message_id.startswith("message-") and index.isdigit() else None

    def new_ending_id(self) -> str:
        return f"end/{secrets.token_hex(12)}"

    def is_ending_id(self, call_id: str) -> bool:
        return call_id.startswith("end/")


PLAIN_CALL_IDS = PlainCallIds()


@dataclass(frozen=True, slots=True)
class Turn:
    """What one request of a client asks of an agent, in the same form for every dialect.

    - `model`: the agent's name or id. `client`: the name of the client's key, "" without a key.
    - `aside`: the request must not reach the agent's memory. `side_rule`: the rule that said so, if any.
    - `transcript`: the client's messages without those of the role "system"; empty if the turn has none.
    - `sent`: a digest of the messages as the client sent them, by which a repeat is recognised; "" if there is none.
    - `session`: the client's name for its conversation, "" if it sends none.
    - `cache_key`: OpenAI's `prompt_cache_key`, which clients make for each conversation, or for all of them.
    - `chats`: what the client's key says of the agent's chats, None: as BRIDGE_CHATS says.
    - `reply_format`: the form that the agent's final text must have, None for any form.
    - `known_calls`: the ids of all calls in the transcript, also of calls of which only the result is there.
    - `closed_calls`: the number of calls in the last assistant message of the transcript.
    - `comes_once`: a second request with the same content is always a repeat of the first. So it is if the transcript
      ends with a tool's result, as the agent makes a call only once.
    - `answers_all_calls`: the client has to answer all open calls of its conversation before it says anything else, as
      in Letta's own API. Without the answers, the turn is refused.
    - `follows`: the id of the turn whose answer the request names as the one before, "" if it names none: then the
      transcript has only what came after that answer. `is_named`: later requests may name this turn so.
    - `methods`: the interception methods by which the calls may be caught; empty for all methods.
    - `visible_agents`: names and ids of the agents that the client's key allows; empty for all agents.
    - `search_above`: with more tools than that, the agent gets a few of them and a search for the others; 0: never;
      None: as BRIDGE_TOOL_SEARCH says.
    - `id`: the same for every attempt at this turn, "" until an attempt begins.
    - `repeated`: there was an earlier attempt, and it is not known whether its messages reached the agent.
    """

    model: str
    new_input: NewInput
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    stream: bool = False
    aside: bool = False
    side_rule: SideRule | None = None
    transcript: tuple[Message, ...] = field(default=(), compare=False, repr=False)
    sent: str = field(default="", compare=False, repr=False)
    session: str = ""
    cache_key: str = ""
    chats: ChatsMode | None = None
    reply_format: ReplyFormat | None = None
    known_calls: frozenset[str] = frozenset()
    closed_calls: int = 0
    comes_once: bool = False
    answers_all_calls: bool = False
    follows: str = ""
    is_named: bool = False
    call_ids: CallIds = PLAIN_CALL_IDS
    methods: frozenset[Method] = frozenset()
    visible_agents: frozenset[str] = frozenset()
    search_above: int | None = None
    client: str = ""
    id: str = ""
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class SideRule:
    """Recognises requests that must not reach the agent's memory, such as a request for a title. The first message with
    `role` (with `last`: the last message of all) begins with `begins`; each text of `contains` is in some message.
    `alone`: there is at most one message apart from system prompts. `tools` false: the request offers no tools.
    `summary`: the answer sums up the conversation, and the client puts it into its transcript, with words around it.
    """

    name: str
    role: Literal["system", "user"]
    begins: str
    contains: tuple[str, ...] = ()
    last: bool = False
    alone: bool = False
    tools: bool = False
    summary: bool = False


# --- a client's tool as it is on the Letta server -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class SchemaForm:
    """The form that a stub's schema must have on a Letta server, so that the model sees the whole schema.

    - `as_sent`: the schema can reach the model as sent. If not, the server converts every schema to OpenAI's strict
      mode: one type for each property, every property required, no references, alternatives, maps or constraints.
    - `letta_converts`, with `as_sent`: the server converts the schemas that it can to strict mode, not the others.
    - `nullable_types`, without `as_sent`: a type such as `["string", "null"]` reaches the model.
    - `python_names`: a script on the server uses the names of the tool and its parameters as Python names, so they must
      be identifiers that the script does not use itself.
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
    """The Python tool on the Letta server that represents a client's tool and never does that tool's work.

    - `name`, `json_schema`: what the model sees. `changes`: sentences that say what differs from the client's tool.
    - `digest`: hash of the client's name, the schema and the code's template; identifies the stub under any name.
    - `renamed`: maps the names of parameters that the model sees to the client's names.
    - `as_text`: the places, with the client's names and "*" for any item of a list, where the model writes JSON text,
      because the schema could not describe the values.
    - `unnamed`: the parameter that holds the arguments which the client's schema allows without naming them, if any.
    """

    spec: ToolSpec
    name: str
    digest: str
    json_schema: JsonObject
    source_code: str
    kind: StubKind = "placeholder"
    renamed: Mapping[str, str] = field(default_factory=dict)
    as_text: frozenset[ArgumentPath] = frozenset()
    unnamed: str = ""
    changes: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        return str(self.json_schema.get("description", ""))


@dataclass(frozen=True, slots=True)
class Binding:
    """A stub and the id of its tool on the Letta server; "" if the method sends the tools with each message."""

    stub: Stub
    tool_id: str


# --- what happens in a turn ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MethodChosen:
    """The first event of a turn apart from notices: its interception method, "none" if no agent is asked. `told`: how
    many older messages of the transcript the agent is told in this turn, because it has not heard them. `chat`: how the
    context changed for the turn's chat, "new", "back" or "parted"; "" if it did not change.
    """

    method: str
    told: int = 0
    chat: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark about the turn, for developers: in a stream as a comment. It has no words of the conversation."""

    text: str


def waiting_notice(cause: WaitCause) -> Notice:
    return Notice(f"waiting for {cause}")


@dataclass(frozen=True, slots=True)
class ToolsOffered:
    """The agent's tools from now on, and the client's results: for the record of the turn, not for the client.
    `behind_search`: how many tools of the client the agent does not have, and can only find.
    """

    agent_id: str
    agent_name: str
    bindings: tuple[Binding, ...] = ()
    results: tuple[ToolResult, ...] = ()
    behind_search: int = 0


@dataclass(frozen=True, slots=True)
class ToolsLookedUp:
    """The agent looked for tools of the client, or called one that it does not have, and the bridge answered with
    `text`: for the record only. `name` is the tool that it called for that. `ok`: its name and arguments were right.
    """

    name: str
    arguments: str
    text: str
    ok: bool


@dataclass(frozen=True, slots=True)
class OriginalReply:
    """The words of the agent, where the client gets something else: for the record of the turn. The client gets the
    JSON in them, or, if there is a `fault`, the agent's next reply, for which the agent was asked.
    """

    text: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class EndingResults:
    """The client's results for calls that the bridge made itself (see interception/ending.py): for the record only."""

    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class FormatChecked:
    """The agent's final text was checked by the turn's `reply_format`. The text follows."""

    outcome: FormatOutcome


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the agent's thoughts, in the Letta message `item_id`."""

    text: str
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of what the agent says to the user, in the Letta message `item_id`."""

    text: str
    item_id: str = ""


def separated_text(piece: Text | Reasoning, last: Text | Reasoning | None) -> str:
    """Returns the text of `piece`, after an empty line if `last`, the piece before, is of another message."""
    return piece.text if last is None or last.item_id == piece.item_id else f"\n\n{piece.text}"


def joined_text(pieces: Sequence[Text | Reasoning]) -> str:
    """Returns the text of all pieces, with an empty line between two messages."""
    return "".join(map(separated_text, pieces, [None, *pieces]))


@dataclass(frozen=True, slots=True)
class AgentCall:
    """The agent calls a tool on the Letta server. `held`: the call waits for approval. `index`: its place, from 0."""

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
    run_id: str


@dataclass(frozen=True, slots=True)
class Used:
    """The tokens of a run. `last_step_id` is "" if it is not known. A step is one call of the model. For the client,
    `Conversation` replaces `prompt_tokens`, the sum over all steps, by those of the last step.
    """

    prompt_tokens: int
    completion_tokens: int
    steps: int = 1
    last_step_id: str = ""


def sum_used(first: Used | None, second: Used | None) -> Used | None:
    """Returns the tokens of two runs together. The last step is that of the second."""
    if first is None or second is None:
        return first or second
    return Used(
        first.prompt_tokens + second.prompt_tokens,
        first.completion_tokens + second.completion_tokens,
        first.steps + second.steps,
        second.last_step_id,
    )


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run ended. `reason` is Letta's stop reason, such as "end_turn"."""

    reason: str

    @property
    def is_cut_short(self) -> bool:
        """Whether Letta stopped the agent before it had finished, even if its last event is text."""
        return self.reason in ("max_steps", "max_tokens_exceeded")


AgentEvent = (
    MethodChosen
    | Notice
    | Reasoning
    | FormatChecked
    | Text
    | AgentCall
    | AgentReturn
    | ToolCall
    | RunStarted
    | Used
    | Stopped
)
# Events for the record of the turn only.
RecordEvent = ToolsOffered | ToolsLookedUp | OriginalReply | EndingResults
# What a turn yields.
TurnEvent = AgentEvent | RecordEvent
