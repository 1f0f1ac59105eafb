"""The clauses about one run: what is sent, what is recorded, and how it may end."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from timeline import open_store
from timeline.blocks import ToolResult
from timeline.integrations.testing.base import (
    ROUNDS,
    ContractBase,
    blocks_in,
    calls_in,
    check,
    failing_once,
    opened,
    policy,
    times_said,
    work,
    working,
)

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.integrations.testing.driver import Driver
    from timeline.integrations.testing.model import ScriptedModel


class RunClauses(ContractBase):
    """What holds in a run."""

    async def test_a_run_goes_past_five_compactions_and_keeps_the_whole_log(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """Each request is valid and smaller than the history, and all that was said and done is in the log, once."""
        model.script = working(range(ROUNDS))
        async with open_store("memory://") as store:
            assert await driver.agent(store, policy(), work).run("Do it.") == f"answer {ROUNDS}"
            await check(store, model)
            assert (await opened(store)).compaction_state().count > 5
            results = [block.text for block in await blocks_in(store) if isinstance(block, ToolResult)]
            assert len(results) == len(set(results)) == ROUNDS + ROUNDS // 3
            assert set((await times_said(store)).values()) == {1}
            path = next(block.path for block in await blocks_in(store) if isinstance(block, ToolResult))
            assert (await (await opened(store)).read(path)).text == work("step 0.0")
        whole = sum(map(len, results))
        assert max(sum(map(len, model.saw(n))) for n in range(len(model.requests))) < whole / 4

    async def test_each_call_of_the_model_is_recorded_with_its_usage(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """The figures that the provider reported, and the context that the call answers."""
        model.script = working(range(2))
        async with open_store("memory://") as store:
            await driver.agent(store, policy(), work).run("Do it.")
            calls = await calls_in(store)
        assert [called.usage.output_tokens for called in calls] == [10, 11, 12]
        assert [called.usage.input_tokens for called in calls] == [1_000, 1_001, 1_002]
        assert all(called.answers is not None and called.duration is not None for called in calls)

    async def test_a_context_that_the_model_refuses_for_its_size_is_made_smaller(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """What the provider counts is the last word, and the run goes on."""
        model.script, model.limit = working(range(12)), 5_000
        async with open_store("memory://") as store:
            assert await driver.agent(store, policy(), work).run("Do it.") == "answer 12"
            await check(store, model)
        assert model.refused

    async def test_a_run_that_is_cancelled_leaves_a_log_that_goes_on(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """In the middle of a tool: the next run's request is valid."""
        begun = asyncio.Event()

        async def hang(step: str) -> str:
            """Do a step of the work."""
            begun.set()
            await asyncio.Event().wait()
            return step

        hang.__name__ = work.__name__
        model.script = working(range(1))
        async with open_store("memory://") as store:
            run = asyncio.create_task(driver.agent(store, policy(), hang).run("Do it."))
            await begun.wait()
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                await run
            await driver.agent(store, policy(), work).run("And now?")
            await check(store, model)
        assert any("And now?" in text for text in model.saw(-1))

    async def test_a_run_that_broke_off_is_resumed_in_another_process(
        self, driver: Driver, model: ScriptedModel, tmp_path: Path
    ) -> None:
        """The server failed in the middle; what was done is neither lost nor stored twice."""
        model.script = failing_once(working(range(20)), at=11)
        async with open_store(tmp_path / "agent.db") as store:
            with pytest.raises(Exception):  # noqa: B017, PT011 - each framework has its own
                await driver.agent(store, policy(), work).run("Do it.")
        async with open_store(tmp_path / "agent.db") as store:
            assert await driver.agent(store, policy(), work).resume() == "answer 20"
            await check(store, model)
            assert set((await times_said(store)).values()) == {1}
            results = [block for block in await blocks_in(store) if isinstance(block, ToolResult)]
        assert len(results) == 20 + 20 // 3 + 1
