"""Shows an agent's stored messages as Letta's own API shows them with client tools. Pure functions over Letta's JSON.

A stub's call that still waits for its client's result is shown as Letta shows a pending call of a client tool: as an
approval request, with the call ids that the bridge takes answers for. No value is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from bridge.catalogue.access import called_tool
from bridge.interception.method import find_provisional_text
from bridge.interception.stored_messages import CALL, REQUEST, RETURN, is_heartbeat, is_nudge
from bridge.letta.gateway import StoredMessage
from bridge.letta.rows import message_from_row, text_of
from bridge.passthrough.hiding import OurTools
from bridge.stubs.arguments import remove_letta_arguments
from bridge.turn import CallIds, JsonObject

# Says of a tool's name on the server whether it is one by which the agent looks for others ("look up"), or by which it
# calls one that it does not have itself ("call"); "" for other tools.
AccessTest = Callable[[str], str]

_RESPONSE = "approval_response_message"
# The messages of an open call are next to its provisional return: the call and the denial, and a heartbeat.
_REACH = 2


@dataclass(frozen=True, slots=True)
class _OpenCalls:
    """Calls that wait for their client: the number of their row, and that of their provisional return, if any. They
    are shown with the id `message_id`. `numbers` are the places of the calls in their row.
    """

    row: int
    message_id: str
    numbers: tuple[int, ...]
    returned: int | None = None


def readable_messages(
    rows: list[JsonObject],
    ours: OurTools,
    last_in_context: str,
    *,
    own_tool_names: Collection[str],
    call_ids: CallIds,
) -> list[JsonObject]:
    """Returns messages of an agent, in their order, with the clients' names of tools and without Letta's own arguments.
    `last_in_context` is the id of the last message in the agent's context, `own_tool_names` are the agent's tools: a
    held call of any other tool is one of a client's tool that came with a message.

    Left out are the bridge's own messages: those that make the agent go on, and each denial with which the bridge gave
    a call its provisional return, with Letta's heartbeat after it; and the agent's searches for tools of the client. If
    `rows` have only some of these messages of an open call, and not the call, these are shown as they are: see
    `with_open_call`.
    """
    stored = [_stored(row) for row in rows]
    kind_of = _access_test(ours, own_tool_names)
    open_calls = _find_open_calls(rows, stored, last_in_context, _client_test(ours, own_tool_names), kind_of)
    hidden = _find_own_messages(rows, stored) | _find_look_ups(rows, stored, kind_of)
    if open_calls is not None:
        hidden.add(open_calls.returned)
    shown: list[JsonObject] = []
    for number, row in enumerate(rows):
        if open_calls is not None and number == open_calls.row:
            shown.append(_as_request(row, open_calls, ours, call_ids, kind_of))
        elif number not in hidden:
            shown.append(_with_client_names(row, ours, kind_of))
    unchanged = len(shown) == len(rows) and all(new is old for new, old in zip(shown, rows, strict=True))
    return rows if unchanged else shown


def may_lack_open_call(rows: list[JsonObject], last_in_context: str) -> bool:
    """Returns whether a page has messages that may belong to an open call, but not the call: its provisional return, or
    at an end of the page a heartbeat. The `rows` are those of `readable_messages`.
    """
    open_rows = [row for row in rows if row.get("id") == last_in_context and last_in_context]
    if any(row.get("message_type") == REQUEST for row in open_rows):
        return False
    return any(map(_is_provisional, open_rows)) or any(is_heartbeat(_stored(row)) for row in (*rows[:1], *rows[-1:]))


def with_open_call(
    page: list[JsonObject], newest: list[JsonObject], shown_newest: list[JsonObject], last_in_context: str
) -> list[JsonObject]:
    """Returns a page with the open call in the place of the messages that belong to it. `newest` are the agent's newest
    messages, `shown_newest` the same as `readable_messages` shows them.
    """
    requests = (row for row in shown_newest if (row.get("id"), row.get("message_type")) == (last_in_context, REQUEST))
    request = next(requests, None)
    if request is None:
        return page
    shown_ids = {row.get("id") for row in shown_newest}
    returned = next((number for number, row in enumerate(newest) if row.get("id") == last_in_context), 0)
    near = newest[max(0, returned - _REACH) : returned + _REACH + 1]
    stands_for = {row.get("id") for row in near if row.get("id") not in shown_ids} | {last_in_context}
    places = [number for number, row in enumerate(page) if row.get("id") in stands_for]
    return [request if number in places else row for number, row in enumerate(page) if number not in places[1:]]


def _is_provisional(row: JsonObject) -> bool:
    texts = _texts_by_call(row, _stored(row)) if row.get("message_type") == RETURN else {}
    return any(map(find_provisional_text, texts.values()))


def with_readable_request(
    agent: JsonObject, ours: OurTools, *, own_tool_names: Collection[str], call_ids: CallIds
) -> JsonObject:
    """Returns an agent with its `pending_approval`, which Letta gives when asked for it, as in `readable_messages`."""
    request = agent.get("pending_approval")
    if not isinstance(request, dict):
        return agent
    rows: list[JsonObject] = [request]
    shown = readable_messages(rows, ours, text_of(request.get("id")), own_tool_names=own_tool_names, call_ids=call_ids)
    return agent if shown is rows else {**agent, "pending_approval": shown[0] if shown else None}


def _client_test(ours: OurTools, own_tool_names: Collection[str]) -> Callable[[str], bool]:
    """Returns a function that says whether a tool of this name is a client's."""
    return lambda name: name in ours.client_names or name not in own_tool_names


def _access_test(ours: OurTools, own_tool_names: Collection[str]) -> AccessTest:
    """Returns a function that says which of the bridge's tools for a search has this name on the server."""
    known = ours.access
    kinds = {known.search: "look up", known.describe: "look up", known.call: "call"} if known else {}

    def kind_of(name: str) -> str:
        is_own = name in own_tool_names and name not in ours.client_names
        return "" if is_own else kinds.get(ours.client_names.get(name, name), "")

    return kind_of


def _find_open_calls(
    rows: list[JsonObject],
    stored: list[StoredMessage],
    last_in_context: str,
    calls_client: Callable[[str], bool],
    kind_of: AccessTest,
) -> _OpenCalls | None:
    for number, message in enumerate(stored):
        if message.id == last_in_context and message.kind == REQUEST and _are_of_client(message, calls_client):
            numbers = tuple(call.index for call in message.calls if kind_of(call.name) != "look up")
            return _OpenCalls(number, message.id, numbers) if numbers else None
        if message.id == last_in_context and message.kind == RETURN:
            return _find_returned_calls(rows, stored, number, calls_client)
    return None


def _stored(row: JsonObject) -> StoredMessage:
    """Reads a row of any server. What a tool returned is unpacked from JSON, as Letta before 0.8 needs it."""
    return message_from_row(row, packed=True)


def _are_of_client(message: StoredMessage, calls_client: Callable[[str], bool]) -> bool:
    return bool(message.calls) and all(calls_client(call.name) for call in message.calls)


def _find_returned_calls(
    rows: list[JsonObject], stored: list[StoredMessage], number: int, calls_client: Callable[[str], bool]
) -> _OpenCalls | None:
    """Returns the calls whose return in the row `number` is provisional. Their row is the nearest with their ids,
    because some models give the same ids again.
    """
    texts = _texts_by_call(rows[number], stored[number])
    if not any(map(find_provisional_text, texts.values())):
        return None
    found = [
        _OpenCalls(place, stored[number].id, waiting, number)
        for place, message in enumerate(stored)
        if message.kind in (CALL, REQUEST)
        and _are_of_client(message, calls_client)
        and (waiting := _waiting_calls(message, texts))
    ]
    return min(found, key=lambda one: abs(one.row - number), default=None)


def _texts_by_call(row: JsonObject, message: StoredMessage) -> dict[str, str]:
    """Returns what each call returned, by the server's id of the call. Older servers have no `tool_returns`."""
    return {text_of(row.get("tool_call_id")): message.text, **message.returns}


def _waiting_calls(message: StoredMessage, texts: dict[str, str]) -> tuple[int, ...]:
    return tuple(call.index for call in message.calls if find_provisional_text(texts.get(call.call_id, "")))


def _find_own_messages(rows: list[JsonObject], stored: list[StoredMessage]) -> set[int | None]:
    """Returns the numbers of the rows that are the bridge's doing. The heartbeat after a denial follows the return of
    the denied call, or precedes it where the newest message comes first.
    """
    denials = [number for number, row in enumerate(rows) if _is_own_denial(row)]
    heartbeats = [
        number + 2 * step
        for number in denials
        for step in (1, -1)
        if 0 <= number + 2 * step < len(rows)
        and stored[number + step].kind == RETURN
        and is_heartbeat(stored[number + 2 * step])
    ]
    return {*denials, *heartbeats, *(number for number, message in enumerate(stored) if is_nudge(message))}


def _find_look_ups(rows: list[JsonObject], stored: list[StoredMessage], kind_of: AccessTest) -> set[int]:
    """Returns the numbers of the rows with the calls by which the agent looked for tools, and with their answers: the
    nearest with their ids, because some models give the same ids again.
    """
    hidden: set[int] = set()
    for number, message in enumerate(stored):
        if not message.calls or any(kind_of(call.name) != "look up" for call in message.calls):
            continue
        hidden.add(number)
        ids = {call.call_id for call in message.calls}
        for call_id in ids:
            answers = (
                place
                for place, other in enumerate(stored)
                if other.kind == RETURN and call_id in (of_row := {*_texts_by_call(rows[place], other)} - {""})
                if of_row <= ids
            )
            hidden |= {*sorted(answers, key=lambda place: abs(place - number))[:1]}
    return hidden


def _is_own_denial(row: JsonObject) -> bool:
    is_denial = row.get("message_type") == _RESPONSE and row.get("approve") is False
    return is_denial and find_provisional_text(text_of(row.get("reason"))) is not None


def _as_request(
    row: JsonObject, open_calls: _OpenCalls, ours: OurTools, call_ids: CallIds, kind_of: AccessTest
) -> JsonObject:
    listed = _calls_in(row)
    calls = [
        {
            **_readable_call(listed[number], ours, kind_of),
            "tool_call_id": call_ids.id_in_message(open_calls.message_id, number),
        }
        for number in open_calls.numbers
    ]
    changes = {"id": open_calls.message_id, "message_type": REQUEST, "tool_call": calls[0], "tool_calls": calls}
    return {**row, **changes}


def _calls_in(row: JsonObject) -> list[JsonObject]:
    """Returns the calls of a row as `message_from_row` numbers them."""
    listed = row.get("tool_calls")
    calls: list[JsonObject] = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    return calls or [row["tool_call"]]


def _with_client_names(row: JsonObject, ours: OurTools, kind_of: AccessTest) -> JsonObject:
    """Returns a row with the client's names of tools, and without searches beside other calls. `name` is the tool's
    only in a return; elsewhere it is that of the agent or of a user.
    """
    kind, name = row.get("message_type"), row.get("name")
    if kind not in (REQUEST, CALL, RETURN):
        return row
    changed: dict[str, Any] = {}
    if kind == RETURN and isinstance(name, str) and ours.client_names.get(name, name) != name:
        changed["name"] = ours.client_names[name]
    for member in ("tool_call", "tool_calls"):
        value = row.get(member)
        shown = _readable_calls(value, ours, kind_of)
        if shown is not value:
            changed[member] = shown
    first = _first_that_is_shown(row, kind_of)
    if first is not None:
        changed["tool_call"] = _readable_call(first, ours, kind_of)
    return {**row, **changed} if changed else row


def _first_that_is_shown(row: JsonObject, kind_of: AccessTest) -> JsonObject | None:
    """Returns the first call that is shown, if the row's `tool_call` is a search; None if it need not change."""
    call, listed = row.get("tool_call"), row.get("tool_calls")
    if not (isinstance(call, dict) and isinstance(listed, list) and kind_of(text_of(call.get("name"))) == "look up"):
        return None
    others = (one for one in listed if isinstance(one, dict) and kind_of(text_of(one.get("name"))) != "look up")
    return next(others, None)


def _readable_calls(value: Any, ours: OurTools, kind_of: AccessTest) -> Any:
    """Returns `tool_call`, or `tool_calls`, which is a list or, for pieces in a stream, one call."""
    if isinstance(value, dict):
        return _readable_call(value, ours, kind_of)
    if not isinstance(value, list):
        return value
    kept = [one for one in value if not (isinstance(one, dict) and kind_of(text_of(one.get("name"))) == "look up")]
    shown = [_readable_call(call, ours, kind_of) if isinstance(call, dict) else call for call in kept]
    unchanged = len(shown) == len(value) and all(new is old for new, old in zip(shown, value, strict=True))
    return value if unchanged else shown


def _readable_call(call: JsonObject, ours: OurTools, kind_of: AccessTest) -> JsonObject:
    name, arguments = call.get("name"), call.get("arguments")
    if not isinstance(name, str):
        return call
    inner = called_tool(arguments) if isinstance(arguments, str) and kind_of(name) == "call" else None
    if inner is not None:
        return {**call, "name": inner[0], "arguments": inner[1]}
    if name not in ours.client_names:
        return call
    said = remove_letta_arguments(arguments) if isinstance(arguments, str) else arguments
    client_name = ours.client_names[name]
    return call if (client_name, said) == (name, arguments) else {**call, "name": client_name, "arguments": said}
