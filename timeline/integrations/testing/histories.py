"""The clauses about histories: the same again, gone back behind, trimmed, compactions taken back."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline import open_store
from timeline.integrations.testing.base import (
    ContractBase,
    blocks_in,
    check,
    failing_once,
    opened,
    policy,
    times_said,
    work,
    working,
)
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.integrations.testing.driver import Driver
    from timeline.integrations.testing.model import ScriptedModel


class HistoryClauses(ContractBase):
    """What holds from run to run."""

    async def test_a_history_that_is_handed_over_again_appends_only_what_is_new(
        self, driver: Driver, model: ScriptedModel, tmp_path: Path
    ) -> None:
        """By the same agent, and by a new one in another process."""
        async with open_store(tmp_path / "agent.db") as store:
            agent = driver.agent(store, policy(), work)
            await agent.run("one")
            await agent.run("two")
        async with open_store(tmp_path / "agent.db") as store:
            await driver.agent(store, policy(), work).run("three")
            texts = [block.text for block in await blocks_in(store)]
            await check(store, model)
        assert texts == ["one", "answer 0", "two", "answer 1", "three", "answer 2"]
        assert model.saw(-1) == texts[:-1]

    async def test_what_an_edit_leaves_is_seen_by_no_model_and_can_be_taken_back(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """It is omitted as abandoned, in sight of people."""
        async with open_store("memory://") as store:
            agent = driver.agent(store, policy(), work)
            await agent.run("one")
            place = await agent.place()
            await agent.run("two")
            await agent.run("two, but other", place=place)
            await agent.run("three")
            await check(store, model)
            assert model.saw(-1) == ["one", "answer 0", "two, but other", "answer 2", "three"]
            timeline = await opened(store)
            gone = {item.block.text: item for item in timeline.window.items if item.state == "omitted"}
            assert gone.keys() == {"two", "answer 1"}
            assert {item.hide.reason for item in gone.values() if item.hide is not None} == {"abandoned"}
            await timeline.reveal(gone["two"].block.path)
            await driver.agent(store, policy(), work).run("four")
            await check(store, model)
        assert {"two", "answer 1", "four"} <= {*model.saw(-1)}

    async def test_an_answer_that_is_written_again_replaces_the_first_one(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """The question stays; the first answer is abandoned."""
        async with open_store("memory://") as store:
            agent = driver.agent(store, policy(), work)
            await agent.run("one")
            assert await agent.regenerate() == "answer 1"
            await agent.run("two")
            await check(store, model)
            assert set((await times_said(store)).values()) == {1}
        assert model.saw(1) == ["one"]
        assert model.saw(2) == ["one", "answer 1", "two"]

    async def test_a_long_life_is_refused_broken_off_resumed_and_gone_back_in(
        self, driver: Driver, model: ScriptedModel, tmp_path: Path
    ) -> None:
        """Eighty rounds; the summaries that know of the abandoned work are undone, without a hold."""
        model.script = failing_once(working(range(20), range(21, 61), range(62, 82)), at=40)
        model.limit = 5_000
        async with open_store(tmp_path / "agent.db") as store:
            agent = driver.agent(store, policy(), work)
            assert await agent.run("one") == "answer 20"
            place = await agent.place()
            with pytest.raises(Exception):  # noqa: B017, PT011 - each framework has its own
                await agent.run("two")
        async with open_store(tmp_path / "agent.db") as store:
            agent = driver.agent(store, policy(), work)
            assert await agent.resume() == "answer 61"
            assert (await opened(store)).compaction_state().count > 5
            assert await agent.run("another two", place=place) == "answer 82"
            await check(store, model)
            timeline = await opened(store)
            assert timeline.compaction_state().count >= 2
            assert not timeline.window.is_held
            reverted = [event async for event in store.read(CONVERSATION, types=["compaction.reverted"])]
        assert reverted
        assert model.refused
        left = [f"step {number}." for number in range(21, 61)]
        seen = "\n".join(text for number in range(62, len(model.requests)) for text in model.saw(number))
        assert [step for step in left if step in seen] == []
        assert "another two" in model.saw(62)

    async def test_a_history_that_the_application_trims_is_whole_in_the_log(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """What the model sees is decided by the log's policy."""
        async with open_store("memory://") as store:
            agent = driver.agent(store, policy(), work)
            for text in ("one", "two", "three"):
                await agent.run(text)
            await agent.trim(2)
            await agent.run("four")
            await check(store, model)
            assert {item.state for item in (await opened(store)).window.items} == {"visible"}
            assert set((await times_said(store)).values()) == {1}
        assert model.saw(-1) == ["one", "answer 0", "two", "answer 1", "three", "answer 2", "four"]

    async def test_what_an_undone_compaction_covered_is_sent_again(self, driver: Driver, model: ScriptedModel) -> None:
        """From the next call of the model on."""
        model.script = working(range(30))
        async with open_store("memory://") as store:
            await driver.agent(store, policy(), work).run("Do it.")
            assert not any(work("step 0.0") in text for text in model.saw(-1))
            timeline = await opened(store)
            while timeline.window.summaries:
                await timeline.undo_compaction()
            events = [event async for event in store.read(CONVERSATION, types=["compaction.reverted"])]
            await driver.agent(store, policy(), work).run("Go on.")
            await check(store, model)
        assert events
        assert any(work("step 0.0").strip() in text for text in model.saw(-1))
