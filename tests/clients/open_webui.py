"""Open WebUI as a server, used through the API that its pages use."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from testbed.cache import Progress
from testbed.network import free_port
from tests.clients.installed import python_of
from tests.clients.pins import OPEN_WEBUI
from tests.clients.process import ClientFailed, Scratch, running

START_SECONDS = 180.0
CHAT_SECONDS = 120.0
SETTINGS = {
    "WEBUI_AUTH": "False",
    "WEBUI_SECRET_KEY": "of a test",
    # It fetches nothing from the network and has no embedding model of its own.
    "OFFLINE_MODE": "True",
    "RAG_EMBEDDING_ENGINE": "openai",
    "ENABLE_OLLAMA_API": "False",
}
TOOL = '''
class Tools:
    def read_file(self, path: str) -> str:
        """
        Reads a text file.

        :param path: Where the file is
        """
        with open(path) as file:
            return file.read()
'''


class OpenWebUI:
    """A running Open WebUI with a tool of its own that reads files."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = requests.Session()
        self._http.trust_env = False
        token = self._post("/api/v1/auths/signin", {"email": "", "password": ""})["token"]
        self._http.headers["Authorization"] = f"Bearer {token}"
        self._post("/api/v1/tools/create", {"id": "files", "name": "Files", "content": TOOL, "meta": {}})

    def models(self) -> list[str]:
        return [model["id"] for model in self._get("/api/models")["data"]]

    def chat(self, model: str, text: str) -> dict[str, Any]:
        """Asks one question in a new chat, with title, tags and follow-ups; returns the stored chat."""
        asked, answered = str(uuid.uuid4()), str(uuid.uuid4())
        question = {"id": asked, "parentId": None, "role": "user", "content": text, "models": [model]}
        begun = self._post(
            "/api/chat/completions",
            {
                "model": model,
                "messages": [{"role": "user", "content": text}],
                "stream": True,
                "tool_ids": ["files"],
                "session_id": str(uuid.uuid4()),
                "id": answered,
                "parent_id": None,
                "user_message": question,
                "background_tasks": {
                    "title_generation": True,
                    "tags_generation": True,
                    "follow_up_generation": True,
                },
            },
        )
        chat_id = begun["chat_id"]
        self._until(lambda: not self._get(f"/api/tasks/chat/{chat_id}")["task_ids"], f"the chat {chat_id}")
        kept: dict[str, Any] = self._get(f"/api/v1/chats/{chat_id}")["chat"]
        return kept | {"answer": kept["history"]["messages"][answered]}

    def task(self, kind: str, model: str, messages: list[dict[str, str]]) -> str:
        """Returns the model's answer when Open WebUI asks for a title, for tags or for follow-ups of a chat."""
        body = {"model": model, "messages": messages}
        said = self._post(f"/api/v1/tasks/{kind}/completions", body)
        return str(said["choices"][0]["message"]["content"])

    def _until(self, ended: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + CHAT_SECONDS
        while not ended():
            if time.monotonic() > deadline:
                raise ClientFailed(f"Open WebUI did not finish {what} within {CHAT_SECONDS:.0f} s")
            time.sleep(0.2)

    def _get(self, path: str) -> Any:
        return self._said(self._http.get(self._url + path, timeout=60))

    def _post(self, path: str, body: Any) -> Any:
        return self._said(self._http.post(self._url + path, json=body, timeout=60))

    def _said(self, answer: requests.Response) -> Any:
        if not answer.ok:
            raise ClientFailed(f"Open WebUI answers {answer.status_code} to {answer.url}: {answer.text[:1000]}")
        return answer.json()


@contextmanager
def open_webui(bridge_url: str, scratch: Scratch, say: Progress) -> Iterator[OpenWebUI]:
    """Runs Open WebUI for the length of the block."""
    program = python_of(OPEN_WEBUI, say).with_name("open-webui")
    port = free_port()
    settings = {
        **SETTINGS,
        "DATA_DIR": str(scratch.home / "data"),
        "OPENAI_API_BASE_URLS": bridge_url,
        "OPENAI_API_KEYS": "none",
    }
    log = scratch.home / "server.log"
    command = [str(program), "serve", "--host", "127.0.0.1", "--port", str(port)]
    say("starting Open WebUI…")
    with running(command, scratch, settings, log) as process:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise ClientFailed(f"Open WebUI did not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.3)
        yield OpenWebUI(url)


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=5).ok
    except requests.RequestException:
        return False
