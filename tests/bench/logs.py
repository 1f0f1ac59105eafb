"""Logs for the benchmarks: a long covered history before a window of a given size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from timeline import policies
from timeline.blocks import AssistantCompletion, RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.events import CompactionCompleted, Covers, SummaryParts, WrittenBy, event_id
from timeline.frozen import sha256_hex
from timeline.log.protocol import Draft
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.ports import EventStore

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = policies.cut_point(max_tokens=10_000_000, counter="chars4")
"""Large enough that nothing compacts while the clock runs."""
BATCH = 2_000


RECORDED_SIZES: Final = (
    *(26, 50, 65, 76, 87, 97, 108, 118, 129, 146),
    *(164, 209, 295, 427, 614, 843, 1_131, 1_585, 2_568, 9_314),
)
"""Characters of 3,300 recorded blocks: the mean of each twentieth. Half are shorter than 155, the mean is 903."""


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


def recorded_text(size: int) -> str:
    """Return text like what agents read: source lines between lines of a log, which take longer to tokenize."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    lines = (
        f"{line}\n" + (f"10:{n % 60:02}:07.{n:06} src/app/m{n}.py id={sha256_hex(line)[:12]} {n / 13:.3f}ms" * (n % 2))
        for n, line in enumerate(cycle(source))
    )
    made: list[str] = []
    while sum(map(len, made)) < size:
        made.extend(islice(lines, 50))
    return "\n".join(made)[:size]


def sized_blocks(count: int, *, first: int, text: str) -> list[Block]:
    """Make blocks of the recorded sizes; large and small ones are calls and results alike, each of another text."""
    made = []
    for number in range(first, first + count):
        size = RECORDED_SIZES[number * 7 % len(RECORDED_SIZES)]
        start = number * 613 % (len(text) - size)
        made += blocks(1, first=number, text=text[start : start + size])
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
