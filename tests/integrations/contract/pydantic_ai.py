"""Pydantic AI under the contract: an agent whose application stores its messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, ModelMessagesTypeAdapter, capture_run_messages
from pydantic_ai.messages import CompactionPart, ModelRequest, ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from tests.integrations.contract.wire import OnTheWire
from timeline.integrations.pydantic_ai import TimelineCapability
from timeline.integrations.testing import DrivenAgent
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from timeline.integrations.testing import ScriptedModel
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.sync import Store

UNLIMITED = UsageLimits(request_limit=None)


class PydanticAI(OnTheWire):
    """Its history is a JSON document."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self._stored = b"[]"

    @property
    def history(self) -> list[ModelMessage]:
        """The messages as they are loaded."""
        return ModelMessagesTypeAdapter.validate_json(self._stored)

    @history.setter
    def history(self, messages: Sequence[ModelMessage]) -> None:
        self._stored = ModelMessagesTypeAdapter.dump_json([*messages])

    def agent(self, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
        """Return an agent on the conversation."""
        return _Agent(self, agent_with_capability(self.provider.openai_url, store, policy, tool))


def agent_with_capability(
    url: str, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]
) -> Agent[None, str]:
    """Return an agent of one tool whose model sees what the timeline shows."""
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    chat = OpenAIChatModel("gpt-6", provider=OpenAIProvider(openai_client=client))
    capability = TimelineCapability[None](store, policy=policy)
    return Agent(chat, instructions="You work.", tools=[tool], capabilities=[capability])


def of_scene(folder: Path, url: str, store: EventStore, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
    """Return an agent whose messages are stored after each step of a run."""
    return _StoredBySteps(folder / "history.json", agent_with_capability(url, store, policy, tool))


class _StoredBySteps(DrivenAgent):
    """A place is a number of messages."""

    def __init__(self, file: Path, agent: Agent[None, str]) -> None:
        self._file = file
        self._agent = agent
        self._history = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []

    async def run(self, prompt: str, *, place: Any = None) -> str:
        return await self._go_on(prompt, self._history[:place])

    async def place(self) -> Any:
        return len(self._history)

    async def regenerate(self) -> str:
        return await self._go_on(None, self._history[:-1])

    async def resume(self) -> str:
        return await self._go_on(None, self._history)

    async def trim(self, keep: int) -> None:
        self._history = self._history[-keep:]

    async def _go_on(self, prompt: str | None, history: Sequence[ModelMessage]) -> str:
        settings: Any = {"conversation_id": CONVERSATION, "usage_limits": UNLIMITED}
        async with self._agent.iter(prompt, message_history=history, **settings) as run:
            async for _ in run:
                self._keep(run.ctx.state.message_history)
        assert run.result is not None
        self._keep(run.result.all_messages())
        return str(run.result.output)

    def _keep(self, messages: Sequence[ModelMessage]) -> None:
        self._history = [*messages]
        written = self._file.with_suffix(".new")
        written.write_bytes(ModelMessagesTypeAdapter.dump_json(self._history))
        written.replace(self._file)


class _Agent(DrivenAgent):
    def __init__(self, application: PydanticAI, agent: Agent[None, str]) -> None:
        self._application = application
        self._agent = agent

    async def run(self, prompt: str, *, place: Any = None) -> str:
        return await self._go_on(prompt, self._application.history if place is None else place)

    async def place(self) -> Any:
        return self._application.history

    async def regenerate(self) -> str:
        return await self._go_on(None, self._application.history[:-1])

    async def resume(self) -> str:
        return await self._go_on(None, self._application.history)

    async def trim(self, keep: int) -> None:
        self._application.history = self._application.history[-keep:]

    def run_blocking(self, prompt: str) -> str:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)  # `run_sync` takes the thread's own, and leaves it open
        try:
            result = self._agent.run_sync(
                prompt, message_history=self._application.history, conversation_id=CONVERSATION
            )
        finally:
            asyncio.set_event_loop(None)
            loop.close()
        self._application.history = result.all_messages()
        return result.output

    async def summarise(self, text: str) -> None:
        summary = ModelRequest([CompactionPart(text)], conversation_id=CONVERSATION)
        self._application.history = [summary, *self._application.history[-1:]]

    async def _go_on(self, prompt: str | None, history: Sequence[ModelMessage]) -> str:
        with capture_run_messages() as messages:
            try:
                result = await self._agent.run(
                    prompt, message_history=history, conversation_id=CONVERSATION, usage_limits=UNLIMITED
                )
            except BaseException:
                # The framework takes no prompt behind calls without results: an application leaves them.
                is_called = messages and isinstance(messages[-1], ModelResponse)
                self._application.history = messages[:-1] if is_called else messages
                raise
        self._application.history = result.all_messages()
        return result.output
