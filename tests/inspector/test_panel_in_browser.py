"""What leads to a block, what is said there, and where one is behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.inspector.looking import change, looking, served
from tests.scenes import after, answer, call, prompt, result
from timeline import Timeline, policies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.inspector.looking import Served
    from timeline.ports import EventStore

MANY = 450
"""Blocks of a context: more than the pages of rows that its first blocks are on."""


async def tell(store: EventStore) -> None:
    """Write a conversation with a hide between two calls, and one with a large context."""
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=6_000), now=after(0))
    await timeline.append(prompt(300), call("call_1"), result("call_1", 300), answer(200), now=after(1))
    await called(timeline, 2)
    await timeline.hide("@4", now=after(3))
    await timeline.append(prompt(300), now=after(4))
    await called(timeline, 5)
    wide = await Timeline.open(store, "wide", policy=policies.cut_point(max_tokens=100_000), now=after(0))
    await wide.append(*(prompt(text=f"Prompt {number}.") for number in range(MANY)), now=after(1))
    await called(wide, 2)


async def called(timeline: Timeline, second: int) -> None:
    """Render, and record a call."""
    context = await timeline.render(now=after(second))
    request = context.request("anthropic", model="claude-opus-5", max_tokens=9)
    await timeline.record_model_call(request=request, now=after(second))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve them."""
    file = tmp_path_factory.mktemp("told") / "agent.db"
    change(file, tell)
    with served(file) as running:
        yield running


def test_the_decisions_before_a_call_lead_to_their_rows_in_the_log(browser: Browser, server: Served) -> None:
    """A hide is no block, so that there is nothing to open."""
    with looking(browser, server.base) as seen:
        seen.go("/c/cards/context")
        seen.page.locator(".before").get_by_role("link").first.click()
        expect(seen.page.locator(".log-row.current .row-event")).to_contain_text("hidden (")
        expect(seen.page.locator(".failed")).to_have_count(0)


def test_a_block_that_is_closed_by_a_key_gives_the_focus_back(browser: Browser, server: Served) -> None:
    """To what opened it: a row of the log, or a block of a context."""
    with looking(browser, server.base) as seen:
        seen.go("/c/cards")
        row = seen.page.locator('[data-version="3"]')
        row.locator(".row-text").click()
        expect(seen.page.locator("#panel-title")).to_be_focused()
        seen.page.keyboard.press("Escape")
        expect(row).to_be_focused()
        seen.go("/c/cards/context")
        opener = seen.page.locator(".sent-block").get_by_role("button", name="@3")
        opener.press("Enter")
        expect(seen.page.locator("#panel-title")).to_be_focused()
        seen.page.keyboard.press("Escape")
        expect(opener).to_be_focused()


def test_every_block_of_a_large_context_has_its_text(browser: Browser, server: Served) -> None:
    """Also those far behind the first ones, once they are asked for."""
    with looking(browser, server.base) as seen:
        seen.go("/c/wide/context")
        seen.page.get_by_role("button", name="Show the other").click()
        expect(seen.page.locator(".sent-block .sent-text").last).to_have_text(f"Prompt {MANY - 1}.")
