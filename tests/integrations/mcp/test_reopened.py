"""A server whose file is moved away, put back, or replaced while it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.integrations.mcp.recorded import ask, asking_process, said
from timeline import Timeline, open_store

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client


async def named(file: Path, conversation: str) -> Path:
    """Make a database with a conversation."""
    async with open_store(file) as store:
        await Timeline.open(store, conversation)
    return file


async def listed(client: Client) -> list[str]:
    """Return the ids of the conversations."""
    return [row["id"] for row in (await ask(client, "conversations"))["conversations"]]


@pytest.mark.parametrize("options", [(), ("--only", "*")])
async def test_a_file_that_takes_the_place_of_another_is_asked_at_once(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """A backup that was restored, say; also a second time, and within a scope."""
    file = await named(tmp_path / "agent.db", "first")
    async with asking_process(file, *options) as client:
        assert await listed(client) == ["first"]
        for conversation in ("second", "third"):
            (await named(tmp_path / "restored.db", conversation)).replace(file)
            assert await listed(client) == [conversation]


async def test_while_the_file_is_away_each_answer_says_so_until_it_is_there_again(tmp_path: Path) -> None:
    """Half of a file is no file yet."""
    file = await named(tmp_path / "agent.db", "work")

    async def refused(client: Client) -> str:
        result: Any = await client.call_tool("conversations", {})
        assert result.is_error
        return said(result)

    async with asking_process(file) as client:
        away = file.rename(tmp_path / "away.db")
        for _ in range(2):
            assert "deleted or renamed while it was open" in await refused(client)
        file.write_bytes(away.read_bytes()[:5_000])
        for _ in range(2):
            assert "timeline restore" in await refused(client)
        away.replace(file)
        assert await listed(client) == ["work"]
