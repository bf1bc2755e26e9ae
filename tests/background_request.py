"""A request that runs in a thread of its own while the test goes on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import requests

PATIENCE = 20.0


class BackgroundRequest:
    """Sends the request at once and reads the reply until it ends or breaks."""

    def __init__(self, url: str, body: Mapping[str, Any], patience: float = PATIENCE) -> None:
        self.body = b""
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.broken = False
        self._patience = patience
        self._grown = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(url, body), daemon=True)
        self._thread.start()

    def _read(self, url: str, body: Mapping[str, Any]) -> None:
        try:
            with requests.post(f"{url}/v1/chat/completions", json=body, stream=True, timeout=self._patience) as answer:
                self.status, self.headers = answer.status_code, answer.headers
                for piece in answer.iter_content(None):
                    with self._grown:
                        self.body += piece
                        self._grown.notify_all()
        except requests.RequestException:
            self.broken = True
        with self._grown:
            self._grown.notify_all()

    def has_received(self, words: bytes = b"") -> bool:
        """Waits for the first bytes, or for these words. False if the reply ends or pauses too long before."""
        with self._grown:
            self._grown.wait_for(lambda: self._has(words) or not self.is_open, self._patience)
            return self._has(words)

    def _has(self, words: bytes) -> bool:
        return words in self.body if words else bool(self.body)

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    def wait_for_end(self) -> None:
        self._thread.join(self._patience)
        assert not self._thread.is_alive()
