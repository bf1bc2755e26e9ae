"""The floor: the least service between OpenAI clients and Letta. It checks nothing, keeps nothing, and knows no tools.

It makes the two calls to Letta that the bridge makes for a turn, with `requests`, and parses both answers. gunicorn's
own threaded worker serves it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import requests
from flask import Flask, Response, jsonify, request

LETTA = os.environ.get("LETTA_BASE_URL", "")
app = Flask(__name__)
_thread = threading.local()
_ids: dict[str, str] = {}


def _session() -> requests.Session:
    if not hasattr(_thread, "session"):
        _thread.session = requests.Session()
    found: requests.Session = _thread.session
    return found


def _agent(name: str) -> dict[str, Any]:
    if name not in _ids:
        _ids[name] = _session().get(f"{LETTA}/v1/agents/", params={"name": name, "limit": "1"}).json()[0]["id"]
    agent: dict[str, Any] = _session().get(f"{LETTA}/v1/agents/{_ids[name]}").json()
    return agent


def _texts(answer: requests.Response) -> Iterator[str]:
    for line in answer.iter_lines(1 << 14):
        event = json.loads(line[6:]) if line.startswith(b"data: {") else {}
        if event.get("message_type") == "assistant_message":
            yield event["content"]


def _frames(answer: requests.Response, model: str) -> Iterator[str]:
    for text in _texts(answer):
        choices = [{"index": 0, "delta": {"content": text}}]
        yield f"data: {json.dumps({'object': 'chat.completion.chunk', 'model': model, 'choices': choices})}\n\n"
    yield "data: [DONE]\n\n"


@app.get("/healthz")
def is_healthy() -> str:
    return "ok"


@app.post("/v1/chat/completions")
def answer_chat() -> Response:
    body = request.get_json()
    agent = _agent(body["model"])
    message = {"messages": body["messages"][-1:], "stream_tokens": body["stream"]}
    answer = _session().post(f"{LETTA}/v1/agents/{agent['id']}/messages/stream", json=message, stream=True)
    if body["stream"]:
        return Response(_frames(answer, body["model"]), mimetype="text/event-stream")
    reply = {"role": "assistant", "content": "".join(_texts(answer))}
    return jsonify(object="chat.completion", model=agent["name"], choices=[{"index": 0, "message": reply}])
