"""Says what is wrong with a path that has no route: most often, the base URL in the client's settings. Pure."""

from __future__ import annotations

from bridge.errors import UnknownPath

_ROUTES = ("/chat/completions", "/responses", "/models")
# Routes of OpenAI's API that are not here, and what clients of Ollama, Anthropic and Letta ask for.
_OTHER_ROUTES = ("/completions", "/embeddings")
_OF_LETTA = ("/v1/agents", "/v1/blocks", "/v1/tools", "/v1/health", "/v1/runs", "/v1/conversations", "/v1/sources")


def error_for_path(path: str, root: str) -> UnknownPath:
    """Returns the error for a request to `path`. `root` is the path below which the bridge is served, mostly ""."""
    return UnknownPath(f"There is no such route. {_advice(path.rstrip('/'), f'{root}/v1')}")


def _advice(path: str, base: str) -> str:
    example = f"as in http://localhost:8080{base}"
    routes = ", ".join(f"{base}{route}" for route in _ROUTES)
    if path == "/v1":
        return f"This is the base URL for clients; its routes are {routes}."
    if path.startswith("/v1/v1"):
        return "`/v1` is there twice: this client adds it itself, so take it off the end of the client's base URL."
    if _below_route(path):
        return f"The client's base URL has a whole route in it: it must end in `{base}`, {example}."
    if path.startswith((*_ROUTES, *_OTHER_ROUTES)):
        return f"`/v1` is missing: the client's base URL must end in `{base}`, {example}."
    if path.endswith(tuple(f"/v1{route}" for route in _ROUTES)):
        return f"There is too much before `/v1`: the client's base URL must be the address and `{base}`, {example}."
    other = "Ollama's" if path.startswith("/api") else "Anthropic's" if path.startswith("/v1/messages") else ""
    if other:
        return f'This is {other} API. Choose "OpenAI compatible" in the client, with a base URL {example}.'
    if path.startswith(_OF_LETTA) or path.startswith("/letta"):
        return "Letta's own API is below `/letta`, and only if the operator has set BRIDGE_LETTA_API."
    return f"The API is at {routes}."


def _below_route(path: str) -> bool:
    """Returns whether a client has added a route to a route."""
    return any(f"{first}{second}" in path for first in _ROUTES for second in _ROUTES)
