"""The admin pages in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.admin import PASSWORD
from tests.browser.conftest import Open
from tests.browser.world import HOSTILE, Served, poison
from tests.test_complaints import held, tool
from tests.waiting import SOON, until

SIZES = [(1400, "light"), (1400, "dark"), (360, "light"), (360, "dark")]
# Returns every text with too little contrast to its background, by WCAG's formula.
WEAK_TEXT = """() => {
  const parse = text => {
    const numbers = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith('color(') ? 255 : 1;
    return numbers.slice(0, 3).map(n => n * scale).concat(numbers.length > 3 ? numbers[3] : 1);
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = c => {
    const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = node => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const weak = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some(one => one.nodeType === 3 && one.textContent.trim());
    const box = node.getBoundingClientRect();
    if (!own || !node.checkVisibility() || box.width < 2 || box.right < 0) continue;
    const back = behind(node), front = over(parse(getComputedStyle(node).color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) weak.push(node.className + ' ' + node.textContent.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
  }
  return weak;
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def sign_in(page: Page) -> Page:
    page.goto("/admin/")
    page.get_by_label("Password of the admin page").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Synced tools")
    return page


def open_details(page: Page, most: int) -> None:
    closed = page.locator("details:not([open]) > summary")
    for _ in range(min(most, closed.count())):
        closed.first.click()


def agent_id(world: Served, name: str) -> str:
    return world.letta.agents_named(name)[0].id


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_an_operator_signs_in_filters_acts_and_signs_out(
    open_page: Open, world: Served, width: int, scheme: str
) -> None:
    page = open_page(width, scheme)
    page.goto("/admin/tools?q=lookup")
    expect(page).to_have_url(re.compile("/admin/sign-in"))
    page.get_by_label("Password of the admin page").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That is not the password.")
    page.get_by_label("Password of the admin page").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile(r"/admin/tools\?q=lookup$"))
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Clear").click()
    expect(page.locator("tbody tr").nth(10)).to_be_visible()
    page.get_by_label("Search").fill("file")
    page.locator("select[name=agent]").select_option("coder")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    page.get_by_role("link", name="read_file").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("read_file")
    expect(page.get_by_text("As the client sent it")).to_be_visible()
    page.get_by_role("link", name="coder").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("coder")
    page.get_by_role("link", name="Resync").click()
    expect(page.get_by_text("The agent's own tools and rules stay as they are.")).to_be_visible()
    page.get_by_role("button", name="Resync").click()
    expect(page.get_by_role("status")).to_contain_text("Resynced coder: it has 8 tools of clients.")
    page.get_by_role("link", name="Activity").click()
    expect(page.get_by_text("Resynced coder").first).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    page.goto("/admin/tools")
    expect(page).to_have_url(re.compile("/admin/sign-in"))


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_every_page_fits_and_can_be_read(open_page: Open, world: Served, width: int, scheme: str) -> None:
    page = open_page(width, scheme)
    page.goto("/admin/sign-in")
    found = [page.evaluate(WEAK_TEXT), page.evaluate(TOO_WIDE)]
    assert found == [[], 0]
    sign_in(page)
    key = page.request.get("/admin/tools.json?q=read_file").json()["listing"]["rows"][0]["key"]
    coder = agent_id(world, "coder")
    places = ["tools", "tools?q=nothing+fits", f"tools/{key}", "agents", f"agents/{coder}", "activity", "health"]
    places += ["turns", "turns?outcome=none", "usage", "usage?range=month", "activity?range=week", "connect", "try"]
    for place in [*places, f"do/detach?target={coder}", "do/sweep"]:
        page.goto(f"/admin/{place}")
        open_details(page, 3)
        assert page.evaluate(WEAK_TEXT) == [], place
        assert page.evaluate(TOO_WIDE) <= 0, place
        assert page.locator("h1").count() == 1, place


@pytest.mark.parametrize(("width", "scheme"), [SIZES[0], SIZES[3]])
def test_hostile_text_does_not_run_or_break_a_page(open_page: Open, world: Served, width: int, scheme: str) -> None:
    agent = poison(world)
    page = sign_in(open_page(width, scheme))
    key = page.request.get("/admin/tools.json?q=poisoned").json()["listing"]["rows"][0]["key"]
    for place in (
        "tools",
        "agents",
        "activity",
        "turns",
        "usage",
        f"tools/{key}",
        f"agents/{agent}",
        f"do/resync?target={agent}",
        f"connect?agent={agent}",
        f"try?tool={key}&agent={agent}",
    ):
        page.goto(f"/admin/{place}")
        open_details(page, 5)
        assert page.evaluate("window.hacked") is None, place
        assert page.locator("main script, main img").count() == 0, place
        assert page.evaluate(TOO_WIDE) <= 0, place
    page.goto(f"/admin/agents/{agent}")
    shown = HOSTILE.replace("\u202e", "\\u202e")
    expect(page.get_by_role("heading", level=1)).to_contain_text(shown)
    world.letta.loses_agent(agent)


def test_pages_work_without_script(open_page: Open, world: Served) -> None:
    page = open_page(java_script_enabled=False)
    page.goto("/admin/sign-in")
    page.locator("#password").fill(PASSWORD)
    page.locator("button.main").click()
    expect(page.locator("body")).to_contain_text("read_file")
    page.goto("/admin/activity")
    assert "coder" in page.content()
    page.goto("/admin/connect")
    page.locator("select[name=agent]").select_option("home-assistant")
    page.locator("form.filter button").click()
    expect(page.locator("#curl pre").last).to_contain_text('"model": "home-assistant"')
    assert page.locator("button.copy").count() == 0


def test_pages_can_be_used_by_keyboard_alone(open_page: Open, world: Served) -> None:
    page = open_page()
    page.goto("/admin/")
    expect(page.get_by_label("Password of the admin page")).to_be_focused()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Synced tools")
    page.wait_for_load_state()
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.textContent")
    assert focused == "Skip to the content"
    seen = []
    for _ in range(10):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim()"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    pages = ["Tools", "Agents", "Activity", "Turns", "Usage", "Health", "Connect"]
    assert seen == ["Letta tool bridge", *pages, "Live", "Sign out"]
    page.goto("/admin/activity")
    page.locator("details > summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("details").first).to_have_attribute("open", "")


def test_the_lines_for_a_client_are_copied_by_a_button(open_page: Open, world: Served) -> None:
    page = sign_in(open_page(permissions=["clipboard-read", "clipboard-write"]))
    page.get_by_role("link", name="Connect").click()
    page.get_by_label("Agent").select_option("home-assistant")
    page.get_by_role("button", name="Fill in").click()
    page.locator("#roo-code > summary").click()
    button = page.locator("#roo-code dt", has_text="Model").locator("+ dd").get_by_role("button")
    button.click()
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "home-assistant"
    page.locator("#curl pre + button").last.click()
    expect(page.locator("#curl pre + button").last).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("curl ")
    assert f"{world.url}/v1/chat/completions" in copied


def test_a_browser_without_a_clipboard_copies_by_selecting(open_page: Open, world: Served) -> None:
    page = open_page()
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    sign_in(page)
    page.goto("/admin/connect")
    page.locator("#curl pre + button").last.click()
    expect(page.locator("#curl pre + button").last).to_have_text("Copied")
    assert page.evaluate("getSelection().toString()").startswith("curl ")


@pytest.mark.parametrize(("width", "script"), [(1400, True), (390, False)])
def test_an_operator_tries_a_call_and_answers_it(open_page: Open, world: Served, width: int, script: bool) -> None:
    page = open_page(width, java_script_enabled=script)
    page.goto("/admin/")
    page.locator("#password").fill(PASSWORD)
    page.locator("button.main").click()
    page.get_by_role("link", name="apply_diff").click()
    page.get_by_role("link", name="Try a call").click()
    page.get_by_label("Model and settings of").select_option("coder")
    world.letta.will(*held(("apply_diff", '{"path": "kitchen"}')))
    page.get_by_role("button", name="Ask for a call").click()
    expect(page.get_by_text("waits for you")).to_be_visible()
    expect(page.get_by_text('{"path": "kitchen"}')).to_be_visible()
    page.get_by_label("The tool's result").fill(HOSTILE)
    world.letta.will_say(HOSTILE)
    page.get_by_role("button", name="Give this result").click()
    expect(page.get_by_role("heading", name="The agent's answer")).to_be_visible()
    expect(page.locator(".said").last).to_have_text(HOSTILE.replace("\u202e", "\\u202e"))
    assert page.locator("main script, main img").count() == 0
    if script:
        assert page.evaluate("window.hacked") is None
        assert page.evaluate(WEAK_TEXT) == []
        assert page.evaluate(TOO_WIDE) <= 0


FONTS = ("DejaVu Sans", "monospace", "serif")
# Returns the rows whose cells have more than one line of text, in pixels.
TALL_ROWS = """() => [...document.querySelectorAll('.table tbody tr, .turn summary')]
  .map(row => [row.innerText.slice(0, 60), Math.round(row.getBoundingClientRect().height)])
  .filter(([_, height]) => height > 52)"""


@pytest.mark.parametrize("font", FONTS)
def test_every_row_is_one_line_on_a_wide_screen_in_any_font(open_page: Open, world: Served, font: str) -> None:
    page = sign_in(open_page(1400))
    long = "a-rather-long-name-of-a-tool-that-somebody-has-made-up_to-64-char"[:64]
    agent = world.letta.has_agent("an agent with a rather long name, as people give them")
    world.ask(agent.id, [{"role": "user", "content": "Hi"}], [tool(long), tool("read_file")])
    world.written()
    world.app.extensions["parts"].snapshots.outdate()
    for place in ("tools", "agents", "activity"):
        page.goto(f"/admin/{place}")
        page.evaluate(f"document.styleSheets[0].insertRule(':root, code {{ font-family: {font} !important }}')")
        assert page.evaluate(TALL_ROWS) == [], place
        assert page.evaluate(TOO_WIDE) <= 0, place
    world.letta.loses_agent(agent.id)
    world.letta.delete_tool(world.letta.tool(long).id)


def test_many_tools_are_a_short_page_on_a_phone(open_page: Open, world: Served) -> None:
    agent = world.letta.has_agent("toolbox")
    names = [f"a_tool_with_a_rather_long_name_{number}" for number in range(47)]
    world.ask(agent.id, [{"role": "user", "content": "Hi"}], [tool(name) for name in names])
    world.app.extensions["parts"].snapshots.outdate()
    page = sign_in(open_page(390))
    page.goto(f"/admin/tools?agent={agent.id}")
    expect(page.locator("tbody tr")).to_have_count(47)
    assert page.evaluate("document.documentElement.scrollHeight") < 3500
    assert page.evaluate(TOO_WIDE) <= 0
    expect(page.locator("tbody tr").first).to_contain_text("attached")
    world.letta.loses_agent(agent.id)
    for name in names:
        world.letta.delete_tool(world.letta.tool(name).id)


def test_a_click_on_a_column_sorts_by_it(open_page: Open, world: Served) -> None:
    page = sign_in(open_page())
    page.get_by_role("link", name="Calls").click()
    calls = _calls(page, "descending")
    assert calls == sorted(calls, reverse=True)
    assert calls[0] > 0
    page.get_by_role("link", name=re.compile("^Calls")).click()
    calls = _calls(page, "ascending")
    assert calls == sorted(calls)


def _calls(page: Page, order: str) -> list[int]:
    """Returns the column of the next page, once it is loaded."""
    expect(page.get_by_role("columnheader", name="Calls")).to_have_attribute("aria-sort", order)
    page.wait_for_load_state()
    return [int(text) for text in page.locator('td[data-label="Calls"]').all_inner_texts()]


def test_the_page_of_a_running_turn_refreshes_itself(open_page: Open, world: Served) -> None:
    import threading

    goes_on = threading.Event()
    page = sign_in(open_page())
    world.letta.will(lambda: goes_on.wait(3 * SOON))
    asking = threading.Thread(
        target=world.ask, args=("support-desk", [{"role": "user", "content": "Hi"}], [tool("lookup_order")])
    )
    asking.start()
    try:
        place = f"/admin/agents/{agent_id(world, 'support-desk')}"
        page.goto(place)
        _reload_until(page, "turn running")
        expect(page.get_by_text("held by")).to_be_visible()
        goes_on.set()
        asking.join()
        world.written()
        expect(page.get_by_text("turn running")).to_have_count(0)
    finally:
        goes_on.set()
        asking.join()


def _reload_until(page: Page, text: str) -> None:
    """A worker reports its turns a second later. From then on the page reloads by itself."""

    def there() -> bool:
        if text in page.content():
            return True
        page.wait_for_timeout(200)
        page.reload()
        return False

    until(there)
