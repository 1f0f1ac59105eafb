"""The adapters under the public contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integrations.contract.langchain import LangChain
from tests.integrations.contract.openai_agents import OpenAIAgents
from tests.integrations.contract.pydantic_ai import PydanticAI
from timeline.integrations.testing import AdapterContract, BlockingClauses, GuardrailClauses, SummaryClauses

if TYPE_CHECKING:
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
