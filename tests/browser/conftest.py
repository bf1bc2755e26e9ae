"""A real Chromium, and pages in it that record every error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from testbed.browser import ARGUMENTS, browser
from tests.browser.world import Served, furnish, served
from tests.waiting import SOON

# What the browser logs for the page that follows a wrong password.
REFUSED = "the server responded with a status of 401"

Open = Callable[..., Page]
PATIENCE = 1000 * SOON
expect.set_options(timeout=PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in str(item.path):
            item.add_marker(pytest.mark.browser)


def _matters(said: ConsoleMessage, expected: Sequence[str]) -> bool:
    return said.type == "error" and all(words not in said.text for words in (REFUSED, *expected))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    found = browser(progress=lambda line: sys.stderr.write(f"{line}\n") and None)
    with sync_playwright() as playwright:
        program = playwright.chromium.launch(
            executable_path=found.program, env=dict(found.environment), args=list(ARGUMENTS)
        )
        yield program
        program.close()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("bridge")) as world:
        furnish(world)
        yield world


@pytest.fixture
def open_page(chromium: Browser, world: Served) -> Iterator[Open]:
    """Opens pages with their own session, in a width and colour scheme. Dialogs, foreign requests and errors fail, but
    errors with words that are `expected`.
    """
    complaints: list[str] = []
    contexts = []

    def open_page(width: int = 1400, scheme: str = "light", *, expected: Sequence[str] = (), **more: Any) -> Page:
        context = chromium.new_context(
            base_url=world.url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            **more,  # type: ignore[arg-type]
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: complaints.append(said.text) if _matters(said, expected) else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda one: None if one.url.startswith(world.url) else complaints.append(one.url))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
