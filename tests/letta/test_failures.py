from __future__ import annotations

import pytest

from bridge import errors
from bridge.errors import BridgeError
from bridge.letta import failures

WORDS: list[tuple[str, type[BridgeError], str]] = [
    ("This model's maximum context length is 8192 tokens", errors.ContextOverflow, "context_length_exceeded"),
    ("context_length_exceeded", errors.ContextOverflow, "context_length_exceeded"),
    ("Error code: 400 - {'message': \"Invalid 'tools': array too long.\"}", errors.InvalidRequest, "too_many_tools"),
    ("{\\'message\\': \\\"Invalid \\'tools\\': array too long.", errors.InvalidRequest, "too_many_tools"),
    ("CONTEXT_WINDOW_EXCEEDED: Bad request to OpenAI", errors.ContextOverflow, "context_length_exceeded"),
    ("SystemPromptTokenExceededError: ...", errors.ContextOverflow, "context_length_exceeded"),
    (
        '{"detail":{"code":"PENDING_APPROVAL","message":"CONFLICT: Cannot send a new message"}}',
        errors.LettaConflict,
        "agent_waits_for_approval",
    ),
    ("CONFLICT: The agent is waiting for approval on a tool call", errors.LettaConflict, "agent_waits_for_approval"),
    ("RATE_LIMIT_EXCEEDED: Rate limited by OpenAI: Error code: 429", errors.ModelOverloaded, "model_overloaded"),
    ("The engine is currently overloaded", errors.ModelOverloaded, "model_overloaded"),
    ("You exceeded your current quota", errors.ModelOverloaded, "model_overloaded"),
    ("INTERNAL_SERVER_ERROR: OpenAI API error: Error code: 500", errors.ModelFailed, "model_failed"),
    ("INVALID_ARGUMENT: Bad request to OpenAI: Error code: 400 - {'error'", errors.ModelFailed, "model_failed"),
    ("An error occurred with the LLM request.", errors.ModelFailed, "model_failed"),
    ("No tool calls found in response, model must make a tool call", errors.ModelFailed, "model_failed"),
    ("Incorrect API key provided: sk-***", errors.ModelFailed, "model_failed"),
]


@pytest.mark.parametrize(("words", "kind", "code"), WORDS)
def test_lettas_words_become_the_right_error(words: str, kind: type[BridgeError], code: str) -> None:
    found = failures.error_from_words(words)
    assert type(found) is kind
    assert found.code == code


@pytest.mark.parametrize("words", ["", "Internal Server Error", "An unknown error occurred", "message-4290"])
def test_words_without_a_known_cause_become_no_error(words: str) -> None:
    assert failures.error_from_words(words) is None


@pytest.mark.parametrize(("words", "kind", "code"), WORDS)
def test_lettas_words_are_not_in_the_message_for_the_client(words: str, kind: type[BridgeError], code: str) -> None:
    found = failures.error_from_words(words)
    assert found is not None
    assert words not in found.message
    assert failures.error_from_status(400, f"{words} canary-7421").message.count("canary") == 0


STATUSES: list[tuple[int, str, type[BridgeError], int]] = [
    (301, "", errors.LettaUnreachable, 502),
    (307, "", errors.LettaUnreachable, 502),
    (400, "", errors.LettaRejected, 502),
    (401, "", errors.LettaRefusedCredentials, 502),
    (403, "", errors.LettaRefusedCredentials, 502),
    (404, "", errors.LettaNotFound, 404),
    (405, "", errors.LettaRejected, 502),
    (409, "", errors.LettaConflict, 409),
    (422, "", errors.LettaRejected, 502),
    (429, "", errors.ModelOverloaded, 429),
    (500, "", errors.LettaError, 502),
    (502, "", errors.LettaError, 502),
    (503, "", errors.LettaUnavailable, 503),
    (504, "", errors.LettaTimeout, 504),
    (529, "", errors.LettaError, 502),
    (500, "An error occurred with the LLM request", errors.ModelFailed, 502),
    (502, '{"error":{"type":"llm_error","message":"rate limit reached"}}', errors.ModelOverloaded, 429),
    (500, "maximum context length", errors.ContextOverflow, 400),
    (400, "Cannot send a new message: The agent is waiting for approval", errors.LettaConflict, 409),
    (409, '{"detail":{"code":"PENDING_APPROVAL"}}', errors.LettaConflict, 409),
    (401, "Incorrect API key", errors.LettaRefusedCredentials, 502),
    (404, "No tool calls found", errors.LettaNotFound, 404),
    (302, "rate limit", errors.LettaUnreachable, 502),
]


@pytest.mark.parametrize(("status", "words", "kind", "answer"), STATUSES)
def test_a_status_of_letta_becomes_the_right_status_for_the_client(
    status: int, words: str, kind: type[BridgeError], answer: int
) -> None:
    found = failures.error_from_status(status, words)
    assert type(found) is kind
    assert found.status == answer


LOST_ROWS = [
    "StepMetrics not found",
    "StepMetrics with id 'step-1' not found or was updated by another transaction",
    "Agent with id 'agent-1' not found or was updated by another transaction",
    "Run not found with identifier run-1",
]
NO_AGENT = ["Agent not found", "Agent with ID agent-1 not found", "Agent not found with id=agent-1"]


@pytest.mark.parametrize("words", [*LOST_ROWS, "Not Found", ""])
def test_a_message_that_is_answered_with_404_has_lost_its_run(words: str) -> None:
    found = failures.error_from_refused_message(404, f'{{"detail":"{words}"}}')
    assert (type(found), found.status, found.is_temporary, found.retry_after) == (errors.RunBrokenOff, 502, True, 1)


@pytest.mark.parametrize("words", NO_AGENT)
def test_a_message_to_an_agent_that_does_not_exist_is_not_found(words: str) -> None:
    assert type(failures.error_from_refused_message(404, f'{{"detail":"{words}"}}')) is errors.LettaNotFound


@pytest.mark.parametrize("words", LOST_ROWS)
def test_an_error_about_a_lost_row_means_a_lost_run_only_in_a_run(words: str) -> None:
    assert type(failures.error_from_run(words)) is errors.RunBrokenOff
    assert failures.error_from_words(words) is None


def test_a_run_that_failed_for_a_known_reason_is_not_lost() -> None:
    assert failures.error_from_run("The tool did not find the file: not found") is None
    assert type(failures.error_from_run("llm: model not found with that name")) is errors.ModelFailed


@pytest.mark.parametrize("status", [500, 502, 503, 529])
def test_a_failure_that_may_pass_has_a_time_to_retry(status: int) -> None:
    assert failures.error_from_status(status, "").retry_after == 5


def test_the_bridges_own_credentials_are_named_as_the_cause() -> None:
    assert "LETTA_API_KEY" in failures.error_from_status(401, "").message


@pytest.mark.parametrize(
    ("reason", "kind", "code"),
    [
        ("error", errors.ModelFailed, "model_failed"),
        ("llm_api_error", errors.ModelFailed, "model_failed"),
        ("invalid_llm_response", errors.ModelFailed, "model_failed"),
        ("invalid_tool_call", errors.ModelFailed, "model_failed"),
        ("cancelled", errors.LettaError, "run_cancelled"),
        ("insufficient_credits", errors.ModelOverloaded, "model_overloaded"),
        ("context_window_overflow_in_system_prompt", errors.ContextOverflow, "context_length_exceeded"),
        ("something_new", errors.ModelFailed, "model_failed"),
    ],
)
def test_a_stop_reason_other_than_a_normal_end_is_a_failure(reason: str, kind: type[BridgeError], code: str) -> None:
    found = failures.error_from_stop_reason(reason)
    assert type(found) is kind
    assert found.code == code


@pytest.mark.parametrize("words", ["context length", "context window", "maximum context", "too many tokens"])
def test_a_full_context_is_reported_with_a_phrase_that_clients_search_for(words: str) -> None:
    """Some clients shorten the conversation only when the message of a 400 has one of these phrases."""
    found = failures.error_from_words("context_length_exceeded")
    assert found is not None
    assert any(phrase in found.message for phrase in (words, "context length"))
