"""What a context leaves out of a result, since it is in sight or follows, is in that context: a reader finds all of it.

The reader here shares no code with the planner: it has the texts that are sent, the words between two lines, and
counts lines between two numbers.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.reading import STEPS, Agent
from tests.scenes import AT, after
from timeline import Timeline, policies
from timeline.blocks import UserPrompt
from timeline.errors import ContextOverflow
from timeline.policy.model import Hiding, LineNumbers, Repeats
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline import RenderedContext
    from timeline.policy.model import Policy

LEFT_OUT: Final = re.compile(r"\[… (\d+) lines?, as above in @(\d+)\]")
FEW_NUMBERS: Final = re.compile(r"\[one line in \d+ has its number, all of them in @\d+\]")
NUMBER: Final = re.compile(r" *(\d+)→")
REPEATS: Final = Repeats(lines=1, characters=1, minimum=1)
NUMBERS: Final = LineNumbers(every=5, minimum=1)
POLICIES: Final[list[Policy]] = [
    policies.none(max_tokens=100_000, counter="chars4", repeats=REPEATS, line_numbers=NUMBERS),
    policies.cut_point(max_tokens=3_000, counter="chars4", repeats=REPEATS, line_numbers=NUMBERS),
    policies.balanced(
        max_tokens=4_000,
        counter="chars4",
        counts="counter",
        repeats=REPEATS,
        line_numbers=NUMBERS,
        hiding=Hiding(intact=1, old=1, files=2, minimum=0, pressure_minimum=0),
    ),
    policies.prune_then_summarize(
        max_tokens=5_000, counter="chars4", output_reserve=500, repeats=REPEATS, line_numbers=NUMBERS
    ),
]


def sent(context: RenderedContext) -> Iterator[tuple[str, str]]:
    """Yield the id of each call and a text that is sent of it: what it wrote, and its result."""
    for message in context.to_anthropic()["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "tool_use":
                yield part["id"], "\n".join(text for text in part["input"].values() if isinstance(text, str))
            elif part["type"] == "tool_result":
                texts = part["content"] if isinstance(part["content"], list) else [{"text": part["content"]}]
                yield part["tool_use_id"], "\n".join(text["text"] for text in texts)


def bare(line: str) -> str:
    """Return a line without its number."""
    return NUMBER.sub("", line, count=1)


def counted(text: str) -> str:
    """Return a text in which the lines between two numbers have theirs."""
    first, *lines = text.split("\n")
    if FEW_NUMBERS.fullmatch(first) is None:
        return text
    numbers = {place: int(found[1]) for place, line in enumerate(lines) if (found := NUMBER.match(line)) is not None}
    for above, below in pairwise(numbers):
        if numbers[below] - numbers[above] == below - above:
            for place in range(above + 1, below):
                lines[place] = f"{numbers[above] + place - above:6}→{lines[place]}"
    return "\n".join(lines)


def fillings(before: str, behind: str, count: int, texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines between two lines in each place of the texts where these are so far from each other."""
    for text in texts:
        lines = [bare(line) for line in text.split("\n")]
        for place in range(len(lines) - count - 1):
            if (lines[place], lines[place + count + 1]) == (bare(before), bare(behind)):
                found = lines[place + 1 : place + count + 1]
                if (number := NUMBER.match(before)) is not None:
                    first = int(number[1]) + 1
                    found = [f"{n:6}→{line}" for n, line in enumerate(found, first)]
                yield found


def is_found(text: str, whole: str, texts: Sequence[str]) -> bool:
    """Return whether a reader who has the texts finds the whole one behind what is shown of it."""
    lines, left = counted(text).split("\n"), whole.split("\n")
    for place, line in enumerate(lines):
        marked = LEFT_OUT.fullmatch(line)
        if marked is None:
            if left[:1] != [line]:
                return False
            left = left[1:]
            continue
        count = int(marked[1])
        if left[:count] not in fillings(lines[place - 1], lines[place + 1], count, texts):
            return False
        left = left[count:]
    return not left


@given(st.sampled_from(POLICIES), st.lists(STEPS, min_size=2, max_size=14))
async def test_what_a_result_leaves_out_is_in_the_same_context(policy: Policy, steps: list[tuple[Any, ...]]) -> None:
    """Whatever was hidden, covered, taken back or redacted meanwhile; and the log verifies."""
    store = MemoryStore()
    agent = Agent(store, await Timeline.open(store, "c", policy=policy, now=AT))
    await agent.timeline.append(UserPrompt(text="Read the files."), now=AT)
    for step in steps:
        try:
            context = await agent.take(step)
        except ContextOverflow:
            continue  # one file is larger than the limit
        texts = list(sent(context))
        for id_, text in texts:
            if LEFT_OUT.search(text) or FEW_NUMBERS.match(text):
                assert is_found(text, agent.results[id_], [other for _, other in texts]), text
        again = await agent.timeline.render(now=after(agent.seconds))
        assert not {taken.reason for taken in again.decisions} & {"repeated", "numbered", "restored"}
    for id_ in {"c", agent.timeline.id}:
        opened = await Timeline.open(store, id_)
        assert (await opened.verify()).ok
