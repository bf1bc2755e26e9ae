"""The routes for load balancers."""

from __future__ import annotations

from bridge.web.openapi.parts import TEXT, Schema, all_of_object, json_content, object_of, reference

SCHEMAS: dict[str, Schema] = {
    "Health": all_of_object(status={"const": "ok"}),
    "Readiness": {
        **object_of("status", status={"enum": ["ok", "not ready"]}),
        "additionalProperties": {
            **TEXT,
            "description": "A part that the bridge needs: `ok`, or what is wrong with it.",
        },
    },
}
_NOT_READY = {"status": "not ready", "letta": "letta_unreachable", "store": "ok", "worker": "ok"}
_READY = {"status": "ok", "letta": "ok", "store": "ok", "worker": "ok"}

PATHS: dict[str, Schema] = {
    "/healthz": {
        "get": {
            "tags": ["Health"],
            "operationId": "showLiveness",
            "summary": "Does the process answer?",
            "security": [],
            "responses": {
                "200": {"description": "It does.", "content": json_content(reference("Health"), ok={"status": "ok"})}
            },
        }
    },
    "/readyz": {
        "get": {
            "tags": ["Health"],
            "operationId": "showReadiness",
            "summary": "Do Letta and the store answer?",
            "security": [],
            "responses": {
                "200": {"description": "They do.", "content": json_content(reference("Readiness"), ok=_READY)},
                "503": {
                    "description": "One of them does not.",
                    "content": json_content(reference("Readiness"), down=_NOT_READY),
                },
            },
        }
    },
}
