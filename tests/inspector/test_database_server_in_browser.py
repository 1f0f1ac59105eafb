"""The page over a database on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.depth import at_night
from tests.inspector.looking import change, looking, served_apart
from timeline import Timeline
from timeline.blocks import UserPrompt

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.postgres_server import Server
    from timeline.ports import EventStore


@at_night
def test_what_a_database_server_did_not_answer_is_read_when_it_is_back(browser: Browser, own_postgres: Server) -> None:
    """Nobody has to ask again. It waits for half a minute, as the page does."""

    async def tell(store: EventStore) -> None:
        await (await Timeline.open(store, "cards")).append(UserPrompt(text="Build a flashcard app."))

    change(own_postgres.url(), tell)
    with served_apart(own_postgres.url()) as running, looking(browser, running.base) as seen:
        seen.go("/c/cards")
        seen.page.locator('[data-version="2"] .row-text').wait_for()
        own_postgres.stop("immediate")
        expect(seen.page.locator(".failed")).to_contain_text("It is asked for again", timeout=60_000)
        own_postgres.start()
        expect(seen.page.locator('[data-version="2"] .row-text')).to_be_visible(timeout=40_000)
