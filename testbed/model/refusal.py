"""The errors that the model answers with, in OpenAI's words. Pure."""

from dataclasses import dataclass
from typing import Any

from testbed.model.script import Failure


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error of the OpenAI API."""

    message: str
    param: str | None = None
    code: str | None = None
    status: int = 400
    type: str = "invalid_request_error"

    def body(self) -> dict[str, Any]:
        """Returns the JSON object for the wire."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


# Errors that a script may name by their code.
KNOWN = {
    one.code: one
    for one in (
        Refusal(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in "
            "204308 tokens. Please reduce the length of the messages.",
            "messages",
            "context_length_exceeded",
        ),
        Refusal(
            "You exceeded your current quota, please check your plan and billing details.",
            None,
            "insufficient_quota",
            429,
            "insufficient_quota",
        ),
        Refusal(
            "Rate limit reached for requests. Please try again in 1s.", None, "rate_limit_exceeded", 429, "requests"
        ),
        Refusal("Incorrect API key provided.", None, "invalid_api_key", 401),
        Refusal("The model does not exist or you do not have access to it.", "model", "model_not_found", 404),
    )
}

# (type, code, message) of each status, if a script gives no text.
BY_STATUS = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "unsupported_country_region_territory", "Country not supported."),
    404: ("invalid_request_error", "model_not_found", "The model does not exist."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests."),
    500: ("server_error", None, "The server had an error while processing your request."),
    503: ("server_error", None, "The engine is currently overloaded, please try again later."),
}


def refusal_of(failure: Failure) -> Refusal:
    """Returns the error that a script dictates: a known code, or its text with the usual type of the status."""
    known = KNOWN.get(failure.text)
    if known is not None:
        return Refusal(known.message, known.param, known.code, failure.status, known.type)
    kind = "server_error" if failure.status >= 500 else "invalid_request_error"
    kind, code, message = BY_STATUS.get(failure.status, (kind, None, "The request failed."))
    return Refusal(failure.text or message, None, code, failure.status, kind)
