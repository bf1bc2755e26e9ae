"""Turns what Letta reports into one of the bridge's errors. Letta's own words go to the log, not to a client."""

from __future__ import annotations

import re
from collections.abc import Callable

from bridge import errors
from bridge.letta.trouble import make_error

WAITS_FOR_APPROVAL = "agent_waits_for_approval"
CONNECTION_BROKE = "The connection to the Letta server broke before the agent had finished."
NO_ANSWER_IN_TIME = "The Letta server did not answer in time."

# "Agent not found with id=...", "Agent with ID agent-... not found". A lost row of an agent that exists: "Agent with id
# '...' not found or was updated by another transaction".
_NO_AGENT = re.compile(r"\bagent (with id \S+ )?not found\b(?! or was updated)", re.I)
# The words about a row that a run needs, such as "StepMetrics with id '...' not found or was updated by another ...".
_LOST_ROW = re.compile(r"\bStepMetrics\b|\bnot found (with|or was updated)\b")

_ERRORS_BY_WORDS: tuple[tuple[re.Pattern[str], Callable[[], errors.BridgeError]], ...] = (
    (
        re.compile(
            r"context[ _]length|context[ _]window|maximum context|tokens exceed|ContextWindowExceeded"
            r"|SystemPromptTokenExceeded",
            re.I,
        ),
        lambda: errors.ContextOverflow(
            "The agent's context window is full: its model refused the prompt (maximum context length exceeded)."
            " Shorten the message, or summarise or reset the agent's messages in Letta."
        ),
    ),
    (
        # OpenAI's words: "Invalid 'tools': array too long. Expected an array with maximum length 128, ...".
        re.compile(r"tools\W+array too long|too many (tools|functions)", re.I),
        lambda: errors.InvalidRequest(
            "The agent's model does not take that many tools: the request's and the agent's own together are too many"
            " (OpenAI's models take 128). Offer fewer, or give the agent a search for them from fewer tools on"
            " (BRIDGE_TOOL_SEARCH).",
            param="tools",
            code="too_many_tools",
        ),
    ),
    (
        re.compile(r"PENDING_APPROVAL|waiting for approval", re.I),
        lambda: errors.LettaConflict(
            "The agent waits for the approval of a tool call. Approve or deny it in Letta, then send again.",
            code=WAITS_FOR_APPROVAL,
        ),
    ),
    (
        re.compile(r"rate[ _]?limit|\b429\b|overloaded|quota", re.I),
        lambda: errors.ModelOverloaded("The agent's model is rate limited or overloaded. Try again later."),
    ),
    (
        re.compile(
            # "Error code: 500" are the words of the model providers' clients for a refusal.
            r"llm|No tool calls found|must make a tool call|invalid_api_key|Incorrect API key|\bError code: \d{3}\b",
            re.I,
        ),
        lambda: errors.ModelFailed("The agent's model failed. The log of the Letta server says why."),
    ),
)


def error_from_words(words: str) -> errors.BridgeError | None:
    """Returns the error that Letta's words describe; None when the words match no known error."""
    for pattern, make in _ERRORS_BY_WORDS:
        if pattern.search(words):
            return make()
    return None


def error_from_status(status: int, words: str) -> errors.BridgeError:
    """Returns the error for an answer other than 2xx. From 400 on, except 401, 403, 404 and 429, the body's `words`
    decide before the status, because Letta uses one status for many causes.
    """
    by_status = _ERRORS_BY_STATUS.get(status)
    if by_status is not None:
        return by_status()
    known = error_from_words(words) if status >= 400 else None
    if known is not None:
        return known
    if 300 <= status < 400:
        return make_error("redirect")
    if status == 409:
        return errors.LettaConflict("The agent is busy with another request. Try again.")
    if status == 503:
        return errors.LettaUnavailable("The Letta server answers that it is unavailable.")
    if status == 504:
        return errors.LettaTimeout("The Letta server gave up waiting (504).")
    if status >= 500:
        return errors.LettaError(f"The Letta server failed ({status}). Its log says why.", retry_after=5)
    return errors.LettaRejected(f"The Letta server did not accept what the bridge sent ({status}).")


def error_from_refused_message(status: int, words: str) -> errors.BridgeError:
    """Returns the error for an answer other than 2xx to a message. Letta answers 404 also if it misses one of its own
    rows when the agent has run already. Only its words tell whether the agent is missing.
    """
    if status == 404 and not _NO_AGENT.search(words):
        return run_broken_off()
    return error_from_status(status, words)


def error_from_run(words: str) -> errors.BridgeError | None:
    """Returns the error that Letta's words about a run describe; None when the words match no known error."""
    return error_from_words(words) or (run_broken_off() if _LOST_ROW.search(words) else None)


def run_broken_off(cause: errors.LettaNotFound | None = None) -> errors.RunBrokenOff:
    """Returns the error for a run that Letta lost. It has the notes of `cause`, for the log."""
    failure = errors.RunBrokenOff(
        "The Letta server took the message and lost the agent's run. Send the same request again to get its answer."
    )
    for note in getattr(cause, "__notes__", ()):
        failure.add_note(note)
    return failure


def error_from_stop_reason(reason: str) -> errors.BridgeError | None:
    """Returns the error for the stop reason of a failed run; None for the stop reason of a normal end."""
    if reason in ORDERLY_STOPS:
        return None
    if reason == "cancelled":
        return errors.LettaError("The run was cancelled on the Letta server.", code="run_cancelled")
    if reason == "insufficient_credits":
        return errors.ModelOverloaded("The Letta server reports insufficient credits.")
    if reason == "context_window_overflow_in_system_prompt":
        return error_from_words("context window")
    return errors.ModelFailed(f"The agent's run failed ({reason}). The log of the Letta server says why.")


ORDERLY_STOPS = frozenset(
    {"end_turn", "requires_approval", "tool_rule", "max_steps", "max_tokens_exceeded", "no_tool_call"}
)

_ERRORS_BY_STATUS: dict[int, Callable[[], errors.BridgeError]] = {
    401: lambda: make_error("password refused"),
    403: lambda: make_error("password refused"),
    404: lambda: errors.LettaNotFound("The Letta server does not know what was asked for (404)."),
    429: lambda: errors.ModelOverloaded("The Letta server or its model is rate limited. Try again later."),
}
