"""Hooks that decide: a veto, and a summary that the application writes itself."""

from __future__ import annotations

from typing import Any

import pytest

from store.memory import MemoryStore
from tests.scenes import AT, COUNTER, FULL, Scribe, exchange, opened, payloads_of, prompt, small_policy, turn, words
from timeline import Hooks, Skip
from timeline.errors import CompactionRefused, ContextRefused
from timeline.refusals import ContextLimit

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)


def saying(*answers: object) -> Hooks:
    """Return hooks that give these answers in turn, and then none."""
    left = list(answers)

    async def before(facts: dict[str, Any]) -> object:
        assert list(facts) == ["before_tokens"]
        return left.pop(0) if left else None

    return Hooks(on_before_compaction=before)


@pytest.mark.parametrize(("veto", "detail"), [(Skip("a deploy is running"), "a deploy is running"), (Skip, "")])
async def test_a_veto_is_a_recorded_refusal_and_no_summary_is_asked(veto: object, detail: str) -> None:
    """The context stays as it is, and says why."""
    store, scribe = MemoryStore(), Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe, hooks=saying(veto))
    await timeline.append(*FULL)
    context = await timeline.render(now=AT)
    assert [(d.kind, d.reason) for d in context.decisions] == [("refused", "vetoed")]
    assert context.overflow
    assert scribe.asked == []
    [failed] = await payloads_of(store, "compaction.failed")
    assert (failed.reason, failed.detail) == ("vetoed", detail)
    assert timeline.window.lease is None
    assert (await timeline.verify()).ok


async def test_after_a_veto_no_new_try_until_the_conversation_has_grown() -> None:
    """The application is not asked at every render."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe(), hooks=saying(Skip("later")))
    await timeline.append(*FULL)
    await timeline.render(now=AT)
    version = timeline.version
    assert (await timeline.render(now=AT)).overflow
    assert timeline.version == version
    await timeline.append(*turn(500))
    assert [d.kind for d in (await timeline.render(now=AT)).decisions] == ["compacted"]


async def test_a_veto_holds_against_a_forced_compaction_too() -> None:
    """Whoever asked for it is told so."""
    timeline = await opened(MemoryStore(), policy=POLICY, hooks=saying(Skip("no"), Skip("no")))
    await timeline.append(*FULL)
    with pytest.raises(CompactionRefused) as caught:
        await timeline.compact(now=AT)
    assert caught.value.reason == "vetoed"
    assert caught.value.facts["by"] == "no"

    async def call(context: Any) -> None:
        assert context
        raise MemoryError

    with pytest.raises(ContextRefused) as refused:
        await timeline.retry_with_compaction(call, refused=lambda _: ContextLimit(), system="x")
    assert refused.value.tried == ["refused (vetoed)"]


async def test_a_text_is_the_summary_and_no_summarizer_is_asked() -> None:
    """It says who wrote it; the exact record is added to it as to any other."""
    store, scribe = MemoryStore(), Scribe()
    timeline = await opened(store, policy=POLICY, summarizer=scribe, hooks=saying("We built the parser.\n"))
    await timeline.append(*FULL)
    await timeline.render(now=AT)
    [done] = await payloads_of(store, "compaction.completed")
    assert scribe.asked == []
    assert done.parts.history == "We built the parser."
    assert "We built the parser." in done.block.text
    assert (done.written_by.summarizer, done.written_by.model) == ("on_before_compaction", None)
    assert (await timeline.verify()).ok


async def test_a_text_that_is_too_long_is_cut_to_the_policys_caps() -> None:
    """A summary of the application's own must not be the next overflow; inside a turn it may take both parts."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, hooks=saying(words(9_000)))
    await timeline.append(prompt(20))
    for number in range(9):
        await timeline.append(*exchange(f"c{number}", 420))
    context = await timeline.render(now=AT)
    [done] = await payloads_of(store, "compaction.completed")
    assert 0 < COUNTER.count(done.parts.history) <= POLICY.summary_tokens + POLICY.turn_prefix_tokens
    assert context.account.sent <= context.account.trigger
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("answer", [None, " \n", True, {"text": "x"}])
async def test_any_other_answer_lets_the_compaction_go_on(answer: object) -> None:
    """Hooks of the seed return nothing, and a blank text is no summary."""
    scribe = Scribe()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=scribe, hooks=saying(answer))
    await timeline.append(*FULL)
    assert [d.kind for d in (await timeline.render(now=AT)).decisions] == ["compacted"]
    assert scribe.kinds == ["history"]


async def test_a_dry_run_asks_no_hook() -> None:
    """It shows what would be done without one."""
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe(), hooks=saying(Skip("no")))
    await timeline.append(*FULL)
    assert [d.kind for d in (await timeline.render(now=AT, record=False)).decisions] == ["compacted"]
    assert [d.reason for d in (await timeline.render(now=AT)).decisions] == ["vetoed"]
