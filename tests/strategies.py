"""Hostile input for property tests: names, texts and JSON Schemas that no client should send."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

CODE = (
    "x'); import os; os.system('id') #",
    '"""',
    "'''",
    "\\",
    "\n    import os",
    "\r\n",
    "{{ 7 * 7 }}",
    "{% raw %}",
    "#}",
    "\u2028",
    "\u202e",
    "\x0c",
    "f'{x}'",
    "%s",
    "<|endoftext|>",
    "None",
    "__import__('os')",
)
PYTHONS_NAMES = ("class", "from", "self", "None", "str", "kwargs", "agent_state", "result_type")
LETTAS_NAMES = ("request_heartbeat", "thinking", "thinking_", "inner_thoughts")
SYMBOLS = ("$filter", "filter", "$ref", "@type", "properties", "max-results", "max_results", "x.y", "a/b[0]", "a b")
OTHER_NAMES = ("ünïcode", "unicode", "名前", "0", "_", "x" * 70, "x" * 71)
ODD_NAMES = (*PYTHONS_NAMES, *LETTAS_NAMES, *SYMBOLS, *OTHER_NAMES)
KINDS = ("string", "number", "integer", "boolean", "array", "object", "null")

storable = st.characters(codec="utf-8", exclude_characters="\x00")
texts = st.one_of(st.sampled_from(CODE), st.text(storable, max_size=20))
parameter_names = st.one_of(
    st.sampled_from(ODD_NAMES), st.sampled_from(CODE), st.text(storable, min_size=1, max_size=8)
)
tool_names = st.from_regex(r"\A[\w.:/-]{1,128}\Z")
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=5,
)
references = st.sampled_from(
    [
        "#/$defs/A",
        "#/$defs/B",
        "#/components/schemas/D",
        "#/definitions/C",
        "#/$defs/Missing",
        "#",
        "#/properties/class",
        "other.json#/X",
        "#x",
    ]
)
_KEYWORDS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.one_of(st.sampled_from(KINDS), st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)),
    "enum": st.lists(scalars, min_size=1, max_size=4),
    "const": scalars,
    "description": texts,
    "title": texts,
    "default": values,
    "minimum": st.integers(-5, 5),
    "exclusiveMaximum": st.floats(0, 5),
    "pattern": st.sampled_from(["^a+$", "[\"']"]),
    "format": st.sampled_from(["date-time", "uri", "odd"]),
    "minItems": st.integers(0, 3),
    "uniqueItems": st.booleans(),
    "nullable": st.booleans(),
    "$ref": references,
    "x-odd": values,
}


def _some_of(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    chosen = st.lists(st.sampled_from(sorted(keywords)), max_size=5, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: keywords[key] for key in keys}))


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    schemas = st.lists(inner, min_size=1, max_size=3)
    nesting = {
        "properties": st.dictionaries(parameter_names, inner, max_size=4),
        "required": st.lists(parameter_names, max_size=3),
        "items": st.one_of(inner, schemas),
        "prefixItems": schemas,
        "additionalProperties": inner,
        "patternProperties": st.dictionaries(st.sampled_from(["^x-", "y"]), inner, max_size=2),
        "anyOf": schemas,
        "oneOf": schemas,
        "allOf": schemas,
        "not": inner,
        "if": inner,
    }
    return st.one_of(_some_of(nesting), _some_of({**_KEYWORDS, **nesting}))


schemas: st.SearchStrategy[Any] = st.recursive(st.one_of(st.booleans(), _some_of(_KEYWORDS)), _nested, max_leaves=5)


@st.composite
def parameter_schemas(draw: st.DrawFn) -> dict[str, Any]:
    """The parameters of a tool: of type object, with strange content."""
    root = dict(draw(_nested(schemas)))
    root["type"] = "object"
    root["properties"] = draw(st.dictionaries(parameter_names, schemas, max_size=5))
    root["$defs"] = {"A": draw(schemas), "B": draw(schemas)}
    root["definitions"] = {"C": draw(schemas)}
    root["components"] = {"schemas": {"D": draw(st.one_of(schemas, values))}}
    for key in ("enum", "const", "$ref"):
        root.pop(key, None)
    return root


# --- schemas together with the values that fit them ---------------------------------------------------

plain_values = st.one_of(st.text(storable, max_size=12), st.sampled_from(["null", " null\n", '"null"', "3.0", "[1]"]))
Fitting = tuple[dict[str, Any], st.SearchStrategy[Any]]
_LEAVES: tuple[Fitting, ...] = (
    ({"type": "string"}, plain_values),
    ({"type": "string", "enum": ["a", "two", "{}"]}, st.sampled_from(["a", "two", "{}"])),
    ({"const": "odd"}, st.just("odd")),
    ({"type": "integer", "minimum": -5}, st.integers(-5, 10**25)),
    ({"type": "number"}, st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))),
    ({"type": "boolean", "default": True}, st.booleans()),
    ({"type": ["string", "null"]}, st.one_of(st.none(), plain_values)),
    ({"type": ["integer", "null"]}, st.one_of(st.none(), st.integers())),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "array"}]}, st.one_of(plain_values, st.integers())),
    ({"enum": [1, "1", "two", False]}, st.sampled_from([1, "1", "two", False])),
    (
        {"type": "object", "additionalProperties": {"type": "integer"}},
        st.dictionaries(texts, st.integers(), max_size=2),
    ),
    ({}, st.one_of(plain_values, st.booleans(), st.lists(st.integers(), max_size=2))),
    ({"$ref": "#/$defs/Tree"}, st.just({"value": "a", "children": [{"value": "b"}]})),
    ({"$ref": "#/$defs/Point"}, st.fixed_dictionaries({"x": st.integers()}, optional={"y": st.integers()})),
)
FITTING_DEFINITIONS = {
    "Tree": {
        "type": "object",
        "properties": {"value": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        "required": ["value"],
    },
    "Point": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x"],
    },
}


def _fitting_list(inner: Fitting) -> Fitting:
    schema, fitting = inner
    return {"type": "array", "items": schema}, st.lists(fitting, max_size=3)


def _fitting_object(members: list[tuple[str, Fitting, bool]]) -> Fitting:
    schema = {
        "type": "object",
        "properties": {name: inner for name, (inner, _), _ in members},
        "required": [name for name, _, required in members if required],
    }
    needed = {name: fitting for name, (_, fitting), required in members if required}
    optional = {name: fitting for name, (_, fitting), required in members if not required}
    return schema, st.fixed_dictionaries(needed, optional=optional)


def _objects(inner: st.SearchStrategy[Fitting]) -> st.SearchStrategy[Fitting]:
    members = st.lists(
        st.tuples(parameter_names, inner, st.booleans()), min_size=1, max_size=4, unique_by=lambda member: member[0]
    )
    return members.map(_fitting_object)


fitting_schemas: st.SearchStrategy[Fitting] = st.recursive(
    st.sampled_from(_LEAVES), lambda inner: st.one_of(inner.map(_fitting_list), _objects(inner)), max_leaves=5
)


@st.composite
def parameters_with_arguments(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A tool's parameters, and arguments that fit them."""
    schema, fitting = draw(_objects(fitting_schemas))
    return {**schema, "$defs": FITTING_DEFINITIONS}, draw(fitting)
