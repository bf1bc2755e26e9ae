"""Everything that can go wrong, by name.

    BridgeError                  has status, type, code, param, retry_after: what the client is told
    ├── InvalidRequest     400   the request can't be understood; `param` names the field
    │   ├── TooDeep        400   nested beyond the limit
    │   ├── TooLarge       413   beyond a size limit
    │   └── TooSlow        408   it did not come in time
    ├── Unauthorized       401   no valid key
    ├── Forbidden          403   a valid key, but not for this
    ├── UnknownModel       404   no agent of that name or id
    ├── UnknownPath           404   no such route
    ├── WrongMethod        405   the route is there, the method is not
    ├── Busy               429   the agent is in another turn; come again
    ├── TooManyTurns       503   this worker has all the turns that it can run
    ├── StillRunning       504   the answer takes longer than the client is kept waiting
    ├── TurnLost           503   the worker that ran the turn is gone
    ├── RequestConflict           409   another request stands in the way of this one
    ├── IdempotencyKeyReused          422   the Idempotency-Key came before, with another body
    ├── ContextOverflow    400   the agent's context is full
    ├── ClientGone         499   nobody is there to be answered
    ├── InternalFailure    500   a fault of the bridge
    ├── ShuttingDown       503   the service is being restarted
    ├── StoreUnavailable   503   what the workers share can't be read or written
    │   └── HoldLost       503   the agent may be another turn's by now
    └── LettaError         502   the Letta server or the model behind it
        ├── LettaUnreachable     502   no connection, or it broke
        ├── LettaUnavailable     503   it answers that it can't serve now
        ├── LettaTimeout         504   no answer in time
        ├── LettaRefusedCredentials 502   the bridge's own credentials are wrong
        ├── LettaConflict        409   the agent is busy or waits for something
        ├── LettaRejected        502   it did not accept what the bridge sent
        ├── LettaNotFound         404   what was asked for is not there
        ├── ModelFailed          502   the agent's model failed
        └── ModelOverloaded      429   the agent's model is rate limited
    SettingsError                the environment is wrong; the service does not start

An inner room raises the name; only web/ turns it into a response.
"""

from __future__ import annotations


class BridgeError(Exception):
    status = 500
    type = "server_error"
    code: str | None = None
    retry_after: int | None = None
    # Whether the same request may well succeed a little later.
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


class TooDeep(InvalidRequest):
    code = "nesting_too_deep"


class TooLarge(InvalidRequest):
    status = 413
    code = "request_too_large"


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


class UnknownPath(BridgeError):
    status = 404
    type = "invalid_request_error"
    code = "not_found"


class WrongMethod(BridgeError):
    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"


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
    type = "server_error"
    code = "letta_error"


class LettaUnreachable(LettaError):
    code = "letta_unreachable"
    retry_after = 5
    # Known of a connection that was never made; of one that broke nobody knows what arrived.
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


class ModelFailed(LettaError):
    code = "model_failed"
    retry_after = 5


class ModelOverloaded(LettaError):
    status = 429
    type = "rate_limit_error"
    code = "model_overloaded"
    retry_after = 20


class SettingsError(Exception):
    """Every fault of the environment at once, one line each, each with the variable's name."""
