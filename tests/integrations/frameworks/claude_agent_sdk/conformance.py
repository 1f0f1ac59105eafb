"""Runs the SDK's public conformance suite over stores in files; run it as a program, with the SDK on the path."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from claude_agent_sdk.testing import run_session_store_conformance

from timeline import open_store
from timeline.integrations.claude_agent_sdk import TimelineSessionStore


async def main() -> None:
    """Run each contract on a database of its own."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        made: list[TimelineSessionStore] = []

        async def make() -> TimelineSessionStore:
            store = await stack.enter_async_context(open_store(folder / f"{len(made)}.db"))
            made.append(TimelineSessionStore(store))
            return made[-1]

        await run_session_store_conformance(make)
        print(f"kept by {len(made)} stores")


if __name__ == "__main__":
    asyncio.run(main())
