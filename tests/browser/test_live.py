"""Open pages refresh themselves, and leave alone what the operator does meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from bridge.errors import LettaUnreachable
from bridge.operation import snapshots
from tests.admin import PASSWORD
from tests.browser.conftest import Open
from tests.browser.test_admin_pages import agent_id, sign_in
from tests.browser.world import HOSTILE, PATH, Served
from tests.test_complaints import tool
from tests.waiting import until

# The pages ask again after this many milliseconds, and after more while they get no answer.
SOON_AFTER = 6_000
SELECTED = "getSelection().toString()"


@pytest.fixture
def live_page(open_page: Open) -> Callable[..., Page]:
    """Opens a page whose clock the test moves."""

    def open_live(place: str, **more: object) -> Page:
        page = open_page(**more)
        page.clock.install()
        sign_in(page)
        page.goto(f"/admin/{place}")
        page.evaluate("window.sameDocument = true")
        return page

    return open_live


def says_hello(world: Served, text: str = "Hello there") -> None:
    world.ask("support-desk", [{"role": "user", "content": text}], [tool("lookup_order", PATH)])
    world.written()


def passes(page: Page, milliseconds: int = SOON_AFTER) -> None:
    page.clock.run_for(milliseconds)


def test_a_new_turn_appears_and_everything_else_stays(live_page: Callable[..., Page], world: Served) -> None:
    says_hello(world, "The first of these")
    page = live_page("activity")
    turns = page.locator("[data-key=turns] > details.turn")
    first = turns.first
    expect(first).to_contain_text("The first of these")
    kept = first.get_attribute("id")
    first.locator("summary").click()
    page.evaluate(
        """id => {
          const text = document.getElementById(id).querySelector('.asked pre').firstChild;
          getSelection().setBaseAndExtent(text, 4, text, 9);
          scrollBy(0, 120);
        }""",
        kept,
    )
    top = page.locator(f"#{kept}").bounding_box()
    assert top is not None
    says_hello(world, "A newer one")
    passes(page)
    expect(turns.first).to_contain_text("A newer one")
    expect(page.locator(f"#{kept}")).to_have_attribute("open", "")
    assert page.evaluate(SELECTED) == "first"
    after = page.locator(f"#{kept}").bounding_box()
    assert after is not None
    assert abs(after["y"] - top["y"]) < 2
    assert page.evaluate("sameDocument")


def test_focus_and_what_was_filled_in_stay(live_page: Callable[..., Page], world: Served) -> None:
    page = live_page("turns")
    page.locator("select[name=outcome]").select_option("failed")
    page.locator("input[name=since]").fill("2020-01-01T00:00")
    summary = page.locator("details.turn > summary").nth(1)
    summary.focus()
    focused = page.evaluate("document.activeElement.parentElement.id")
    says_hello(world, "While a form is filled in")
    passes(page)
    expect(page.locator("details.turn").first).to_contain_text("While a form is filled in")
    assert page.evaluate("document.activeElement.parentElement.id") == focused
    expect(page.locator("select[name=outcome]")).to_have_value("failed")
    expect(page.locator("input[name=since]")).to_have_value("2020-01-01T00:00")
    assert page.evaluate("sameDocument")


def test_lists_of_tools_and_agents_follow_letta(
    live_page: Callable[..., Page], world: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FRESH", 0.0)
    tools, agents = live_page("tools?q=brand_new"), live_page("agents?q=newcomer")
    made = world.letta.has_agent("newcomer")
    world.ask("newcomer", [{"role": "user", "content": "Hi"}], [tool("brand_new")])
    world.written()
    for page, name in ((tools, "brand_new"), (agents, "newcomer")):
        until(lambda page=page, name=name: passes(page) or page.get_by_role("link", name=name).count() == 1)
        assert page.evaluate("sameDocument")
    world.letta.loses_agent(made.id)
    until(lambda: passes(agents) or agents.get_by_role("link", name="newcomer").count() == 0)


def test_an_agents_page_shows_a_turn_that_begins_and_ends(live_page: Callable[..., Page], world: Served) -> None:
    page = live_page(f"agents/{agent_id(world, 'support-desk')}")
    turns = page.locator("details.turn")
    before = turns.count()
    page.locator("details.turn[open] > summary").first.click()
    says_hello(world, "For this agent")
    passes(page)
    expect(page.locator("details.turn").first).to_contain_text("For this agent")
    expect(turns).to_have_count(min(before + 1, 50))
    expect(page.locator("details.turn[open]")).to_have_count(1)


def test_hostile_words_of_a_refresh_do_not_run(live_page: Callable[..., Page], world: Served) -> None:
    page = live_page("activity")
    says_hello(world, HOSTILE)
    passes(page)
    expect(page.locator("details.turn").first).to_contain_text("<script>")
    page.locator("details.turn > summary").first.click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img").count() == 0


def test_a_page_says_quietly_that_the_bridge_does_not_answer_and_goes_on_later(
    live_page: Callable[..., Page], world: Served
) -> None:
    page = live_page("activity", expected=("net::ERR_FAILED",))
    asked: list[str] = []
    page.route("**/admin/activity", lambda route: _fail(route, asked))
    passes(page)
    note = page.locator("#live-note")
    expect(note).to_contain_text("The bridge does not answer")
    expect(page.get_by_role("heading", level=1)).to_have_text("Activity")
    assert len(asked) == 1
    passes(page)
    assert len(asked) == 1
    passes(page, 2 * SOON_AFTER)
    until(lambda: page.evaluate("1") and len(asked) == 2)  # the browser is only listened to in calls of Playwright
    page.unroute("**/admin/activity")
    until(lambda: passes(page, 10 * SOON_AFTER) or note.text_content() == "")


def _fail(route: Route, asked: list[str]) -> None:
    asked.append(route.request.url)
    route.abort()


def test_a_page_says_that_letta_is_down_and_comes_back(
    live_page: Callable[..., Page], world: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "FRESH", 0.0)
    page = live_page("health")
    world.letta.fails(LettaUnreachable("The Letta server can't be reached."), at="features")
    try:
        until(lambda: passes(page) or page.get_by_text("can't be reached").count() > 0)
        expect(page.get_by_role("heading", name="Letta down")).to_be_visible()
    finally:
        world.letta.recovers()
    until(lambda: passes(page) or page.get_by_role("heading", name="Letta up").count() > 0)
    assert page.evaluate("sameDocument")


def test_a_hidden_or_paused_page_does_not_ask(live_page: Callable[..., Page], world: Served) -> None:
    page = live_page("activity")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    hide = """hidden => {
      Object.defineProperty(document, 'hidden', {get: () => hidden, configurable: true});
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(hide, True)
    passes(page, 20 * SOON_AFTER)
    assert asked == []
    page.evaluate(hide, False)
    until(lambda: page.evaluate("1") and len(asked) == 1)
    page.get_by_role("button", name="Live").click()
    expect(page.get_by_role("button", name="Paused")).to_have_attribute("aria-pressed", "false")
    asked.clear()
    passes(page, 20 * SOON_AFTER)
    assert asked == []
    page.reload()
    page.get_by_role("button", name="Paused").click()
    expect(page.get_by_role("button", name="Live")).to_be_visible()


def test_a_page_stops_at_the_sign_out(live_page: Callable[..., Page], world: Served) -> None:
    page = live_page("activity")
    other = page.context.new_page()
    other.goto("/admin/tools")
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_role("heading", level=1)).to_have_text("Sign in")
    passes(page)
    expect(page.locator("#live-note")).to_contain_text("Signed out")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    passes(page, 20 * SOON_AFTER)
    assert asked == []


def test_turns_are_filtered_without_script(open_page: Open, world: Served) -> None:
    page = open_page(java_script_enabled=False)
    page.goto("/admin/turns")
    page.locator("#password").fill(PASSWORD)
    page.locator("button.main").click()
    page.locator("select[name=outcome]").select_option("letta_timeout")
    page.locator("select[name=agent]").select_option(label="coder")
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile("outcome=letta_timeout"))
    expect(page.locator("details.turn")).to_have_count(1)
    expect(page.locator("details.turn .badge").first).to_have_text("letta_timeout")
    expect(page.get_by_role("button", name="Live")).to_be_hidden()
    page.get_by_role("link", name="Clear").click()
    assert page.locator("details.turn").count() > 5
    page.get_by_role("link", name="Usage").click()
    page.get_by_role("link", name="Last 30 days").click()
    expect(page.locator("caption")).to_contain_text("last 30 days")
