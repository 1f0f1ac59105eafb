"""The model that a run calls for an agent: its wire, its name and its settings, for the record of the call.

A run's configuration goes before the agent's own model and settings, and the run's provider makes a model of a name: of
one name a model that speaks items, or one that the SDK translates items for. The SDK tells a filter the agent alone.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.integrations.framework_requests import wire_of

if TYPE_CHECKING:
    from agents import Agent, RunConfig

_TRANSLATED: Final = frozenset({"OpenAIChatCompletionsModel", "LitellmModel", "AnyLLMModel"})
"""The SDK's models of chat completions, by their names: two of them need further packages."""

RUN: Final[ContextVar[RunConfig | None]] = ContextVar("timeline_run", default=None)
"""The configuration of the run whose filter is called."""


@dataclass(frozen=True, slots=True)
class CalledModel:
    """A model that is called.

    Attributes:
        wire: that it speaks; OpenAI's responses, where only its name is known.
        name: of the model; empty where it is not known.
        is_translated: whether the SDK translates the items that it is sent, to chat completions.
        settings: those of the agent, and of the run before them.
    """

    wire: str
    name: str
    is_translated: bool
    settings: dict[str, Any]


def called_model(agent: Agent[Any], run: RunConfig | None) -> CalledModel:
    """Return the model that is called for an agent.

    Args:
        agent: whose turn it is.
        run: the run's configuration; None where it is not known.
    """
    model = _chosen(agent, run)
    is_name = model is None or isinstance(model, str)
    name = model if is_name else getattr(model, "model", "")
    return CalledModel(
        wire="openai_responses" if is_name else wire_of(model),
        name=name if isinstance(name, str) else "",
        is_translated=any(cls.__name__ in _TRANSLATED for cls in type(model).__mro__),
        settings=vars(agent.model_settings.resolve(None if run is None else run.model_settings)),
    )


def _chosen(agent: Agent[Any], run: RunConfig | None) -> Any:
    """Return the model itself, or its name where no run says who makes a model of it."""
    model = agent.model if run is None or run.model is None else run.model
    if run is None or not (model is None or isinstance(model, str)):
        return model
    return run.model_provider.get_model(model)
