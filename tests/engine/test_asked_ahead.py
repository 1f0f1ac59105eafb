"""What a dry run was answered: the render that follows takes it, whatever a model would say the next time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pytest

from tests.engine.compacting import split
from tests.scenes import FULL, Mute, Scribe, answer, exchange, opened, payloads_of, prompt, small_policy, turn
from timeline import policies
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.ports import Summary, SummaryRequest
    from timeline.timeline import Timeline


async def full(scribe: Scribe, store: MemoryStore | None = None) -> Timeline:
    """Return a conversation above its trigger, whose model answers otherwise each time."""
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=1_000)
    timeline = await opened(store or MemoryStore(), policy=policy, summarizer=scribe)
    await timeline.append(*FULL)
    return timeline


async def test_a_render_sends_the_bytes_of_the_dry_run_before_it() -> None:
    """Its model is asked once, and the log says what that took."""
    scribe = Scribe(usage=Usage(input_tokens=900, output_tokens=30))
    timeline = await full(scribe)
    dry = [await timeline.render(record=False) for _ in range(2)]
    real = await timeline.render()
    assert {context.fingerprint for context in (*dry, real)} == {real.fingerprint}
    assert scribe.kinds == ["history"]
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.usage == scribe.usage


async def test_both_parts_of_a_summary_are_taken() -> None:
    """A turn that is divided has two requests."""
    scribe = Scribe()
    timeline = await split(MemoryStore(), summarizer=scribe)
    dry = await timeline.render(record=False)
    assert (await timeline.render()).fingerprint == dry.fingerprint
    assert sorted(scribe.kinds) == ["history", "turn_prefix"]


@pytest.mark.parametrize("counts", ["counter", "calibrated"])
async def test_what_was_hidden_on_the_way_makes_no_other_request(
    counts: Literal["counter", "calibrated"],
) -> None:
    """The dry run hides first, too, and its summarizer is shown what is in the place of a hidden block."""
    scribe = Scribe()
    policy = policies.balanced(max_tokens=6_000, counter="chars4", counts=counts)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=scribe)
    await timeline.append(prompt(50))
    for number in range(40):
        await timeline.append(*exchange(f"c{number}", 300), answer(60))
    dry = await timeline.render(record=False)
    kinds = scribe.kinds
    assert kinds
    assert [taken.kind for taken in dry.decisions] == ["hidden", "compacted"]
    assert (await timeline.render()).fingerprint == dry.fingerprint
    assert scribe.kinds == kinds


async def test_a_summary_of_more_is_asked_for_anew() -> None:
    """A loop of dry runs asks wherever the log has grown so far that more is covered."""
    scribe = Scribe()
    timeline = await full(scribe)
    await timeline.render(record=False)
    await timeline.append(*turn(50, 10))
    await timeline.render(record=False)
    assert len(scribe.asked) == 1, "what is covered is the same"
    await timeline.append(*turn(900, 10))
    dry = await timeline.render(record=False)
    assert len(scribe.asked) == 2
    assert (await timeline.render()).fingerprint == dry.fingerprint
    assert len(scribe.asked) == 2


async def test_an_answer_is_taken_once() -> None:
    """Whoever takes a compaction back wants another summary."""
    scribe = Scribe()
    store = MemoryStore()
    timeline = await full(scribe, store)
    await timeline.render(record=False)
    await timeline.render()
    await timeline.undo_compaction()
    await timeline.compact()
    assert len(scribe.asked) == 2
    first, second = await payloads_of(store, "compaction.completed")
    assert (first.parts.history, second.parts.history) == ("history 1", "history 2")


async def test_a_model_that_failed_in_a_dry_run_is_asked_again() -> None:
    """Its failure is no answer."""

    class Late(Scribe):
        async def summarize(self, request: SummaryRequest) -> Summary:
            """Fail the first time."""
            summary = await super().summarize(request)
            return await Mute().summarize(request) if len(self.asked) == 1 else summary

    timeline = await full(Late())
    dry = await timeline.render(record=False)
    assert dry.window.compaction is not None
    assert dry.window.compaction.written_by.summarizer == "extractive"
    await timeline.render()
    assert timeline.window.compaction is not None
    assert timeline.window.compaction.written_by.summarizer == "scribe"


async def test_names_that_a_model_invented_are_repaired_once() -> None:
    """The author is asked a second time, in the dry run alone."""
    scribe = Scribe(answers=["The rows are in src/never_seen.py. The work is done.", "The work is done, all of it."])
    policy = policies.balanced(max_tokens=3_000, counter="chars4")
    timeline = await opened(MemoryStore(), policy=policy, summarizer=scribe)
    await timeline.append(*FULL)
    dry = await timeline.render(record=False)
    assert len(scribe.asked) == 2
    assert (await timeline.render()).fingerprint == dry.fingerprint
    assert len(scribe.asked) == 2


async def test_all_answers_of_two_compactions_in_one_render_are_taken() -> None:
    """Each has two parts, and each part is asked twice, since its author invents a name."""

    class Inventive(Scribe):
        async def summarize(self, request: SummaryRequest) -> Summary:
            """Answer in as many words as it may, with a name of its own."""
            summary = await super().summarize(request)
            text = f"{summary.text}. The rows are in src/never_{len(self.asked)}.py. {'It is done. ' * 400}"
            return replace(summary, text=request.counter.truncate(text, request.max_tokens))

    scribe = Inventive()
    policy = policies.balanced(max_tokens=4_000, counter="chars4")
    timeline = await opened(MemoryStore(), policy=policy, summarizer=scribe)
    await timeline.append(*(block for _ in range(3) for block in turn(400, 300)))
    await timeline.compact()
    await timeline.append(*turn(50, 300), prompt(300))
    for number, tokens in enumerate((1_500, 50, 50, 400, 50, 1_500, 1_500)):
        await timeline.append(*exchange(f"c{number}", tokens))
    scribe.asked.clear()
    dry = await timeline.render(record=False)
    assert [taken.kind for taken in dry.decisions] == ["hidden", "compacted", "compacted"]
    assert len(scribe.asked) == 6
    assert (await timeline.render()).fingerprint == dry.fingerprint
    assert len(scribe.asked) == 6


async def test_a_view_of_the_past_asks_its_own_question() -> None:
    """It shows another context, and takes nothing of what was asked about the newest one."""
    scribe = Scribe()
    timeline = await full(scribe)
    before = timeline.version
    await timeline.append(*turn(400, 30))
    dry = await timeline.render(record=False)
    past = await timeline.at(before)
    await past.render()
    assert len(scribe.asked) == 2
    assert (await timeline.render()).fingerprint == dry.fingerprint
    assert len(scribe.asked) == 2
