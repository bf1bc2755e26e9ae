"""The model's arguments become those that the client's schema asks for."""

import json
from typing import Any

import pytest

from bridge.stubs.arguments import (
    member_text,
    remove_absent_arguments,
    remove_letta_arguments,
    restore_arguments,
    text_without,
)
from bridge.stubs.converter import make_stub
from bridge.turn import SchemaForm, ToolSpec
from tests.letta_schemas import AS_SENT, CONVERTING, FORMS, SANDBOXED, STRICT


def restored(properties: dict[str, Any], required: list[str], form: SchemaForm, arguments: str) -> str:
    spec = ToolSpec("tool", "", {"type": "object", "properties": properties, "required": required})
    return restore_arguments(make_stub(spec, form), arguments)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("arguments", ["", " ", "\n"])
def test_no_arguments_are_an_empty_object(arguments: str, form: SchemaForm) -> None:
    assert restored({}, [], form, arguments) == "{}"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("arguments", ["[1]", '"a"', "1", "null", "{", "{'a': 1}", '{"a": NaN}', "[" * 100_000])
def test_arguments_that_are_not_a_json_object_stay_unchanged(arguments: str, form: SchemaForm) -> None:
    assert restored({"a": {"type": "string"}}, [], form, arguments) == arguments


def test_arguments_without_a_change_keep_their_form() -> None:
    arguments = '{ "b" :1.50,"a":"\\u00fc", "c": 12345678901234567890123456789 , "d":1E5}'
    assert restored({"a": {"type": "string"}}, ["a"], AS_SENT, arguments) == arguments


def test_lettas_own_arguments_are_removed_and_all_others_stay() -> None:
    arguments = (
        '{"path": 1e400, "thinking": "hm", "inner_thoughts": "hm", "request_heartbeat": true, "x": {"thinking": 1}}'
    )
    assert remove_letta_arguments(arguments) == '{"path": 1e400, "x": {"thinking": 1}}'
    for unchanged in ("", "[1]", '{"a" :1}', '{"thinking": '):
        assert remove_letta_arguments(unchanged) == unchanged


@pytest.mark.parametrize("number", ["1.0", "-0.0", "1e400", "0.1E-7", "9" * 5000, "12345678901234567890.123456789"])
def test_numbers_keep_their_form(number: str) -> None:
    arguments = f'{{"a": {number}, "b": [{number}], "thinking": "x"}}'
    assert restored({"a": {}, "b": {}}, [], AS_SENT, arguments) == f'{{"a": {number}, "b": [{number}]}}'


def test_texts_keep_their_characters() -> None:
    text = 'ü🦊 "quoted" \\ \n \u2028 \x7f'
    arguments = json.dumps({"a": text, "request_heartbeat": False})
    assert json.loads(restored({"a": {"type": "string"}}, ["a"], AS_SENT, arguments)) == {"a": text}


def test_half_a_surrogate_pair_stays_escaped_so_that_it_can_be_sent() -> None:
    result = restored({"a": {"type": "string"}}, ["a"], AS_SENT, '{"a": "x\\ud800ü", "thinking": ""}')
    assert result.encode()
    assert json.loads(result) == {"a": "x\ud800ü"}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_lettas_arguments_are_removed_and_the_clients_of_that_name_restored(form: SchemaForm) -> None:
    given = '{"thinking": "Letta", "thinking_": "client", "inner_thoughts": "", "request_heartbeat": true}'
    assert restored({"thinking": {"type": "string"}}, ["thinking"], form, given) == '{"thinking": "client"}'


def test_lettas_names_inside_of_values_belong_to_the_client() -> None:
    given = '{"a": {"thinking": "x", "request_heartbeat": true}}'
    inner = {"type": "object", "properties": {"thinking": {"type": "string"}}}
    assert restored({"a": inner}, ["a"], AS_SENT, given) == given


@pytest.mark.parametrize("value", ["false", "0", '""', "[]", "{}", "0.0"])
def test_empty_values_stay(value: str) -> None:
    arguments = f'{{"a": {value}}}'
    assert restored({"a": {}}, [], CONVERTING, arguments) == arguments


@pytest.mark.parametrize("form", [AS_SENT, CONVERTING, STRICT], ids=["verbatim", "converting", "strict"])
@pytest.mark.parametrize(
    ("schema", "required", "kept"),
    [
        ({"type": "string"}, False, False),
        ({"type": "string"}, True, True),
        ({"type": ["string", "null"]}, False, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, False, True),
        ({"type": "string", "nullable": True}, False, True),
        ({"enum": ["a", None]}, False, True),
        ({"enum": ["a"]}, False, False),
        ({"const": None}, False, True),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, False, False),
        ({}, False, True),
        ({"$ref": "#/$defs/Missing"}, False, True),
        ({"$ref": "#/properties/b"}, False, False),
    ],
)
def test_a_null_is_dropped_only_if_it_means_left_out(
    schema: dict[str, Any], required: bool, kept: bool, form: SchemaForm
) -> None:
    properties = {"a": schema, "b": {"type": "integer"}}
    result = restored(properties, ["a", "b"] if required else ["b"], form, '{"a": null, "b": 1}')
    assert json.loads(result) == ({"a": None, "b": 1} if kept else {"b": 1})


WORD: dict[str, Any] = {"type": "string"}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": WORD, "b": WORD}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"oneOf": [{"properties": {name: WORD}, "required": [name]} for name in ("a", "b")]},
        {"allOf": [{"properties": {"a": WORD, "b": WORD}}, {"properties": {"b": {"minLength": 1}}}]},
        {"properties": {"a": WORD, "b": WORD}, "anyOf": [{"properties": {"b": {"minLength": 1}}}, {"required": ["a"]}]},
    ],
    ids=["alternatives require it", "alternatives have it", "two parts have it", "an alternative says more of it"],
)
def test_a_null_leaves_out_what_the_model_was_told_that_it_leaves_out(schema: dict[str, Any], form: SchemaForm) -> None:
    stub = make_stub(ToolSpec("tool", "", {"type": "object", **schema}), form)
    null = None if form is not SANDBOXED else "null"
    assert json.loads(restore_arguments(stub, json.dumps({"a": "5", "b": null}))) == {"a": "5"}


@pytest.mark.parametrize("form", [STRICT, SANDBOXED], ids=["strict", "sandboxed"])
@pytest.mark.parametrize(
    "schema",
    [
        {"if": {"required": ["a"]}, "then": {"properties": {"b": WORD}, "required": ["b"]}},
        {"dependentSchemas": {"c": {"properties": {"b": {"type": "integer"}}}}},
    ],
    ids=["then", "dependentSchemas"],
)
def test_a_null_leaves_out_what_only_a_condition_names(schema: dict[str, Any], form: SchemaForm) -> None:
    stub = make_stub(ToolSpec("tool", "", {"type": "object", "properties": {"a": WORD}, **schema}), form)
    assert "b" in stub.json_schema["parameters"]["properties"]
    null = None if form is STRICT else "null"
    assert json.loads(restore_arguments(stub, json.dumps({"a": "x", "b": null}))) == {"a": "x"}


def test_a_null_of_a_name_under_a_condition_stays_where_no_parameter_has_the_name() -> None:
    conditional = {"if": {"required": ["a"]}, "then": {"properties": {"b": WORD}}}
    stub = make_stub(ToolSpec("tool", "", {"type": "object", "properties": {"a": WORD}, **conditional}), AS_SENT)
    assert json.loads(restore_arguments(stub, '{"b": null}')) == {"b": None}


def test_an_undeclared_argument_beside_patterns_may_be_any_value() -> None:
    schema = {"type": "object", "required": ["b"], "patternProperties": {"^a": WORD}}
    stub = make_stub(ToolSpec("tool", "", schema), STRICT)
    assert json.loads(restore_arguments(stub, '{"b": "[1]", "more_arguments": null}')) == {"b": [1]}


def test_nulls_are_dropped_inside_of_values_and_in_every_alternative() -> None:
    box = {"type": "object", "properties": {"w": {"type": "number"}, "h": {"type": "number"}}, "required": ["w"]}
    circle = {"type": "object", "properties": {"r": {"type": "number"}, "h": {"type": "number"}}, "required": ["r"]}
    properties = {"shapes": {"type": "array", "items": {"anyOf": [box, circle]}}}
    given = '{"shapes": [{"w": 1, "h": null}, {"r": null, "h": null}, {"w": null}, {"x": null}]}'
    result = restored(properties, ["shapes"], AS_SENT, given)
    assert json.loads(result) == {"shapes": [{"w": 1}, {"r": None}, {"w": None}, {"x": None}]}


def test_json_text_is_read_only_where_it_was_asked_for() -> None:
    properties = {"map": {"type": "object"}, "text": {"type": "string"}}
    given = '{"map": "{\\"a\\": [1.0, null]}", "text": "{\\"a\\": 1}"}'
    assert restored(properties, ["map", "text"], STRICT, given) == '{"map": {"a": [1.0, null]}, "text": "{\\"a\\": 1}"}'
    assert restored(properties, ["map", "text"], AS_SENT, given) == given


@pytest.mark.parametrize("text", ["not JSON", "[1", "5", "true"])
def test_text_of_the_wrong_kind_stays_for_the_client_to_refuse(text: str) -> None:
    given = json.dumps({"map": text})
    assert restored({"map": {"type": "object"}}, ["map"], STRICT, given) == given


def test_a_plain_value_is_accepted_where_json_text_was_asked_for() -> None:
    given = '{"map": {"a": null}, "n": 5}'
    properties = {"map": {"type": "object", "properties": {"a": {"type": "string"}}}, "n": {"type": "integer"}}
    assert restored(properties, [], SANDBOXED, given) == '{"map": {}, "n": 5}'


def test_the_word_null_leaves_out_only_what_is_optional() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": ["string", "null"]}}
    given = '{"a": "null", "b": "null", "c": " null "}'
    assert restored(properties, ["a", "c"], SANDBOXED, given) == '{"a": "null", "c": null}'


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_text_null_stays_where_a_string_is_required(form: SchemaForm) -> None:
    properties = {"a": {"type": "string"}, "b": {"anyOf": [{"type": "string"}, {"type": "array"}]}}
    given = '{"a": "null", "b": "null"}'
    assert restored(properties, ["a", "b"], form, given) == given


@pytest.mark.parametrize("form", [AS_SENT, CONVERTING, STRICT], ids=["verbatim", "converting", "strict"])
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "array"}]},
        {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "null"}]},
        {"enum": ["null", 5]},
    ],
)
def test_the_text_null_stays_where_the_model_can_say_null_itself(schema: dict[str, Any], form: SchemaForm) -> None:
    assert restored({"a": schema}, [], form, '{"a": "null"}') == '{"a": "null"}'


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("null", None),
        (" null\n", None),
        ('"null"', "null"),
        ('"\\"null\\""', '"null"'),
        ('"', '"'),
        ('"a"', '"a"'),
        ('"nul\\u006c"', '"nul\\u006c"'),
    ],
)
def test_the_text_null_is_given_in_quotes_where_the_word_means_null(written: str, meant: str | None) -> None:
    nullable = {"type": ["string", "null"]}
    given = json.dumps({"a": written, "b": [written]})
    result = restored({"a": nullable, "b": {"type": "array", "items": nullable}}, ["a", "b"], SANDBOXED, given)
    assert json.loads(result) == {"a": meant, "b": [meant]}


def test_the_word_null_is_null_where_any_value_is_asked_for_as_json_text() -> None:
    assert restored({"a": {}}, ["a"], STRICT, '{"a": "null"}') == '{"a": null}'
    assert restored({"a": {}}, ["a"], STRICT, '{"a": "\\"null\\""}') == '{"a": "null"}'


def test_the_word_null_leaves_out_an_optional_value_that_can_not_be_a_text() -> None:
    properties = {"a": {"type": "array"}, "b": {"enum": [1, "two"]}, "c": {"type": ["array", "null"]}}
    assert restored(properties, [], STRICT, '{"a": "null", "b": "null", "c": "null"}') == '{"c": null}'


@pytest.mark.parametrize("text", ["null", "[null]"])
def test_a_required_value_that_can_not_be_null_stays_as_the_model_gave_it(text: str) -> None:
    given = json.dumps({"a": text})
    assert restored({"a": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}}, ["a"], STRICT, given) == given


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3.0", "3"),
        ("-3.00", "-3"),
        ("3", "3"),
        ("3e2", "300"),
        ("30e-1", "3"),
        ("-0.0", "0"),
        ("1e20", "1" + "0" * 20),
    ],
)
def test_a_whole_number_in_text_is_an_integer_however_it_is_written(text: str, number: str) -> None:
    for schema in ({"type": "integer"}, {"anyOf": [{"type": "integer"}, {"type": "boolean"}]}):
        assert restored({"a": schema}, [], SANDBOXED, json.dumps({"a": text})) == f'{{"a": {number}}}'


@pytest.mark.parametrize("text", ["3.5", "1e-1", "9007199254740993.5", "1e400", "1e99999999999999999999", "3.0x", "٣"])
def test_a_text_that_is_not_a_whole_number_stays_for_the_client_to_refuse(text: str) -> None:
    given = json.dumps({"a": text}, ensure_ascii=False)
    assert restored({"a": {"type": "integer"}}, [], SANDBOXED, given) == given


def test_a_number_in_text_keeps_its_form() -> None:
    assert restored({"a": {"type": "number"}}, [], SANDBOXED, '{"a": "3.0"}') == '{"a": 3.0}'


def test_whole_numbers_are_found_in_lists_of_values() -> None:
    properties = {"a": {"enum": [1, 2, "three"]}, "b": {"enum": ["2.0", 2]}}
    assert restored(properties, ["a", "b"], STRICT, '{"a": "2.0", "b": "2.0"}') == '{"a": 2, "b": 2}'


def test_arguments_that_take_too_much_work_stay_as_the_model_gave_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("bridge.stubs.value_schemas.MAX_WORK", 3)
    properties = {"$a": {"type": "string"}, "b": {"type": "object"}, "thinking": {"type": "string"}}
    given = '{"a": null, "b": "{\\"c\\": 1.0}", "thinking": "Letta", "thinking_": "client"}'
    expected = '{"$a": null, "b": "{\\"c\\": 1.0}", "thinking": "client"}'
    assert restored(properties, ["b"], STRICT, given) == expected
    (record,) = caplog.records
    assert "too much work" in record.message
    assert vars(record)["fields"]["tool"] == "tool"


def test_arguments_for_the_clients_own_schema_lose_only_absent_values() -> None:
    parameters = {"type": "object", "properties": {"thinking": {"type": "string"}, "n": {"type": ["integer", "null"]}}}
    spec = ToolSpec("tool", "", parameters)
    assert remove_absent_arguments(spec, '{"thinking": null, "n": null}') == '{"n": null}'
    for unchanged in ('{"thinking": "null", "x": null}', "[1]", ""):
        assert remove_absent_arguments(spec, unchanged) == unchanged


@pytest.mark.parametrize("key", ["$filter", "filter"])
def test_the_clients_name_of_a_parameter_is_accepted_too(key: str) -> None:
    result = restored({"$filter": {"type": "string"}}, ["$filter"], AS_SENT, json.dumps({key: "x"}))
    assert json.loads(result) == {"$filter": "x"}


def test_a_member_of_a_map_with_the_name_of_the_map_stays_as_the_model_gave_it() -> None:
    stub = make_stub(ToolSpec("tool", "", {"type": "object", "additionalProperties": True}), STRICT)
    given = json.dumps({"arguments": json.dumps({"arguments": "5", "thinking": None})})
    assert json.loads(restore_arguments(stub, given)) == {"arguments": "5", "thinking": None}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": {"b": 1.10}}', '{"b": 1.10}'),
        ('{"a": 1e400, "c": 2}', "1e400"),
        ('{"a": "x"}', '"x"'),
        ('{"a": null}', "null"),
        ('{"b": 1}', ""),
        ('{"a": ' + "[" * 600 + "]" * 600 + "}", None),
        ("[1]", None),
        ("{", None),
        ("", None),
    ],
)
def test_the_text_of_one_argument_is_as_it_was_written(arguments: str, text: str | None) -> None:
    assert member_text(arguments, "a") == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": 1, "b": 1.10, "c": 1e400}', '{"b": 1.10, "c": 1e400}'),
        ('{"a": 1}', "{}"),
        ("{}", "{}"),
        ('{"b": ' + "[" * 600 + "]" * 600 + "}", None),
        ("[1]", None),
        ("", None),
    ],
)
def test_the_other_arguments_are_as_they_were_written(arguments: str, text: str | None) -> None:
    assert text_without(arguments, "a") == text
