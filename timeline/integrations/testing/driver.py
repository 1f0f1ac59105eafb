"""What a framework does for the contract: `Driver`, its applications, and `DrivenAgent`, its agents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.integrations.testing.model import ScriptedModel
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.sync import Store

CONVERSATION: Final = "contract"
"""Id of the conversation that all agents of the contract have."""


class Driver(ABC):
    """An application of the framework with one conversation, `CONVERSATION`.

    It keeps the framework's history between its agents, as the framework's users keep it: in a checkpointer, a
    database, or a file. Whatever an adapter keeps itself is in the store alone.

    Args:
        model: answers each request of the framework; a driver calls `ScriptedModel.asked`.
    """

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    @abstractmethod
    def agent(self, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
        """Return a new agent over the adapter, as a new process has it.

        Args:
            store: open; given to the adapter.
            policy: given to the adapter.
            tool: a function named ``work`` with the argument ``step``; to be awaited, or not.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """End what the driver began, such as a server."""


class DrivenAgent(ABC):
    """An agent of the framework."""

    @abstractmethod
    async def run(self, prompt: str, *, place: Any = None) -> str:
        """Run the agent with a new prompt to its end, and return its answer.

        Args:
            prompt: what the user says.
            place: goes on from there instead of from the end of the history; from `place`.
        """

    @abstractmethod
    async def place(self) -> Any:
        """Return the place where the history ends now."""

    @abstractmethod
    async def regenerate(self) -> str:
        """Have the newest answer, a text without calls, written again; return the new one."""

    @abstractmethod
    async def resume(self) -> str:
        """Go on with a run that broke off, from the history as the framework kept it; return the answer."""

    @abstractmethod
    async def trim(self, keep: int) -> None:
        """Shorten the framework's history to its newest messages, as an application does that wants to save tokens."""

    def run_blocking(self, prompt: str) -> str:
        """Run the agent without an event loop; for `BlockingClauses`."""
        raise NotImplementedError(f"{type(self).__name__} runs with await only")

    async def summarise(self, text: str) -> None:
        """Have the framework put a summary of its own in front of its newest message; for `SummaryClauses`."""
        raise NotImplementedError(f"{type(self).__name__} has no summaries of its own")

    async def run_rejected(self, prompt: str) -> None:
        """Run the agent with a prompt whose answer a guardrail rejects; for `GuardrailClauses`."""
        raise NotImplementedError(f"{type(self).__name__} has no guardrails")
