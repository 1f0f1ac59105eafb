"""The memory digest of staged work: one list of what holds, always in view, and no part of the cached prefix (000)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import AT, Scribe, log_of, opened, payloads_of, turn
from timeline import Timeline, policies
from timeline.blocks import StageDigest
from timeline.events import BlockRedacted, event_id
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import RenderedContext

HEADING: Final = "MEMORY DIGEST (keputusan tersimpan per tahap):"
STAGES: Final = (
    *("Gagasan", "Topik", "Outline", "Abstrak", "Pendahuluan", "Literatur", "Metodologi", "Hasil", "Diskusi"),
    *("Kesimpulan", "Daftar Pustaka", "Lampiran", "Judul"),
)


async def working(**changes: Any) -> Timeline:
    """Open a conversation in stages."""
    return await opened(MemoryStore(), policy=policies.priority_chain(**changes), summarizer=Scribe())


async def approve(timeline: Timeline, name: str, decision: str, tokens: int = 20) -> None:
    """Go through a stage of two turns."""
    await timeline.enter_stage(name.lower(), name)
    await timeline.append(*turn(tokens), *turn(tokens))
    await timeline.approve_stage(decision=decision)


def sent(context: RenderedContext) -> str:
    """Return all that a provider is sent as text."""
    return "\n".join(str(message["content"]) for message in context.to_openai_chat()["messages"])


def digest_in(context: RenderedContext) -> str:
    """Return the memory digest that is in view."""
    [digest] = [entry.text for entry in context.neutral.ephemeral if entry.text.startswith(HEADING)]
    return digest


@pytest.mark.shows("000-39", "000-42", "000-43", "000-45", "R-000-22", "R-000-23")
async def test_thirteen_approvals_leave_one_list_in_view() -> None:
    """A heading and thirteen lines of 200 characters and their labels, once: 2,834 characters, not 20,631."""
    timeline = await working()
    for number, name in enumerate(STAGES):
        await approve(timeline, name, chr(ord("a") + number) * 200)
    context = await timeline.render()
    lines = [f"- {name}: {chr(ord('a') + number) * 200}" for number, name in enumerate(STAGES)]
    assert context.decisions == ()
    assert digest_in(context) == "\n".join([HEADING, *lines])
    assert len(digest_in(context)) == 46 + 13 * 205 + sum(map(len, STAGES))
    assert sent(context).count("MEMORY DIGEST") == 1
    assert all(sent(context).count(line) == 1 for line in lines)


@pytest.mark.shows("000-43", "R-000-22")
async def test_the_heading_is_that_of_the_policy_that_renders() -> None:
    """Whatever policy was in force when the stages were approved, and whatever it called its list."""
    timeline = await opened(MemoryStore(), policy=policies.cut_point(counter="chars4"), summarizer=Scribe())
    await approve(timeline, "Gagasan", "keputusan Gagasan")
    assert HEADING not in sent(await timeline.render())
    await timeline.use_policy(policies.priority_chain())
    context = await timeline.render()
    assert digest_in(context) == f"{HEADING}\n- Gagasan: keputusan Gagasan"
    assert sent(context).count("\n- Gagasan: keputusan Gagasan") == 1
    assert (await timeline.verify()).ok


@pytest.mark.shows("000-40", "000-41", "R-000-22")
async def test_after_going_back_no_superseded_decision_is_in_view() -> None:
    """Neither that of the stage that is open again nor those of later ones, with or without a compaction."""
    timeline = await working(max_tokens=2_000)
    for name in ("Gagasan", "Topik", "Outline"):
        await approve(timeline, name, f"keputusan {name}")
    await timeline.rewind_stage("topik")
    context = await timeline.render()
    assert digest_in(context) == f"{HEADING}\n- Gagasan: keputusan Gagasan"
    assert "keputusan Topik" not in sent(context)
    assert "keputusan Outline" not in sent(context)
    await timeline.approve_stage(decision="keputusan baru")
    assert digest_in(await timeline.render()) == f"{HEADING}\n- Gagasan: keputusan Gagasan\n- Topik: keputusan baru"


@pytest.mark.shows("000-44", "R-000-22")
async def test_when_no_decision_is_left_there_is_no_text() -> None:
    """Before the first approval, and after going back to the only stage."""
    timeline = await working()
    await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*turn(20))
    assert HEADING not in sent(await timeline.render())
    await timeline.approve_stage(decision="keputusan Gagasan")
    assert HEADING in sent(await timeline.render())
    await timeline.rewind_stage("gagasan")
    context = await timeline.render()
    assert HEADING not in sent(context)
    assert "keputusan Gagasan" not in sent(context)


@pytest.mark.shows("R-000-23")
async def test_no_approval_and_no_way_back_changes_the_cached_prefix() -> None:
    """What was sent before the tail is sent again byte for byte, whichever stage is decided or open again."""
    timeline = await working()
    before = (await timeline.render()).neutral.entries
    for name in ("Gagasan", "Topik", "Outline"):
        await approve(timeline, name, f"keputusan {name}")
        entries = (await timeline.render()).neutral.entries
        assert entries[: len(before)] == before
        before = entries
    await timeline.rewind_stage("gagasan")
    await timeline.append(*turn(20))
    context = await timeline.render()
    assert context.neutral.entries[: len(before)] == before
    assert not any("keputusan" in entry.text for entry in context.neutral.entries)
    assert (await timeline.verify()).ok


@pytest.mark.shows("R-000-23")
async def test_each_list_is_a_pinned_block_of_the_log() -> None:
    """It is appended with the approval or the way back; the newest is kept, and a compaction covers the others."""
    policy = policies.cut_point(counter="chars4", max_tokens=4_000, memory_digest={"heading": HEADING})
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    for name in ("Gagasan", "Topik", "Outline"):
        await approve(timeline, name, f"keputusan {name}", tokens=300)
    log = [event.type for event in await log_of(timeline._store)]
    assert [log[at + 1] for at, type_ in enumerate(log) if type_ == "stage.approved"] == ["block.appended"] * 3
    lists = [item for item in timeline.window.items if type(item.block) is StageDigest]
    assert [(item.keeps, item.shown_tokens) for item in lists] == [(False, 0), (False, 0), (True, 0)]
    await timeline.append(*turn(600))
    await timeline.compact()
    [left] = [item for item in timeline.window.items if type(item.block) is StageDigest]
    assert left.version == lists[-1].version
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert completed.digest.stages == tuple(item.block.text for item in lists[:2])
    assert (await timeline.read(lists[0].block.path)).text == f"{HEADING}\n- Gagasan: keputusan Gagasan"
    context = await timeline.render()
    assert digest_in(context).count("\n- ") == 3
    assert (await timeline.verify()).ok


@pytest.mark.shows("000-7", "R-000-5")
async def test_stage_data_and_memory_digest_are_components_of_the_account() -> None:
    """Each is counted by itself, beside system prompt, tools, the caller's tail and the messages by kind."""
    timeline = await working(counter="chars4")
    await timeline.enter_stage("gagasan", "Gagasan")
    await timeline.append(*turn(20, asked=10))
    await timeline.approve_stage(decision="d" * 200, short="s" * 280, detailed="t" * 1_000)
    context = await timeline.render(system="s" * 400, tools=[{"name": "run"}], ephemeral=["e" * 40])
    digest, data, _callers = (entry.text for entry in context.neutral.ephemeral)
    assert (digest.splitlines()[0], data.splitlines()[0]) == (HEADING, "STAGE DATA (approved stages):")
    facts = context.account.facts()
    components = ("system", "tools", "memory_digest", "stage_data", "ephemeral", "reserved", "prompts", "completions")
    assert {name: facts[name] for name in components} == {
        "system": 100,
        "tools": 4,
        "memory_digest": -(-len(digest) // 4),
        "stage_data": -(-len(data) // 4),
        "ephemeral": 10,
        "reserved": 0,
        "prompts": 10,
        "completions": 20,
    }
    assert sum(facts[name] for name in components) == facts["total"]


async def test_a_context_after_a_refusal_has_the_tail_once() -> None:
    """What the refused context had of the caller goes out again; what is shown of the stages is drawn up anew."""
    timeline = await working(max_tokens=4_000)
    for name in ("Gagasan", "Topik"):
        await approve(timeline, name, f"keputusan {name}", tokens=300)
    await timeline.append(*turn(300), *turn(300))
    context = await timeline.render(ephemeral=["It is noon."])
    smaller = await timeline.after_refusal(
        context, ValueError("This model's maximum context length is 2000 tokens. However, you requested 2100 tokens.")
    )
    assert smaller is not None
    texts = [entry.text for entry in smaller.neutral.ephemeral]
    assert [text.splitlines()[0] for text in texts] == [HEADING, "STAGE DATA (approved stages):", "It is noon."]


async def test_a_list_is_redacted_like_any_block() -> None:
    """Its text is gone from the tail until the next approval writes a new one."""
    timeline = await working()
    await approve(timeline, "Gagasan", "rahasia")
    [item] = [item for item in timeline.window.items if item.in_tail]
    await timeline.decide([BlockRedacted(version=item.version)], at=AT, ids=[event_id(AT)])
    assert HEADING not in sent(await timeline.render())
    await approve(timeline, "Topik", "keputusan Topik")
    assert HEADING in sent(await timeline.render())
    assert (await timeline.verify()).ok


async def test_a_digest_that_an_application_appends_takes_nothing_out_of_the_tail() -> None:
    """Its own is shown at its place."""
    timeline = await working()
    await approve(timeline, "Gagasan", "keputusan Gagasan")
    await timeline.append(StageDigest(text="outline done"), *turn(20))
    context = await timeline.render()
    assert "keputusan Gagasan" in digest_in(context)
    assert "[stage digest] outline done" in sent(context)


async def test_lists_of_an_earlier_version_give_way_with_the_next_decision() -> None:
    """They lie between the messages, where a superseded decision would stay in view."""
    timeline = await working()
    await approve(timeline, "Gagasan", "keputusan Gagasan")
    await approve(timeline, "Topik", "keputusan Topik")
    for line in ("- Gagasan: keputusan Gagasan", "- Topik: keputusan Topik"):
        await timeline.append(StageDigest(text=f"{HEADING}\n{line}"), *turn(20))
    assert sent(await timeline.render()).count("keputusan Topik") > 1
    await timeline.rewind_stage("topik")
    context = await timeline.render()
    assert "keputusan Topik" not in sent(context)
    assert sent(context).count(HEADING) == 1
    assert (await timeline.verify()).ok
