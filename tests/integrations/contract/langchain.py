"""LangChain under the contract: an agent of `create_agent` with a checkpointer."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, RemoveMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from tests.integrations.contract.wire import OnTheWire
from timeline.integrations.langchain import TimelineMiddleware
from timeline.integrations.testing import DrivenAgent
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from timeline.integrations.testing import ScriptedModel
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.sync import Store

THREAD: Final[RunnableConfig] = {"configurable": {"thread_id": CONVERSATION}, "recursion_limit": 500}


class LangChain(OnTheWire):
    """Its history is a checkpointer's."""

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(model)
        self._saver = InMemorySaver()

    def agent(self, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
        """Return an agent on the thread."""
        return _agent(self.provider.openai_url, TimelineMiddleware(store, policy=policy), tool, self._saver)


def of_scene(folder: Path, url: str, store: EventStore, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
    """Return an agent whose checkpoints are in a file."""
    return _agent(url, TimelineMiddleware(store, policy=policy), tool, SaverInFile(folder / "checkpoints"))


class SaverInFile(InMemorySaver):
    """A checkpointer that keeps all it is given in a file as well, and begins with what the file has."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file.open("ab+")
        self._file.seek(0)
        good = 0
        with suppress(EOFError, pickle.UnpicklingError):  # the last process may have been killed while it wrote
            while True:
                method, given = pickle.load(self._file)  # noqa: S301 - this program wrote it
                getattr(super(), method)(*given)
                good = self._file.tell()
        self._file.truncate(good)

    def put(self, *given: Any) -> RunnableConfig:
        """Keep a checkpoint."""
        kept: RunnableConfig = self._kept("put", given)
        return kept

    def put_writes(self, *given: Any) -> None:
        """Keep what a node wrote."""
        self._kept("put_writes", given)

    def _kept(self, method: str, given: tuple[Any, ...]) -> Any:
        config, *others = given
        place = {key: value for key, value in config["configurable"].items() if not key.startswith("__")}
        plain = ({"configurable": place}, *others)
        self._file.write(pickle.dumps((method, plain)))
        self._file.flush()
        return getattr(super(), method)(*plain)


def _agent(url: str, middleware: TimelineMiddleware, tool: Callable[[str], Any], saver: InMemorySaver) -> DrivenAgent:
    settings: Any = {"model": "gpt-6", "use_responses_api": False, "max_retries": 0, "api_key": "none"}
    settings["base_url"] = url
    made: Any = create_agent(
        ChatOpenAI(**settings), [tool], system_prompt="You work.", middleware=[middleware], checkpointer=saver
    )
    return _Agent(made)


class _Agent(DrivenAgent):
    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def run(self, prompt: str, *, place: Any = None) -> str:
        return await self._go_on({"messages": [HumanMessage(prompt)]}, place or THREAD)

    async def place(self) -> Any:
        return (await self._agent.aget_state(THREAD)).config

    async def regenerate(self) -> str:
        states = [state async for state in self._agent.aget_state_history(THREAD)]
        return await self._go_on(None, next(state.config for state in states if state.next == ("model",)))

    async def resume(self) -> str:
        return await self._go_on(None, THREAD)

    async def trim(self, keep: int) -> None:
        messages = (await self._agent.aget_state(THREAD)).values["messages"]
        gone = [RemoveMessage(id=message.id) for message in messages[:-keep]]
        await self._agent.aupdate_state(THREAD, {"messages": gone})

    def run_blocking(self, prompt: str) -> str:
        return str(self._agent.invoke({"messages": [HumanMessage(prompt)]}, THREAD)["messages"][-1].content)

    async def summarise(self, text: str) -> None:
        last = (await self._agent.aget_state(THREAD)).values["messages"][-1]
        summary = HumanMessage(text, additional_kwargs={"lc_source": "summarization"})
        cut = {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), summary, last]}
        await self._agent.aupdate_state(THREAD, cut)

    async def _go_on(self, given: Any, config: Any) -> str:
        settings = {**config, "recursion_limit": 500}
        return str((await self._agent.ainvoke(given, settings))["messages"][-1].content)
