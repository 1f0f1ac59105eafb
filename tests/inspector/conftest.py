from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.inspector.sent import Sent, converse
from tests.lab.conftest import browser
from timeline.inspector import inspector
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from timeline.ports import EventStore

__all__ = ["app", "browser", "sent", "store"]


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
