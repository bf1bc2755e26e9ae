"""A small schema that asks for much work is refused before the work is done."""

from __future__ import annotations

import json
from graphlib import TopologicalSorter
from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs.cache import StubCache
from bridge.stubs.converter import make_stub
from bridge.stubs.in_words import compact_json
from bridge.stubs.normalise import Normalised, normalise_schema
from bridge.stubs.references import MAX_ELSEWHERE
from bridge.stubs.schema import spend_work
from bridge.stubs.strict_form import MAX_QUOTED_TOGETHER
from bridge.stubs.work import MAX_WORK, Work
from bridge.turn import ToolSpec
from tests.letta_schemas import FORMS

PARTS = 2000
LARGE = {"allOf": [{"properties": {f"p{number}": {}}} for number in range(PARTS)]}
WORDS = {"enum": [f"word {number}" for number in range(4000)]}
PLACE = "tools[3].function.parameters"


def refers(members: int, **own: Any) -> ToolSpec:
    """Returns a tool with alternatives that all lead to one large schema."""
    alternatives = [{"$ref": "#/$defs/Large", **own} for _ in range(members)]
    return ToolSpec("tool", "", {"type": "object", "anyOf": alternatives, "$defs": {"Large": LARGE}})


def work_on(spec: ToolSpec) -> int:
    work = Work()
    spend_work(spec, PLACE, work)
    return work.spent


def test_alternatives_that_lead_to_one_schema_read_its_parts_once() -> None:
    assert work_on(refers(50)) - work_on(refers(1)) < PARTS


def test_work_grows_with_the_schema_and_not_with_its_square() -> None:
    for one, double in ((refers(5), refers(10)), (wide(500), wide(1000))):
        assert work_on(double) < 3 * work_on(one)


def wide(number: int) -> ToolSpec:
    forms = [{"properties": {f"p{place}": {"const": place}}} for place in range(number)]
    return ToolSpec("tool", "", {"type": "object", "anyOf": forms})


def spellings(start: str, name: str, number: int) -> list[str]:
    """Returns references that mean the same: each letter of the name may be a percent code."""
    codes = [f"%{ord(letter):02x}" for letter in name]
    return [
        start + "".join(codes[at] if which >> at & 1 else letter for at, letter in enumerate(name))
        for which in range(number)
    ]


def refers_to(references: list[str], **others: Any) -> ToolSpec:
    properties = {f"p{number}": {"$ref": reference} for number, reference in enumerate(references)}
    return ToolSpec("tool", "", {"type": "object", "properties": properties, **others})


def test_a_place_without_definitions_is_read_once_however_references_to_it_are_spelt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []

    def note(schema: Any) -> Normalised:
        read.append(schema)
        return normalise_schema(schema)

    monkeypatch.setattr("bridge.stubs.references.normalise_schema", note)
    spec = refers_to(spellings("#/", "components", 60), components=LARGE)
    make_stub(spec, FORMS["strict"])
    assert read == [LARGE]


def test_references_that_are_spelt_in_many_ways_do_not_make_many_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = 0

    class Counted(TopologicalSorter[str]):
        def __init__(self, graph: dict[str, set[str]]) -> None:
            nonlocal edges
            edges += sum(map(len, graph.values()))
            super().__init__(graph)

    monkeypatch.setattr("bridge.stubs.references.TopologicalSorter", Counted)
    node = refers_to(spellings("#/$defs/", "definition", 400)).parameters
    stub = make_stub(refers_to(["#/$defs/definition"], **{"$defs": {"definition": node}}), FORMS["strict"])
    assert stub.as_text == {("p0",)}
    assert edges < 10


def test_places_inside_one_another_are_read_to_a_limit_and_count_as_work() -> None:
    inside: Any = LARGE
    for _ in range(25):
        inside = {"in": inside}
    spec = refers_to([f"#/x{'/in' * level}" for level in range(26)], x=inside)
    assert 25 * PARTS < work_on(spec) < MAX_ELSEWHERE + 10 * PARTS


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"$ref": "#/$defs/Large", "title": str(number)} for number in range(100)]},
        {"allOf": [{"properties": {f"p{n}": {}}, "additionalProperties": False} for n in range(1500)]},
        {"anyOf": [{"properties": {f"p{n}": {}}, "additionalProperties": {"type": "string"}} for n in range(1500)]},
        {
            "properties": {"x": {"properties": {"p": WORDS}}},
            "anyOf": [{"$ref": "#/properties/x", "properties": {"p": {"minLength": n}}} for n in range(500)],
        },
    ],
    ids=["one large schema", "closed parts", "forms with a schema for other names", "long texts"],
)
def test_a_schema_that_asks_for_too_much_work_is_refused_with_what_to_do(schema: dict[str, Any]) -> None:
    spec = ToolSpec("heavy", "", {"type": "object", **schema, "$defs": {"Large": LARGE}})
    assert len(json.dumps(spec.parameters)) < 256 * 1024
    with pytest.raises(InvalidRequest) as refused:
        StubCache().check_tool(spec, PLACE, Work())
    assert (refused.value.status, refused.value.param, refused.value.code) == (400, PLACE, "tools_too_complex")
    assert "'heavy'" in refused.value.message
    assert "Send fewer tools" in refused.value.message


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"p": WORDS}},
        {"additionalProperties": WORDS},
        {"not": WORDS},
        {"if": WORDS, "then": WORDS},
        {"properties": {"p": {"anyOf": [WORDS, {"type": "null"}]}}},
    ],
    ids=["property", "other names", "not", "if", "alternatives"],
)
def test_the_text_of_a_schema_is_made_once_however_many_forms_have_it(
    schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = 0

    def write(value: Any) -> str:
        nonlocal written
        text = compact_json(value)
        written += len(text)
        return text

    monkeypatch.setattr("bridge.stubs.joining.compact_json", write)
    alternatives = [{"$ref": "#/$defs/Base", "required": [f"p{number}"]} for number in range(100)]
    base = {"type": "object", **schema}
    work_on(ToolSpec("tool", "", {"type": "object", "anyOf": alternatives, "$defs": {"Base": base}}))
    assert written < 4 * len(compact_json(schema)) + 100_000


def test_all_tools_of_a_request_together_have_one_limit() -> None:
    stubs, work = StubCache(), Work()
    most = MAX_WORK // work_on(refers(2))
    for place in range(most):
        stubs.check_tool(refers(2), f"tools[{place}].function.parameters", work)
    with pytest.raises(InvalidRequest) as refused:
        stubs.check_tool(refers(2), f"tools[{most}].function.parameters", work)
    assert refused.value.param == f"tools[{most}].function.parameters"


def test_five_hundred_usual_tools_are_within_the_limit() -> None:
    properties = {f"p{number}": {"type": "string", "description": "A text."} for number in range(100)}
    assert 512 * work_on(ToolSpec("tool", "", {"type": "object", "properties": properties})) < MAX_WORK


def test_descriptions_quote_only_so_much_of_definitions() -> None:
    tree = {"type": "object", "properties": {f"x{n}": {"$ref": "#/$defs/Tree"} for n in range(150)}}
    properties = {f"p{number}": {"$ref": "#/$defs/Tree"} for number in range(100)}
    spec = ToolSpec("tool", "", {"type": "object", "properties": properties, "$defs": {"Tree": tree}})
    text = json.dumps(make_stub(spec, FORMS["strict"]).json_schema)
    assert "$defs" in text
    assert "of a form too long to be said here" in text
    assert len(text) < 2 * MAX_QUOTED_TOGETHER
