"""The requests that the model received, in order, with its answers."""

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from testbed.model.context import ShownMessage, shown, story
from testbed.model.refusal import Refusal
from testbed.model.tools import OfferedTool, ToolOffer, offer_of

SECRET_HEADERS = ("authorization", "api-key", "x-api-key", "cookie", "openai-organization")
HIDDEN = "(hidden)"

CHAT = "/v1/chat/completions"


class RecordedRequest:
    """One request. The fields about its answer are filled in when the answer is known."""

    def __init__(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> None:
        self.number = 0
        self.at = time.time()
        self.method = method
        self.path = path
        self.headers = {name: HIDDEN if name.lower() in SECRET_HEADERS else value for name, value in headers.items()}
        self.raw = raw
        self.status: int | None = None
        self.reply: Any = None
        self.refusal: Refusal | None = None
        self.expected = False
        self.violations: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.delivered = False

    def __repr__(self) -> str:
        refused = f", refused: {self.refusal.message}" if self.refusal else ""
        return f"<request {self.number} {self.method} {self.path} {self.status}{refused}>"

    @property
    def body(self) -> Any:
        """The request's JSON, or None if it is not JSON. It is parsed at each use, as it would take much memory."""
        try:
            return json.loads(self.raw) if self.raw else None
        except (ValueError, RecursionError):
            return None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as they arrived, without those that are not objects."""
        body = self.body
        found = body.get("messages") if isinstance(body, dict) else None
        return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    @property
    def offer(self) -> ToolOffer:
        """The tools of the request, and which of them must be called."""
        body = self.body
        return offer_of(body if isinstance(body, dict) else {})

    @property
    def tools(self) -> dict[str, OfferedTool]:
        """The offered tools by name, in the request's order."""
        return {tool.name: tool for tool in self.offer.tools}

    @property
    def tool_choice(self) -> Any:
        return self.body.get("tool_choice")

    @property
    def system(self) -> str:
        """The text of the first system message, or "" without one."""
        first = self.shown[:1]
        return first[0].text if first and first[0].kind in ("system", "developer") else ""

    @property
    def shown(self) -> list[ShownMessage]:
        """The messages that the model was shown, without Letta's wrapping."""
        return shown(self.messages)

    def story(self, since: str | None = None) -> list[str]:
        """Returns the context as short lines without ids; see `context.story`."""
        return story(self.messages, since)

    def contains(self, text: str) -> bool:
        """Whether the request contains a text, however Letta wrapped it."""
        return any(needle in self.raw for needle in _needles(text))

    def to_json(self) -> dict[str, Any]:
        """Returns the request as JSON, for another process."""
        return {
            "number": self.number,
            "at": self.at,
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "body": self.body,
            "status": self.status,
            "reply": self.reply,
            "refusal": self.refusal.message if self.refusal else None,
            "violations": list(self.violations),
            "notes": list(self.notes),
            "delivered": self.delivered,
            "story": self.story(),
        }


@lru_cache(maxsize=100)
def _needles(text: str) -> tuple[bytes, ...]:
    """Returns a text as written in JSON, and in JSON within JSON, which is Letta's wrapping of messages and results."""
    once = _escaped(text)
    twice = {form for one in once for form in _escaped(one)}
    return tuple(form.encode("utf-8", "surrogatepass") for form in once | twice)


def _escaped(text: str) -> set[str]:
    return {json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}


class Records:
    """The newest requests, limited in number and in bytes. Safe between threads."""

    def __init__(self, most: int = 5000, most_bytes: int = 100_000_000) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: deque[RecordedRequest] = deque()
        self._bytes = 0
        self._count = 0
        self._changed = threading.Condition()

    def add(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> RecordedRequest:
        """Records a request when it arrives."""
        one = RecordedRequest(method, path, headers, raw)
        with self._changed:
            self._count += 1
            one.number = self._count
            self._kept.append(one)
            self._bytes += len(raw)
            while len(self._kept) > self._most or (self._bytes > self._most_bytes and len(self._kept) > 1):
                self._bytes -= len(self._kept.popleft().raw)
            self._changed.notify_all()
        return one

    def find(self, containing: str | None = None, path: str | None = CHAT) -> list[RecordedRequest]:
        """Returns the requests to a path (None for all) that contain a text, oldest first."""
        with self._changed:
            kept = list(self._kept)
        return [one for one in kept if path in (None, one.path) and (containing is None or one.contains(containing))]

    def wait(self, count: int, containing: str | None, path: str | None, seconds: float) -> list[RecordedRequest]:
        """Waits until that many such requests have arrived; TimeoutError if they do not."""
        end = time.monotonic() + seconds
        while True:
            with self._changed:
                seen = self._count
            found = self.find(containing, path)
            if len(found) >= count:
                return found
            with self._changed:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(
                        f"the model got {len(found)} of {count} requests with {containing!r} in {seconds} s"
                    )
                if self._count == seen:
                    self._changed.wait(left)

    def clear(self) -> None:
        """Forgets all requests. Their numbers are not used again."""
        with self._changed:
            self._kept.clear()
            self._bytes = 0
