"""A call that the model refuses for its size is made once more, as the other adapters do it; all else is the SDK's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from agents import Agent, ModelRetrySettings, ModelSettings, OpenAIResponsesModel, RunConfig, retry_policies
from openai import AsyncOpenAI

from tests.integrations.openai_agents.test_run import model_of, opened, read_file, reading, run
from tests.providers import FakeProvider, Trouble
from tests.scenes import payloads_of, small_policy
from timeline import open_store
from timeline.errors import ContextRefused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.providers import Asked, Step

ROOMY = 40_000
REFUSAL = Trouble("context_limit", limit=2_000)


def refusing(*calls: int, what: Trouble = REFUSAL) -> Callable[[Asked], Step]:
    """Make a model that works, and refuses the calls of these numbers."""
    work = reading(8)
    return lambda asked: what if asked.number in calls else work(asked)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", ["responses", "chat"])
async def test_a_refused_context_is_compacted_and_the_call_made_again(
    tmp_path: Path, wire: str, *, stream: bool
) -> None:
    """The run goes on; the refused call is in the log as a failed one, and no request was invalid."""
    with FakeProvider(refusing(6)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store, policy=small_policy(max_tokens=ROOMY, counter="chars4"))
            agent = Agent(name="a", model=model_of(wire, provider), tools=[read_file])
            result = await run(session, agent, "Go", stream=stream)
            called = await payloads_of(store, "model.called", "work")
            compactions = session.timeline.compaction_state().count
            report = await session.timeline.verify()
    assert str(result.final_output).startswith("Done after")
    assert provider.refused == []
    assert provider.asked[7].tokens < provider.asked[6].tokens
    assert [bool(one.error) for one in called].count(True) == 1
    assert compactions == 1
    assert report.ok


async def test_a_second_refusal_ends_the_run(tmp_path: Path) -> None:
    """With the error that the other adapters raise."""
    with FakeProvider(refusing(6, 7)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store, policy=small_policy(max_tokens=ROOMY, counter="chars4"))
            agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file])
            with pytest.raises(ContextRefused):
                await run(session, agent, "Go")
            failed = [one for one in await payloads_of(store, "model.called", "work") if one.error]
    assert len(provider.asked) == 8
    assert len(failed) == 2


@pytest.mark.parametrize("of_agent", [False, True], ids=["of_the_run", "of_the_agent"])
@pytest.mark.parametrize("retries", [0, 2])
async def test_other_errors_are_retried_as_often_as_the_settings_say(
    tmp_path: Path, retries: int, *, of_agent: bool
) -> None:
    """By the run's settings, or the agent's; without any, not at all."""
    retry = ModelRetrySettings(
        max_retries=retries, policy=retry_policies.http_status([503]), backoff={"initial_delay": 0.01}
    )
    settings = ModelSettings(retry=retry)
    with FakeProvider(refusing(*range(1, 9), what=Trouble("overloaded"))) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            own: dict[str, Any] = {"model_settings": settings} if of_agent else {}
            agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file], **own)
            config = RunConfig(tracing_disabled=True, model_settings=None if of_agent else settings)
            with pytest.raises(openai.InternalServerError):
                await run(session, agent, "Go", config=config)
    assert len(provider.asked) == 1 + 1 + retries


async def test_a_run_that_allows_no_retry_has_none_of_the_clients_either(tmp_path: Path) -> None:
    """So the SDK says of ``max_retries=0``."""
    settings = ModelSettings(retry=ModelRetrySettings(max_retries=0))
    with FakeProvider(refusing(*range(1, 9), what=Trouble("overloaded"))) as provider:
        client = AsyncOpenAI(api_key="none", base_url=provider.openai_url, max_retries=2)
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=OpenAIResponsesModel("gpt-5.6", client), tools=[read_file])
            config = RunConfig(tracing_disabled=True, model_settings=settings)
            with pytest.raises(openai.InternalServerError):
                await run(session, agent, "Go", config=config)
    assert len(provider.asked) == 1 + 1
