"""A running Letta server, for the one who uses it."""

from pathlib import Path

from testbed.errors import NotOwned
from testbed.network import health
from testbed.slots import ServerState, Slot


class Server:
    """A server that somebody else started: it can be used, and goes on afterwards."""

    def __init__(self, slot: Slot, state: ServerState) -> None:
        self.slot = slot
        self.state = state

    @property
    def version(self) -> str:
        return self.slot.version

    @property
    def base_url(self) -> str:
        return self.state.base_url

    @property
    def model_url(self) -> str:
        """The model that it was started with. An agent's own `llm_config` says what the agent uses."""
        return self.state.model_url

    @property
    def password(self) -> str | None:
        return self.state.password

    @property
    def log_path(self) -> Path:
        return self.slot.log

    def is_healthy(self) -> bool:
        """Whether it answers, as the version that it should be."""
        return self.state.port is not None and health(self.base_url) == self.version

    def is_running(self) -> bool:
        """Whether its process is there, whatever it answers."""
        return self.slot.is_taken()

    def stop(self) -> None:
        """Nothing: it goes on for the one who started it."""

    def kill(self) -> None:
        """Refused."""
        raise NotOwned(f"Letta {self.version} at {self.base_url} was started by another process: not killed.")

    def restart(self) -> None:
        """Refused."""
        raise NotOwned(f"Letta {self.version} at {self.base_url} was started by another process: not restarted.")
