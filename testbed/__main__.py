"""The command line: `python -m testbed install | up | status | down | versions`."""

import argparse
import signal
import sys
from types import FrameType

from testbed.cache import Cache
from testbed.errors import TestbedError
from testbed.handle import Server
from testbed.install import install_all
from testbed.slots import taken
from testbed.up import bring_down, bring_up
from testbed.versions import RECIPES, VERSIONS

DONE = 0
FAILED = 1
NO_SERVER_RUNS = 3
INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. The exit code is 0 done, 1 failed, 2 wrong usage, 3 (of `status`) no server runs."""
    options = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return COMMANDS[options.command](options, Cache.default())
    except TestbedError as problem:
        print(f"testbed: {problem}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("testbed: interrupted", file=sys.stderr)
        return INTERRUPTED


def interrupt(_number: int, _frame: FrameType | None) -> None:
    """Makes SIGTERM end the command in the same orderly way as Ctrl-C."""
    raise KeyboardInterrupt


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    program = argparse.ArgumentParser(prog="python -m testbed", description="Real Letta servers by version.")
    commands = program.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_install = commands.add_parser("install", help="install versions, or all without a VERSION")
    add_install.add_argument("versions", nargs="*", metavar="VERSION")
    add_up = commands.add_parser("up", help="start a version, install it first if needed, and leave it running")
    add_up.add_argument("version", metavar="VERSION", help="a version that `versions` lists")
    add_up.add_argument("--secure", metavar="PASSWORD", help="make the server ask for this password")
    add_up.add_argument("--model-url", metavar="URL", help="the agents' model: URL of an OpenAI API, ending in /v1")
    add_up.add_argument("--fresh", action="store_true", help="start without the agents of the last time")
    commands.add_parser("status", help="list the servers that run")
    add_down = commands.add_parser("down", help="stop the servers of a version, or all servers")
    add_down.add_argument("version", nargs="?", metavar="VERSION")
    commands.add_parser("versions", help="list the versions that can be run")
    return program


def install(options: argparse.Namespace, cache: Cache) -> int:
    install_all(options.versions or VERSIONS, cache, say)
    return DONE


def up(options: argparse.Namespace, cache: Cache) -> int:
    server = bring_up(
        options.version,
        cache,
        model_url=options.model_url,
        password=options.secure,
        fresh=options.fresh,
        progress=say,
    )
    print(server.base_url)
    return DONE


def status(_options: argparse.Namespace, cache: Cache) -> int:
    servers = [Server(slot, slot.read()) for slot in taken(cache)]
    for server in servers:
        row = f"{server.version:8} {server.slot.name:5} {condition(server):13}"
        print(f"{row} {server.base_url} pid {server.state.pid} {server.log_path}" if server.state.pid else row.rstrip())
    if not servers:
        print("no Letta server is running")
    return DONE if servers else NO_SERVER_RUNS


def condition(server: Server) -> str:
    """Returns what a server is doing, in words."""
    if server.is_healthy():
        return "ready"
    return "not answering" if server.state.ready else "starting" if server.state.pid else "being prepared"


def down(options: argparse.Namespace, cache: Cache) -> int:
    if not bring_down(cache, options.version, say):
        print("nothing to stop")
    return DONE


def versions(_options: argparse.Namespace, cache: Cache) -> int:
    for recipe in RECIPES:
        installed = "installed" if (cache.letta(recipe.version) / "complete").exists() else ""
        row = f"{recipe.version:8} {recipe.released} {recipe.database:11} {recipe.megabytes:4} MB {installed}"
        print(row.rstrip())
    return DONE


def say(line: str) -> None:
    """Prints progress to standard error, so that standard output has only the server's address."""
    print(line, file=sys.stderr, flush=True)


COMMANDS = {"install": install, "up": up, "status": status, "down": down, "versions": versions}

if __name__ == "__main__":
    sys.exit(main())
