"""Small conversations for example tests: blocks of a known size, windows, and summarizers that answer by rote.

All counting here is ``chars4``, where `words(n)` costs exactly n tokens, so that every figure in a test can be checked
by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from timeline import Timeline, policies
from timeline.blocks import AssistantCompletion, RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.errors import SummarizerFailed
from timeline.events import BlockAppended, CompactionCompleted, Covers, WrittenBy
from timeline.fold.fold import Fold
from timeline.planning.account import FixedPart
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import Plan, Refusal
from timeline.policy.steps import CoveringStep
from timeline.ports import Summary
from timeline.store.memory import MemoryStore
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.ports import EventStore, Summarizer, SummaryRequest
    from timeline.usage import Usage

AT: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
"""The moment at which all of it happens, where a test names no other."""
COUNTER: Final = get_counter("chars4")


def after(seconds: float) -> datetime:
    """Return a moment that many seconds after `AT`."""
    return AT + timedelta(seconds=seconds)


def words(tokens: int) -> str:
    """Return a text of exactly that many ``chars4`` tokens."""
    return "abc " * tokens


def small_policy(**changes: Any) -> Policy:
    """Return seed 002's policy, counted in quarters of characters."""
    return policies.cut_point(**{"counter": "chars4", **changes})


def prompt(tokens: int = 5, **fields: Any) -> UserPrompt:
    """Return a prompt of that size."""
    return UserPrompt(**{"text": words(tokens), **fields})


def answer(tokens: int = 5, **fields: Any) -> AssistantCompletion:
    """Return a completion of that size."""
    return AssistantCompletion(**{"text": words(tokens), **fields})


def call(call_id: str, name: str = "run", **fields: Any) -> ToolCall:
    """Return a call."""
    return ToolCall(**{"call_id": call_id, "name": name, **fields})


def result(call_id: str, tokens: int = 5, **fields: Any) -> ToolResult:
    """Return a result of that size."""
    return ToolResult(**{"call_id": call_id, "text": words(tokens), **fields})


def exchange(call_id: str, tokens: int = 5, **fields: Any) -> list[Block]:
    """Return one round: a call and its result of that size."""
    return [call(call_id, **fields), result(call_id, tokens)]


def turn(tokens: int = 5, asked: int = 5, **fields: Any) -> list[Block]:
    """Return a turn: a prompt and an answer of that size."""
    return [prompt(asked, **fields), answer(tokens, **fields)]


FULL: Final = [block for _ in range(7) for block in turn(500, 30)]
"""Turns of 3,710 tokens: above the trigger of a limit of 4,000, which is 3,600."""


def fold_of(*blocks: Block) -> Fold:
    """Fold blocks as `Timeline.append` would, behind the event that opens the conversation."""
    fold = Fold("c")
    fold.version = 1
    grow(fold, *blocks)
    return fold


def apply(fold: Fold, version: int, payload: Payload) -> None:
    """Take an event in, at the one moment of these scenes."""
    fold.apply(version, AT, payload)


def grow(fold: Fold, *blocks: Block) -> None:
    """Address blocks, count them and take them in, one event each."""
    for block in fold.address((block, AT) for block in blocks):
        counted = BlockAppended(block=block, tokens=COUNTER.count(block.countable()), counter=COUNTER.name)
        apply(fold, fold.version + 1, counted)


def window_of(*blocks: Block) -> Window:
    """Return the window of some blocks."""
    return fold_of(*blocks).window


def compact_fold(
    fold: Fold,
    until: int,
    *,
    since: int = 0,
    carried: Sequence[int] = (),
    tokens: int = 10,
    meta: dict[str, Any] | None = None,
    **fields: Any,
) -> int:
    """Cover everything live from a version up to and including another, by hand; return the version of the summary."""
    live = [item for item in fold.window.items if item.place >= since]
    number = fold.window.compactions + 1
    path = "su:c.conv.range.summary" + (f".{number}" if number > 1 else "")
    payload = CompactionCompleted(
        block=RangeSummary(turn_id="c", path=path, text=words(tokens), at=AT, meta=meta or {}),
        tokens=tokens,
        counter=COUNTER.name,
        covers=Covers(ranges=((live[0].place, until),), summaries=tuple(i.version for i in live if i.is_summary)),
        carried=tuple(carried),
        round=number,
        written_by=WrittenBy(summarizer="hand"),
        **fields,
    )
    apply(fold, fold.version + 1, payload)
    return fold.version


def paths(items: Iterable[Item]) -> list[str]:
    """Return the items' paths, in order."""
    return [item.block.path for item in items]


def first_step(policy: Policy) -> CoveringStep:
    """Return the first step of a policy, which covers something."""
    step = policy.steps[0]
    assert isinstance(step, CoveringStep), step
    return step


def planned(window: Window, policy: Policy, fixed: FixedPart | None = None) -> Plan:
    """Plan a compaction that is not refused."""
    decision = PlannedSteps().plan(first_step(policy), window, fixed or FixedPart(), policy, COUNTER)
    assert isinstance(decision, Plan), decision
    return decision


def refused(window: Window, policy: Policy, fixed: FixedPart | None = None) -> Refusal:
    """Plan a compaction that is refused."""
    decision = PlannedSteps().plan(first_step(policy), window, fixed or FixedPart(), policy, COUNTER)
    assert isinstance(decision, Refusal), decision
    return decision


@dataclass
class Scribe:
    """A summarizer that answers by rote and remembers what it was asked; ``answers`` are used up in order.

    Each answer took ``usage``.
    """

    name: str = "scribe"
    usage: Usage | None = None
    answers: list[str] = field(default_factory=list)
    asked: list[SummaryRequest] = field(default_factory=list)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer with the next text, or with one that tells which request of its kind this was."""
        self.asked.append(request)
        number = sum(r.kind == request.kind for r in self.asked)
        text = self.answers.pop(0) if self.answers else f"{request.kind.replace('_', ' ')} {number}"
        return Summary(text=text, summarizer=self.name, model="model-x", prompt_version="7", usage=self.usage)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the requests, in the order in which they came."""
        return [request.kind for request in self.asked]


@dataclass
class Interrupted(Scribe):
    """A summarizer during whose work something else happens."""

    meanwhile: list[Callable[[], Awaitable[object]]] = field(default_factory=list)

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Let the next thing happen, then answer."""
        if self.meanwhile:
            await self.meanwhile.pop(0)()
        return await super().summarize(request)


@dataclass
class Mute:
    """A summarizer that never has an answer."""

    name: str = "mute"
    problem: Exception = field(default_factory=lambda: SummarizerFailed(["out of service"]))

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Fail."""
        del request
        raise self.problem


async def opened(store: EventStore, conversation: str = "c", **options: Any) -> Timeline:
    """Open a conversation that counts in quarters of characters and stands at `AT`."""
    stands = {"policy": small_policy(), "now": AT, "clock": Still()}
    return await Timeline.open(store, conversation, **{**stands, **options})


async def talking(policy: Policy, *blocks: Block, summarizer: Summarizer | None = None) -> Timeline:
    """Return a conversation of these blocks."""
    timeline = await opened(MemoryStore(), policy=policy, summarizer=summarizer or Scribe())
    await timeline.append(*blocks)
    return timeline


class Still:
    """A clock that stands at `AT`."""

    def now(self) -> datetime:
        """Return `AT`."""
        return AT


async def log_of(store: EventStore, conversation: str = "c") -> list[Event]:
    """Return the whole log of a conversation."""
    return [event async for event in store.read(conversation)]


async def payloads_of(store: EventStore, type_: str, conversation: str = "c") -> list[Any]:
    """Return the payloads of one type, oldest first."""
    return [event.payload for event in await log_of(store, conversation) if event.type == type_]


def types_of(payloads: Iterable[Payload]) -> list[str]:
    """Return the payloads' types, in order."""
    return [payload.type for payload in payloads]
