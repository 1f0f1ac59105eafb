"""The record that goes on from the one before is the record that a merge from the start gives, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, COUNTER
from timeline.blocks import RangeSummary, ToolCall, ToolResult, UserPrompt
from timeline.events import CompactionCompleted, Covers, WrittenBy
from timeline.facts.extracting import BY_USER
from timeline.facts.model import Fact
from timeline.facts.of_items import WindowFacts
from timeline.facts.record import record_of
from timeline.facts.running import PlacedFact, RunningRecord
from timeline.fold.window import Item
from timeline.queries import FACT_KINDS

if TYPE_CHECKING:
    from random import Random

    from timeline.blocks import Block
    from timeline.queries import FactKind

FEW = st.integers(min_value=0, max_value=3)
SUBJECTS = ("a.py", "b.py", "make", "ENT-1")
TOOLS = ("", "Edit", "Bash")
NAMES = {"url", "identifier"}
PROMPTS = ("Fix ENT-1 in a.py, please.", "Never write b.py. See https://example.org/x", "Run make.", "ENT-1?")
USES = (
    ("Read", {"file_path": "a.py"}),
    ("Write", {"file_path": "a.py", "content": "for ENT-1"}),
    ("Bash", {"command": "make # ENT-1"}),
    ("Search", {"query": "ENT-1 or ENT-2"}),
)


@st.composite
def placed_facts(draw: st.DrawFn) -> list[PlacedFact]:
    """Make facts in the order of the log: each event makes some known, of its own version or of an earlier call's."""
    made: list[PlacedFact] = []
    for version in range(1, draw(st.integers(min_value=1, max_value=12)) + 1):
        for number in range(draw(FEW)):
            kind: FactKind = draw(st.sampled_from(FACT_KINDS))
            of_call = kind in {"file_written", "file_deleted"} and draw(st.booleans())
            fact = Fact(
                kind,
                draw(st.sampled_from(SUBJECTS)),
                path=f"tc:t.{version}-{number}.result",
                version=draw(st.integers(min_value=1, max_value=version)) if of_call else version,
                at=AT,
                tool=draw(st.sampled_from(TOOLS)),
                failed=kind not in NAMES and kind != "request" and draw(st.booleans()),
                detail=draw(st.sampled_from(("", BY_USER, "constraint"))),
            )
            made.append(PlacedFact((version, number), fact))
    return made


@given(placed_facts(), st.randoms(), st.integers(min_value=1, max_value=3))
def test_facts_that_are_merged_in_any_order_give_the_record_of_the_log(
    facts: list[PlacedFact], random: Random, most: int
) -> None:
    """Also what its mappings name first: a record is written out in their order."""
    shuffled, running = [*facts], RunningRecord()
    random.shuffle(shuffled)
    for number, placed in enumerate(shuffled):
        running.take(placed)
        known = sorted(shuffled[: number + 1])
        assert repr(running.record(most)) == repr(record_of((each.fact for each in known), most))


def blocks(data: st.DataObject, version: int) -> list[tuple[Block, int | None]]:
    """Return a prompt, or a call and its result, each with the version of the call that it answers."""
    kind = data.draw(st.integers(min_value=0, max_value=len(USES)))
    if kind == len(USES):
        return [(UserPrompt(text=data.draw(st.sampled_from(PROMPTS)), path=f"ar:{version}", at=AT), None)]
    name, arguments = USES[kind]
    status = data.draw(st.sampled_from((None, 0, 2)))
    call = ToolCall(call_id=f"c{version}", name=name, arguments=dict(arguments), path=f"tc:{version}.call", at=AT)
    result = ToolResult(
        call_id=f"c{version}", name=name, text="ENT-2", exit_status=status, path=f"tc:{version}.result", at=AT
    )
    return [(call, None), (result, version)]


def compaction(covers: Covers, carried: tuple[int, ...]) -> CompactionCompleted:
    """Return a compaction over some versions."""
    summary = RangeSummary(turn_id="t", path="su:t.summary", text="They went on.", at=AT)
    by = WrittenBy(summarizer="hand")
    return CompactionCompleted(
        block=summary, tokens=4, counter=COUNTER.name, covers=covers, carried=carried, written_by=by
    )


@given(st.data())
def test_every_compaction_goes_on_from_the_record_before_it_as_if_it_merged_all_of_the_log(data: st.DataObject) -> None:
    """Also where one was planned and not carried out, blocks were carried or erased, or an undo made it smaller."""
    facts, version = WindowFacts(), 0
    items: list[Item] = []
    for _ in range(data.draw(st.integers(min_value=1, max_value=8))):
        for _ in range(data.draw(FEW)):
            first = version + 1
            for block, answers in blocks(data, first):
                version += 1
                items.append(Item(version, version, block, 5, answers=answers))
        if data.draw(st.booleans()) and items:
            place = data.draw(st.integers(min_value=0, max_value=len(items) - 1))
            items[place] = items[place]._replace(redacted=True)
        start = data.draw(st.sampled_from((1, 1, 1, 2)))
        covers = Covers(ranges=((start, data.draw(st.integers(min_value=start, max_value=version + 2))),))
        assert repr(facts.record(covers, items)) == repr(record_of(facts.within(covers, items)))
        if data.draw(st.booleans()):
            carried = tuple(i.version for i in items if isinstance(i.block, UserPrompt) and i.version in covers)
            facts.cover(compaction(covers, carried), items)
            items = [i for i in items if i.version not in covers or i.version in carried]
