from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from timeline.store import aside
from timeline.store.sqlite.store import SQLiteStore
from timeline.store.testing import events

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ROWS = 100


async def test_others_have_turns_while_a_long_window_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a slice of time for several rows it is one behind each; a page of them is no stretch on the loop."""
    monkeypatch.setattr(aside, "_SECONDS", 0.0)
    at: list[int] = []
    read = 0

    async def others() -> None:
        while True:
            at.append(read)
            await asyncio.sleep(0)

    async def counted(*given: object) -> object:
        nonlocal read
        read += 1
        return await decoded(*given)  # type: ignore[arg-type]  # as it is called

    decoded = aside.decoded
    monkeypatch.setattr(aside, "decoded", counted)
    async with await SQLiteStore.open(tmp_path / "a.db") as store:
        await store.append("a", events(ROWS))
        other = asyncio.create_task(others())
        window = await store.load_window("a")
        other.cancel()
    assert len(window.events) == ROWS == read
    assert {*range(1, ROWS)} <= {*at}
