"""An OpenAI tool -> the stub that stands for it on a Letta server."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

from bridge.stubs.as_sent import NON_STRICT_MARK, is_strict, plain_text
from bridge.stubs.checks import Limits, storable
from bridge.stubs.naming import check_tool_name, server_name, suffixed
from bridge.stubs.schema import Conversion, convert
from bridge.stubs.source import stub_source, template_digest
from bridge.turn import JsonObject, SchemaForm, Stub, StubKind, ToolSpec

USUAL_LIMITS = Limits()


def make_stub(
    spec: ToolSpec,
    form: SchemaForm,
    *,
    kind: StubKind = "placeholder",
    where: str = "tools[0].function",
    limits: Limits = USUAL_LIMITS,
) -> Stub:
    """`where` is the tool's place in the request; the InvalidRequest that a bad tool ends in names it."""
    check_tool_name(spec.name, where)
    conversion = convert(spec.parameters, form, f"{where}.parameters", limits)
    name = server_name(spec.name, form.python_names)
    changes = conversion.changes
    if name != spec.name:
        changes = (f"The tool is called {name!r} on the server.", *changes)
    json_schema: dict[str, Any] = {
        "name": name,
        "description": _description(spec, conversion, name),
        "parameters": conversion.parameters,
    }
    if form.as_sent and not (spec.strict and is_strict(conversion.parameters)):
        json_schema |= NON_STRICT_MARK
    return Stub(
        spec=spec,
        name=name,
        digest=_digest(spec.name, json_schema, kind),
        json_schema=json_schema,
        source_code=stub_source(name, kind),
        kind=kind,
        renamed=conversion.renamed,
        as_text=conversion.as_text,
        changes=changes,
    )


def renamed_stub(stub: Stub, name: str) -> Stub:
    """The same tool under another name on the server."""
    if name == stub.name:
        return stub
    return replace(
        stub,
        name=name,
        json_schema={**stub.json_schema, "name": name},
        source_code=stub_source(name, stub.kind),
    )


def name_with_suffix(stub: Stub) -> str:
    """The name for a stub whose own name is taken by another tool."""
    return suffixed(stub.name, stub.digest)


def _description(spec: ToolSpec, conversion: Conversion, name: str) -> str:
    """Never empty: some model providers refuse a tool without a description."""
    given = storable(spec.description)
    sentences = [given if given.strip() else f"Calls the client's tool {spec.name}.", *conversion.words]
    if name != spec.name and given.strip():
        sentences.append(f"(The client calls this tool {spec.name}.)")
    return plain_text("\n\n".join(sentences))


def _digest(client_name: str, json_schema: JsonObject, kind: StubKind) -> str:
    named = {key: value for key, value in json_schema.items() if key != "name"}
    whole = {"client_name": client_name, "schema": named, "kind": kind, "template": template_digest()}
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
