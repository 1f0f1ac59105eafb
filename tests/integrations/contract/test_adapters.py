"""The adapters under the public contract."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest
from pydantic_ai.exceptions import ModelAPIError

from tests.integrations.contract.claude_agent_sdk import ClaudeAgentSDK
from tests.integrations.contract.langchain import LangChain
from tests.integrations.contract.openai_agents import OpenAIAgents
from tests.integrations.contract.pydantic_ai import PydanticAI
from tests.integrations.contract.pydantic_ai_store import PydanticAIWithStore
from timeline import open_store
from timeline.integrations.pydantic_ai_store import TimelineConversationStore
from timeline.integrations.testing import AdapterContract, BlockingClauses, GuardrailClauses, SummaryClauses
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
from timeline.integrations.testing.histories import HistoryClauses
from timeline.integrations.testing.runs import RunClauses

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.integrations.testing import Driver, ScriptedModel


class TestLangChain(AdapterContract, BlockingClauses, SummaryClauses):
    """`TimelineMiddleware` keeps the contract."""

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return an application of LangChain's."""
        return LangChain(model)


class TestPydanticAI(AdapterContract, BlockingClauses, SummaryClauses):
    """`TimelineCapability` keeps the contract."""

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return an application of Pydantic AI's."""
        return PydanticAI(model)


NOT_OF_A_CONVERSATION_STORE: Final = {
    "test_an_agent_runs_with_and_without_an_event_loop": "the framework's stores are awaited: an application that "
    "loads and saves has an event loop",
    "test_an_answer_that_was_rejected_is_seen_by_people_only": "the framework has validators, which have an answer "
    "written again in the same run, and no guardrail that ends a run behind its answer",
}
"""The clauses for some frameworks that an application of Pydantic AI with a store cannot keep, each with the reason."""


class TestPydanticAIWithStore(AdapterContract, SummaryClauses):
    """`TimelineConversationStore` keeps the contract, with the capability over the same store."""

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return an application of Pydantic AI's that keeps its conversations in the store."""
        return PydanticAIWithStore(model)

    def test_each_other_clause_has_a_reason(self) -> None:
        """None is left out in silence, of those for some frameworks neither."""
        every = (AdapterContract, BlockingClauses, SummaryClauses, GuardrailClauses)
        clauses = {name for clauses in every for name in dir(clauses) if name.startswith("test_")}
        assert clauses - {*dir(self)} == NOT_OF_A_CONVERSATION_STORE.keys()

    async def test_a_run_that_was_cancelled_is_gone_on_from_twice(self, driver: Driver, model: ScriptedModel) -> None:
        """What the framework puts in the place of the missing result is no other history."""
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
            await driver.agent(store, policy(), work).run("And then?")
            await check(store, model)
            assert {item.state for item in (await opened(store)).window.items} == {"visible"}
        assert model.saw(2)[: len(model.saw(1))] == model.saw(1)
        assert model.saw(2)[len(model.saw(1)) :] == ["answer 1", "And then?"]

    async def test_a_conversation_that_is_loaded_for_each_prompt_loses_and_repeats_nothing(
        self, driver: Driver, model: ScriptedModel, tmp_path: Path
    ) -> None:
        """In a new process each time, past five compactions, with one run that broke off and was resumed."""
        model.script = failing_once(working(*(range(start, start + 3) for start in range(0, 56, 4))), at=37)
        broken_off = []
        for number in range(14):
            try:
                async with open_store(tmp_path / "agent.db") as store:
                    answer = await driver.agent(store, policy(), work).run(f"Step {number}.")
            except ModelAPIError:
                broken_off.append(number)
                async with open_store(tmp_path / "agent.db") as store:
                    answer = await driver.agent(store, policy(), work).resume()
            assert answer == f"answer {4 * number + 3}"
        assert broken_off == [9]
        async with open_store(tmp_path / "agent.db") as store:
            await check(store, model)
            timeline = await opened(store)
            assert timeline.compaction_state().count > 5
            assert not [item for item in timeline.window.items if item.state == "omitted"]
            assert set((await times_said(store)).values()) == {1}
            loaded = await TimelineConversationStore(store).load(timeline.id)
            blocks = [block for block in await blocks_in(store) if block.type != "conv.range.summary"]
        assert len(model.requests) == 56
        assert loaded is not None
        answers = [part.content for message in loaded.messages for part in message.parts if part.part_kind == "text"]
        assert answers == [block.text for block in blocks if block.text.startswith(("answer", "Round"))]
        assert max(sum(map(len, model.saw(n))) for n in range(56)) < sum(len(block.text) for block in blocks) / 3


class TestOpenAIAgents(AdapterContract, GuardrailClauses):
    """`TimelineSession` keeps the contract, with the Responses API."""

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return an application of the OpenAI Agents SDK."""
        return OpenAIAgents(model, "responses")


class TestOpenAIAgentsWithChatCompletions(AdapterContract, GuardrailClauses):
    """And with chat completions."""

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return an application of the OpenAI Agents SDK."""
        return OpenAIAgents(model, "chat")


IN_THE_LOOP: Final = "inside a run the client alone decides what is sent; a session store is asked when it is resumed"
NOT_OF_A_SESSION_STORE: Final = {
    "test_a_run_goes_past_five_compactions_and_keeps_the_whole_log": IN_THE_LOOP,
    "test_a_context_that_the_model_refuses_for_its_size_is_made_smaller": IN_THE_LOOP,
    "test_a_long_life_is_refused_broken_off_resumed_and_gone_back_in": IN_THE_LOOP,
    "test_what_an_undone_compaction_covered_is_sent_again": IN_THE_LOOP,
    "test_each_call_of_the_model_is_recorded_with_its_usage": "the client sends what we never see: a call has its "
    "usage, and neither our context nor a duration (`TestClaudeAgentSDK` asserts the usage)",
    "test_an_answer_that_is_written_again_replaces_the_first_one": "the SDK goes back to a row and on with a prompt; "
    "it has no other answer to the same one",
    "test_a_history_that_the_application_trims_is_whole_in_the_log": "no application can trim the client's history",
}
"""The clauses that an adapter cannot keep which stores what a client sends, each with the reason."""


class TestClaudeAgentSDK(ContractBase):
    """`TimelineSessionStore` keeps those clauses that are about what is stored, and what a session is resumed from."""

    test_cancelled = RunClauses.test_a_run_that_is_cancelled_leaves_a_log_that_goes_on
    test_broken_off = RunClauses.test_a_run_that_broke_off_is_resumed_in_another_process
    test_again = HistoryClauses.test_a_history_that_is_handed_over_again_appends_only_what_is_new
    test_edited = HistoryClauses.test_what_an_edit_leaves_is_seen_by_no_model_and_can_be_taken_back

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return an application of the Claude Agent SDK's."""
        return ClaudeAgentSDK(model)

    def test_each_other_clause_has_a_reason(self) -> None:
        """None is left out in silence."""
        kept = {getattr(self, name).__name__ for name in dir(self) if name.startswith("test_")}
        clauses = {name for name in dir(AdapterContract) if name.startswith("test_")}
        assert clauses - kept == NOT_OF_A_SESSION_STORE.keys()

    async def test_what_an_undone_compaction_covered_is_sent_again_when_the_session_is_resumed(
        self, driver: Driver, model: ScriptedModel
    ) -> None:
        """Also where the client went on from the compacted form since."""
        model.script = working(range(30))
        async with open_store("memory://") as store:
            await driver.agent(store, policy(), work).run("Do it.")
            await driver.agent(store, policy(), work).run("Go on.")
            assert not any(work("step 0.0") in text for text in model.saw(-1))
            timeline = await opened(store)
            while timeline.window.summaries:
                await timeline.undo_compaction()
            await driver.agent(store, policy(), work).run("And on.")
            await check(store, model)
        assert any(work("step 0.0").strip() in text for text in model.saw(-1))

    async def test_a_session_that_is_resumed_for_each_prompt_goes_past_five_compactions(
        self, driver: Driver, model: ScriptedModel, tmp_path: Path
    ) -> None:
        """In a new process each time: no request is invalid or grows, and all that was said and done is in the log."""
        model.script = working(*(range(start, start + 3) for start in range(0, 80, 4)))
        for number in range(20):
            async with open_store(tmp_path / "agent.db") as store:
                assert await driver.agent(store, policy(), work).run(f"Step {number}.") == f"answer {4 * number + 3}"
        async with open_store(tmp_path / "agent.db") as store:
            await check(store, model)
            timeline = await opened(store)
            assert timeline.compaction_state().count > 5
            calls = [call async for call in timeline.calls()]
            said = Counter(block.text for block in await blocks_in(store) if block.type == "react.tool.result")
            rows: list[Any] = [event.payload async for event in store.read(timeline.id, types=["framework.entry"])]
            handed = sum("timelineContext" in row.data for row in rows)
        assert [call.usage.output_tokens for call in calls] == [10 + number for number in range(80)]
        assert set(said.values()) == {1}
        assert handed < len(rows) / 5
        assert max(sum(map(len, model.saw(n))) for n in range(80)) < sum(map(len, said)) / 3
