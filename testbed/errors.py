"""What can go wrong in the testbed.

TestbedError
  UnknownVersion      the version is not in the table
  CacheUnusable       the cache folder belongs to another user
  InstallFailed       something could not be downloaded or installed
  DatabaseFailed      PostgreSQL could not be started or queried
  RedisFailed         Redis could not be started
  BrowserMissing      there is no Chromium, and it could not be downloaded
  ServiceFailed       the bridge did not start
  StartFailed         a Letta server ended or did not become ready
  NotOwned            another process started the server, so this one may not kill or restart it
  AgentFailed         a server refused to make or remove an agent
"""


class TestbedError(Exception):
    """A failure, explained in one sentence, and the end of the program's output if there is any."""

    # Tells pytest that the class is not a collection of tests.
    __test__ = False


class UnknownVersion(TestbedError):
    pass


class CacheUnusable(TestbedError):
    pass


class InstallFailed(TestbedError):
    pass


class DatabaseFailed(TestbedError):
    pass


class RedisFailed(TestbedError):
    pass


class BrowserMissing(TestbedError):
    pass


class ServiceFailed(TestbedError):
    pass


class StartFailed(TestbedError):
    pass


class NotOwned(TestbedError):
    pass


class AgentFailed(TestbedError):
    pass


def tail(text: str, lines: int = 30) -> str:
    """Returns the last lines of a program's output, indented."""
    kept = text.rstrip().splitlines()[-lines:]
    return "\n".join(f"    {line}" for line in kept) if kept else "    (no output)"
