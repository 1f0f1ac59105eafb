"""Why a block is shown as it is, held against the bodies that were sent: a second look, which reads no decision."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import sampled
from tests.project.recording import write_recording
from tests.recorded import needs_recordings, swept
from tests.scenes import AT, log_of, opened, small_policy
from timeline import open_store, policies
from timeline.audit.replay import rebuild_contexts, recorded_contexts
from timeline.audit.why import Moment, ShownAs, WayBack, why
from timeline.blocks import AssistantCompletion, Note, RangeSummary, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.errors import BlockNotFound, CallNotFound, HistoryUnavailable, ImportFailed, InvalidArgument
from timeline.events import BlockRedacted, CompactionCompleted, appended_block, event_id
from timeline.events.other_payloads import RetentionSet
from timeline.frozen import canonical_json
from timeline.importers import read_recording
from timeline.lab.simulate import simulate
from timeline.log.blocks_by_name import FoundBlock
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from timeline import Timeline
    from timeline.audit.why import Why
    from timeline.blocks import Block
    from timeline.ports import EventStore

LEAST: Final = 80
"""Characters of a text that is looked for in a body: a shorter one may be in a summary by chance."""


def leaves(value: Any) -> Iterator[str]:
    """Yield every text of a body, and every object as its canonical JSON, which is how arguments are found."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield canonical_json(value)
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)


def needle(block: Block) -> str:
    """Return what a body has of a block that it shows."""
    if isinstance(block, ToolCall):
        return block.arguments if isinstance(block.arguments, str) else canonical_json(block.arguments)
    return block.text.strip()


def arguments_of(block: Block) -> Any:
    """Return the arguments of a call; None of any other block."""
    return block.arguments if isinstance(block, ToolCall) else None


class Sent:
    """The texts of one sent body; those of summaries are apart, since a summary may quote anything."""

    def __init__(self, body: dict[str, Any], summaries: set[str]) -> None:
        texts = list(leaves(body["messages"]))
        self.all = "\0".join(texts)
        self.blocks = "\0".join(text for text in texts if not any(summary in text for summary in summaries))


def agrees(because: Why, block: Block, sent: Sent) -> bool:
    """Return whether what was sent is as the answer says: the block itself, what is in its place, or nothing of it."""
    shown = because.shown_as
    there = needle(block) in (sent.all if isinstance(block, RangeSummary) else sent.blocks)
    if shown is None:
        return not there
    if shown.kind == "itself":
        return there
    assert shown.text is not None
    is_arguments = isinstance(block, ToolCall) and shown.kind == "replacement"
    wanted = canonical_json(json.loads(shown.text)) if is_arguments else shown.text.strip()
    return not there and wanted in sent.all


async def compared(store: EventStore, conversation: str, *, contexts: int) -> tuple[list[str], Counter[str]]:
    """Ask about every block at some recorded contexts; return what the bodies contradict, and the states compared."""
    events = await log_of(store, conversation)
    blocks = [(event, block) for event in events if (block := appended_block(event.payload)) is not None]
    said = [needle(block) for _, block in blocks]
    every = "\0".join(text for _, block in blocks for text in {needle(block), *leaves(arguments_of(block))})
    telling = [
        (event, block)
        for (event, block), text in zip(blocks, said, strict=True)
        if len(text) >= LEAST and every.count(text) == 1 and type(block) is not Reasoning
    ]
    summaries = {block.text for _, block in blocks if isinstance(block, RangeSummary)}
    known = await recorded_contexts(store, conversation)
    assert known, "nothing was sent"
    chosen = known[:: max(1, len(known) // contexts)]
    wrong: list[str] = []
    states: Counter[str] = Counter()
    for recorded_one, context in zip(chosen, await rebuild_contexts(store, conversation, chosen), strict=True):
        sent = Sent(context.to_anthropic(), summaries)
        moment = await Moment.load(store, conversation, recorded_one.rendered.version)
        for event, block in telling:
            because = await moment.why(FoundBlock(conversation, event, block))
            states[because.state] += 1
            if not agrees(because, block, sent):
                wrong.append(
                    f"{because.address} at {because.at_version}: {because.state}, {because.reason}, {because.shown_as}"
                )
    return wrong, states


def text(number: int, tokens: int = 120) -> str:
    """Return a text that no other number has."""
    return " ".join(f"w{number}x{word}" for word in range(tokens))


async def busy(store: EventStore) -> Timeline:
    """Write a conversation with compactions, hides, a reveal, pins, an undo and a redaction."""
    timeline = await opened(store, policy=small_policy(max_tokens=2_500, keep_recent_tokens=500))
    for turn in range(1, 9):
        await timeline.append(UserPrompt(text=text(turn * 10)))
        for step in range(1, 4):
            n = turn * 10 + step
            call = ToolCall(call_id=f"c{n}", name="run", arguments={"command": text(n * 10, 30)})
            await timeline.append(call, ToolResult(call_id=f"c{n}", text=text(n)))
            await timeline.render()
        newest = timeline.window.items[-1].block.path
        match turn:
            case 2:
                await timeline.hide(newest)
            case 3:
                await timeline.hide(newest, mode="omit")
            case 4:
                await timeline.hide(newest)
                await timeline.render()
                await timeline.reveal(newest)
            case 5:
                await timeline.pin(newest)
                await timeline.append(Note(text=text(1_000)))
            case 6:
                await timeline.render()
                await timeline.undo_compaction()
                await timeline.render()
                await timeline.compact()
            case 7:
                erased = BlockRedacted(version=timeline.window.items[-1].version)
                await timeline.decide([erased], at=AT, ids=[event_id(AT)])
        await timeline.append(AssistantCompletion(text=text(turn * 10 + 9)))
        await timeline.render()
    return timeline


async def test_each_answer_is_what_the_sent_body_holds() -> None:
    """Of every block of the log, at every recorded context, through compactions, hides, pins, an undo, a redaction."""
    store = MemoryStore()
    timeline = await busy(store)
    wrong, states = await compared(store, "c", contexts=1_000)
    assert wrong == []
    assert states.keys() == {"visible", "hidden", "omitted", "carried", "covered", "redacted", "not_yet"}
    assert states["covered"] > 500
    assert timeline.window.compactions >= 5


async def test_the_decision_named_is_the_first_that_led_there() -> None:
    """Right before it the block was in another state, or in the same one by another rule."""
    store = MemoryStore()
    await busy(store)
    events = await log_of(store)
    checked: Counter[str] = Counter()
    for at in range(events[-1].version, 2, -11):
        moment = await Moment.load(store, "c", at)
        for event in events:
            block = appended_block(event.payload)
            if block is None:
                continue
            because = await moment.why(FoundBlock("c", event, block))
            if because.since_version is None or because.since_version == event.version:
                continue
            assert event.version < because.since_version <= at
            decision = events[because.since_version - 1]
            assert (because.since_at, because.decided_by) == (decision.at, decision.type)
            before = await why(store, "c", because.address, at=because.since_version - 1)
            assert (before.state, before.reason) != (because.state, because.reason), because
            assert because.state != "covered" or before.state != "covered"
            checked[because.state] += 1
    assert checked.keys() >= {"visible", "hidden", "omitted", "carried", "covered"}


async def test_a_covered_block_names_the_first_compaction_and_the_summary_that_is_shown() -> None:
    """And what would show it again: its address, or the undo of all compactions since."""
    store = MemoryStore()
    timeline = await busy(store)
    because = await timeline.why("@4")
    compactions = [e for e in await log_of(store) if e.type == "compaction.completed"]
    first = next(e for e in compactions if f"@{e.version}" == because.summaries[0])
    summary = timeline.window.summary
    assert summary is not None
    assert isinstance(first.payload, CompactionCompleted)
    assert (because.state, because.since_version, because.decided_by) == (
        "covered",
        first.version,
        "compaction.completed",
    )
    assert (because.compaction_number, because.reason) == (first.payload.round, first.payload.reason)
    assert because.facts["before_tokens"] == first.payload.before_tokens
    assert because.shown_as == ShownAs("summary", f"@{summary.version}", summary.block.path, summary.block.text)
    assert because.summaries[-1] == f"@{summary.version}"
    read, undo = because.ways_back
    assert read == WayBack("read", "@4")
    assert undo.compactions == tuple(int(address[1:]) for address in reversed(because.summaries))
    assert await timeline.undo_compaction(first.version, cascade=True) == list(undo.compactions)
    assert (await timeline.why("@4")).state == "visible"


async def test_a_hidden_block_names_its_figures_and_its_replacement() -> None:
    """The reveal that is proposed shows it."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text=text(1)))
    await timeline.hide("@2", text="[the task]")
    because = await timeline.why("ar:turn_1.user.prompt")
    assert (because.state, because.reason, because.since_version) == ("hidden", "manual", 3)
    assert because.shown_as == ShownAs("replacement", "@2", "ar:turn_1.user.prompt", "[the task]")
    assert because.ways_back == (WayBack("read", "@2"), WayBack("reveal", "@2"))
    await timeline.reveal(because.ways_back[1].address)
    again = await timeline.why("@2")
    assert (again.state, again.since_version, again.decided_by, again.ways_back) == (
        "visible",
        4,
        "blocks.revealed",
        (),
    )


async def test_a_block_hidden_twice_is_hidden_since_the_first_time() -> None:
    """With the replacement of the newest."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text=text(1)))
    for number in range(3):
        await timeline.hide("@2", text=f"[{number}]")
    because = await timeline.why("@2")
    assert (because.since_version, because.shown_as and because.shown_as.text) == (3, "[2]")
    await timeline.hide("@2", mode="omit")
    omitted = await timeline.why("@2")
    assert (omitted.state, omitted.since_version, omitted.shown_as) == ("omitted", 6, None)


async def test_a_block_that_came_later_is_not_there_yet() -> None:
    """The answer says at which version it came; a block that never came is not found."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text="a"), Note(text="b"))
    because = await timeline.why("@3", at=2)
    assert (because.state, because.at_version, because.since_version, because.shown_as) == ("not_yet", 2, None, None)
    assert because.in_words == "it came later, at version 3"
    with pytest.raises(BlockNotFound):
        await timeline.why("@4", at=2)
    with pytest.raises(HistoryUnavailable):
        await timeline.why("@2", at=99)
    with pytest.raises(InvalidArgument):
        await timeline.why("@2", at="2")  # type: ignore[arg-type]


async def test_the_summary_of_an_undone_compaction_is_omitted_since_the_undo() -> None:
    """The blocks that it covered are visible by the same decision."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    for number in range(6):
        await timeline.append(UserPrompt(text=text(number, 150)))
    [_] = await timeline.compact()
    summary = timeline.window.summary
    assert summary is not None
    [undone] = await timeline.undo_compaction()
    because = await timeline.why(f"@{undone}")
    assert (because.state, because.reason, because.since_version) == ("omitted", "undone", timeline.version)
    covered = await timeline.why("@2")
    assert (covered.state, covered.decided_by, covered.since_version) == (
        "visible",
        "compaction.reverted",
        timeline.version,
    )
    assert (await timeline.why("@2", at=undone)).state == "covered"


async def test_a_failed_response_was_never_summarised() -> None:
    """It is covered like the others, and the answer says that no summary was made of it."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    await timeline.append(UserPrompt(text=text(1, 150)))
    await timeline.append(AssistantCompletion(text="", response_id="r1", meta={"error": "overloaded"}))
    for number in range(2, 6):
        await timeline.append(UserPrompt(text=text(number, 150)))
    await timeline.compact()
    because = await timeline.why("@3")
    assert because.state == "covered"
    assert because.in_words.endswith("it failed before any text, so that no summary was made of it")
    assert "failed" not in (await timeline.why("@2")).in_words


async def test_a_redacted_block_is_a_tombstone_since_its_redaction() -> None:
    """Also where a summary covers it: then the answer says both."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=1_000))
    for number in range(6):
        await timeline.append(UserPrompt(text=text(number, 150)))
    await timeline.decide([BlockRedacted(version=2), BlockRedacted(version=7)], at=AT, ids=[])
    because = await timeline.why("@7")
    assert (because.state, because.since_version, because.shown_as and because.shown_as.text) == (
        "redacted",
        9,
        "[redacted]",
    )
    await timeline.compact()
    covered = await timeline.why("@2")
    assert (covered.state, covered.in_words.endswith("its content was erased at version 8")) == ("covered", True)


async def test_a_scavenged_block_keeps_the_compaction_that_covered_it() -> None:
    """Its content is gone, and nothing brings it back."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=1_000))
    await timeline.decide([RetentionSet(retention="window")], at=AT, ids=[])
    for number in range(6):
        await timeline.append(UserPrompt(text=text(number, 150)))
    await timeline.compact()
    before = await timeline.why("@3")
    await scavenge(store)
    for name in ("@3", "ar:turn_1.user.prompt"):
        gone = await timeline.why(name)
        assert (gone.state, gone.reason, gone.path) == ("deleted", "retention", "" if name == "@3" else name)
        assert (gone.since_version, gone.compaction_number) == (before.since_version, before.compaction_number)
        assert (gone.shown_as, gone.summaries) == (before.shown_as, before.summaries)
        assert (gone.ways_back, gone.address) == ((), "@3")


async def test_what_shows_a_block_again_is_said_for_now() -> None:
    """Of a version long ago, too: later compactions have to be undone first, and what was undone needs nothing."""
    store = MemoryStore()
    timeline = await busy(store)
    now = await timeline.why("@4")
    first = int(now.summaries[0][1:])
    then = await timeline.why("@4", at=first)
    assert then.summaries == now.summaries[:1]
    assert then.ways_back == now.ways_back
    await timeline.undo_compaction(first, cascade=True)
    assert (await timeline.why("@4", at=first)).ways_back == (WayBack("read", "@4"),)


async def test_a_call_is_answered_by_what_it_was_shown() -> None:
    """The version is that of its context, also for a call that came back much later."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text="a"))
    context = await timeline.render()
    await timeline.hide("@2", text="[a]")
    await timeline.record_model_call(request=context.request("anthropic", model="m", max_tokens=9))
    await timeline.render()
    await timeline.record_model_call(model="m")
    answers = [await timeline.why("@2", call=number) for number in (1, 2)]
    assert [(one.call, one.at_version, one.state) for one in answers] == [
        (1, context.version, "visible"),
        (2, 5, "hidden"),
    ]
    with pytest.raises(CallNotFound):
        await timeline.why("@2", call=3)
    with pytest.raises(InvalidArgument):
        await timeline.why("@2", call=1, at=2)


async def test_a_fork_answers_for_the_past_that_it_shares() -> None:
    """A decision of the parent's behind its base is none of the fork's."""
    timeline = await opened(MemoryStore())
    await timeline.append(UserPrompt(text="a"))
    await timeline.hide("@2", text="[a]")
    fork = await timeline.fork(at=3)
    await timeline.reveal("@2")
    assert [(await one.why("@2")).state for one in (timeline, fork)] == ["visible", "hidden"]


@pytest.mark.parametrize("policy", ["cut_point", "balanced"])
async def test_each_answer_of_a_made_session_is_what_the_sent_body_holds(policy: str, tmp_path: Path) -> None:
    """Replayed as a recording is, through many compactions."""
    write_recording(tmp_path)
    store = MemoryStore()
    [recording] = read_recording(tmp_path / "session.jsonl")
    run = await simulate(store, recording, policies.by_name(policy, max_tokens=4_000))
    wrong, states = await compared(store, run.id, contexts=12)
    assert wrong == []
    assert (run.compactions >= 3, states["covered"] > 50) == (True, True)


@needs_recordings
@sampled
@pytest.mark.parametrize("source", swept("*/*"), ids=lambda path: f"{path.parent.name}/{path.name}")
async def test_each_answer_of_a_recording_is_what_the_sent_body_holds(source: Path) -> None:
    """Of every recording, replayed through many compactions, at six of its contexts."""
    try:
        recording = read_recording(source)[0]
    except ImportFailed:
        return
    async with open_store("memory://") as store:
        run = await simulate(store, recording, policies.cut_point(max_tokens=16_000))
        wrong, _ = await compared(store, run.id, contexts=6)
    assert wrong == []
