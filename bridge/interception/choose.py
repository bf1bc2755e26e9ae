"""Chooses the interception method, which catches the agent's calls of client tools.

The best method leaves the model the cleanest transcript; of equal methods, the one with the fewest requests to Letta.

| Letta server      | letta_v1_agent                  | every other type  |
|-------------------|---------------------------------|-------------------|
| up to 0.11.6      | (no such agents)                | rewrite, ungated  |
| 0.11.7            | (no such agents)                | rewrite, gated    |
| 0.12              | rewrite, gated                  | rewrite, gated    |
| 0.13              | rewrite, ungated                | rewrite, gated    |
| 0.14 to 0.16.1    | approval                        | rewrite, gated    |
| 0.16.2 to 0.16.6  | native                          | rewrite, gated    |
| 0.16.7 and later  | native                          | relay             |

On Letta 0.13 an answered approval damages a `letta_v1_agent`, and a denied one holds the agent for ever, so calls of
these agents are not held. Up to Letta 0.13, calls of agents with sleeptime are not held: see `features_for_agent`.
The model can only be forced to call a stub, so a named or required tool is caught by `approval` instead of `native`.
`message` works everywhere and is not needed on any server that was measured. `prompt` is chosen only if
BRIDGE_METHOD or the methods of the client's key say so.
"""

from __future__ import annotations

from bridge.errors import Forbidden, InvalidRequest
from bridge.interception.approval import Approval
from bridge.interception.message import Message
from bridge.interception.method import Interception
from bridge.interception.native import Native
from bridge.interception.prompt import Prompt
from bridge.interception.relay import Relay
from bridge.interception.rewrite import Rewrite
from bridge.letta.capabilities import Loop, ServerFeatures, can_deny_calls
from bridge.turn import Method, ToolChoice

_REASONS: dict[Method, str] = {
    "auto": "",
    "native": "Its loop takes a client's tools with the message (letta_v1_agent on Letta 0.16.2 and later).",
    "approval": "Its loop holds a call for an approval, and takes the client's result as the answer to it.",
    "rewrite": "Its loop holds a call for an approval, which is closed at once; the server lets stored messages be"
    " changed, so the client's result takes the place of that return.",
    "relay": "Its loop holds a call for an approval, and the server lets no stored message be changed: the stub itself"
    " returns the client's result.",
    "message": "Nothing better works here: calls and results reach the agent as messages.",
    "prompt": "Tools and calls are written into the text, so that the agent's own toolset stays untouched.",
}
_UNGATED = (
    "Its loop can't hold a call without harm: the stub returns at once, a rule ends the run, and the client's result"
    " takes the place of that return."
)


def choose_method(
    features: ServerFeatures, loop: Loop, wanted: Method, choice: ToolChoice, allowed: frozenset[Method] = frozenset()
) -> Interception:
    """Returns the best interception method that works for the agent and can do what `choice` (`tool_choice`) asks.
    `wanted` is BRIDGE_METHOD. `allowed` are the methods of the client's key; empty permits all.
    """
    possible = possible_methods(features, loop)
    if wanted != "auto" and wanted not in possible:
        raise InvalidRequest(
            f"The method {wanted!r} (BRIDGE_METHOD) does not work for this agent on Letta {features.version_text};"
            f" these do: {', '.join(possible)}.",
            code="method_not_possible",
        )
    candidates = list(possible.values()) if wanted == "auto" else [possible[wanted]]
    candidates = [method for method in candidates if not allowed or method.name in allowed]
    if not candidates:
        raise Forbidden(
            f"This key permits only {', '.join(sorted(allowed))}, and none of these methods works for this agent"
            f" on Letta {features.version_text} with the method {wanted!r} (BRIDGE_METHOD).",
        )
    forcing = choice.mode in ("required", "function")
    fitting = next((method for method in candidates if method.can_force or not forcing), None)
    if fitting is None:
        raise InvalidRequest(
            f'`tool_choice` can\'t be enforced with the method {wanted!r} (BRIDGE_METHOD), only "auto" and "none".',
            param="tool_choice",
            code="tool_choice_not_possible",
        )
    return fitting


def possible_methods(features: ServerFeatures, loop: Loop) -> dict[Method, Interception]:
    """Returns the interception methods that work for an agent with this loop, by name, the best first."""
    methods: dict[Method, Interception] = {}
    if loop == "v3" and features.client_tools:
        methods["native"] = Native()
    if loop == "v3" and features.tool_returns:
        methods["approval"] = Approval()
    if features.message_rewrite:
        methods["rewrite"] = Rewrite(gated=can_deny_calls(features, loop), rule_prompts=features.rule_prompts)
    if loop == "v2" and features.approvals:
        methods["relay"] = Relay()
    methods["message"] = Message(gated=can_deny_calls(features, loop), rule_prompts=features.rule_prompts)
    methods["prompt"] = Prompt()
    return methods


def explain_method(method: Method, features: ServerFeatures, loop: Loop, wanted: Method) -> str:
    """Says for the operator why this method was chosen. `wanted` is BRIDGE_METHOD; "auto" means a free choice."""
    forced = "" if wanted == "auto" else "BRIDGE_METHOD says so. "
    if method == "rewrite" and not can_deny_calls(features, loop):
        return forced + _UNGATED
    return forced + _REASONS[method]
