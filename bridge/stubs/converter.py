"""Makes the stub that represents a client's tool on a Letta server."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from bridge.errors import InvalidRequest
from bridge.stubs.as_sent import NON_STRICT_MARK, break_special_tokens, is_strict_schema
from bridge.stubs.checks import SchemaLimits, remove_unstorable
from bridge.stubs.naming import check_tool_name, server_name
from bridge.stubs.schema import convert_schema
from bridge.stubs.source import stub_source, template_digest
from bridge.turn import JsonObject, SchemaForm, Stub, StubKind, ToolSpec

USUAL_LIMITS = SchemaLimits()


def make_stub(
    spec: ToolSpec,
    form: SchemaForm,
    *,
    kind: StubKind = "placeholder",
    where: str = "tools[0].function",
    limits: SchemaLimits = USUAL_LIMITS,
) -> Stub:
    """Returns a tool's stub. Its code returns a fixed text ("placeholder"), or the client's result ("relay")."""
    check_tool_name(spec.name, where)
    try:
        conversion = convert_schema(spec.parameters, form, f"{where}.parameters", limits)
    except InvalidRequest as fault:
        raise fault.about_tool(spec.name) from None
    name = server_name(spec.name, form.python_names)
    changes = conversion.changes
    if name != spec.name:
        changes = (f"The tool is called {name!r} on the server.", *changes)
    json_schema: dict[str, Any] = {
        "name": name,
        "description": _stub_description(spec, name, conversion.sentences),
        "parameters": conversion.parameters,
    }
    if form.as_sent and not (spec.strict and is_strict_schema(conversion.parameters)):
        json_schema |= NON_STRICT_MARK
    return Stub(
        spec=spec,
        name=name,
        digest=_stub_digest(spec.name, json_schema, kind),
        json_schema=json_schema,
        source_code=stub_source(name, kind),
        kind=kind,
        renamed=conversion.renamed,
        as_text=conversion.as_text,
        unnamed=conversion.unnamed,
        changes=changes,
    )


def rename_stub(stub: Stub, name: str) -> Stub:
    """Returns the stub of the same tool under another name on the server."""
    if name == stub.name:
        return stub
    json_schema = {**stub.json_schema, "name": name}
    return replace(stub, name=name, json_schema=json_schema, source_code=stub_source(name, stub.kind))


def _stub_description(spec: ToolSpec, name: str, sentences: tuple[str, ...]) -> str:
    """Returns what the model reads. Never "": some model providers refuse a tool without a description."""
    given = remove_unstorable(spec.description)
    has_text = bool(given.strip())
    paragraphs = [given if has_text else f"Calls the client's tool {spec.name}.", *sentences]
    if name != spec.name and has_text:
        paragraphs.append(f"(The client calls this tool {spec.name}.)")
    return break_special_tokens("\n\n".join(paragraphs))


def _stub_digest(client_name: str, json_schema: JsonObject, kind: StubKind) -> str:
    """Returns the digest that identifies a stub, whatever its name on the server."""
    unnamed = {key: value for key, value in json_schema.items() if key != "name"}
    whole = {"client_name": client_name, "schema": unnamed, "kind": kind, "template": template_digest()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
