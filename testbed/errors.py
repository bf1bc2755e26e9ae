"""What can go wrong in the testbed.

TestbedError
  UnknownVersion      a version that is not in the table
  CacheUnusable       the folder of everything belongs to somebody else
  InstallFailed       something could not be fetched or installed
  DatabaseFailed      PostgreSQL could not be started or asked
  RedisFailed         Redis could not be started
  BrowserMissing      there is no Chromium, and none could be fetched
  ServiceFailed       the bridge did not start
  StartFailed         a Letta server died or did not become ready
  NotOwned            a server that somebody else started was to be killed or restarted
  AgentFailed         a server refused to make or remove an agent
"""


class TestbedError(Exception):
    """A failure that is explained in one sentence, with the end of the tool's output where it has one."""

    # Keeps pytest from taking the class for a collection of tests.
    __test__ = False


class UnknownVersion(TestbedError):
    """The version is not in the table."""


class CacheUnusable(TestbedError):
    """The folder of everything belongs to somebody else."""


class InstallFailed(TestbedError):
    """Something could not be fetched or installed."""


class DatabaseFailed(TestbedError):
    """PostgreSQL could not be started or asked."""


class RedisFailed(TestbedError):
    """Redis could not be started."""


class BrowserMissing(TestbedError):
    """There is no Chromium, and none could be fetched."""


class ServiceFailed(TestbedError):
    """The bridge did not start."""


class StartFailed(TestbedError):
    """A Letta server died or did not become ready."""


class NotOwned(TestbedError):
    """The server was started by somebody else, so its life is not ours to change."""


class AgentFailed(TestbedError):
    """A server refused to make or remove an agent."""


def tail(text: str, lines: int = 30) -> str:
    """The last lines of a tool's output, indented below a sentence."""
    kept = text.rstrip().splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in kept) if kept else "    (no output)"
