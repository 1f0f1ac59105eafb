from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from tests.inspector.sent import Sent, converse
from tests.lab.browsing import installed, launch
from timeline.inspector import inspector
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.sync_api import Browser

    from timeline.ports import EventStore


@pytest.fixture
async def store() -> AsyncIterator[EventStore]:
    """Give an empty store."""
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def sent(store: EventStore) -> Sent:
    """Hold the conversation in the store."""
    return await converse(store)


@pytest.fixture
def app(store: EventStore) -> Any:
    """Give the inspector of the store, for this machine."""
    return inspector(store)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start the machine's Chromium; checks of a submission must have one."""
    program = installed()
    if program is None and not os.environ.get("CI"):
        pytest.skip("there is no Chromium on this machine; Debian's package is called chromium")
    assert program is not None, "there is no Chromium here, and the page is not checked without one"
    with sync_playwright() as driver:
        started = launch(driver, program)
        yield started
        started.close()
