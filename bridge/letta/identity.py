"""Recognises a Letta server, whatever address it is called by, by an id that the server made itself."""

from __future__ import annotations

from bridge.letta.gateway import Gateway

# Every Letta makes this tool when it starts for the first time, with a random id, and keeps the id from then on.
_TOOL = "send_message"


class ServerIdentity:
    """The id of the Letta server behind a gateway. The agents' ids are unique among all servers, so this is only needed
    for what has no id, such as the names of tools.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.known: str | None = None

    def read(self) -> str:
        """Returns the id, "" if somebody deleted the tool. Asks the server until it has answered once."""
        if self.known is None:
            found = self._gateway.tools_named([_TOOL])
            self.known = found[0].id if found else ""
        return self.known
