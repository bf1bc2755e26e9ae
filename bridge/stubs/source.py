"""Renders a stub's Python source from a template, and proves that the source does only what it should.

The only text of a client in the source is the tool's name, after it passed an allow-list. The source is compared with a
syntax tree that is built without the template.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache, lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bridge.stubs.naming import function_name, is_server_name
from bridge.turn import StubKind

TEMPLATES = Path(__file__).parents[2] / "templates" / "stubs"
TEMPLATE = "stub.py.j2"

PURPOSE = "A client's tool. The client runs it itself; this code only holds its place on the Letta server."
PLACEHOLDER = "The client returned no result here."
# The agent's variables that the relay stub reads: the number of pieces, each piece, and the beginning of every piece.
RELAY_COUNT = "LETTA_TOOL_BRIDGE_PIECES"
RELAY_PIECE = "LETTA_TOOL_BRIDGE_PIECE_"
# Letta keeps a variable unchanged and unencrypted if it looks like an API key.
RELAY_PREFIX = "sk-"
_TEXTS = {
    "purpose": PURPOSE,
    "placeholder": PLACEHOLDER,
    "relay_count": RELAY_COUNT,
    "relay_piece": RELAY_PIECE,
    "relay_prefix": RELAY_PREFIX,
}


class UnsafeSource(Exception):
    """The source that was rendered for a stub is not what it should be, and must not be used. A fault of the bridge."""


@lru_cache(maxsize=1024)
def stub_source(server_name: str, kind: StubKind = "placeholder") -> str:
    """Returns the source of a stub that returns a fixed text ("placeholder") or the client's result ("relay")."""
    if not is_server_name(server_name):
        raise UnsafeSource(f"{server_name!r} is not a name that may stand in source code")
    function = function_name(server_name)
    values = {"tool": server_name, "function": function, "kind": kind, "relay_prefix_length": len(RELAY_PREFIX)}
    source = _template_environment().get_template(TEMPLATE).render(values | _TEXTS)
    if ast.dump(ast.parse(source)) != ast.dump(_expected_tree(function, kind)):
        raise UnsafeSource(f"the source of {server_name!r} does more or less than it should:\n{source}")
    compile(source, f"<stub {server_name}>", "exec")
    return source


@cache
def template_digest() -> str:
    """Returns a digest of the template of all stubs, by which stubs of an older template are recognised."""
    text = (TEMPLATES / TEMPLATE).read_text(encoding="utf-8")
    return hashlib.sha256("\0".join((text, *_TEXTS.values())).encode()).hexdigest()


@cache
def _template_environment() -> Environment:
    """Returns the Jinja environment of stubs, whose filter `literal` writes a text as a Python string in ASCII."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=False,  # nosec B701 # the template makes Python, which is proven below, not HTML
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["literal"] = ascii
    return environment


def _expected_tree(function: str, kind: StubKind) -> ast.Module:
    """Returns the syntax tree that a stub's source should have, built without the template."""
    module = ast.parse("def f(**kwargs): pass")
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.name = function
    definition.body = [ast.Expr(ast.Constant(PURPOSE)), *ast.parse(_BODIES[kind]).body]
    return module


_BODIES: dict[StubKind, str] = {
    "placeholder": f"return {PLACEHOLDER!r}",
    "relay": f"""
import os
count = int(os.environ.get({RELAY_COUNT!r}, '0'))
return ''.join(os.environ.get({RELAY_PIECE!r} + str(i), {RELAY_PREFIX!r})[{len(RELAY_PREFIX)}:] for i in range(count))
""",
}
