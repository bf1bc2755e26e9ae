"""Takes the pictures of the admin pages in docs/, with the same data as the tests: `make pictures`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from testbed.browser import ARGUMENTS, browser
from testbed.cache import REPOSITORY
from tests.admin import PASSWORD
from tests.browser.world import Served, furnish, served

DOCS = REPOSITORY / "docs"
WIDE, NARROW = (1280, 800), (360, 740)


def main() -> None:
    found = browser()
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as world, sync_playwright() as playwright:
        furnish(world, pace=0.35)
        program = playwright.chromium.launch(
            executable_path=found.program, env=dict(found.environment), args=list(ARGUMENTS)
        )
        for scheme in ("light", "dark"):
            for size in (WIDE, NARROW):
                context = program.new_context(
                    base_url=world.url, viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
                )
                _take(context.new_page(), world, scheme, "wide" if size == WIDE else "narrow")
                context.close()
        program.close()


def _take(page: Page, world: Served, scheme: str, width: str) -> None:
    page.goto("/admin/")
    page.get_by_label("Password of the admin page").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    key = page.request.get("/admin/tools.json?q=read_file").json()["listing"]["rows"][0]["key"]
    coder = world.letta.agents_named("coder")[0].id
    places = {"tools": "tools", "tool": f"tools/{key}", "agent": f"agents/{coder}", "activity": "activity"}
    for name, place in places.items():
        page.goto(f"/admin/{place}")
        if name == "agent":
            page.locator("details.turn > summary").nth(2).click()
            page.evaluate("window.scrollTo(0, 0)")
        file = DOCS / f"admin-{name}-{width}-{scheme}.png"
        page.screenshot(path=file)
        sys.stdout.write(f"{file.relative_to(REPOSITORY)} {file.stat().st_size // 1024} KB\n")


if __name__ == "__main__":
    main()
