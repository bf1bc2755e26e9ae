"""Reads a client's request in Letta's own API, and says which agent it is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from bridge.errors import InvalidRequest, UnknownPath
from bridge.letta.gateway import AGENT_ID, ForeignCall

READING_VERBS = ("GET", "HEAD")
VERBS = (*READING_VERBS, "POST", "PUT", "PATCH", "DELETE")
# Letta's answers depend on the name and version of the client's SDK. All other headers are the bridge's own, or would
# let a client speak for another user of Letta (`user_id`).
PASSED_HEADERS = ("Accept", "Content-Type", "User-Agent", "X-Stainless-Package-Version")
LONGEST_HEADER = 1000

_ROOT = "/v1/"
# What a server may read otherwise than the bridge does. After decoding, "%" means that the path was encoded twice, and
# U+FFFD that it was not UTF-8.
_MISREAD = re.compile("[\x00-\x1f\x7f-\x9f\\\\%?#\ufffd\ud800-\udfff]")
# The changes of an agent that only read it, or must not wait for its turn to end.
_NO_CHANGES = ("messages/cancel", "messages/preview-raw-payload", "messages/search")


def read_call(verb: str, path: str, query: str, headers: Mapping[str, str], body: bytes | None) -> ForeignCall:
    """Returns the call to Letta for a client's request. `path` is decoded and begins with "/v1/". Raises InvalidRequest
    for what Letta could read otherwise than the bridge does.
    """
    if verb not in VERBS:
        raise InvalidRequest(f"The method {verb!r:.20} is not passed on to Letta; use {', '.join(VERBS)}.")
    if not path.startswith(_ROOT):
        raise UnknownPath.no_such_route()
    words = path.removesuffix("/").split("/")[1:]
    if _MISREAD.search(path) or not {"", ".", ".."}.isdisjoint(words):
        raise InvalidRequest(
            "The path is not passed on to Letta: it has an empty part, '.', '..', or a character that servers read in"
            " different ways (a backslash, %, ?, # or a control character).",
            code="invalid_path",
        )
    if not re.fullmatch(r"[!\"$-~]*", query):
        raise InvalidRequest("The query is not passed on to Letta: it must be percent-encoded.", code="invalid_query")
    return ForeignCall(verb, quote(path, safe="/"), query, _passed_headers(headers), body)


def agent_of(path: str) -> str:
    """Returns the id of the agent that a path is about; "" if it is about none."""
    return _agent_and_part(path)[0]


def part_of_agent(path: str) -> str:
    """Returns what follows an agent's id in its path, such as "messages/stream"; "" for the agent itself."""
    return _agent_and_part(path)[1]


def changes_agent(verb: str, path: str) -> bool:
    """Returns whether a request may change an agent or its messages, so that it has to wait for the agent's turn."""
    return verb not in READING_VERBS and agent_of(path) != "" and part_of_agent(path) not in _NO_CHANGES


def resets_messages(path: str) -> bool:
    """Returns whether a path is that of removing all messages of an agent."""
    return part_of_agent(path) == "reset-messages"


def _agent_and_part(path: str) -> tuple[str, str]:
    begin, _, rest = path.partition(f"{_ROOT}agents/")
    agent_id, _, part = rest.removesuffix("/").partition("/")
    return (agent_id, part) if not begin and AGENT_ID.fullmatch(agent_id) else ("", "")


def _passed_headers(headers: Mapping[str, str]) -> dict[str, str]:
    sent = {name.lower(): text.strip() for name, text in headers.items()}
    found = {name: sent.get(name.lower(), "") for name in PASSED_HEADERS}
    return {name: text for name, text in found.items() if re.fullmatch(rf"[ -~]{{1,{LONGEST_HEADER}}}", text)}
