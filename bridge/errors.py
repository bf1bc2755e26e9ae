"""Everything that can go wrong, by name.

    BridgeError                          has status, type, code, param and retry_after: what the client gets
    ├── InvalidRequest              400  the request can't be understood; `param` names the field
    │   ├── TooDeep                 400  the JSON is nested beyond the limit
    │   ├── BodyTooLarge            413  the request's body is beyond the limit
    │   ├── WrongContentType        415  without keys, the body must be declared as JSON
    │   └── TooSlow                 408  the request did not arrive in time
    ├── Unauthorized                401  the request has no valid key
    ├── Forbidden                   403  the key is valid, but does not allow this
    ├── UnknownModel                404  no agent has that name or id
    ├── UnknownResponse             404  no response with that id is kept for the client
    ├── UnknownPath                 404  no route, page or action has that address
    ├── WrongMethod                 405  the route exists, but not for this HTTP method
    ├── NoWebSocket                 426  the route exists, but not for web sockets
    ├── Busy                        429  the agent is in another turn, or a limit is reached; try again later
    ├── TooManyTurns                503  this worker already runs as many turns as it can
    ├── TooManyRequests             503  this worker already passes on as many requests to Letta as it can
    ├── TooManyBytes                503  this worker already holds as many bytes of requests as it can
    ├── StillRunning                504  the answer takes longer than a client is kept waiting
    ├── TurnLost                    503  the worker that ran the turn is gone
    ├── RequestConflict             409  another request prevents this one
    ├── CallsUnanswered             409  the client has to answer the agent's open calls first
    ├── ToolNameTaken               409  a tool of the bridge has the name that a client gives its own tool on Letta
    ├── IdempotencyKeyReused        422  the Idempotency-Key came before, with another body
    ├── ContextOverflow             400  the agent's context is full
    ├── ClientGone                  499  the client closed the connection
    ├── InternalFailure             500  a fault of the bridge
    ├── ShuttingDown                503  the service is being restarted
    ├── WorkFailing                 503  what this worker does beside its turns fails
    ├── StoreUnavailable            503  the store that the workers share can't be read or written
    │   └── HoldLost                503  the bridge lost its lock on the agent, so another turn may have it now
    └── LettaError                  502  the Letta server or the model behind it failed
        ├── LettaUnreachable        502  there is no connection to Letta, or it broke
        ├── LettaUnavailable        503  Letta answers that it can't serve now
        ├── LettaTimeout            504  Letta did not answer in time
        ├── LettaRefusedCredentials 502  the bridge's own credentials are wrong
        ├── LettaConflict           409  Letta says that the agent is busy, or waits for an approval
        ├── LettaRejected           502  Letta did not accept the bridge's request
        ├── LettaNotFound           404  Letta has no agent, tool, block or run with the id
        ├── RunBrokenOff            502  Letta took a message and lost the run
        ├── ModelFailed             502  the agent's model failed
        └── ModelOverloaded         429  the agent's model is rate limited
    SettingsError                        the environment is wrong; the service does not start

Every package raises these errors. Only web/ turns them into responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


class BridgeError(Exception):
    """A failure that the client gets as an HTTP status and OpenAI's error object. `param` names the wrong field of the
    request; `code` and `retry_after` (seconds) replace those of the class.
    """

    status = 500
    type = "server_error"
    code: str | None = None
    retry_after: int | None = None
    # Whether the same request may succeed a little later.
    is_temporary = False

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or type(self).code
        self.retry_after = retry_after if retry_after is not None else type(self).retry_after


class InvalidRequest(BridgeError):
    status = 400
    type = "invalid_request_error"

    def about_tool(self, name: str) -> InvalidRequest:
        """Returns this error with the tool's name in the message, because people know their tools by name."""
        return type(self)(f"The tool {name!r:.160} is refused: {self.message}", param=self.param, code=self.code)

    @classmethod
    def no_pending_call(cls, call_ids: Iterable[str]) -> InvalidRequest:
        """Returns the error for results of calls that do not wait for any. It names the first five."""
        named = ", ".join(repr(call_id)[:60] for call_id in islice(call_ids, 5))
        return cls(
            f"No call is waiting for the result of {named}: it has been answered or given up, or it was never made by"
            " this agent. Send a user message to go on.",
            param="messages",
            code="no_pending_call",
        )


class TooDeep(InvalidRequest):
    code = "nesting_too_deep"


class BodyTooLarge(InvalidRequest):
    """A body beyond the limit. Not for one large tool or result: clients take 413 for a full context, and shorten the
    transcript in vain.
    """

    status = 413
    code = "request_too_large"


class WrongContentType(InvalidRequest):
    status = 415
    code = "unsupported_media_type"


class TooSlow(InvalidRequest):
    status = 408
    code = "request_timeout"


class Unauthorized(BridgeError):
    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class Forbidden(BridgeError):
    status = 403
    type = "permission_error"
    code = "not_allowed"


class UnknownModel(BridgeError):
    status = 404
    type = "invalid_request_error"
    code = "model_not_found"


class UnknownResponse(BridgeError):
    status = 404
    type = "invalid_request_error"
    code = "response_not_found"


class UnknownPath(BridgeError):
    status = 404
    type = "invalid_request_error"
    code = "not_found"

    @classmethod
    def no_such_route(cls) -> UnknownPath:
        return cls("There is no such route. The API is at /v1/models, /v1/chat/completions and /v1/responses.")


class WrongMethod(BridgeError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


class NoWebSocket(BridgeError):
    status = 426
    type = "invalid_request_error"
    code = "no_websocket"


class Busy(BridgeError):
    status = 429
    is_temporary = True
    type = "rate_limit_error"
    code = "busy"
    retry_after = 2


class TooManyTurns(BridgeError):
    status = 503
    is_temporary = True
    code = "too_many_turns"
    retry_after = 2


class TooManyRequests(BridgeError):
    status = 503
    is_temporary = True
    code = "too_many_requests"
    retry_after = 2


class TooManyBytes(BridgeError):
    status = 503
    is_temporary = True
    code = "too_many_bytes"
    retry_after = 2


class StillRunning(BridgeError):
    status = 504
    is_temporary = True
    code = "still_running"
    retry_after = 1


class TurnLost(BridgeError):
    status = 503
    is_temporary = True
    code = "turn_lost"
    retry_after = 1


class RequestConflict(BridgeError):
    status = 409
    type = "invalid_request_error"
    code = "conflict"
    retry_after = 2


class CallsUnanswered(BridgeError):
    """Raised by APIs whose clients answer all calls before they go on. `param`: the message with the open calls."""

    status = 409
    type = "invalid_request_error"
    code = "PENDING_APPROVAL"


class ToolNameTaken(BridgeError):
    status = 409
    type = "invalid_request_error"
    code = "tool_name_taken"


class IdempotencyKeyReused(BridgeError):
    status = 422
    type = "invalid_request_error"
    code = "idempotency_key_reused"


class ContextOverflow(BridgeError):
    status = 400
    type = "invalid_request_error"
    code = "context_length_exceeded"


class ClientGone(BridgeError):
    status = 499
    code = "client_gone"

    @classmethod
    def before_its_turn(cls) -> ClientGone:
        return cls("The client closed the connection before its turn began.")


class InternalFailure(BridgeError):
    code = "internal_error"


class ShuttingDown(BridgeError):
    status = 503
    is_temporary = True
    code = "shutting_down"
    retry_after = 2


class WorkFailing(BridgeError):
    status = 503
    is_temporary = True
    code = "work_failing"
    retry_after = 5


class StoreUnavailable(BridgeError):
    status = 503
    is_temporary = True
    code = "store_unavailable"
    retry_after = 5


class HoldLost(StoreUnavailable):
    code = "hold_lost"
    retry_after = 2


class LettaError(BridgeError):
    status = 502
    is_temporary = True
    code = "letta_error"
    # What is wrong with the server and what to do, without its address, and the part that says what to do; "" if the
    # message does not say that.
    reason = ""
    advice = ""


class LettaUnreachable(LettaError):
    code = "letta_unreachable"
    retry_after = 5
    # True if no connection was made. If a connection broke, Letta may have received the request.
    nothing_sent = False


class LettaUnavailable(LettaError):
    status = 503
    code = "letta_unavailable"
    retry_after = 5


class LettaTimeout(LettaError):
    status = 504
    code = "letta_timeout"


class LettaRefusedCredentials(LettaError):
    is_temporary = False
    code = "letta_credentials"


class LettaConflict(LettaError):
    is_temporary = False
    status = 409
    code = "agent_busy"
    retry_after = 2


class LettaRejected(LettaError):
    is_temporary = False
    code = "letta_rejected"


class LettaNotFound(LettaError):
    is_temporary = False
    status = 404
    code = "letta_missing"


class RunBrokenOff(LettaError):
    code = "run_broken_off"
    retry_after = 1


class ModelFailed(LettaError):
    code = "model_failed"
    retry_after = 5


class ModelOverloaded(LettaError):
    status = 429
    type = "rate_limit_error"
    code = "model_overloaded"
    retry_after = 20


class SettingsError(Exception):
    """Names every wrong variable of the environment at once, one line for each."""
