"""The page /docs in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.test_admin_pages import SIZES, TOO_WIDE, WEAK_TEXT


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_api_can_be_read_on_every_screen(open_page: Open, width: int, scheme: str) -> None:
    page = open_page(width, scheme)
    page.goto("/")
    page.get_by_role("link", name="a page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("API")
    assert page.evaluate(TOO_WIDE) <= 0
    assert page.evaluate(WEAK_TEXT) == []
    page.get_by_role("link", name="POST /v1/chat/completions").click()
    expect(page.locator("#createChatCompletion")).to_be_in_viewport()
    page.locator("#createChatCompletion").get_by_role("link", name="ChatRequest").click()
    expect(page.locator("#schema-ChatRequest")).to_be_in_viewport()
    expect(page.locator("#schema-ChatRequest")).to_contain_text("parallel_tool_calls")
    assert page.evaluate(TOO_WIDE) <= 0
    page.go_back()
    page.locator("#createChatCompletion").get_by_role("link", name="429").click()
    expect(page.locator("#error-429")).to_be_in_viewport()
    expect(page.locator("#error-429")).to_contain_text("rate_limit_exceeded")
