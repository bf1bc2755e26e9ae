"""Tests of the imports: between rooms they go strictly downward, and each library is imported in one place."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# The lowest floor first. A room may import itself and the floors below it, but no other room of its floor.
FLOORS: list[set[str]] = [
    {"bridge.errors", "bridge.turn"},
    {
        "bridge.values",
        "bridge.sse",
        "bridge.trace",
        "bridge.fingerprints",
        "bridge.json_text",
        "bridge.quick_json",
        "bridge.folders",
        "bridge.running",
        "bridge.lasting_thread",
        "bridge.thread_pool",
    },
    {"bridge.logs", "bridge.keys"},
    {"bridge.config"},
    {"bridge.store"},
    {"bridge.locks", "bridge.limits", "bridge.journal"},
    {"bridge.shared"},
    {"bridge.dialects", "bridge.stubs", "bridge.letta", "bridge.reply_format"},
    {"bridge.sync", "bridge.directory", "bridge.toolsets", "bridge.history", "bridge.heard", "bridge.catalogue"},
    {"bridge.interception"},
    {"bridge.offering", "bridge.large_offers", "bridge.chats"},
    {"bridge.aside"},
    {"bridge.conversation"},
    {"bridge.operation", "bridge.passthrough", "bridge.turns"},
    {"bridge.web"},
    {"bridge.cli"},
    {"app", "gunicorn.conf"},
    {"bridge.__main__"},
]

HTTP = ("bridge/letta/connection.py", "bridge/letta/http_faults.py")
KEPT = ("bridge/letta/kept_connection.py", "bridge/letta/kept_connections.py")
# Where a library may be imported, as beginnings of paths. Libraries without a row may not be imported, apart from the
# standard library.
LIBRARIES: dict[str, tuple[str, ...]] = {
    "gunicorn": ("bridge/web/",),
    "flask": ("bridge/web/", "app.py"),
    "werkzeug": ("bridge/web/",),
    "markupsafe": ("bridge/web/admin/",),
    "click": ("bridge/cli/", "bridge/cli.py"),
    "letta_client": HTTP,
    "httpx": HTTP,
    "requests": (*HTTP, *KEPT),
    "urllib3": (*HTTP, *KEPT),
    "httptools": KEPT,
    "msgspec": ("bridge/quick_json.py", "bridge/letta/agent_reader.py"),
    "redis": ("bridge/store/redis.py",),
    "jinja2": ("bridge/stubs/source.py",),
    "prometheus_client": ("bridge/web/metrics.py", "gunicorn.conf.py"),
    "jsonschema_rs": ("bridge/reply_format/helper.py",),
    "dotenv": ("bridge/config.py",),
    "app": ("bridge/__main__.py",),
    "bridge": ("bridge/", "app.py", "gunicorn.conf.py"),
}

ENVIRONMENT = ("app.py", "gunicorn.conf.py")

PATHS = [path.relative_to(ROOT) for path in [*sorted(ROOT.glob("bridge/**/*.py")), ROOT / "app.py"]]
PATHS.append(Path("gunicorn.conf.py"))


def module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), str(path))


MODULES = {module_of(path): path for path in PATHS}


def imported(path: Path) -> Iterator[str]:
    """Yields the modules that a file imports, also within functions. `from package import module` yields the module."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports must be absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else str(node.module)


def room_of(module: str) -> str:
    """Returns the room that a module is or belongs to."""
    rooms = [room for floor in FLOORS for room in floor if f"{module}.".startswith(f"{room}.")]
    assert len(rooms) == 1, f"{module} is on no floor"
    return rooms[0]


def floor_of(room: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if room in floor)


def known_modules(path: Path) -> list[str]:
    return [name for name in imported(path) if name in MODULES and name != "bridge"]


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"bridge"}))
def test_imports_go_downward(module: str) -> None:
    here = room_of(module)
    for other in known_modules(MODULES[module]):
        there = room_of(other)
        assert there == here or floor_of(there) < floor_of(here), f"{module} imports {other}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_library_is_imported_only_in_its_place(module: str) -> None:
    path = MODULES[module].as_posix()
    for name in {name.partition(".")[0] for name in imported(MODULES[module])} - sys.stdlib_module_names:
        assert path.startswith(LIBRARIES.get(name, ())), f"{path} imports {name}"


# Rooms that may know a wire format; all others see a dialect as `bridge.dialects.base` describes it.
KNOW_DIALECTS = ("bridge.dialects", "bridge.web", "app", "bridge.toolsets")


@pytest.mark.parametrize("module", sorted(MODULES.keys() - {"bridge"}))
def test_the_core_knows_no_wire_format(module: str) -> None:
    if module.startswith(KNOW_DIALECTS):
        return
    known = [name for name in known_modules(MODULES[module]) if name.startswith("bridge.dialects.")]
    assert set(known) <= {"bridge.dialects.base"}


def test_imports_have_no_cycle() -> None:
    known = {module: known_modules(path) for module, path in MODULES.items()}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join((*way, module))
        if module not in done:
            for other in known[module]:
                visit(other, (*way, module))
            done.add(module)

    for module in known:
        visit(module, ())


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_the_settings_read_the_environment(module: str) -> None:
    if MODULES[module].as_posix() in ENVIRONMENT:
        return
    names = ("environ", "environb", "getenv", "getenvb")
    tree = [*ast.walk(tree_of(MODULES[module]))]
    asked = {node.attr for node in tree if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os"}
    taken = {alias.name for node in tree if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not {*asked, *taken}.intersection(names), f"{module} reads the environment"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_module_prints_or_evaluates_code(module: str) -> None:
    calls = [node.func for node in ast.walk(tree_of(MODULES[module])) if isinstance(node, ast.Call)]
    assert not [call for call in calls if isinstance(call, ast.Name) and call.id in ("print", "eval", "exec")]


def test_importing_the_service_has_no_side_effects() -> None:
    """Imports it without connections, written files, processes and settings."""
    watch = """
import sys
def touched(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.mkdir", "os.remove"):
        raise RuntimeError(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise RuntimeError(f"{event} {arguments}")
sys.dont_write_bytecode = True
sys.addaudithook(touched)
import app
"""
    done = subprocess.run([sys.executable, "-c", watch], cwd=ROOT, env={}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
