from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.depth import DEPTH, Depth
from tests.inspector.looking import change, looking, served
from tests.inspector.story import LONG, tell_long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.inspector.looking import Seen, Served
    from timeline.ports import EventStore

BLOCKS = 20_000 if DEPTH is Depth.QUICK else 100_000
UNREAD = "unread"
"""A conversation that one test opens, so that its log was not read before."""
MOST_NODES = 1_500
MOST_HEAP = 150_000_000
TO_SHARE = """async share => {
  const box = document.querySelector('.log-box');
  box.scrollTop = share * box.scrollHeight;
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
"""Scrolls, and waits until what is there then was drawn."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve a long conversation."""
    file = tmp_path_factory.mktemp("long") / "long.db"

    async def tell(store: EventStore) -> None:
        await tell_long(store, LONG, BLOCKS)
        await tell_long(store, UNREAD, 20_000)

    change(file, tell)
    with served(file) as running:
        yield running


def settled(seen: Seen) -> None:
    """Wait until every row in view has its text."""
    expect(seen.page.locator(".log-row.waiting")).to_have_count(0, timeout=20_000)


def rows_seen(seen: Seen) -> list[int]:
    """Return the versions of the rows that are in view with their text, and fail where a part of the list is blank."""
    found: list[int] = seen.page.evaluate(
        """() => {
          const box = document.querySelector(".log-box").getBoundingClientRect();
          const rows = [...document.querySelectorAll(".log-row")].map((row) => [row, row.getBoundingClientRect()]);
          const inside = rows.filter(([, at]) => at.height && at.bottom > box.top + 1 && at.top < box.bottom - 1);
          inside.sort((one, other) => one[1].top - other[1].top);
          let reached = box.top + 1;
          for (const [, at] of inside) {
            if (at.top > reached + 1.5) throw new Error(`blank from ${reached} to ${at.top}`);
            reached = Math.max(reached, at.bottom);
          }
          if (reached < box.bottom - 2) throw new Error(`blank from ${reached} to ${box.bottom}`);
          const drawn = inside.filter(([row]) => !row.classList.contains("waiting"));
          return drawn.map(([row]) => Number(row.dataset.version));
        }"""
    )
    return found


def test_a_long_log_is_drawn_within_a_second_of_its_answers(browser: Browser, server: Served) -> None:
    """The first paint takes less than a second, and the elements are as few as of a short log."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{LONG}")
        seen.page.reload()
        seen.page.locator(f'[data-version="{BLOCKS + 1}"]').wait_for()
        painted = seen.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        assert painted < 1_000
        expect(seen.page.locator(f'[data-version="{BLOCKS + 1}"] .kind')).to_be_visible(timeout=30_000)
        settled(seen)
        assert rows_seen(seen)[-1] == BLOCKS + 1
        assert seen.nodes() <= MOST_NODES
        grid = seen.page.get_by_role("grid", name="Log")
        expect(grid).to_have_attribute("aria-rowcount", str(BLOCKS + 1))


def test_how_far_a_long_log_was_read_is_said_while_its_chart_is_drawn(browser: Browser, server: Served) -> None:
    """Slice by slice, from the first on; the figures of the newest version are there once it is reached."""
    with looking(browser, server.base) as seen:
        # Slices so short that a quick machine needs several, too.
        seen.page.route("**/chart?*", lambda to: to.continue_(url=re.sub(r"wait=[0-9.]+", "wait=0.02", to.request.url)))
        seen.go(f"/c/{UNREAD}")
        reading = seen.page.get_by_role("progressbar", name="Reading the log")
        reading.wait_for()
        # A busy machine may have read nothing yet in the first slice.
        assert 0 <= int(reading.get_attribute("aria-valuenow") or -1) < 100
        expect(reading).to_have_count(0, timeout=30_000)
        expect(seen.page.locator(".gauge .share").first).to_be_visible()


def test_no_frame_of_a_scroll_is_blank(browser: Browser, server: Served) -> None:
    """Slow and fast, and by the bar to far places: every frame is filled with rows, and their texts follow."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{LONG}?at=1")
        seen.page.locator('[data-version="2"] .kind').wait_for()
        frames = seen.page.evaluate(
            """async () => {
              const box = document.querySelector(".log-box");
              const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
              const blank = [];
              let count = 0;
              for (const step of [40, 400, 3000]) for (let turn = 0; turn < 25; turn += 1) {
                box.scrollTop += step;
                await frame();
                const at = box.getBoundingClientRect();
                for (const y of [at.top + 8, (at.top + at.bottom) / 2, at.bottom - 8]) {
                  if (!document.elementFromPoint(at.left + 200, y)?.closest(".log-row")) blank.push([step, turn, y]);
                }
                count += 1;
              }
              return { count, blank };
            }"""
        )
        assert frames == {"count": 75, "blank": []}
        for share in (0.5, 0.9, 0.25):
            seen.page.evaluate(
                TO_SHARE,
                share,
            )
            settled(seen)
            rows = rows_seen(seen)
            assert abs(rows[0] / BLOCKS - share) < 0.05
            assert rows == list(range(rows[0], rows[-1] + 1))
            assert seen.nodes() <= MOST_NODES


def test_what_is_seen_stays_in_place_while_heights_become_known(browser: Browser, server: Served) -> None:
    """A row that was measured above moves nothing below it."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{LONG}?at={BLOCKS // 2}")
        row = seen.page.locator(f'[data-version="{BLOCKS // 2}"]')
        row.locator(".kind").wait_for(timeout=30_000)
        settled(seen)
        before = row.bounding_box()
        seen.page.wait_for_timeout(600)
        assert row.bounding_box() == before
        for _ in range(6):
            top = rows_seen(seen)[0]
            at = seen.page.locator(f'[data-version="{top}"]').bounding_box()
            seen.page.evaluate("document.querySelector('.log-box').scrollTop -= 120")
            seen.page.wait_for_timeout(120)
            now = seen.page.locator(f'[data-version="{top}"]').bounding_box()
            assert at is not None
            assert now is not None
            assert abs(now["y"] - at["y"] - 120) <= 2


def test_the_log_is_walked_with_keys_from_end_to_end(browser: Browser, server: Served) -> None:
    """Arrows, j and k, Home and End, turns: the row with the focus is always in view."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{LONG}?at=5")
        seen.page.locator('[data-version="5"] .kind').wait_for()
        seen.page.locator('[data-version="5"]').focus()
        for key, version in (("j", 6), ("ArrowDown", 7), ("k", 6), ("End", BLOCKS + 1), ("Home", 1), ("j", 2)):
            seen.page.keyboard.press(key)
            expect(seen.page.locator(f'[data-version="{version}"]')).to_be_focused()
            expect(seen.page.locator(f'[data-version="{version}"]')).to_be_in_viewport()
        seen.page.keyboard.press("]")
        expect(seen.page.locator('[data-version="7"]')).to_be_focused()
        seen.page.keyboard.press("Enter")
        expect(seen.page.locator(".panel h2")).to_contain_text("@7")
        seen.page.keyboard.press("Escape")
        expect(seen.page.locator(".panel")).to_have_count(0)


def test_a_reader_who_scrolls_everywhere_keeps_a_small_heap(browser: Browser, server: Served) -> None:
    """Pages that were not looked at for long are forgotten."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{LONG}?at=1")
        seen.page.locator('[data-version="2"] .kind').wait_for()
        for place in range(60):
            seen.page.evaluate(
                TO_SHARE,
                (place * 37 % 60) / 60,
            )
            seen.page.wait_for_timeout(60)
        settled(seen)
        session = seen.page.context.new_cdp_session(seen.page)
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")["usedSize"]
        assert used < MOST_HEAP
        assert seen.nodes() <= MOST_NODES


def test_only_prompts_and_answers_are_shown_on_request(browser: Browser, server: Served) -> None:
    """Rows of other kinds have no height, and the list is still filled."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{LONG}?at=10&only=talk")
        expect(seen.page.locator(".kind-user").nth(3)).to_be_visible(timeout=15_000)
        settled(seen)
        kinds = set(seen.page.locator(".log-row .kind").all_inner_texts())
        assert kinds == {"User", "Assistant"}
