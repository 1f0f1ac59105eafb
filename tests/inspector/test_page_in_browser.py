from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final, Literal

import pytest
from playwright.sync_api import expect

from tests.inspector.looking import change, looking, served, served_apart, violations
from tests.inspector.story import CONSTRAINT, FORGETFUL, HOSTILE, LIMIT, tell_forgetful, tell_hostile
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.lab.runner import plan, run
from timeline.lab.work import Options
from timeline.policy.files import by_name
from timeline.portable import export_log
from timeline.retention import scavenge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.inspector.looking import Served
    from timeline.ports import EventStore

CALL_84 = 424
"""The version of call 84: the slider stands there in most of what follows."""
BETWEEN = 340
"""A version behind the first compaction and before the second."""
FILE_READ = 323
"""The version of the result that holds the constraint."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the conversations to a file, which tests that change it copy."""
    file = tmp_path_factory.mktemp("told") / "told.db"

    async def tell(store: EventStore) -> None:
        await tell_forgetful(store)
        await tell_hostile(store)

    change(file, tell)
    return file


@pytest.fixture(scope="module")
def server(told: Path) -> Iterator[Served]:
    """Serve them."""
    with served(told) as running:
        yield running


@pytest.fixture
def own(told: Path, tmp_path: Path) -> Path:
    """Copy them into a file of the test's own."""
    shutil.copy(told, tmp_path / "own.db")
    return tmp_path / "own.db"


def test_the_first_screen_answers_at_a_glance(browser: Browser, server: Served) -> None:
    """How full the context is, what was compacted, what the last call cost, and whether something is wrong."""
    with looking(browser, server.base) as seen:
        row = seen.page.locator(".talk", has_text=FORGETFUL)
        expect(row).to_contain_text("3 compactions")
        expect(row).to_contain_text("63 %")
        row.locator("a").first.click()
        strip = seen.page.locator(".strip")
        for said in ("63 %", "4.1k of 6.6k tokens", "#3: 6.1k → 2.0k", "Last call 100", "$0.0042", "fine"):
            expect(strip).to_contain_text(said)


SHIFTED: Final = """
() => new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; })
    .observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 300);
})
"""
"""By how much what was drawn already was moved, as shares of the window times shares of its height."""
GOOD_SHIFT: Final = 0.1
SLID_THEN_LED_AWAY = """way => {
  const pressed = (init) => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init }));
  };
  const lead = () => (way === "key" ? pressed({ key: "2" }) : document.querySelector("#tab-context").click());
  setTimeout(lead, 150);
  pressed({ key: "ArrowLeft", shiftKey: true });
  for (const until = performance.now() + 400; performance.now() < until; );
}"""
"""Moves the slider, and opens another view just before the busy page writes that version into its address."""


@pytest.mark.parametrize("way", ["key", "link"])
def test_a_view_opens_however_busy_the_page_was_since_the_slider_moved(
    browser: Browser, server: Served, way: str
) -> None:
    """The address that follows the slider is written later, and never over one that was gone to meanwhile."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}?at={CALL_84}")
        page = seen.page
        expect(page.locator(".where")).to_contain_text("call 84")
        page.locator(".plot path").first.wait_for()
        page.evaluate(SLID_THEN_LED_AWAY, way)
        expect(page.locator(".proof")).to_contain_text("Byte for byte what was sent.")
        expect(page.locator(".where")).to_contain_text("call 83")
        expect(page).to_have_url(re.compile(r"/context\?at="))


def test_the_debugging_story_is_told_with_the_keyboard_alone(browser: Browser, server: Served) -> None:
    """Open it, go to call 84, see its request, search the constraint, read why it is gone, compare, fork."""
    with looking(browser, server.base) as seen:
        page, key = seen.page, seen.page.keyboard
        page.locator(".talk-title").first.wait_for()
        for _ in range(12):
            key.press("Tab")
            if FORGETFUL in page.evaluate("document.activeElement.textContent"):
                break
        key.press("Enter")
        page.locator(".plot path").first.wait_for()
        for _ in range(16):
            key.press("Shift+ArrowLeft")
        expect(page.locator(".where")).to_contain_text("call 84")
        key.press("2")
        expect(page.locator(".proof")).to_contain_text("Byte for byte what was sent.")
        expect(page.locator(".sent-block", has_text="@313")).to_contain_text("carried")
        key.press("/")
        key.type("rename public")
        found = page.locator(".found-row")
        expect(found).to_contain_text("Never rename a public function")
        key.press("Enter")
        expect(found).to_be_focused()
        key.press("Enter")
        because = page.locator(".because")
        expect(because).to_contain_text("Covered by compaction 2, cut inside turn 9.")
        expect(because.locator(".lost")).to_contain_text(CONSTRAINT)
        expect(page.locator(".fork-from code")).to_have_text(f"timeline fork {FORGETFUL} --at {CALL_84}")
        link = because.get_by_role("link", name="compaction 2")
        for _ in range(12):
            key.press("Tab")
            if link.evaluate("link => link === document.activeElement"):
                break
        key.press("Enter")
        expect(page.locator(".compaction h2")).to_have_text("Compaction 2")
        beside = page.get_by_role("button", name="Beside the one before it")
        beside.focus()
        key.press("Enter")
        expect(page.locator(".compaction h2")).to_have_text(["Compaction 1", "Compaction 2"])
        assert "compaction=385" in page.url
        assert "beside=304" in page.url


def test_a_fact_leads_to_its_block_and_to_the_compaction_that_covers_it(browser: Browser, server: Served) -> None:
    """In the open conversation and over all of them, with how it came out."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}?query=pytest+test_9_3")
        seen.page.get_by_role("button", name="Facts").click()
        fact = seen.page.locator(".found li").filter(has_text="tests/test_9_3.py").first
        expect(fact.locator(".found-head")).to_contain_text("failed")
        expect(seen.page.locator(".found")).not_to_contain_text("undefined")
        expect(fact.locator(".fact-place")).to_have_text("○ covered by compaction 2")
        fact.locator("button").click()
        expect(seen.page.locator(".because")).to_contain_text("Covered by compaction 2")
        seen.page.get_by_role("button", name="Back to what was found").click()
        fact.get_by_role("link").click()
        expect(seen.page.locator(".compaction h2")).to_have_text("Compaction 2")
        seen.go("/search?query=pytest+test_9_3&kind=fact")
        expect(seen.page.locator(".wide-found li").first).to_contain_text("covered by compaction 2")
        assert violations(seen.page) == []


def test_the_lab_is_a_view_with_the_figures_of_its_command(
    browser: Browser, server: Served, told: Path, tmp_path: Path
) -> None:
    """Policies are chosen, the log is run again under each, and the lab's own page stands in the view."""
    file = tmp_path / "log.jsonl"

    async def write(store: EventStore) -> None:
        file.write_text("\n".join([line async for line in export_log(store, [FORGETFUL], library="any")]), "utf-8")

    change(told, write)
    policies = [(name, by_name(name, max_tokens=LIMIT)) for name in ("none", "economical")]
    works = plan([str(file)], policies, Options(facts=True))
    expected = [outcome.runs[0].totals for outcome in run(works, jobs=1)]
    with looking(browser, server.base, width=390) as seen:
        seen.go(f"/c/{FORGETFUL}/lab")
        seen.page.get_by_role("checkbox", name="cut_point").uncheck()
        seen.page.get_by_role("button", name="Compare").click()
        frame = seen.page.frame_locator("iframe")
        rows = frame.locator("#policies tbody tr")
        expect(rows).to_have_count(2, timeout=60_000)
        for row, totals in zip(rows.all(), expected, strict=True):
            cells = row.locator("th, td").all_inner_texts()
            assert cells[2:4] == [f"{totals.money:.2f}", f"{totals.units:,.0f}"]
        expect(frame.locator("#headline")).to_contain_text("economical is the cheapest policy within 6,600 tokens")
        inner = seen.page.frames[-1]
        assert inner.evaluate("document.documentElement.scrollWidth <= innerWidth")
        size = "e => parseFloat(getComputedStyle(e).fontSize) * e.getCTM().a"
        assert min(inner.evaluate(f"[...document.querySelectorAll('#scatter text')].map({size})")) >= 11.5
        assert violations(seen.page) == []


def test_what_is_dragged_on_the_chart_is_the_version_that_every_view_shows(browser: Browser, server: Served) -> None:
    """Chart, log, figures and address agree on the version."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}")
        plot = seen.page.locator(".plot")
        plot.locator("path").first.wait_for()
        box = plot.bounding_box()
        assert box is not None
        middle = box["y"] + 40
        seen.page.mouse.move(box["x"] + box["width"] - 5, middle)
        seen.page.mouse.down()
        for step in range(20):
            seen.page.mouse.move(box["x"] + box["width"] * (0.95 - step * 0.005), middle)
        seen.page.mouse.up()
        where = int(seen.text(".where b").replace(",", ""))
        assert 420 < where < 440
        expect(seen.page.locator(".log-row.current")).to_have_attribute("data-version", str(where))
        expect(seen.page.locator(".strip")).to_contain_text(f"Context at {where}")
        seen.page.wait_for_url(re.compile(f"at={where}"))


def test_the_figures_of_an_earlier_version_know_nothing_of_what_came_later(browser: Browser, server: Served) -> None:
    """Compactions are counted up to the version looked at, and a version before every call has none."""
    with looking(browser, server.base) as seen:
        strip, tab = seen.page.locator(".strip"), seen.page.locator("#tab-compactions")
        seen.go(f"/c/{FORGETFUL}?at={BETWEEN}")
        expect(strip).to_contain_text("#1: ")
        expect(strip).not_to_contain_text("#3: ")
        expect(tab).to_have_text("Compactions 1")
        tab.click()
        expect(seen.page.locator(".compaction h2")).to_have_text("Compaction 1")
        seen.go(f"/c/{FORGETFUL}?at=1")
        expect(strip).to_contain_text("nothing was summarised")
        expect(strip).to_contain_text("none was made yet")
        expect(tab).to_have_text("Compactions")
        seen.go(f"/c/{FORGETFUL}")
        expect(tab).to_have_text("Compactions 3")


def test_an_address_leads_to_what_was_seen(browser: Browser, server: Served) -> None:
    """View, version, block and query are in the address, so a link shows the same to another reader."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}?at={CALL_84}&block=%40{FILE_READ}&query=rename")
        expect(seen.page.locator(".panel .content mark").first).to_have_text("rename")
        expect(seen.page.locator(f'[data-version="{FILE_READ}"]')).to_have_class(re.compile("opened"))
        seen.page.go_back()
        seen.page.go_forward()
        expect(seen.page.locator(".panel .mono").first).to_contain_text(f"@{FILE_READ}")


def test_the_request_is_shown_piece_by_piece_and_as_it_was_sent(browser: Browser, server: Served) -> None:
    """System prompt and messages are laid out; the JSON is the body itself."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}/context?call=84&form=request")
        expect(seen.page.locator(".pieces")).to_contain_text("You are a careful programmer.")
        seen.page.get_by_role("button", name="JSON", exact=True).click()
        body = seen.page.locator(".body pre")
        expect(body).to_contain_text('"max_tokens":4096')
        assert CONSTRAINT not in body.inner_text()


def test_two_forks_are_compared_by_what_each_was_sent(browser: Browser, own: Path) -> None:
    """From the family to what only one of them has, where the prefix parts, and back to the calls of one."""

    async def fork(store: EventStore) -> None:
        parent = await Timeline.open(store, FORGETFUL)
        other = await parent.fork(conversation="without-rename", at=CALL_84)
        await other.append(UserPrompt(text="Leave every name as it is."))
        await other.render()

    change(own, fork)
    with served(own) as server, looking(browser, server.base) as seen:
        page = seen.page
        seen.go(f"/c/{FORGETFUL}/family?at={CALL_84}")
        page.get_by_role("link", name="compare with").click()
        expect(page.locator(".choice")).to_contain_text("From call 84 here")
        only = page.locator(".diff-part", has_text="Only in without-rename")
        expect(only).to_contain_text("user.prompt")
        expect(page.locator(".lead")).to_contain_text("prefix")
        assert violations(page) == []
        only.get_by_role("link").first.click()
        expect(page.locator("h1")).to_contain_text("without-rename")
        page.go_back()
        page.get_by_role("button", name="Compare calls of this conversation").click()
        expect(page.locator(".choice select")).to_be_visible()


VIEWS = ("", "/context", "/compactions", "/diff", "/family", "/cache", "/what-if", "/lab", "/live", "/export")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_breaks_a_rule_of_accessibility(
    browser: Browser, server: Served, scheme: Literal["light", "dark"]
) -> None:
    """The rules of axe-core find nothing, in light and in dark."""
    with looking(browser, server.base, scheme=scheme) as seen:
        seen.page.locator(".talk").first.wait_for()
        found = {"list": violations(seen.page)}
        for view in VIEWS:
            panel = f"&block=%40{FILE_READ}" if view in {"", "/context"} else ""
            seen.go(f"/c/{FORGETFUL}{view}?at={CALL_84}{panel}")
            seen.page.locator(".view > *").first.wait_for()
            expect(seen.page.locator(".loading")).to_have_count(0, timeout=15_000)
            found[view] = violations(seen.page)
        seen.go("/search?query=rename")
        seen.page.locator(".found-row").first.wait_for()
        found["search"] = violations(seen.page)
        seen.page.keyboard.press("?")
        seen.page.locator("dialog").wait_for()
        found["keys"] = violations(seen.page)
        seen.go(f"/c/{FORGETFUL}/compactions?compaction=385&beside=304")
        expect(seen.page.locator(".summary")).to_have_count(2)
        found["two compactions"] = violations(seen.page)
        assert {view: broken for view, broken in found.items() if broken} == {}


@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_no_view_is_wider_than_the_window(browser: Browser, server: Served, width: int) -> None:
    """Nothing is cut on a phone, and no view has more than 1,500 elements."""
    with looking(browser, server.base, width=width) as seen:
        for address in ("/", *(f"/c/{FORGETFUL}{view}?at={CALL_84}" for view in VIEWS), "/search?query=pytest"):
            seen.go(address)
            expect(seen.page.locator(".loading")).to_have_count(0, timeout=15_000)
            wide = seen.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, address
            assert seen.nodes() <= 1_500, address


def test_the_tab_of_the_open_view_is_in_sight_on_a_phone(browser: Browser, server: Served) -> None:
    """All of it: the strip of tabs is wider than the window, and an address leads to any of its views."""
    with looking(browser, server.base, width=390) as seen:
        for view in ("/export", "/cache", ""):
            seen.go(f"/c/{FORGETFUL}{view}")
            tab = seen.page.locator(f"#tab-{view.removeprefix('/') or 'log'}")
            expect(tab).to_have_attribute("aria-selected", "true")
            expect(tab).to_be_in_viewport(ratio=0.99)


def test_the_live_view_begins_before_the_newest_compaction(browser: Browser, server: Served) -> None:
    """So that there is something to see of a log that is quiet."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}/live")
        live = seen.page.locator(".live")
        expect(live.locator("tl-context-debug li[data-type=compaction-complete]").first).to_be_visible()
        expect(live.locator("tl-context-usage")).to_contain_text("63 %")


def test_a_lost_prefix_is_named_with_its_price(browser: Browser, server: Served) -> None:
    """And summed up by its causes above the calls."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}/cache")
        expect(seen.page.locator(".lead")).to_contain_text("from the cache")
        expect(seen.page.locator(".with-loss").first).to_contain_text("too short: the request is shorter than")


def test_policies_stand_beside_each_other_with_their_cost(browser: Browser, server: Served) -> None:
    """What each would have cost, and how many of the facts that were used it would have shown."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}/what-if")
        for policy in ("keep_last", "none"):
            seen.page.get_by_label("Policy").select_option(policy)
            seen.page.get_by_role("button", name="Replay").click()
        table = seen.page.locator(".what-if table")
        expect(table.locator("thead")).to_contain_text("none", timeout=20_000)
        expect(table.locator("td", has_text="…")).to_have_count(0, timeout=20_000)
        cost = table.locator("tr", has_text="calls and summaries").locator("td")
        assert all(text.startswith("$") for text in cost.all_inner_texts())
        expect(table.locator("tr", has_text="facts in sight")).to_contain_text("%")
        assert violations(seen.page) == []


def test_compactions_are_found_by_what_they_covered(browser: Browser, server: Served) -> None:
    """Of all conversations; the answer leads to the compaction's card."""
    with looking(browser, server.base) as seen:
        seen.go("/search?query=bash")
        seen.page.get_by_role("button", name="Tools used").click()
        found = seen.page.locator(".found-row", has_text=FORGETFUL)
        expect(found.first).to_contain_text("bash")
        assert violations(seen.page) == []
        found.first.click()
        expect(seen.page.locator(".compaction h2")).to_have_text("Compaction 1")


def test_a_conversation_is_saved_as_a_file(browser: Browser, server: Served, tmp_path: Path) -> None:
    """The page with the log inside, or the log itself, named by id and version."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}/export")
        for place, name in enumerate((f"{FORGETFUL}-v504.html", f"{FORGETFUL}-v504.jsonl")):
            with seen.page.expect_download() as saved:
                seen.page.get_by_role("link", name="Save the file").nth(place).click()
            assert saved.value.suggested_filename == name
            saved.value.save_as(tmp_path / name)
            assert CONSTRAINT in (tmp_path / name).read_text() or place == 0
            assert (tmp_path / name).stat().st_size > 20_000


def test_html_in_every_field_stays_text(browser: Browser, server: Served) -> None:
    """Texts, names, titles, ids and Markdown with scripts in them: nothing of it runs, and nothing is asked for."""
    with looking(browser, server.base) as seen:
        seen.page.add_init_script("window.stolen = () => { window.wasStolen = true; }")
        seen.page.reload()
        seen.page.locator(".talk").first.wait_for()
        seen.page.locator(".talk-title", has_text="<script>").click()
        for view in VIEWS:
            tab = seen.page.locator(f"#tab-{view.removeprefix('/') or 'log'}")
            tab.click()
            expect(tab).to_have_attribute("aria-selected", "true")  # else the address may still change behind a search
            expect(seen.page.locator(".loading")).to_have_count(0, timeout=15_000)
            if view == "":
                rows = seen.page.locator(".log-row.of-block")
                for place in range(4):
                    rows.nth(place).click()
                    expect(seen.page.locator(".panel .content")).to_contain_text("script")
        seen.page.locator("#find").fill("stolen")
        seen.page.locator(".found-row").first.wait_for()
        assert seen.page.evaluate("window.wasStolen") is None
        assert (
            seen.page.evaluate("document.querySelectorAll('#app img, #app script, #app iframe, #app b tool').length")
            == 0
        )
        assert (
            seen.page.evaluate("[...document.links].filter(link => !/^https?:/.test(link.protocol + '//')).length") == 0
        )
        assert HOSTILE in seen.page.locator(".crumbs").inner_text()


def test_a_server_that_dies_leaves_what_was_seen_and_says_so(browser: Browser, own: Path) -> None:
    """A server that was started again does not know the page; it says how to get in, and what was seen still stays."""
    with served_apart(own) as first:
        port = int(first.base.rstrip("/").rpartition(":")[2])
        with looking(browser, first.base) as seen:
            seen.go(f"/c/{FORGETFUL}")
            seen.page.locator('[data-version="504"] .row-event').wait_for()
            first.stop()
            seen.page.locator("#tab-compactions").click()
            expect(seen.page.locator(".connection")).to_contain_text("The server does not answer")
            expect(seen.page.locator(".strip")).to_contain_text("Last call 100")
            expect(seen.page.locator(".view")).to_contain_text("The server does not answer")
            with served_apart(own, port):
                expect(seen.page.locator(".connection")).to_contain_text("has no access any more", timeout=20_000)
                expect(seen.page.locator(".strip")).to_contain_text("Last call 100")


def test_what_could_not_be_read_is_read_when_the_server_is_back(browser: Browser, server: Served) -> None:
    """Nobody has to reload the page."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}")
        seen.page.locator('[data-version="504"] .row-event').wait_for()
        seen.page.context.set_offline(True)
        seen.page.locator("#tab-compactions").click()
        expect(seen.page.locator(".connection")).to_contain_text("The server does not answer")
        seen.page.context.set_offline(False)
        expect(seen.page.locator(".compaction h2")).to_have_text("Compaction 3", timeout=20_000)
        expect(seen.page.locator(".connection")).to_have_count(0)


@pytest.mark.parametrize("width", [1440, 390])
def test_what_is_drawn_moves_hardly_while_the_rest_is_loaded(browser: Browser, server: Served, width: int) -> None:
    """Chromium's own measure of shifts, on a slow machine: less than a tenth is good (web.dev/articles/cls)."""
    with looking(browser, server.base, width=width) as seen:
        seen.page.context.new_cdp_session(seen.page).send("Emulation.setCPUThrottlingRate", {"rate": 4})
        seen.go(f"/c/{FORGETFUL}?at={CALL_84}")
        seen.page.reload()
        seen.page.locator(".plot path").first.wait_for()
        seen.page.wait_for_timeout(1_000)
        assert seen.page.evaluate(SHIFTED) <= GOOD_SHIFT


def test_a_log_that_grows_and_is_compacted_is_followed_without_a_jump(browser: Browser, own: Path) -> None:
    """The row that is looked at keeps its place while others come."""
    with served(own) as running, looking(browser, running.base) as seen:
        seen.go(f"/c/{FORGETFUL}?at={CALL_84}")
        row = seen.page.locator(f'[data-version="{CALL_84}"] .row-event')
        row.wait_for()
        seen.page.locator(".plot path").first.wait_for()
        before = row.bounding_box()

        async def grow(store: EventStore) -> None:
            timeline = await Timeline.open(store, FORGETFUL)
            await timeline.append(*[UserPrompt(text=f"One more thing, number {number}.") for number in range(20)])
            await timeline.compact()

        change(own, grow)
        expect(seen.page.locator(".where")).not_to_contain_text("of 504", timeout=20_000)
        expect(seen.page.locator("#tab-compactions .count")).to_have_text("2")  # as it was at the version looked at
        assert row.bounding_box() == before
        seen.page.get_by_role("button", name="Newest").click()
        expect(seen.page.locator("#tab-compactions .count")).to_have_text("4")
        expect(seen.page.locator(".log")).to_contain_text("Summary of the earlier conversation")


def test_a_conversation_that_is_erased_while_it_is_looked_at_is_said_to_be(browser: Browser, own: Path) -> None:
    """What was shown of it goes."""
    with served(own) as running, looking(browser, running.base) as seen:
        seen.go(f"/c/{FORGETFUL}")
        seen.page.locator('[data-version="504"] .row-event').wait_for()

        async def erase(store: EventStore) -> None:
            await store.erase(FORGETFUL, reason="asked for")

        change(own, erase)
        expect(seen.page.locator(".failed")).to_contain_text("This conversation was erased", timeout=20_000)


def test_a_version_that_was_removed_has_no_figures(browser: Browser, own: Path) -> None:
    """It is said to be out of sight; nothing of it is counted as nothing."""

    async def remove(store: EventStore) -> None:
        await (await Timeline.open(store, FORGETFUL)).set_retention("window")
        await scavenge(store)

    change(own, remove)
    with served(own) as running, looking(browser, running.base) as seen:
        seen.go(f"/c/{FORGETFUL}?at=3")
        expect(seen.page.locator(".strip .card").first).to_contain_text("this version cannot be seen any more")


def test_a_page_whose_token_is_not_known_says_how_to_get_in(browser: Browser, server: Served) -> None:
    """It names the command that prints the address."""
    with looking(browser, server.base) as seen:
        seen.page.context.clear_cookies()
        seen.go(f"/c/{FORGETFUL}")
        expect(seen.page.locator(".failed")).to_contain_text("Open the address that timeline inspect prints")
