"""The inspector of a file that is moved away, put back, or replaced while it is served."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.inspector.asking import ask
from timeline import Timeline, open_store
from timeline.inspector import inspector
from timeline.inspector.reopened import Reopened
from timeline.integrations.reopening import Reopening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def record(file: Path, conversation: str) -> None:
    """Make a database with a conversation."""
    async with open_store(file) as store:
        await Timeline.open(store, conversation)


@asynccontextmanager
async def served(file: Path) -> AsyncIterator[Any]:
    """Serve the inspector of a file."""
    again = partial(open_store, file, readonly=True)
    async with again() as store, Reopening(store, again) as reopening:
        yield Reopened(reopening, inspector)


async def listed(app: Any) -> list[str]:
    """Return the ids of the conversations, as the next answer but one has them: the first may say that it is away."""
    await ask(app, "/v1/conversations")
    return [row["id"] for row in (await ask(app, "/v1/conversations")).json["conversations"]]


@pytest.mark.parametrize("path", ["/v1/conversations", "/v1/conversations/old/events", "/v1/conversations/old/status"])
async def test_while_the_file_is_away_each_answer_says_so_and_is_to_be_asked_for_again(
    tmp_path: Path, path: str
) -> None:
    """Streams as well."""
    file = tmp_path / "agent.db"
    await record(file, "old")
    async with served(file) as app:
        file.rename(tmp_path / "elsewhere.db")
        for _ in range(2):
            answer = await ask(app, path)
            assert answer.status == 503
            assert "deleted or renamed while it was open" in str(answer.json)


async def test_a_file_that_is_put_back_is_served_again(tmp_path: Path) -> None:
    """The store that was open is of no use any more."""
    file = tmp_path / "agent.db"
    await record(file, "old")
    async with served(file) as app:
        moved = file.rename(tmp_path / "elsewhere.db")
        assert (await ask(app, "/v1/conversations")).status == 503
        moved.rename(file)
        assert await listed(app) == ["old"]


async def test_a_file_that_takes_its_place_is_served(tmp_path: Path) -> None:
    """A backup that was restored, say; also where there was only half of it at first."""
    file = tmp_path / "agent.db"
    await record(file, "old")
    await record(tmp_path / "new.db", "new")
    async with served(file) as app:
        file.unlink()
        file.write_bytes((tmp_path / "new.db").read_bytes()[:5_000])
        for _ in range(2):
            assert (await ask(app, "/v1/conversations")).status == 503
        (tmp_path / "new.db").rename(file)
        assert await listed(app) == ["new"]
