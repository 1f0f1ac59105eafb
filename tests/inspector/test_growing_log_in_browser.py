"""The log of a conversation whose agent goes on while it is looked at."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from tests.inspector.looking import change, looking, served
from timeline import Timeline, policies
from timeline.blocks import AssistantCompletion, UserPrompt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from tests.inspector.looking import Seen
    from timeline.ports import EventStore

LAST: Final = 121
"""The newest version at first."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a conversation of sixty turns."""

    async def tell(store: EventStore) -> None:
        timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=100_000))
        for number in range(60):
            await timeline.append(UserPrompt(text=f"Prompt {number}"), AssistantCompletion(text=f"Answer {number}"))

    change(tmp_path / "agent.db", tell)
    return tmp_path / "agent.db"


@contextmanager
def reading(browser: Browser, file: Path) -> Iterator[Seen]:
    """Open the log at its end."""
    with served(file) as running, looking(browser, running.base) as seen:
        seen.go("/c/cards")
        seen.page.locator(f'[data-version="{LAST}"] .row-text').wait_for()
        yield seen


def go_on(file: Path, seen: Seen) -> None:
    """Append a turn, and wait until the page knows of it."""

    async def more(store: EventStore) -> None:
        timeline = await Timeline.open(store, "cards")
        await timeline.append(UserPrompt(text="One more thing."), AssistantCompletion(text="It is done, too."))

    change(file, more)
    expect(seen.page.locator(".where")).to_contain_text(f"of {LAST + 2}")


def scrolled_up(seen: Seen) -> Locator:
    """Scroll to the middle of the log, and return a row that lies there once nothing moves any more.

    On a busy machine the page goes to the end once more, when it has measured its rows: so scroll until it stays.
    """
    row = seen.page.locator('[data-version="64"]')
    while not row.count():
        seen.page.locator(".log-box").evaluate("box => { box.scrollTop = box.scrollHeight / 2; }")
        seen.page.wait_for_timeout(250)
    expect(row).to_be_in_viewport()
    seen.page.wait_for_timeout(500)
    return row


def test_what_is_appended_is_shown_to_whom_reads_the_end_of_the_log(browser: Browser, file: Path) -> None:
    """The list follows, row by row."""
    with reading(browser, file) as seen:
        go_on(file, seen)
        expect(seen.page.locator(f'[data-version="{LAST + 2}"] .row-text')).to_be_in_viewport()


def test_who_reads_above_the_end_stays_there_while_the_log_grows(browser: Browser, file: Path) -> None:
    """The rows that are read keep their places."""
    with reading(browser, file) as seen:
        row = scrolled_up(seen)
        before = row.bounding_box()
        go_on(file, seen)
        seen.page.wait_for_timeout(500)
        assert row.bounding_box() == before


def test_a_row_keeps_the_focus_wherever_the_list_goes(browser: Browser, file: Path) -> None:
    """Also one that was far outside when it got it; the keys walk on from there."""
    with reading(browser, file) as seen:
        scrolled_up(seen)
        seen.page.locator(f'[data-version="{LAST}"]').focus()
        expect(seen.page.locator(f'[data-version="{LAST}"]')).to_be_focused()
        for _ in range(30):
            seen.page.keyboard.press("ArrowUp")
        expect(seen.page.locator(f'[data-version="{LAST - 30}"]')).to_be_focused()
        go_on(file, seen)
        seen.page.keyboard.press("ArrowUp")
        expect(seen.page.locator(f'[data-version="{LAST - 31}"]')).to_be_focused()
