"""Reads the `content` of a message: a string, null, or a list of parts, which are texts and pictures."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from bridge.errors import InvalidRequest
from bridge.json_text import storable_text
from bridge.turn import Image

_SEPARATOR = "\n\n"
_TEXT_KINDS = ("text", "input_text", "output_text", "refusal", None)
_DATA_URL = re.compile(r"data:(image/(?:png|jpeg|jpg|gif|webp));base64,([A-Za-z0-9+/=\s]+)\Z")
_WEB_ADDRESS = re.compile(r"https?://[^\s/@]+(/\S*)?\Z")


def parse_content(content: Any, role: str, where: str, *, image_urls: bool) -> tuple[str, tuple[Image, ...]]:
    """Returns a message's text and pictures. Unknown parts are refused, but ignored in an assistant's message."""
    if content is None:
        return "", ()
    if isinstance(content, str):
        return storable_text(content), ()
    if not isinstance(content, list):
        raise InvalidRequest(f"`{where}` must be a string or an array of parts.", param=where)
    parts = [_parse_part(item, role, f"{where}[{index}]", image_urls) for index, item in enumerate(content)]
    texts = [part for part in parts if isinstance(part, str) and part]
    return storable_text(_SEPARATOR.join(texts)), tuple(part for part in parts if isinstance(part, Image))


def _parse_part(value: Any, role: str, where: str, image_urls: bool) -> str | Image:
    if isinstance(value, str):
        return value
    part = value if isinstance(value, dict) else {}
    kind, text = part.get("type"), part.get("text", part.get("refusal"))
    if kind in _TEXT_KINDS and isinstance(text, str):
        return text
    if role == "assistant":
        return ""
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{where}` must be an object with `type`.", param=where)
    if kind in _TEXT_KINDS:
        raise InvalidRequest(f"`{where}.text` must be a string.", param=f"{where}.text")
    if kind in ("image_url", "input_image") and role in ("user", "tool"):
        given = value.get("image_url")
        detail = value.get("detail") if kind == "input_image" else None  # the Responses API has it beside the address
        return _parse_image(
            given if detail is None else {"url": given, "detail": detail}, f"{where}.image_url", image_urls
        )
    raise InvalidRequest(
        f"`{where}` is of type {kind!r:.40}; an agent takes text and, from users and tools, pictures.",
        param=where,
    )


def _parse_image(value: Any, where: str, image_urls: bool) -> Image:
    """Returns the picture of a part, from `image_url`: an object with the field `url`, or just the URL."""
    url = value.get("url") if isinstance(value, dict) else value
    detail = value.get("detail") if isinstance(value, dict) else None
    if not isinstance(url, str):
        raise InvalidRequest(f"`{where}.url` must be a string.", param=f"{where}.url")
    detail = detail if detail in ("low", "high") else "auto"
    picture = _DATA_URL.match(url)
    if picture:
        return Image(picture[1].replace("jpg", "jpeg"), _check_base64(picture[2], where), detail=detail)
    if not _WEB_ADDRESS.match(url):
        raise InvalidRequest(
            f"`{where}.url` must be a data URL of a PNG, JPEG, GIF or WebP picture in base64.", param=f"{where}.url"
        )
    if not image_urls:
        raise InvalidRequest(
            f"`{where}.url` is an address. Send the picture itself as a data URL, or let the operator set"
            " BRIDGE_IMAGE_URLS=1: then the Letta server fetches it.",
            param=f"{where}.url",
        )
    return Image(url=url, detail=detail)


def _check_base64(data: str, where: str) -> str:
    packed = re.sub(r"\s+", "", data)
    try:
        base64.b64decode(packed, validate=True)
    except binascii.Error:
        raise InvalidRequest(f"`{where}.url` is not valid base64.", param=f"{where}.url") from None
    return packed
