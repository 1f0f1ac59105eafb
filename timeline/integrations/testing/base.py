"""What the clauses share: the driver under test, a script with much work in it, and what a log says."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from timeline import Timeline
from timeline.events import ModelCalled, appended_block
from timeline.integrations.testing.driver import CONVERSATION
from timeline.integrations.testing.model import Reply, ScriptedModel, ToolUse
from timeline.policy.published import cut_point

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.integrations.testing.driver import Driver
    from timeline.integrations.testing.model import Script, Sent
    from timeline.policy.model import Policy
    from timeline.ports import EventStore

MAX_TOKENS: Final = 2_400
"""Limit of the policy, counted exactly."""
ROUNDS: Final = 60
"""Calls of the tool in a long run."""


def policy() -> Policy:
    """Return a policy under which a long run is compacted many times."""
    return cut_point(max_tokens=MAX_TOKENS)


def work(step: str) -> str:
    """Do a step of the work."""
    return f"did {step}\n" + "a line of its output\n" * 30


def working(*spans: range) -> Script:
    """Return a script that calls the tool in answer to some requests, and says a last word in answer to all others.

    Args:
        spans: numbers of the requests that are answered with calls, with two at once every third time.
    """

    def reply(number: int, messages: Sequence[Sent]) -> Reply:
        del messages
        if not any(number in span for span in spans):
            return Reply(f"answer {number}", (), 1_000 + number, 10 + number)
        steps = [f"step {number}.{part}" for part in range(1 + (number % 3 == 0))]
        calls = tuple(ToolUse(step, f"call_{step.removeprefix('step ').replace('.', '_')}") for step in steps)
        return Reply(f"Round {number}." if number % 2 else "", calls, 1_000 + number, 10 + number)

    return reply


def failing_once(script: Script, at: int) -> Script:
    """Return a script whose server goes away at one request, the first time."""
    gone: list[int] = []

    def reply(number: int, messages: Sequence[Sent]) -> Reply:
        if number == at and not gone:
            gone.append(number)
            raise ConnectionError("the server went away")
        return script(number, messages)

    return reply


async def blocks_in(store: EventStore) -> list[Any]:
    """Return all blocks that were ever appended."""
    read = [appended_block(event.payload) async for event in store.read(CONVERSATION)]
    return [block for block in read if block is not None]


async def opened(store: EventStore) -> Timeline:
    """Open the conversation."""
    return await Timeline.open(store, CONVERSATION, create=False)


async def check(store: EventStore, model: ScriptedModel) -> None:
    """Check what holds at any time: each request was one that a provider takes, and the log is what it promises."""
    assert model.problems == []
    report = await (await opened(store)).verify()
    assert report.ok, report


async def calls_in(store: EventStore) -> list[ModelCalled]:
    """Return all calls of the model that were recorded."""
    read = [event.payload async for event in store.read(CONVERSATION, types=["model.called"])]
    return [called for called in read if isinstance(called, ModelCalled)]


async def times_said(store: EventStore) -> Counter[str]:
    """Return how often each text was appended, without summaries."""
    return Counter(block.text for block in await blocks_in(store) if block.text and block.type != "conv.range.summary")


class ContractBase:
    """Makes the driver under test."""

    def make_driver(self, model: ScriptedModel) -> Driver:
        """Return a driver with an empty history, whose model is ``model``."""
        raise NotImplementedError("a subclass of AdapterContract says how to make its driver")

    @pytest.fixture
    def model(self) -> ScriptedModel:
        """Return a model that only talks."""
        return ScriptedModel(working())

    @pytest.fixture
    def driver(self, model: ScriptedModel) -> Iterator[Driver]:
        """Make the driver and close it after the test."""
        driver = self.make_driver(model)
        yield driver
        driver.close()
