from __future__ import annotations

import re

import pytest

from bridge import errors
from bridge.dialects.openai.errors import error_object
from bridge.errors import BridgeError
from tests.sse_checker import check_error


def with_subclasses(parent: type[BridgeError]) -> list[type[BridgeError]]:
    return [parent, *(kind for child in parent.__subclasses__() for kind in with_subclasses(child))]


KINDS = [kind for kind in with_subclasses(BridgeError) if kind.__module__ == errors.__name__]


def test_the_docstring_lists_every_class_with_its_status() -> None:
    listed = {name: int(status) for name, status in re.findall(r"── (\w+) +(\d{3}) ", str(errors.__doc__))}
    assert listed == {kind.__name__: kind.status for kind in KINDS if kind is not BridgeError}


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_becomes_an_openai_error_object(kind: type[BridgeError]) -> None:
    error = check_error(error_object(kind("What went wrong.", param="messages")))
    assert (error["message"], error["param"], error["type"]) == ("What went wrong.", "messages", kind.type)


def test_an_error_about_a_tool_keeps_its_kind_and_place() -> None:
    fault = errors.TooDeep("It is too deep.", param="tools[0]").about_tool("read")
    assert (type(fault), fault.param, fault.code) == (errors.TooDeep, "tools[0]", "nesting_too_deep")
    assert fault.message == "The tool 'read' is refused: It is too deep."


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_is_asked_to_wait_between_1_and_60_seconds(kind: type[BridgeError]) -> None:
    assert kind.retry_after is None or 1 <= kind.retry_after <= 60


@pytest.mark.parametrize("kind", KINDS)
def test_the_type_of_an_error_fits_its_status(kind: type[BridgeError]) -> None:
    types = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    is_server_fault = issubclass(kind, errors.LettaError) or kind.status in (499, 500, 503, 504)
    assert kind.type == types.get(kind.status, "server_error" if is_server_fault else "invalid_request_error")


def test_an_error_can_have_its_own_code_and_delay() -> None:
    failure = errors.LettaError("It broke.", code="stream_cut", retry_after=7)
    assert (failure.code, failure.retry_after) == ("stream_cut", 7)
    assert (errors.LettaError.code, errors.LettaError.retry_after) == ("letta_error", None)
