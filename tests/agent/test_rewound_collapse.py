"""A rewind behind collapsed stages (seed 000): what is superseded is in no part of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.scenes import Mute, Scribe, opened, payloads_of, turn
from timeline import policies
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline import RenderedContext, Timeline

LABEL: Final = "[RINGKASAN DISKUSI SEBELUMNYA]"
"""The label of P3's summary."""
OLD: Final = ("Gagasan", "Topik", "Outline", "Abstrak", "Hasil")
RECENT: Final = ("Gagasan", "Topik")


def sent(context: RenderedContext) -> str:
    """Return all that a provider is sent as text."""
    return "\n".join(str(message["content"]) for message in context.to_openai_chat()["messages"])


async def collapsed(names: tuple[str, ...], tokens: int) -> Timeline:
    """Approve stages and go on until they are collapsed: five of them by P2, two of them by P4, as P3's model fails."""
    summarizer = Scribe() if names == OLD else Mute()
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=4_000), summarizer=summarizer)
    for name in names:
        await timeline.enter_stage(name.lower(), name)
        await timeline.append(*turn(110, asked=60) * (3 if names == OLD else 6))
        await timeline.approve_stage(decision=f"semula {name}")
    await timeline.enter_stage("kini", "Kini")
    await timeline.append(*turn(tokens, asked=60))
    await timeline.render()
    [completed] = await payloads_of(timeline._store, "compaction.completed")
    assert completed.written_by.summarizer == "stage_digest"
    return timeline


@pytest.mark.shows("000-25", "000-40", "000-41", "R-000-22")
@pytest.mark.parametrize(("names", "tokens"), [(OLD, 900), (RECENT, 1_300)], ids=["P2", "P4"])
async def test_a_decision_that_was_collapsed_is_superseded_by_a_rewind(names: tuple[str, ...], tokens: int) -> None:
    """The collapsed stage is rewound and approved again: the request holds its new decision, and none of the old."""
    timeline = await collapsed(names, tokens)
    await timeline.approve_stage(decision="semula Kini")
    before = (await timeline.render()).neutral.entries
    await timeline.rewind_stage("gagasan")
    context = await timeline.render()
    assert "semula" not in sent(context)
    assert context.neutral.entries == before  # the cached prefix stays as it is
    await timeline.approve_stage(decision="putusan baru")
    context = await timeline.render()
    assert "semula" not in sent(context)
    assert "\n- Gagasan: putusan baru" in sent(context)
    assert context.neutral.entries == before
    assert (await timeline.verify()).ok


@pytest.mark.shows("000-25", "000-52")
@pytest.mark.parametrize(("names", "tokens"), [(OLD, 900), (RECENT, 1_300)], ids=["P2", "P4"])
async def test_a_rewind_brings_no_messages_back_and_an_undo_does(names: tuple[str, ...], tokens: int) -> None:
    """The reopened stage stays out of view, and no text says that it is approved, until the collapse is taken back."""
    timeline = await collapsed(names, tokens)
    await timeline.approve_stage(decision="semula Kini")
    await timeline.rewind_stage("gagasan")
    context = await timeline.render()
    assert [entry.type for entry in context.neutral.entries][:1] == ["conv.range.summary"]
    assert "pproved" not in sent(context)
    before = len(context.neutral.entries)
    await timeline.undo_compaction()
    after = await timeline.render()
    assert len(after.neutral.entries) > before
    assert after.neutral.entries[0].type == "user.prompt"


@pytest.mark.shows("000-25", "000-39")
@pytest.mark.parametrize(("names", "tokens"), [(OLD, 900), (RECENT, 1_300)], ids=["P2", "P4"])
async def test_collapsed_stages_are_named_and_the_memory_digest_has_their_decisions(
    names: tuple[str, ...], tokens: int
) -> None:
    """The line that takes the place of the messages has no label of a summary, and no decision."""
    context = await (await collapsed(names, tokens)).render()
    [line] = [entry.text for entry in context.neutral.entries if entry.type == "conv.range.summary"]
    assert line.startswith("[The messages of these stages are out of view: Gagasan")
    assert line.endswith("What was decided in them is in the memory digest, as far as it still holds.]")
    assert "semula" not in line
    assert LABEL not in sent(context)
    digest = context.neutral.ephemeral[0].text
    assert digest.splitlines()[1:] == [f"- {name}: semula {name}" for name in names]


@pytest.mark.shows("000-38")
async def test_a_notice_of_dropped_messages_has_no_label_of_a_summary() -> None:
    """P5 summarises nothing: its notice says what it is."""
    policy = policies.priority_chain(max_tokens=2_000)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Mute())
    await timeline.append(*[block for _ in range(40) for block in turn(22, asked=22)])
    context = await timeline.render()
    notice = context.neutral.entries[0].text
    assert notice.startswith("[Context truncated. Earlier conversation contained 30 messages about: ")
    assert LABEL not in sent(context)
