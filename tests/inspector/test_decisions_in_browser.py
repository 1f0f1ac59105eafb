"""Decisions from the page: each is tried first, and then taken or left; without `--allow-decisions` there are none."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.inspector.looking import change, looking, served, violations
from tests.scenes import after, answer, call, prompt, result
from timeline import Timeline, open_store, policies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from tests.inspector.looking import Served
    from timeline.ports import EventStore

RESULT = 4
"""The version of a block that is sent in full."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a small conversation to a file."""

    async def tell(store: EventStore) -> None:
        timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=6_000), now=after(0))
        for number in range(4):
            named = f"call_{number}"
            await timeline.append(prompt(300), call(named), result(named, 300), answer(200), now=after(number + 1))

    change(tmp_path / "agent.db", tell)
    return tmp_path / "agent.db"


@pytest.fixture
def server(file: Path) -> Iterator[Served]:
    """Serve it, with decisions."""
    with served(file, decisions=True) as running:
        yield running


def version_of(file: Path, conversation: str = "cards") -> int:
    """Return the version of a conversation in the file."""

    async def read() -> int:
        async with open_store(str(file), readonly=True) as store:
            return (await store.info(conversation)).version

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, read()).result()


def press(page: Page, choice: str, done: str = "") -> None:
    """Press a choice of the page, and then the button that does it."""
    page.get_by_role("button", name=f"{choice}…").click()
    page.locator(".asked").get_by_role("button", name=done or choice, exact=True).click()


def test_a_decision_is_tried_first_and_only_taken_when_it_is_confirmed(
    browser: Browser, file: Path, server: Served
) -> None:
    """What it would change is said; leaving it writes nothing; the log follows at once when it is done."""
    before = version_of(file)
    with looking(browser, server.base) as seen:
        page = seen.page
        seen.go(f"/c/cards?block=%40{RESULT}")
        page.get_by_role("button", name="Hide it…").click()
        expect(page.locator(".asked")).to_be_focused()
        expect(page.locator(".asked")).to_contain_text(f"It would change @{RESULT}. The window goes from")
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator(".asked")).to_have_count(0)
        assert version_of(file) == before
        press(page, "Hide it")
        expect(page.locator(".verdict")).to_contain_text("hidden")
        expect(page.locator(f'[data-version="{RESULT}"] .state')).to_contain_text("hidden")
        assert version_of(file) == before + 1
        press(page, "Show it again")
        expect(page.locator(".verdict")).to_contain_text("sent")
        press(page, "Pin it")
        expect(page.get_by_role("button", name="Unpin it…")).to_be_visible()
        expect(page.get_by_role("button", name="Hide it…")).to_have_count(0)


def test_a_conversation_is_compacted_and_the_compaction_undone(browser: Browser, file: Path, server: Served) -> None:
    """With the wish for its summary; the card is there at once, and is crossed out behind the undo."""
    with looking(browser, server.base) as seen:
        page = seen.page
        seen.go("/c/cards/compactions")
        page.get_by_label("What the summary should focus on").fill("The names of the cards.")
        press(page, "Compact now")
        expect(page.locator(".compaction h2")).to_have_text("Compaction 1")
        expect(page.locator("#tab-compactions .count")).to_have_text("1")
        assert violations(page) == []
        press(page, "Undo it")
        expect(page.locator(".compaction")).to_contain_text("undone at")
    assert version_of(file) > 17


def test_a_fork_begins_at_the_version_that_is_looked_at(browser: Browser, file: Path, server: Served) -> None:
    """Under the id that is asked for, with a link to it; an id that is taken is refused in words."""
    with looking(browser, server.base) as seen:
        page = seen.page
        seen.go("/c/cards/family?at=9")
        page.get_by_label("Its id").fill("other")
        press(page, "Fork")
        expect(page.locator(".lane")).to_have_count(2)
        page.get_by_role("button", name="Fork…").click()  # it is tried first, and refused there
        expect(page.locator(".decision-said")).to_contain_text("'other'")
        page.get_by_role("link", name="Open other").click()
        expect(page.locator(".crumbs")).to_contain_text("fork of cards at 9")
    assert version_of(file, "other") >= 10


def test_what_was_done_is_said_of_the_block_it_was_done_to(browser: Browser, server: Served) -> None:
    """It has the focus, since the button that did it is gone; another block has nothing to do with it."""
    with looking(browser, server.base) as seen:
        page = seen.page
        seen.go(f"/c/cards?block=%40{RESULT}")
        page.get_by_role("button", name="Hide it…").click()
        expect(page.locator(".asked")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Hide it…")).to_be_focused()
        press(page, "Pin it")
        said = page.get_by_label("Decide about it").locator(".decision-said")
        expect(said).to_contain_text("Done, as version")
        expect(said).to_be_focused()
        seen.go(f"/c/cards?block=%40{RESULT + 1}")
        expect(page.locator(".panel h2")).to_contain_text(f"@{RESULT + 1}")
        expect(said).to_be_empty()


def test_what_is_done_is_what_was_tried_while_the_log_grows(browser: Browser, file: Path, server: Served) -> None:
    """The question stays, and a field that is changed behind it changes nothing of it."""
    with looking(browser, server.base) as seen:
        page = seen.page
        seen.go("/c/cards/family")
        page.get_by_label("Its id").fill("tried")
        page.get_by_role("button", name="Fork…").click()
        expect(page.locator(".asked")).to_contain_text("tried would share the log up to version 17")

        async def more(store: EventStore) -> None:
            await (await Timeline.open(store, "cards")).append(prompt(text="One more thing."))

        change(file, more)
        expect(page.locator(".where")).to_contain_text("of 18")
        page.get_by_label("Its id").fill("other")
        page.locator(".asked").get_by_role("button", name="Fork", exact=True).click()
        expect(page.locator(".fork-from")).to_contain_text("tried begins after version 17")


def test_an_inspector_that_only_reads_offers_commands_alone(browser: Browser, file: Path) -> None:
    """And says nothing of what it may not do."""
    with served(file) as running, looking(browser, running.base) as seen:
        seen.go(f"/c/cards?block=%40{RESULT}")
        expect(seen.page.locator(".fork-from code")).to_have_text("timeline fork cards --at 17")
        seen.page.locator(".verdict").wait_for()
        assert seen.page.locator(".decisions").count() == 0
        refused = seen.page.evaluate(
            """async () => (await fetch("v1/conversations/cards/decisions", { method: "POST",
                headers: { "X-Timeline-Decision": "1" }, body: '{"decision":"compact"}' })).status"""
        )
        assert refused == 403
