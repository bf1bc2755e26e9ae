"""Records the requests of a client to the bridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from testbed.proxy import FaultProxy
from testbed.proxy.calls import ProxiedCall

TURNS = ("/v1/chat/completions", "/v1/responses")
LETTA_TURNS = (
    "/letta/v1/agents/*/messages",
    "/letta/v1/agents/*/messages/stream",
    "/letta/v1/conversations/*/messages",
)


class Wire:
    """A proxy between a client and the bridge, read as requests for turns."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.url = f"{proxy.url}/v1"

    @property
    def asked(self) -> list[ProxiedCall]:
        """The requests of the conversation itself: those that offer tools."""
        return [call for call in self._turns() if call.body.get("tools")]

    @property
    def beside(self) -> list[ProxiedCall]:
        """The requests beside the conversation: those without tools."""
        return [call for call in self._turns() if not call.body.get("tools")]

    def _turns(self) -> Sequence[ProxiedCall]:
        self.proxy.wait_until_idle()
        return [call for call in self.proxy.calls("POST") if call.path in TURNS]

    def failures(self) -> list[tuple[str, int | None, str]]:
        """Returns the requests that the bridge did not answer correctly."""
        calls = self.proxy.calls()
        return [(call.path, call.status, call.outcome) for call in calls if not _went_well(call)]


class LettaWire:
    """A proxy between a client of Letta's own API and the bridge."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self.url = f"{proxy.url}/letta"

    @property
    def asked(self) -> list[ProxiedCall]:
        """The requests that give the agent a message or a tool's return."""
        self.proxy.wait_until_idle()
        return [call for path in LETTA_TURNS for call in self.proxy.calls("POST", path)]

    def failures(self) -> list[tuple[str, int | None, str]]:
        """Returns the turns that were not answered, and other requests with errors but 404: clients try many paths."""
        asked = {call.number for call in self.asked}
        bad = [call for call in self.proxy.calls() if not _went_well(call)]
        return [(call.path, call.status, call.outcome) for call in bad if call.number in asked or call.status != 404]


def first_words(call: ProxiedCall, role: str) -> str:
    """Returns the beginning of the first message of a role."""
    for message in call.body["messages"]:
        if message["role"] == role:
            return _text(message["content"])[:200]
    return ""


def last_words(call: ProxiedCall) -> str:
    """Returns the beginning of the last message."""
    return _text(call.body["messages"][-1]["content"])[:200]


def _went_well(call: ProxiedCall) -> bool:
    """Some clients hang up at `[DONE]`, which comes before the last bytes of the HTTP answer."""
    return call.status == 200 and call.outcome in ("answered", "client left")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
