"""Hooks: a veto, a summary that the application writes itself, and the facts that each hook gets."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tests.engine.compacting import FINISHED, POLICY
from tests.scenes import AT, COUNTER, FULL, Scribe, exchange, opened, payloads_of, prompt, turn, words
from timeline import Hooks, Skip
from timeline.errors import CompactionRefused, ContextRefused
from timeline.store.memory import MemoryStore
from timeline.wire.refusals import ContextLimit


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


@pytest.mark.parametrize(("reason", "detail"), [("half \ud83d", "half \ufffd"), (ValueError("no disk"), "no disk")])
async def test_the_reason_of_a_veto_is_stored_whatever_it_is(reason: Any, detail: str) -> None:
    """A reason that no log can hold must not make the render fail."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, hooks=saying(Skip(reason)))
    await timeline.append(*FINISHED)
    assert [d.reason for d in (await timeline.render()).decisions] == ["vetoed"]
    [failed] = await payloads_of(store, "compaction.failed")
    assert failed.detail == detail


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
    """The caller gets the refusal as an error."""
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


async def test_a_text_that_is_broken_is_stored_as_it_can_be_sent() -> None:
    """Half an emoji must not make every later render fail."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, hooks=saying("We built \ud83d the parser."))
    await timeline.append(*FULL)
    await timeline.render(now=AT)
    [done] = await payloads_of(store, "compaction.completed")
    assert done.parts.history == "We built \ufffd the parser."
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("answer", [None, " \n", "\u200b", True, {"text": "x"}])
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


# What they are told


@dataclass
class Journal:
    """Hooks that write down what they are given, or raise."""

    entries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    problem: Exception | None = None

    def hooks(self) -> Hooks:
        """Return the two hooks."""
        return Hooks(on_before_compaction=self._before, on_after_compaction=self._after)

    async def _before(self, facts: dict[str, Any]) -> None:
        await self._note("before", facts)

    async def _after(self, facts: dict[str, Any]) -> None:
        await self._note("after", facts)

    async def _note(self, name: str, facts: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        self.entries.append((name, facts))
        if self.problem is not None:
            raise self.problem


@pytest.mark.shows("002-51", "002-52", "003-18")
async def test_hooks_are_awaited_with_exactly_the_seeds_keys() -> None:
    """``{before_tokens}`` before; ``{before_tokens, after_tokens, compacted_tokens}`` after."""
    journal = Journal()
    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe(), hooks=journal.hooks())
    await timeline.append(*FINISHED)
    await timeline.render(system="You help.")
    (first, before), (second, done) = journal.entries
    assert (first, before) == ("before", {"before_tokens": 3_710})
    assert second == "after"
    assert list(done) == ["before_tokens", "after_tokens", "compacted_tokens"]
    assert done["before_tokens"] == 3_710
    assert done["after_tokens"] == timeline.window.tokens
    assert done["compacted_tokens"] == 3_010
    await timeline.append(*FINISHED)
    held = {item.version: item.shown_tokens for item in timeline.window.items if not item.is_summary}
    await timeline.compact()
    gone = held.keys() - {item.version for item in timeline.window.items}
    assert journal.entries[-1][1]["compacted_tokens"] == sum(held[version] for version in gone)


@pytest.mark.shows("002-51", "002-52")
@pytest.mark.parametrize("hooks", [Hooks(), saying()], ids=["none", "one"])
async def test_hooks_are_optional(hooks: Hooks) -> None:
    """A compaction goes on without those that the application does not give, and records no failure of theirs."""
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(), hooks=hooks)
    await timeline.append(*FINISHED)
    assert [taken.kind for taken in (await timeline.render()).decisions] == ["compacted"]
    assert await payloads_of(store, "hook.failed") == []


async def test_no_hook_is_called_where_nothing_is_compacted() -> None:
    """Neither under the limit nor for a refusal."""
    journal = Journal()
    timeline = await opened(MemoryStore(), policy=POLICY, hooks=journal.hooks())
    await timeline.append(*turn(100))
    await timeline.render()
    with pytest.raises(CompactionRefused):
        await timeline.compact()
    assert journal.entries == []


@pytest.mark.shows("003-30", "R-003-10")
async def test_an_error_in_a_hook_is_recorded_and_not_fatal() -> None:
    """The compaction goes on; the log says which hook failed and how."""
    store, journal = MemoryStore(), Journal(problem=RuntimeError("no disk"))
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(), hooks=journal.hooks())
    await timeline.append(*FINISHED)
    context = await timeline.render()
    assert [d.kind for d in context.decisions] == ["compacted"]
    failed = await payloads_of(store, "hook.failed")
    assert [(f.hook, f.error) for f in failed] == [
        ("on_before_compaction", "RuntimeError: no disk"),
        ("on_after_compaction", "RuntimeError: no disk"),
    ]
    assert (await timeline.verify()).ok


class _PanicError(BaseException):
    """What a binding to another language raises, which derives from no `Exception`."""


async def _cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.lowlevel.checkpoint()


async def _awaits_what_was_cancelled() -> None:
    other = asyncio.create_task(anyio.sleep_forever())
    other.cancel()
    await other


async def _panics() -> None:
    raise _PanicError


@pytest.mark.parametrize("ends", [_cancels_itself, _awaits_what_was_cancelled, _panics])
@pytest.mark.parametrize("name", ["on_before_compaction", "on_after_compaction", "on_session_start"])
async def test_a_hook_that_ends_its_own_task_ends_no_compaction(ends: Any, name: str) -> None:
    """Nobody else cancelled anything, so the render and what follows the hook go on."""

    async def hook(_: dict[str, Any]) -> None:
        await ends()

    given: dict[str, Any] = {name: hook}

    store = MemoryStore()
    policy = POLICY.model_copy(update={"boundary": True})
    timeline = await opened(store, policy=policy, summarizer=Scribe(), hooks=Hooks(**given))
    await timeline.append(*FINISHED)
    assert [d.kind for d in (await timeline.render()).decisions] == ["compacted"]
    [failed] = await payloads_of(store, "hook.failed")
    assert (failed.hook, failed.error.split(":")[0]) == (
        name,
        "_PanicError" if ends is _panics else "CancelledError",
    )
    assert len(await payloads_of(store, "compaction.boundary")) == 1


async def _cut_off_by_asyncio(render: Any) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(render(), 0.1)


async def _cut_off_by_a_scope(render: Any) -> None:
    with anyio.move_on_after(0.1) as scope:
        await render()
    assert scope.cancelled_caught


@pytest.mark.parametrize("cut_off", [_cut_off_by_asyncio, _cut_off_by_a_scope])
@pytest.mark.parametrize("name", ["on_before_compaction", "on_after_compaction"])
async def test_a_cancellation_from_outside_reaches_a_hook_and_ends_the_render(cut_off: Any, name: str) -> None:
    """It is the caller's, and leaves no lease behind."""
    reached: list[str] = []

    async def hook(_: dict[str, Any]) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            reached.append(name)

    given: dict[str, Any] = {name: hook}
    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(), hooks=Hooks(**given))
    await timeline.append(*FINISHED)
    await cut_off(timeline.render)
    assert reached == [name]
    assert timeline.window.lease is None
    assert await payloads_of(store, "hook.failed") == []


async def test_a_signal_in_a_hook_ends_the_program() -> None:
    """As one in a summarizer does."""

    async def hook(_: dict[str, Any]) -> None:
        raise SystemExit(3)

    timeline = await opened(MemoryStore(), policy=POLICY, summarizer=Scribe(), hooks=Hooks(on_before_compaction=hook))
    await timeline.append(*FINISHED)
    with pytest.raises(SystemExit):
        await timeline.render()
    assert timeline.window.lease is None


async def test_a_veto_without_async_is_no_veto_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """The compaction went on, and only the log held why."""

    def before(_: dict[str, Any]) -> Any:
        return Skip("a deploy is running")

    store = MemoryStore()
    timeline = await opened(store, policy=POLICY, summarizer=Scribe(), hooks=Hooks(on_before_compaction=before))
    await timeline.append(*FINISHED)
    assert [taken.kind for taken in (await timeline.render()).decisions] == ["compacted"]
    [failed] = await payloads_of(store, "hook.failed")
    assert "define it with `async def`" in failed.error
    assert f"the hook on_before_compaction failed: {failed.error}" in caplog.text
