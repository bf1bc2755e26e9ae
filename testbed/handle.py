"""A running Letta server, as its user sees it."""

from pathlib import Path

from testbed.errors import NotOwned
from testbed.network import health
from testbed.slots import ServerState, Slot


class Server:
    """A server that another process started. It can be used, and continues to run afterwards."""

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
        """The model that the server was started with. An agent's `llm_config` says which model the agent uses."""
        return self.state.model_url

    @property
    def password(self) -> str | None:
        return self.state.password

    @property
    def log_path(self) -> Path:
        return self.slot.log

    def is_healthy(self) -> bool:
        """Whether it answers, and with the expected version."""
        return self.state.port is not None and health(self.base_url) == self.version

    def is_running(self) -> bool:
        """Whether its process exists, even if it does not answer."""
        return self.slot.is_taken()

    def stop(self) -> None:
        """Does nothing: the process that started it still needs it."""

    def kill(self) -> None:
        """Refuses: the server belongs to another process."""
        raise NotOwned(f"Letta {self.version} at {self.base_url} was started by another process: not killed.")

    def restart(self) -> None:
        """Refuses: the server belongs to another process."""
        raise NotOwned(f"Letta {self.version} at {self.base_url} was started by another process: not restarted.")
