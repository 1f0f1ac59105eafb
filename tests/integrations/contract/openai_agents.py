"""The OpenAI Agents SDK under the contract: agents that run on one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents import (
    Agent,
    GuardrailFunctionOutput,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    function_tool,
    output_guardrail,
)
from openai import AsyncOpenAI

from tests.integrations.contract.wire import OnTheWire
from timeline.integrations.openai_agents import TimelineSession
from timeline.integrations.testing import DrivenAgent
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from timeline.integrations.testing import ScriptedModel
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.sync import Store

MODELS: Final[dict[str, Any]] = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}


@output_guardrail
async def nothing_passes(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    """Reject any answer."""
    del context, agent, output
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)


class OpenAIAgents(OnTheWire):
    """Its history is the session, which the adapter is: the application keeps nothing."""

    def __init__(self, model: ScriptedModel, wire: str) -> None:
        super().__init__(model)
        self._wire = wire

    def agent(self, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
        """Return an agent on the session."""
        return agent_on_session(self._wire, self.provider.openai_url, store, policy, tool)


def agent_on_session(
    wire: str, url: str, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]
) -> DrivenAgent:
    """Return an agent of one tool whose model speaks a wire."""
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    chat = MODELS[wire](model="gpt-6", openai_client=client)
    made = Agent(name="worker", instructions="You work.", model=chat, tools=[function_tool(tool)])
    return _Agent(made, store, policy)


def of_responses(folder: Path, url: str, store: EventStore, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
    """Make the agent of a scene of sixty turns: the folder has nothing but the store."""
    del folder
    return agent_on_session("responses", url, store, policy, tool)


class _Agent(DrivenAgent):
    """An agent that goes back by popping items, which is what the SDK has for it."""

    def __init__(self, agent: Agent[Any], store: Any, policy: Policy) -> None:
        self._agent = agent
        self._store = store
        self._policy = policy
        self._session: TimelineSession | None = None
        self._newest = 0
        """Items that an application lets the SDK send, which trims its history; 0 for all."""

    async def run(self, prompt: str, *, place: Any = None) -> str:
        session = await self.session()
        if place is not None:
            await self._back_to(place)
        return await self._go_on(session, prompt)

    async def place(self) -> Any:
        return len(await (await self.session()).get_items())

    async def regenerate(self) -> str:
        session = await self.session()
        asked: Any = None
        while asked is None or asked.get("role") != "user":
            asked = await session.pop_item()
        return await self._go_on(session, [asked])

    async def resume(self) -> str:
        return await self._go_on(await self.session(), [])

    async def trim(self, keep: int) -> None:
        self._newest = keep

    async def run_rejected(self, prompt: str) -> None:
        rejecting = self._agent.clone(output_guardrails=[nothing_passes])
        try:
            await self._go_on(await self.session(), prompt, rejecting)
        except OutputGuardrailTripwireTriggered:
            return
        raise AssertionError("the guardrail let the answer pass")

    async def session(self) -> TimelineSession:
        """Return the session, open."""
        if self._session is None:
            self._session = await TimelineSession.open(self._store, CONVERSATION, policy=self._policy)
        return self._session

    async def _back_to(self, place: int) -> None:
        session = await self.session()
        for _ in range(len(await session.get_items()) - place):
            await session.pop_item()

    async def _go_on(self, session: TimelineSession, given: Any, agent: Agent[Any] | None = None) -> str:
        def newest(history: list[Any], new: list[Any]) -> list[Any]:
            return [*history[-self._newest :], *new]

        base = RunConfig(tracing_disabled=True, session_input_callback=newest if self._newest else None)
        result = await Runner.run(
            agent or self._agent,
            given,
            session=session,
            run_config=session.run_config(base),
            hooks=session.hooks(),
            max_turns=200,
        )
        return str(result.final_output)
