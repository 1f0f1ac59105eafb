"""Logs for the benchmarks: a long covered history before a window of a given size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from timeline.blocks import AssistantCompletion, RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.events import CompactionCompleted, Covers, SummaryParts, WrittenBy, event_id
from timeline.log import Draft
from timeline.policy import presets
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.ports import EventStore

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = presets.cut_point(max_tokens=10_000_000, counter="chars4")
"""Large enough that nothing compacts while the clock runs."""
BATCH = 2_000


RECORDED_SIZES: Final = (
    *(29, 51, 64, 77, 87, 96, 108, 118, 128, 146),
    *(160, 205, 293, 431, 615, 843, 1_121, 1_586, 2_471, 5_938),
)
"""Characters of the blocks of 3,300 recorded ones, in twenty equal shares: half are shorter than 150."""


def blocks(count: int, *, first: int = 0, text: str = "lorem ipsum dolor sit amet " * 8) -> list[Block]:
    """Make blocks of an agent at work: a prompt every 40 blocks, else calls and their results."""
    made: list[Block] = []
    for number in range(first, first + count):
        if number % 40 == 0:
            made.append(UserPrompt(text=f"{number} {text}"))
        elif number % 40 == 39:
            made.append(AssistantCompletion(text=f"{number} {text}", response_id=f"r{number}"))
        elif number % 2:
            made.append(
                ToolCall(call_id=f"c{number}", name="bash", arguments={"command": text}, response_id=f"r{number}")
            )
        else:
            made.append(ToolResult(call_id=f"c{number - 1}", name="bash", text=f"{number} {text}"))
    return made


def sized_blocks(count: int, *, first: int, text: str) -> list[Block]:
    """Make blocks of the recorded sizes; large and small ones are calls and results alike."""
    made = []
    for number in range(first, first + count):
        size = RECORDED_SIZES[number * 7 % len(RECORDED_SIZES)]
        made += blocks(1, first=number, text=text[:size])
    return made


async def extend(timeline: Timeline, count: int, *, first: int = 0) -> None:
    """Append blocks in batches."""
    for start in range(first, first + count, BATCH):
        made = blocks(min(BATCH, first + count - start), first=start)
        at = START + timedelta(seconds=start)
        sizes = await timeline.count(made)
        await timeline.extend([Draft(event_id(at), at, block, size) for block, size in zip(made, sizes, strict=True)])


async def conversation(store: EventStore, id_: str, *, history: int, window: int) -> Timeline:
    """Make a conversation with ``history`` covered blocks before a window of ``window`` blocks."""
    timeline = await Timeline.open(store, id_, policy=POLICY, now=START)
    if history:
        await extend(timeline, history)
        covers = Covers(ranges=((2, timeline.version),))
        summary = RangeSummary(
            path="su:turn_1.conv.range.summary", turn_id="turn_1", text="What was said before.", at=START
        )
        completed = CompactionCompleted(
            block=summary,
            tokens=5,
            counter="chars4",
            covers=covers,
            parts=SummaryParts(history=summary.text),
            before_tokens=history * 60,
            after_tokens=5,
            written_by=WrittenBy(summarizer="bench"),
        )
        await timeline.decide([completed], at=START, ids=[event_id(START)])
    await extend(timeline, window, first=history + (-history) % 40)
    return timeline
