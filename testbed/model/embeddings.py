"""Makes embeddings that are the same for the same text, and have no other meaning. Pure."""

import base64
import hashlib
import math
import struct
from collections.abc import Mapping
from typing import Any

from testbed.model.refusal import Refusal
from testbed.model.usage import tokens
from testbed.model.values import array_refusal, invalid_value, missing

DIMENSIONS = 1536
MOST_INPUTS = 2048


def embedding(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Returns a vector of length 1."""
    raw = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(4 * dimensions)
    numbers = [number / 2**31 for number in struct.unpack(f"<{dimensions}i", raw)]
    length = math.sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]


def embeddings(body: Mapping[str, Any]) -> dict[str, Any] | Refusal:
    """Returns the answer to a request for embeddings."""
    given, encoding = body.get("input"), body.get("encoding_format") or "float"
    if given is None:
        return missing("input")
    if encoding not in ("float", "base64"):
        return invalid_value("encoding_format", encoding, ("float", "base64"))
    inputs = _inputs(given)
    refused = next(array_refusal("input", inputs, MOST_INPUTS), None)
    if refused is not None:
        return refused
    vectors = [embedding(text, body.get("dimensions") or DIMENSIONS) for text in inputs]
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if encoding == "base64" else vector}
        for index, vector in enumerate(vectors)
    ]
    count = tokens(sum(map(len, inputs)))
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": body.get("model"), "usage": usage}


def _inputs(given: Any) -> list[str]:
    """Returns the texts of an input, which is one text, several texts, or the tokens of one or of several."""
    if isinstance(given, list) and not all(isinstance(one, int) for one in given):
        return [one if isinstance(one, str) else str(one) for one in given]
    return [given if isinstance(given, str) else str(given)] if given != [] else []


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
