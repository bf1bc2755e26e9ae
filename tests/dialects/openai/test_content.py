"""Text and pictures in messages."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.dialects.openai.content import parse_content
from bridge.errors import InvalidRequest
from bridge.turn import Image

PNG = "iVBORw0KGgo="
DATA_URL = f"data:image/png;base64,{PNG}"


def picture(url: Any, **more: Any) -> list[Any]:
    return [{"type": "image_url", "image_url": {"url": url, **more}}]


def parsed(content: Any, role: str = "user", *, image_urls: bool = False) -> tuple[str, tuple[Image, ...]]:
    return parse_content(content, role, "messages[0].content", image_urls=image_urls)


@pytest.mark.parametrize("role", ["user", "tool"])
def test_a_data_url_is_a_picture(role: str) -> None:
    parts = [{"type": "text", "text": "Look:"}, *picture(DATA_URL, detail="high")]
    assert parsed(parts, role) == ("Look:", (Image("image/png", PNG, detail="high"),))


def test_a_picture_needs_no_text() -> None:
    assert parsed(picture(DATA_URL)) == ("", (Image("image/png", PNG),))


def test_a_bare_string_is_a_url_too_and_jpg_is_jpeg() -> None:
    assert parsed([{"type": "image_url", "image_url": f"data:image/jpg;base64,{PNG}"}])[1] == (
        Image("image/jpeg", PNG),
    )


def test_an_address_is_passed_on_only_if_the_settings_allow_it() -> None:
    address = "https://example.com/cat.png"
    assert parsed(picture(address), image_urls=True)[1] == (Image(url=address),)
    with pytest.raises(InvalidRequest, match="BRIDGE_IMAGE_URLS"):
        parsed(picture(address))


@pytest.mark.parametrize(
    ("part", "param"),
    [
        (picture("data:image/svg+xml;base64,PHN2Zz4=")[0], ".image_url.url"),
        (picture("data:image/png;base64,!!!")[0], ".image_url.url"),
        (picture("data:image/png;base64,abc")[0], ".image_url.url"),
        (picture("file:///etc/passwd")[0], ".image_url.url"),
        (picture("http://user:secret@example.com/")[0], ".image_url.url"),
        (picture(7)[0], ".image_url.url"),
        ({"type": "image_url"}, ".image_url.url"),
        ({"type": "input_audio", "input_audio": {"data": ""}}, ""),
        ({"type": "file", "file": {}}, ""),
        ({"type": "text"}, ".text"),
        (7, ""),
    ],
)
def test_a_part_that_no_agent_accepts_is_refused_by_its_place(part: Any, param: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parsed([part], image_urls=True)
    assert refused.value.param == f"messages[0].content[0]{param}"


def test_a_system_message_has_no_pictures() -> None:
    with pytest.raises(InvalidRequest):
        parsed(picture(DATA_URL), "system")


def test_pictures_and_unknown_parts_of_an_assistant_are_ignored() -> None:
    assert parsed([{"type": "text", "text": "a"}, *picture(DATA_URL), {"type": "unknown"}], "assistant") == ("a", ())


@pytest.mark.parametrize(
    "malformed", [{"type": "text", "text": None}, {"type": "refusal", "refusal": None}, {"cachePoint": {}}, None]
)
def test_a_malformed_part_of_an_assistant_does_not_end_the_conversation(malformed: Any) -> None:
    assert parsed([malformed, {"type": "text", "text": "a"}], "assistant") == ("a", ())
    with pytest.raises(InvalidRequest):
        parsed([malformed], "user")
