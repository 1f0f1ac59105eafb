"""Pydantic AI under the contract once more: an application that keeps its conversations in our store of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import capture_run_messages
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import CompactionPart, ModelRequest, ModelResponse

from tests.integrations.contract.pydantic_ai import UNLIMITED, agent_with_capability
from tests.integrations.contract.wire import OnTheWire
from timeline.integrations.pydantic_ai_store import TimelineConversationStore
from timeline.integrations.testing import DrivenAgent
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai import Agent

    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.sync import Store


class PydanticAIWithStore(OnTheWire):
    """Its history is what the conversation store loads: the application keeps nothing."""

    def agent(self, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
        """Return an agent whose conversation is loaded before each run, and saved after it."""
        return _Agent(store, agent_with_capability(self.provider.openai_url, store, policy, tool))


class _Agent(DrivenAgent):
    """A place is the id of an entry, which the framework branches from."""

    def __init__(self, store: Any, agent: Agent[None, str]) -> None:
        self._store = store
        self._conversations = TimelineConversationStore(store)
        self._agent = agent
        self._newest: int | None = None
        """Messages that the application loads, which trims its history; None for all."""

    async def run(self, prompt: str, *, place: Any = None) -> str:
        if place is None:
            return await self._go_on(prompt, await self._loaded())
        whole = await self._loaded()
        back = await self._conversations.branch(CONVERSATION, from_entry=place, expected_revision=whole.revision)
        return await self._go_on(prompt, back)

    async def place(self) -> Any:
        entries = await self._conversations.load_entries(CONVERSATION, limit=1)
        assert entries
        return entries[-1].id

    async def regenerate(self) -> str:
        whole = await self._loaded()
        question = len(whole.messages) - 1
        back = await self._conversations.branch(CONVERSATION, at=question, expected_revision=whole.revision)
        return await self._go_on(None, back)

    async def resume(self) -> str:
        return await self._go_on(None, await self._loaded())

    async def trim(self, keep: int) -> None:
        self._newest = keep

    async def summarise(self, text: str) -> None:
        conversation = await self._loaded()
        summary = ModelRequest([CompactionPart(text)], conversation_id=CONVERSATION)
        conversation.messages = [summary, *conversation.messages[-1:]]
        await self._save(conversation)

    async def _loaded(self) -> Conversation:
        loaded = await self._conversations.load(CONVERSATION, limit=self._newest)
        return loaded or Conversation(conversation_id=CONVERSATION)

    async def _go_on(self, prompt: str | None, conversation: Conversation) -> str:
        with capture_run_messages() as messages:
            try:
                result = await self._agent.run(prompt, conversation=conversation, usage_limits=UNLIMITED)
            except BaseException:
                # The framework takes no prompt behind calls without results: an application leaves them.
                is_called = messages and isinstance(messages[-1], ModelResponse)
                conversation.messages = messages[:-1] if is_called else messages
                await self._save(conversation)
                raise
        await self._save(result.conversation)
        return result.output

    async def _save(self, conversation: Conversation) -> None:
        """Save a conversation, and have an instance that has read nothing load it."""
        await self._conversations.save(conversation)
        loaded = await TimelineConversationStore(self._store).load(CONVERSATION)
        assert loaded is not None
        written = ConversationTypeAdapter.validate_json(ConversationTypeAdapter.dump_json(conversation))
        assert _parts(loaded)[-len(_parts(written)) :] == _parts(written)
        assert replace(loaded, messages=[]) == replace(written, messages=[])


def _parts(conversation: Conversation) -> list[Any]:
    """Return the parts that a store has, the framework's own too.

    For each run the framework gives a request that it sends again a new time, joins requests without an answer between
    them, and answers calls that were interrupted; it stores none of it.
    """
    parts = [part for message in conversation.messages for part in message.parts]
    return [part for part in parts if getattr(part, "outcome", None) != "interrupted"]
