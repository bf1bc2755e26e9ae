"""A stub as a whole: its description, its digest, its names, the limits."""

import json
from typing import Any

import pytest

from bridge.errors import InvalidRequest, TooDeep
from bridge.stubs.arguments import restore_arguments
from bridge.stubs.checks import SchemaLimits
from bridge.stubs.converter import make_stub, rename_stub
from bridge.stubs.naming import append_digest
from bridge.turn import SchemaForm, ToolSpec
from testbed.model.schemas import schema_findings
from tests.letta_schemas import AS_SENT, CONVERTING, FORMS, SANDBOXED, STRICT, seen_by_model

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
SPEC = ToolSpec("read_file", "Reads a file.", PATH)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_a_plain_tool_reaches_letta_unchanged() -> None:
    stub = make_stub(SPEC, AS_SENT)
    assert stub.name == "read_file"
    assert stub.description == "Reads a file."
    assert stub.json_schema["parameters"] == PATH
    assert (stub.renamed, stub.as_text, stub.changes) == ({}, frozenset(), ())


def test_a_tool_always_has_a_description() -> None:
    assert make_stub(ToolSpec("stop", "  "), AS_SENT).description == "Calls the client's tool stop."


def test_only_characters_that_cannot_be_stored_leave_a_description() -> None:
    assert make_stub(ToolSpec("a", " x\n\ty "), AS_SENT).description == " x\n\ty "
    assert make_stub(ToolSpec("a", "x\x00y\ud800z"), AS_SENT).description == "xy\ufffdz"


def test_the_description_names_the_clients_name_if_the_model_sees_another() -> None:
    assert "fs.read" in make_stub(ToolSpec("fs.read", "Reads."), AS_SENT).description


def test_strict_mode_needs_a_client_that_asks_for_it_and_a_strict_schema() -> None:
    loose = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
    for spec, marked in (
        (SPEC, True),
        (ToolSpec("a", "", PATH, strict=True), False),
        (ToolSpec("a", "", loose, strict=True), True),
    ):
        assert ("mcp:SCHEMA_STATUS" in make_stub(spec, AS_SENT).json_schema) is marked


def test_the_digest_changes_with_everything_that_makes_a_stub_different() -> None:
    other_schema = {**PATH, "required": []}
    stubs = [
        make_stub(SPEC, AS_SENT),
        make_stub(SPEC, STRICT),
        make_stub(SPEC, AS_SENT, kind="relay"),
        make_stub(ToolSpec("read_files", "Reads a file.", PATH), AS_SENT),
        make_stub(ToolSpec("read_file", "Reads one file.", PATH), AS_SENT),
        make_stub(ToolSpec("read_file", "Reads a file.", other_schema), AS_SENT),
    ]
    assert len({stub.digest for stub in stubs}) == len(stubs)
    assert all(len(stub.digest) == 64 for stub in stubs)


def test_the_digest_does_not_depend_on_the_request() -> None:
    assert (
        make_stub(SPEC, AS_SENT).digest == make_stub(ToolSpec("read_file", "Reads a file.", dict(PATH)), AS_SENT).digest
    )
    assert make_stub(SPEC, AS_SENT, where="tools[7].function").digest == make_stub(SPEC, AS_SENT).digest


@pytest.mark.parametrize("form", [AS_SENT, SANDBOXED])
def test_a_second_name_changes_only_the_name(form: SchemaForm) -> None:
    stub = make_stub(SPEC, form)
    second = rename_stub(stub, append_digest(stub.name, stub.digest))
    assert second.name == second.json_schema["name"] == f"read_file_{stub.digest[:8]}"
    assert f"def {second.name}(**kwargs)" in second.source_code
    assert second.digest == stub.digest
    assert {**second.json_schema, "name": stub.name} == stub.json_schema
    assert (second.spec, second.renamed, second.as_text) == (stub.spec, stub.renamed, stub.as_text)


def test_a_stub_with_a_second_name_keeps_its_kind() -> None:
    relay = make_stub(SPEC, SANDBOXED, kind="relay")
    assert "os.environ" in rename_stub(relay, "other").source_code


def test_the_clients_schema_is_not_modified() -> None:
    schema = {"type": "object", "properties": {"thinking": {"type": "array"}}, "anyOf": [{"required": ["thinking"]}]}
    before = json.dumps(schema)
    for form in (AS_SENT, CONVERTING, STRICT, SANDBOXED):
        make_stub(ToolSpec("a", "", schema), form)
    assert json.dumps(schema) == before


def test_a_schema_within_the_limits_is_accepted() -> None:
    make_stub(ToolSpec("a", "", nested(30)), AS_SENT)


@pytest.mark.parametrize("levels", [40, 100_000])
def test_a_schema_that_is_too_deep_is_refused(levels: int) -> None:
    with pytest.raises(TooDeep) as caught:
        make_stub(ToolSpec("a", "", nested(levels)), AS_SENT, where="tools[1].function")
    assert caught.value.param == "tools[1].function.parameters"


def test_a_schema_that_is_too_large_is_refused() -> None:
    schema = {**PATH, "description": "x" * 2000}
    with pytest.raises(InvalidRequest) as caught:
        make_stub(ToolSpec("a", "", schema), AS_SENT, where="tools[1].function", limits=SchemaLimits(size=1000))
    assert (caught.value.param, caught.value.code) == ("tools[1].function.parameters", "tool_too_large")
    assert "1000" in caught.value.message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", object()])
def test_values_that_json_does_not_have_are_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        make_stub(ToolSpec("a", "", {"type": "object", "properties": {"a": {"default": value}}}), AS_SENT)
    assert caught.value.param == "tools[0].function.parameters"


def test_definitions_that_multiply_are_spelt_out_up_to_a_limit() -> None:
    definitions: dict[str, Any] = {
        f"d{level}": {
            "type": "object",
            "properties": {f"p{number}": {"$ref": f"#/$defs/d{level + 1}"} for number in range(10)},
        }
        for level in range(12)
    }
    definitions["d12"] = {"type": "string"}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
    for form in (AS_SENT, CONVERTING, STRICT, SANDBOXED):
        assert len(json.dumps(make_stub(ToolSpec("a", "", schema), form).json_schema)) < 200_000


def test_a_schema_that_is_too_large_once_spelt_out_is_refused() -> None:
    point = {"type": "object", "properties": {"x": {"type": "string", "description": "x" * 5000}}}
    properties = {f"p{number}": {"$ref": "#/$defs/Point"} for number in range(400)}
    spec = ToolSpec("a", "", {"type": "object", "properties": properties, "$defs": {"Point": point}})
    assert len(json.dumps(make_stub(spec, AS_SENT).json_schema)) < 100_000
    with pytest.raises(InvalidRequest) as caught:
        make_stub(spec, CONVERTING, where="tools[1].function")
    assert (caught.value.param, caught.value.code) == ("tools[1].function.parameters", "tool_too_large")


REFERENCES = [{"$ref": f"#/$defs/d{number}"} for number in range(25)]


def deep_ring(keyword: str) -> dict[str, Any]:
    """Definitions that lead in a circle, each through 28 levels."""
    definitions = {}
    for number in range(40):
        inner: dict[str, Any] = {"$ref": f"#/$defs/d{(number + 1) % 40}"}
        for _ in range(28):
            inner = {keyword: [inner]}
        definitions[f"d{number}"] = inner
    return {"properties": {"a": REFERENCES[0]}, "$defs": definitions}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": REFERENCES[0]}, "$defs": {f"d{n}": {"anyOf": REFERENCES} for n in range(25)}},
        {"properties": {"a": REFERENCES[0]}, "$defs": {f"d{n}": {"allOf": REFERENCES} for n in range(25)}},
        {"allOf": REFERENCES, "$defs": {f"d{n}": {"allOf": REFERENCES} for n in range(25)}},
        {"anyOf": REFERENCES, "$defs": {f"d{n}": {"oneOf": REFERENCES} for n in range(25)}},
        {"$ref": "#", "allOf": [{"$ref": "#"}] * 20},
        {"properties": {"a": REFERENCES[0]}, "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1500)}},
        deep_ring("allOf"),
        deep_ring("anyOf"),
    ],
    ids=[
        *("alternatives", "parts", "parts at the top", "alternatives at the top", "the whole", "a long chain"),
        *("a ring of deep parts", "a ring of deep alternatives"),
    ],
)
def test_references_in_circles_come_to_an_end(schema: dict[str, Any]) -> None:
    for form in (AS_SENT, CONVERTING, STRICT, SANDBOXED):
        stub = make_stub(ToolSpec("a", "", {"type": "object", **schema}), form)
        assert len(json.dumps(stub.json_schema)) < 200_000
        assert json.loads(restore_arguments(stub, '{"a": {"b": [1]}, "thinking": ""}')) == {"a": {"b": [1]}}


@pytest.mark.parametrize("place", ["9" * 5000, "1", "01", "\u0660", "-1", "0/" + "9" * 5000])
def test_a_reference_to_a_place_that_a_list_does_not_have_leads_nowhere(place: str) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": f"#/anyOf/{place}"}}, "anyOf": [{}]}
    for form in (AS_SENT, CONVERTING, STRICT, SANDBOXED):
        assert any("leads nowhere" in change for change in make_stub(ToolSpec("a", "", schema), form).changes)


def test_changes_are_described_in_sentences() -> None:
    schema = {"type": "object", "properties": {"class": {"type": "integer", "minimum": 1}, "env": {"type": "object"}}}
    changes = make_stub(ToolSpec("fs.read", "", schema), SANDBOXED).changes
    assert changes == (
        "The tool is called 'fs_read_4074bc02' on the server.",
        "What is optional may be null, which leaves it out.",
        "'class' is given as JSON text.",
        "'class': said in words: at least 1.",
        "'env' is given as JSON text.",
        "'class' is called 'class_' on the server.",
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_reference_to_the_components_of_openapi_is_followed(form: str) -> None:
    shop = {"type": "object", "properties": {"open": True, "goods": {"type": "array"}}, "required": None}
    schema = {
        "type": "object",
        "properties": {"shop": {"$ref": "#/components/schemas/Shop"}},
        "required": ["shop"],
        "components": {"schemas": {"Shop": shop}},
    }
    stub = make_stub(ToolSpec("tool", "Buys.", schema), FORMS[form])
    seen = json.dumps(seen_by_model(stub.json_schema, form)["parameters"]["properties"]["shop"])
    assert "goods" in seen
    assert list(schema_findings("tool", stub.json_schema["parameters"])) == []
    assert stub.description == "Buys."
    assert "components" not in stub.json_schema["parameters"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stray", [{"anyOf": "text"}, {"properties": 5}, {"allOf": [{"required": True}]}, 7])
def test_a_reference_to_an_invalid_schema_leads_nowhere(stray: Any, form: str) -> None:
    schema = {"type": "object", "properties": {"shop": {"$ref": "#/shops/Shop"}}, "shops": {"Shop": stray}}
    stub = make_stub(ToolSpec("tool", "Buys.", schema), FORMS[form])
    assert "leads nowhere" in stub.changes[0]
    assert restore_arguments(stub, '{"shop": "here"}') == '{"shop": "here"}'


@pytest.mark.parametrize("form", FORMS)
def test_all_of_several_alternatives_at_the_top_are_described(form: str) -> None:
    target = {"anyOf": [{"required": ["path"]}, {"required": ["url"]}]}
    content = {"anyOf": [{"properties": {"text": {"type": "string"}}}, {"properties": {"lines": {"type": "array"}}}]}
    names = ["path", "url"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "allOf": [target, content]}
    stub = make_stub(ToolSpec("tool", "Writes.", schema), FORMS[form])
    assert "{path}; {url}" in stub.description
    assert "{text?}; {lines?}" in stub.description
    assert {*names, "text", "lines"} == stub.json_schema["parameters"]["properties"].keys()


@pytest.mark.parametrize("form", FORMS)
def test_alternatives_within_alternatives_at_the_top_are_described(form: str) -> None:
    inner = {
        "properties": {"kind": {"const": "old"}},
        "required": ["kind"],
        "oneOf": [{"properties": {"text": {}}}, {"$ref": "#/$defs/Lines"}],
    }
    schema = {
        "anyOf": [inner, {"properties": {"path": {}}, "required": ["path"]}, {"$ref": "#"}],
        "$defs": {"Lines": {"anyOf": [{"properties": {"lines": {}}, "required": ["lines"]}]}},
    }
    stub = make_stub(ToolSpec("tool", "Writes.", schema), FORMS[form])
    assert '{kind: "old", text?}; {kind: "old", lines}; {path}' in stub.description
    assert {"kind", "text", "lines", "path"} == stub.json_schema["parameters"]["properties"].keys()


def test_a_long_chain_of_alternatives_comes_to_an_end() -> None:
    chain = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": "#/$defs/d0"}]} for n in range(3000)}
    stub = make_stub(ToolSpec("tool", "", {"anyOf": [{"$ref": "#/$defs/d0"}], "$defs": chain}), AS_SENT)
    assert stub.json_schema["parameters"]["properties"] == {}
