from __future__ import annotations

import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.reply_format import checker, helper
from bridge.reply_format.checker import CheckedReply, HelperFailed, check_reply, check_schema, find_fault
from bridge.turn import ReplyFormat

FIELD = "response_format.json_schema.schema"
ANY_OBJECT = ReplyFormat("in JSON")


def form_of(schema: Any) -> ReplyFormat:
    return ReplyFormat("in JSON", json.dumps(schema), FIELD)


def doubled(keyword: str, levels: int = 60) -> Any:
    """Returns a schema that visits its last definition 2 ** `levels` times."""
    definitions = {f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**definitions, f"d{levels}": {"type": "integer"}}, "$ref": "#/$defs/d0"}


def test_a_valid_reply_is_its_json() -> None:
    assert check_reply('```json\n{"a": 1}\n```', ANY_OBJECT) == CheckedReply("valid", '{"a": 1}')
    assert check_reply("Zwölf: [12]", form_of({"type": "array"})) == CheckedReply("valid", "[12]")


def test_an_invalid_reply_has_a_fault() -> None:
    checked = check_reply('"ü"', form_of({"type": "integer"}))
    assert checked == CheckedReply("invalid", fault='the value is not of type "integer"')


def test_half_a_surrogate_pair_can_be_checked() -> None:
    assert check_reply('{"a": "\ud800"}', ANY_OBJECT).outcome == "valid"


@pytest.mark.servers
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_a_check_that_would_take_for_ever_is_ended_by_its_limit(keyword: str) -> None:
    hostile = form_of(doubled(keyword))
    check_schema(hostile, 100_000)
    assert check_reply('"x"', hostile) == CheckedReply("unchecked")


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"pattern": f"^(a{{1,500}}b{number}){{1,50}}$"} for number in range(2000)]},
        {"items": {"oneOf": [{"const": number} for number in range(1500)]}},
    ],
    ids=["many regular expressions", "many alternatives"],
)
def test_the_helpers_of_all_workers_leave_memory_on_a_small_dyno(schema: Any) -> None:
    with pytest.raises(checker.HelperFailed):
        checker._ask_helper({"schema": json.dumps(schema), "reply": json.dumps([[n] for n in range(100_000)])})
    assert 2 * checker.AT_ONCE * helper.MOST_MEMORY <= 512 * 1024 * 1024


@pytest.mark.parametrize(
    ("schema", "reply"),
    [
        ({"$ref": "#"}, "1"),
        ({"uniqueItems": True}, json.dumps([{"a": n} for n in range(50_000)])),
        ({"enum": [[n] for n in range(10_000)]}, "[9999]"),
        ({"pattern": "^(a+)+$"}, json.dumps("a" * 50)),
        ({"patternProperties": {"^(a|aa)+$": {"type": "integer"}}}, json.dumps({"a" * 50 + "b": "x"})),
    ],
)
def test_a_schema_that_is_hard_on_some_validators_is_checked(schema: Any, reply: str) -> None:
    assert check_reply(reply, form_of(schema)).outcome == "valid"


@pytest.mark.parametrize(
    "reply", ["[" * 200_000, '{"a":' * 200_000, '["' * 100_000, "{" * 1000 + '"' + "x" * 1_000_000]
)
def test_a_reply_that_is_hard_to_read_is_not_valid(reply: str) -> None:
    assert check_reply(reply, ANY_OBJECT).outcome in ("invalid", "unchecked")


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"$ref": "http://127.0.0.1:9/x"}, {"$ref": "#/$defs/none"}])
def test_an_unusable_schema_is_refused_by_its_field(schema: Any) -> None:
    with pytest.raises(InvalidRequest, match=FIELD) as refused:
        check_schema(form_of(schema), 1000)
    assert (refused.value.status, refused.value.param) == (400, FIELD)


def test_a_schema_that_is_too_large_is_refused_by_its_field() -> None:
    large = form_of({"description": "x" * 1000})
    with pytest.raises(InvalidRequest, match="1000 are allowed") as refused:
        check_schema(large, 1000)
    assert (refused.value.status, refused.value.param, refused.value.code) == (400, FIELD, "schema_too_large")


def test_a_schema_that_came_before_costs_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    form = form_of({"description": "came before"})
    check_schema(form, 1000)
    monkeypatch.setattr(subprocess, "run", None)
    check_schema(form, 1000)
    check_schema(ANY_OBJECT, 1000)


class TestWithoutProcesses:
    @pytest.fixture(autouse=True)
    def lack(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def run(*_: Any, **__: Any) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(subprocess, "run", run)

    def test_a_reply_is_unchecked(self) -> None:
        assert check_reply("{}", ANY_OBJECT) == CheckedReply("unchecked")

    def test_a_schema_is_accepted(self) -> None:
        check_schema(form_of({"description": "never checked"}), 1000)


class TestWithAHelperThatEnds:
    @pytest.fixture(autouse=True)
    def end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checker, "_COMMAND", ["false"])

    def test_a_reply_is_unchecked(self) -> None:
        assert check_reply("{}", ANY_OBJECT) == CheckedReply("unchecked")

    def test_a_schema_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="within the bridge's limits"):
            check_schema(form_of({"description": "ends the helper"}), 1000)


def test_many_checks_at_once_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most, guard = 0, 0, threading.Lock()
    run = subprocess.run

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        try:
            return run(*arguments, **more)
        finally:
            with guard:
                running -= 1

    monkeypatch.setattr(subprocess, "run", counted)
    with ThreadPoolExecutor(12) as pool:
        checked = list(pool.map(lambda _: check_reply("{}", ANY_OBJECT), range(12)))
    assert checked == [CheckedReply("valid", "{}")] * 12
    assert 1 <= most <= checker.AT_ONCE


def test_a_helper_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "_COMMAND", ["sleep", "60"])
    monkeypatch.setattr(checker, "PATIENCE", 0.1)
    assert check_reply("{}", ANY_OBJECT) == CheckedReply("unchecked")


@pytest.mark.parametrize(
    ("value", "schema", "fault"),
    [
        ('{"a": 1}', {"required": ["a"]}, ""),
        ('{"a": 1}', {"properties": {"a": {"type": "string"}}}, "is not of type"),
        ("{}", {"required": ["a"]}, "required"),
        ("{}", {"$ref": "#/nowhere"}, ""),
    ],
    ids=str,
)
def test_a_value_is_checked_by_a_schema_that_can_be_used(value: str, schema: Any, fault: str) -> None:
    found = find_fault(value, json.dumps(schema))
    assert fault in found if fault else found == ""


def test_a_value_that_can_not_be_checked_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: Any) -> Any:
        raise HelperFailed("out of time")

    monkeypatch.setattr(checker, "_ask_helper", fail)
    assert find_fault("{}", '{"required": ["other"]}') == ""
