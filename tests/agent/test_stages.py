"""Work in stages: what the application says of them, and the memory digest that follows (seed 000)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import AT, answer, call, prompt, result, turn
from timeline import Timeline, policies
from timeline.blocks import Note, StageDigest, SystemMessage
from timeline.errors import InvalidArgument, StageNotFound, StageRefused
from timeline.events import UnknownPayload, event_id
from timeline.events.other_payloads import StageApproved, StageEntered, StageRewound
from timeline.fold.stages import Stage, advanced
from timeline.log.history import fold_history, load_fold
from timeline.policy.steps import CollapseStages
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.policy.model import Policy

HEADING: Final = "MEMORY DIGEST (keputusan tersimpan per tahap):"


async def open_chain(**changes: Any) -> Timeline:
    """Open a conversation under seed 000's policy."""
    return await open_under(policies.priority_chain(**changes))


async def open_under(policy: Policy) -> Timeline:
    """Open a conversation in memory."""
    return await Timeline.open(MemoryStore(), "c", policy=policy, now=AT)


async def stage(timeline: Timeline, name: str, *sizes: int, **approval: Any) -> None:
    """Enter a stage, say a turn of each size, and approve it."""
    await timeline.enter_stage(name, name.title())
    for size in sizes:
        await timeline.append(*turn(size))
    await timeline.approve_stage(decision=f"{name} is settled", **approval)


def digests(timeline: Timeline) -> list[str]:
    """Return the memory digests that the window holds, oldest first."""
    return [item.block.text for item in timeline.window.items if type(item.block) is StageDigest]


def names(timeline: Timeline) -> list[tuple[str, bool]]:
    """Return the stages that stand, and whether each is approved."""
    return [(known.stage, known.approval is not None) for known in timeline.window.stages]


@pytest.mark.shows("000-4", "000-43")
async def test_an_approval_is_one_append_with_the_digest() -> None:
    """The event and the block that shows it are in the log together, or not at all."""
    timeline = await open_chain()
    await timeline.enter_stage("gagasan", "Gagasan")
    before = timeline.version
    await timeline.approve_stage(decision="Topik: flashcards")
    approved, shown = [event async for event in timeline._store.read("c", after=before)]
    assert (approved.type, shown.type) == ("stage.approved", "block.appended")
    assert approved.id.int >> 80 == shown.id.int >> 80
    assert digests(timeline) == [f"{HEADING}\n- Gagasan: Topik: flashcards"]


async def test_each_digest_holds_every_decision_that_stands() -> None:
    """The newest one says all of it, as it does where it is the only one."""
    timeline = await open_chain()
    await stage(timeline, "gagasan", 5)
    await stage(timeline, "topik", 5)
    lines = ["- Gagasan: gagasan is settled", "- Topik: topik is settled"]
    assert digests(timeline) == ["\n".join([HEADING, lines[0]]), "\n".join([HEADING, *lines])]


async def test_the_words_of_the_digest_are_the_policys() -> None:
    """Other designs say it in English; a policy may say it in its own words."""
    plain = await open_under(policies.cut_point())
    own = await open_under(policies.cut_point(memory_digest={"heading": "DECIDED"}))
    for timeline in (plain, own):
        await stage(timeline, "idea", 5)
        await stage(timeline, "plan", 5)
    assert digests(plain)[-1].splitlines()[0] == "MEMORY DIGEST (decisions kept, one line a stage):"
    assert digests(own)[-1] == "DECIDED\n- Idea: idea is settled\n- Plan: plan is settled"


async def test_a_decision_of_several_lines_takes_one() -> None:
    """The digest stays a list with a line a stage; the event keeps the text as it was given."""
    timeline = await open_chain()
    await timeline.enter_stage("gagasan", "Ga\ngasan")
    approved = await timeline.approve_stage(decision="one\n  two")
    assert digests(timeline) == [f"{HEADING}\n- Ga gasan: one two"]
    assert approved.approval is not None
    assert approved.approval.decision == "one\n  two"


@pytest.mark.shows("000-26", "R-000-13")
async def test_an_approval_records_where_the_messages_of_the_stage_stand() -> None:
    """Versions of the first and last message block, and how many messages: a response with its calls is one."""
    timeline = await open_chain()
    await timeline.append(*turn())
    await timeline.enter_stage("gagasan", "Gagasan Utama")
    await timeline.append(Note(text="pinned"), prompt(), answer(response_id="r"), call("a", response_id="r"))
    await timeline.append(result("a"), SystemMessage(text="the runtime's own"))
    approved = await timeline.approve_stage(decision="d")
    assert approved.approval is not None
    assert (approved.approval.first, approved.approval.last, approved.approval.count) == (6, 9, 3)
    assert (approved.approval.stage, approved.approval.label) == ("gagasan", "Gagasan Utama")
    assert (await timeline.enter_stage("topik")).label == "topik"


async def test_a_stage_without_messages_has_no_boundaries() -> None:
    """It can be approved all the same."""
    timeline = await open_chain()
    await timeline.enter_stage("gagasan")
    approved = await timeline.approve_stage(decision="d")
    assert approved.approval is not None
    assert (approved.approval.first, approved.approval.last, approved.approval.count) == (0, 0, 0)


@pytest.mark.shows("000-40", "000-41", "R-000-22", "R-000-23")
async def test_going_back_takes_the_decisions_of_all_later_stages_away() -> None:
    """They were built on what is open again; the stage itself goes on, and began where it began."""
    timeline = await open_chain()
    for name in ("gagasan", "topik", "outline"):
        await stage(timeline, name, 5)
    entered = timeline.window.stages[1].entered
    again = await timeline.rewind_stage("topik")
    assert again == Stage("topik", "Topik", entered)
    assert names(timeline) == [("gagasan", True), ("topik", False)]
    assert digests(timeline)[-1] == f"{HEADING}\n- Gagasan: gagasan is settled"


async def test_a_second_approval_speaks_for_all_that_was_said_since_the_stage_began() -> None:
    """What was said before the way back, and in the stages that fell with it, belongs to it now."""
    timeline = await open_chain()
    await stage(timeline, "gagasan", 5)
    await stage(timeline, "topik", 5)
    await timeline.rewind_stage("gagasan")
    await timeline.append(*turn())
    approved = await timeline.approve_stage(decision="another idea")
    assert approved.approval is not None
    assert (approved.approval.first, approved.approval.last, approved.approval.count) == (3, 15, 6)
    assert digests(timeline)[-1] == f"{HEADING}\n- Gagasan: another idea"


async def test_going_back_to_the_only_stage_leaves_an_empty_digest() -> None:
    """It takes the place of the one before, and shows nothing."""
    timeline = await open_chain()
    await stage(timeline, "gagasan", 5)
    await timeline.rewind_stage("gagasan")
    assert digests(timeline)[-1] == ""


async def test_a_stage_that_fell_can_be_entered_again() -> None:
    """It stands no more, and begins anew."""
    timeline = await open_chain()
    await stage(timeline, "gagasan", 5)
    await stage(timeline, "topik", 5)
    await timeline.rewind_stage("gagasan")
    await timeline.approve_stage(decision="d")
    again = await timeline.enter_stage("topik")
    assert again.entered == timeline.version
    assert names(timeline) == [("gagasan", True), ("topik", False)]


async def test_what_does_not_fit_the_stages_is_refused() -> None:
    """Each refusal is typed, says the cure, and writes nothing."""
    timeline = await open_chain()
    with pytest.raises(StageRefused, match="no stage is unfinished; enter one first"):
        await timeline.approve_stage(decision="d")
    with pytest.raises(StageNotFound, match="It has no stages"):
        await timeline.rewind_stage("gagasan")
    await timeline.enter_stage("gagasan")
    with pytest.raises(StageRefused, match="'gagasan' is unfinished; approve it first"):
        await timeline.enter_stage("topik")
    with pytest.raises(StageRefused, match="needs not be entered again"):
        await timeline.enter_stage("gagasan")
    with pytest.raises(StageRefused, match="no approval to take back"):
        await timeline.rewind_stage("gagasan")
    await timeline.approve_stage(decision="d")
    with pytest.raises(StageRefused, match="reopen it with rewind_stage"):
        await timeline.enter_stage("gagasan")
    with pytest.raises(StageNotFound) as refused:
        await timeline.rewind_stage("topik")
    assert refused.value.standing == ["gagasan"]
    assert timeline.version == 4


@pytest.mark.shows("000-4", "000-45", "R-000-12", "R-000-24")
@pytest.mark.parametrize(
    ("field", "approval"),
    [
        ("decision", {"decision": "d" * 201}),
        ("decision", {"decision": " \n"}),
        ("short", {"decision": "d", "short": "s" * 281}),
        ("detailed", {"decision": "d", "detailed": "s" * 1_001}),
        ("references", {"decision": "d", "references": "one text"}),
        ("citations", {"decision": "d", "citations": [1]}),
        ("artifacts", {"decision": "d", "artifacts": {"a": "b"}}),
    ],
)
async def test_an_approval_that_says_too_much_or_nothing_is_refused(field: str, approval: dict[str, Any]) -> None:
    """200, 280 and 1,000 characters; the refusal names the field, and nothing is written."""
    timeline = await open_chain()
    await timeline.enter_stage("gagasan")
    before = timeline.version
    with pytest.raises(InvalidArgument, match=field):
        await timeline.approve_stage(**approval)
    assert timeline.version == before


@pytest.mark.shows("000-4", "R-000-12", "R-000-24")
async def test_texts_of_exactly_their_length_are_taken() -> None:
    """The figures are inclusive."""
    timeline = await open_chain()
    await timeline.enter_stage("gagasan")
    approved = await timeline.approve_stage(decision="d" * 200, short="s" * 280, detailed="t" * 1_000)
    assert approved.approval is not None
    assert len(approved.approval.detailed) == 1_000


@pytest.mark.shows("R-000-23")
async def test_a_digest_changes_nothing_before_it() -> None:
    """It is appended, never inserted: the prefix that the provider keeps stays byte for byte."""
    timeline = await open_chain(stage_data=None)
    await timeline.enter_stage("gagasan")
    await timeline.append(*turn(50))
    before = await timeline.render(now=AT)
    await timeline.approve_stage(decision="d")
    await timeline.enter_stage("topik")
    await timeline.append(*turn(50))
    await timeline.approve_stage(decision="e")
    context = await timeline.render(now=AT)
    assert not context.decisions
    earlier = before.neutral.entries
    assert context.neutral.entries[: len(earlier)] == earlier
    assert (await timeline.verify()).ok


@pytest.mark.shows("R-000-23")
async def test_only_the_newest_digest_is_pinned() -> None:
    """The earlier ones give way to the next compaction that reaches them, and nobody is asked to summarise them."""
    timeline = await open_under(policies.cut_point(counter="chars4", max_tokens=4_000))
    await stage(timeline, "gagasan", 600)
    await stage(timeline, "topik", 600)
    await timeline.append(*turn(600), *turn(600))
    assert [item.keeps for item in timeline.window.items if type(item.block) is StageDigest] == [False, True]
    await timeline.compact(now=AT)
    assert len(digests(timeline)) == 1
    assert digests(timeline)[0].startswith("MEMORY DIGEST")
    assert "Topik" in digests(timeline)[0]
    assert timeline.window.summaries[0].digest.stages
    assert "MEMORY DIGEST" not in timeline.window.summaries[0].parts.history
    assert (await timeline.verify()).ok


async def test_stages_come_back_from_a_snapshot() -> None:
    """What an agent loads holds the stages with their texts, also of those whose approval lies before the window."""
    timeline = await open_under(policies.cut_point(counter="chars4", max_tokens=4_000))
    await stage(timeline, "gagasan", 600, detailed="all of it", references=["a", "b"])
    await stage(timeline, "topik", 600)
    await timeline.enter_stage("outline", "Outline")
    await timeline.append(*turn(600), *turn(600))
    await timeline.compact(now=AT)
    loaded = await load_fold(timeline._store, "c")
    assert loaded.window.window_start > loaded.window.stages[0].approved
    assert loaded.window == (await fold_history(timeline._store, "c")).window == timeline.window
    assert loaded.window.stages[0].approval is not None
    assert loaded.window.stages[0].approval.references == ("a", "b")


async def test_a_past_version_and_a_fork_have_the_stages_of_then() -> None:
    """A fork goes on with them on its own."""
    timeline = await open_chain()
    await stage(timeline, "gagasan", 5)
    version = timeline.version
    await stage(timeline, "topik", 5)
    assert [known.stage for known in (await timeline.at(version)).window.stages] == ["gagasan"]
    fork = await timeline.fork(at=version)
    await fork.rewind_stage("gagasan")
    await fork.approve_stage(decision="otherwise")
    assert digests(fork)[-1] == f"{HEADING}\n- Gagasan: otherwise"
    assert names(timeline) == [("gagasan", True), ("topik", True)]
    assert (await fork.verify()).ok


async def test_two_timelines_see_one_row_of_stages() -> None:
    """What another process approved is known before anything is decided."""
    timeline = await open_chain()
    other = await Timeline.open(timeline._store, "c", policy=timeline.policy)
    await timeline.enter_stage("gagasan")
    await other.approve_stage(decision="d")
    with pytest.raises(StageRefused):
        await timeline.enter_stage("gagasan")
    assert names(timeline) == [("gagasan", True)]


def test_events_that_fit_no_stage_change_as_little_as_they_can() -> None:
    """A log that some other program wrote still folds."""
    approved = advanced((), 5, StageApproved(stage="a", decision="d"))
    assert approved == (Stage("a", "", 5, 5, StageApproved(stage="a", decision="d")),)
    assert advanced(approved, 6, StageRewound(stage="b")) == approved
    assert advanced(approved, 6, StageEntered(stage="a", label="A")) == (Stage("a", "A", 6),)


@pytest.mark.shows("000-44", "R-000-22")
async def test_without_a_decision_there_is_no_digest() -> None:
    """A conversation that approved no stage says nothing about stages, whether one is going on or not."""
    timeline = await open_chain()
    await timeline.append(*turn(5))
    await timeline.enter_stage("gagasan")
    await timeline.append(*turn(5))
    assert digests(timeline) == []
    assert HEADING not in str((await timeline.render(system="You help.")).to_openai_chat())


async def test_an_undone_collapse_brings_the_messages_and_the_detail_back() -> None:
    """The stages stand as they stood; only what was shown of them changed."""
    timeline = await open_chain(max_tokens=2_000, steps=[CollapseStages(which="recent")])
    await stage(timeline, "gagasan", 300, 300, detailed="in detail")
    await timeline.append(*turn(10))
    await timeline.compact(now=AT)
    [summary] = timeline.window.summaries
    assert summary.parts.history.startswith("[The messages of these stages are out of view: Gagasan. ")
    assert "in detail" not in (await timeline.render(record=False, now=AT)).neutral.ephemeral[1].text
    await timeline.undo_compaction(now=AT)
    assert timeline.window.summaries == ()
    assert "in detail" in (await timeline.render(now=AT)).neutral.ephemeral[1].text
    assert names(timeline) == [("gagasan", True)]
    assert (await timeline.verify()).ok


async def test_a_block_of_a_later_version_is_said_too() -> None:
    """What this version cannot read belongs to the stage that it was appended in."""
    timeline = await open_chain()
    await timeline.enter_stage("gagasan")
    block: Any = {"type": "poem.verse", "author": "assistant", "text": "x", "turn_id": "t", "path": "bl:t.poem.verse"}
    later = UnknownPayload(type="verse.appended", data={"block": block, "tokens": 1})
    await timeline.decide([later], at=AT, ids=[event_id(AT)])
    approved = await timeline.approve_stage(decision="d")
    assert approved.approval is not None
    assert (approved.approval.first, approved.approval.last, approved.approval.count) == (3, 3, 1)
