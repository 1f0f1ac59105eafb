"""The clauses for frameworks that have such: calls without an event loop, own summaries, guardrails."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

import timeline.sync
from timeline import open_store
from timeline.integrations.testing.base import (
    ContractBase,
    blocks_in,
    calls_in,
    check,
    opened,
    policy,
    work,
    working,
)
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.integrations.testing.driver import Driver
    from timeline.integrations.testing.model import ScriptedModel


class BlockingClauses(ContractBase):
    """For frameworks that may be called without an event loop."""

    async def test_an_agent_runs_with_and_without_an_event_loop(
        self, driver: Driver, model: ScriptedModel, tmp_path: Path
    ) -> None:
        """Over one store that has a loop of its own."""
        model.script = working(range(8))
        with timeline.sync.open_store(tmp_path / "agent.db") as store:
            agent = driver.agent(store, policy(), work)
            assert await anyio.to_thread.run_sync(agent.run_blocking, "Do it.") == "answer 8"
            assert await agent.run("And now?") == "answer 9"
            blocking = timeline.sync.Timeline.open(store, CONVERSATION, create=False)
            assert blocking.verify().ok
            assert blocking.window.items[-1].block.text == "answer 9"
        assert model.problems == []


class SummaryClauses(ContractBase):
    """For frameworks that summarise their own histories."""

    async def test_a_summary_of_the_frameworks_is_not_taken_for_a_prompt(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """The log has what it means."""
        async with open_store("memory://") as store:
            agent = driver.agent(store, policy(), work)
            await agent.run("one")
            await agent.run("two")
            await agent.summarise("THEIR SUMMARY")
            await agent.run("three")
            await check(store, model)
            assert not any("THEIR SUMMARY" in block.text for block in await blocks_in(store))
        assert model.saw(-1) == ["one", "answer 0", "two", "answer 1", "three"]


class GuardrailClauses(ContractBase):
    """For frameworks with guardrails that reject what the model said."""

    async def test_an_answer_that_was_rejected_is_seen_by_people_only(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """It is omitted as rejected, and was paid for."""
        async with open_store("memory://") as store:
            agent = driver.agent(store, policy(), work)
            await agent.run("one")
            await agent.run_rejected("two")
            await agent.run("three")
            await check(store, model)
            by_text = {item.block.text: item for item in (await opened(store)).window.items}
            assert len(await calls_in(store)) == 3
        rejected = by_text["answer 1"]
        assert rejected.state == "omitted"
        assert rejected.hide is not None
        assert rejected.hide.reason == "rejected"
        assert not any("answer 1" in text for text in model.saw(-1))
