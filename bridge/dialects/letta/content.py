"""Reads the `content` of messages and the `tool_return` of results in Letta's own API: a string, or a list of parts."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from bridge.errors import InvalidRequest
from bridge.json_text import storable_text
from bridge.turn import Image

# Older servers take only one text for a message, so its parts are joined.
SEPARATOR = "\n"


def parse_content(content: Any, where: str, *, image_urls: bool) -> tuple[str, tuple[Image, ...]]:
    """Returns the text, its parts joined, and the pictures. Parts of other types are refused."""
    if isinstance(content, str):
        return storable_text(content), ()
    if not isinstance(content, list):
        raise InvalidRequest(f"`{where}` must be a string or an array of parts.", param=where)
    parts = [_parse_part(item, f"{where}[{index}]", image_urls) for index, item in enumerate(content)]
    texts = [part for part in parts if isinstance(part, str) and part]
    return storable_text(SEPARATOR.join(texts)), tuple(part for part in parts if isinstance(part, Image))


def _parse_part(value: Any, where: str, image_urls: bool) -> str | Image:
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{where}` must be an object with `type`.", param=where)
    kind = value.get("type", "text")
    if kind == "text" and isinstance(value.get("text"), str):
        return str(value["text"])
    if kind == "text":
        raise InvalidRequest(f"`{where}.text` must be a string.", param=f"{where}.text")
    if kind == "image":
        return _parse_image(value.get("source"), f"{where}.source", image_urls)
    raise InvalidRequest(f"`{where}` is of type {kind!r:.40}; an agent takes text and pictures.", param=where)


def _parse_image(source: Any, where: str, image_urls: bool) -> Image:
    kind = source.get("type") if isinstance(source, dict) else None
    if kind == "base64" and isinstance(source.get("data"), str):
        media_type = source.get("media_type")
        return Image(media_type if isinstance(media_type, str) else "image/png", _check_base64(source["data"], where))
    if kind == "url" and isinstance(source.get("url"), str):
        if not image_urls:
            raise InvalidRequest(
                f"`{where}.url` is an address. Send the picture itself as base64, or let the operator set"
                " BRIDGE_IMAGE_URLS=1: then the Letta server fetches it.",
                param=f"{where}.url",
            )
        return Image(url=storable_text(source["url"]))
    raise InvalidRequest(f'`{where}` must be of type "base64" with `data`, or of type "url" with `url`.', param=where)


def _check_base64(data: str, where: str) -> str:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest(f"`{where}.data` is not valid base64.", param=f"{where}.data") from None
    return data
