"""Real recordings in the page: each one is there, and each of its views opens without an error and is accessible."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.depth import sampled
from tests.inspector.looking import change, looking, served, violations
from tests.recorded import needs_recordings, swept
from timeline.importers import read_recording
from timeline.portable.recordings import import_recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.inspector.looking import Seen, Served
    from timeline.ports import EventStore

VIEWS = ("", "/context", "/compactions", "/diff", "/family", "/cache", "/live", "/export")
"""Views that are opened of each recording; another policy is run on one of them, since that takes seconds."""
RECORDINGS = [path for kind in ("jsonl", "json", "traj") for path in swept(f"**/*.{kind}")]
pytestmark = [needs_recordings, sampled]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Import every recording into one file."""
    made = tmp_path_factory.mktemp("recorded") / "agent.db"

    async def import_all(store: EventStore) -> None:
        for path in RECORDINGS:
            for recording in read_recording(path):
                await import_recording(store, recording)

    change(made, import_all)
    return made


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[Served]:
    """Serve them."""
    with served(file) as running:
        yield running


def opened(seen: Seen, address: str) -> None:
    """Go to an address, and wait until it shows what it has."""
    seen.go(address)
    seen.page.locator(".view > *").first.wait_for()
    expect(seen.page.locator(".loading")).to_have_count(0, timeout=30_000)
    expect(seen.page.locator(".failed")).to_have_count(0)


def test_every_view_of_every_recording_opens_without_an_error(browser: Browser, server: Served) -> None:
    """Each within 1,500 elements and the width of a phone; the rules of axe-core find nothing in the newest's views."""
    with looking(browser, server.base, width=390) as seen:
        seen.page.locator(".talk-title").first.wait_for()
        links = [link.get_attribute("href") or "" for link in seen.page.locator(".talk-title").all()]
        assert len(links) >= len(RECORDINGS) // 2
        for place, link in enumerate(links):
            for view in VIEWS:
                opened(seen, f"{link.removeprefix('#')}{view}")
                assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390, (link, view)
                assert seen.nodes() <= 1_500, (link, view)
                assert place or violations(seen.page) == [], (link, view)


def test_another_policy_is_run_on_a_recording(browser: Browser, server: Served) -> None:
    """It is priced, and its facts are found."""
    with looking(browser, server.base) as seen:
        link = seen.page.locator(".talk", has_text="compaction").locator(".talk-title").first
        address = (link.get_attribute("href") or "").removeprefix("#")
        opened(seen, f"{address}/what-if?policy=balanced&limit=100000")
        expect(seen.page.locator(".what-if tr", has_text="facts in sight")).to_contain_text("%", timeout=30_000)
