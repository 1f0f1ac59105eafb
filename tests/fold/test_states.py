"""The one state of every block of a log, covered ones included."""

from __future__ import annotations

from tests.scenes import AT, answer, exchange, log_of, opened, prompt, small_policy, turn
from timeline.blocks import Note
from timeline.events import BlockRedacted, BlocksHidden, Replacement, event_id
from timeline.fold.states import block_states
from timeline.store.memory import MemoryStore


async def test_every_block_is_in_exactly_one_state() -> None:
    """Covered blocks name the live summary that covers them, a superseded summary among them; all others name none."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=100))
    await timeline.append(Note(text="n"), prompt(), answer(600), prompt(), *exchange("a", 600), *exchange("b", 100))
    await timeline.compact()
    await timeline.append(*exchange("d", 900), answer(100))
    await timeline.compact()
    await timeline.append(*exchange("e"), answer())
    hidden, redacted, omitted = timeline.version - 2, timeline.version - 1, timeline.version
    await timeline.decide(
        [
            BlocksHidden(reason="ttl", blocks=(Replacement(version=hidden, text="[e]", tokens=1),)),
            BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=omitted),)),
            BlockRedacted(version=redacted),
        ],
        at=AT,
        ids=[event_id(AT) for _ in range(3)],
    )
    window, states = block_states(await log_of(store), "c")
    assert window == timeline.window
    assert window.summary is not None
    by = window.summary.version
    assert [(s.block.path, s.state, s.covered_by) for s in states] == [
        ("bl:turn_0.note", "carried", None),
        ("ar:turn_1.user.prompt", "covered", by),
        ("ar:turn_1.assistant.completion", "covered", by),
        ("ar:turn_2.user.prompt", "carried", None),
        ("tc:turn_2.a.call", "covered", by),
        ("tc:turn_2.a.result", "covered", by),
        ("tc:turn_2.b.call", "covered", by),
        ("tc:turn_2.b.result", "covered", by),
        ("su:turn_2.conv.range.summary", "covered", by),
        ("tc:turn_2.d.call", "covered", by),
        ("tc:turn_2.d.result", "covered", by),
        ("ar:turn_2.assistant.completion", "visible", None),
        ("su:turn_2.conv.range.summary.2", "visible", None),
        ("tc:turn_2.e.call", "hidden", None),
        ("tc:turn_2.e.result", "redacted", None),
        ("ar:turn_2.assistant.completion.2", "omitted", None),
    ]


async def test_a_summary_that_was_taken_back_is_omitted() -> None:
    """Nothing stands for it any more, and what it covered is visible again; the log still verifies."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=100))
    await timeline.append(*turn(1_200), *turn(300))
    await timeline.compact()
    await timeline.undo_compaction()
    _, states = block_states(await log_of(store), "c")
    assert [(s.block.type, s.state) for s in states if s.state != "visible"] == [("conv.range.summary", "omitted")]
    assert (await timeline.verify()).ok
