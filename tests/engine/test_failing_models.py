"""A model that fails or hangs at any point of a compaction: the conversation stays usable, and the log says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest
from anyio import to_thread

from tests.providers import Answer, Asked, Cut, FakeProvider, Hang, Raw, Trouble
from tests.providers.summarizing import SUMMARIZERS
from tests.scenes import answer, exchange, log_of, opened, payloads_of, prompt, small_policy, turn
from timeline import Timeline, open_store, policies
from timeline.errors import CompactionInProgress, SummarizerFailed
from timeline.store.memory import MemoryStore
from timeline.summarizers import OpenAISummarizer
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.providers import Step
    from timeline.blocks import Block

WIRES: Final = list(SUMMARIZERS)
FALLBACK: Final = small_policy(max_tokens=4_000, keep_recent_tokens=400)
UNCHANGED: Final = policies.keep_last(max_tokens=20_000)
FINISHED: Final = (*turn(1_500), *turn(1_500), *turn(400, asked=300))
SPLIT: Final = (*turn(1_500), prompt(20), *exchange("a", 1_500), *exchange("b", 1_000), *exchange("d", 400))
"""A finished turn, and one that is still going on: history and turn prefix are two requests."""
HALF_ANSWERED: Final = Hang(Answer("word " * 50))
TROUBLES: Final[dict[str, tuple[Step, str]]] = {
    "rate limit": (Trouble("rate_limit"), "rate_limit"),
    "overloaded": (Trouble("overloaded"), "overloaded"),
    "server error": (Trouble("server"), "server"),
    "context limit": (Trouble("context_limit"), "context_limit"),
    "cut": (Cut(), "connection"),
    "hang": (Hang(), "timeout"),
    "hang in the middle": (HALF_ANSWERED, "timeout"),
    "empty": (Answer(""), "empty"),
    "absurdly long": (Answer("word " * 9_000), "too_long"),
    "length stop": (Answer("- half a", stop="length"), "length"),
    "refusal": (Answer("No.", stop="refusal"), "refused"),
    "a proxy's page": (Raw(b"<html>", 502, "text/html"), "server"),
}
"""How each of them looks through every SDK is held in `tests/summarizers/test_models.py`; here they take turns."""


def wire_for(trouble: str) -> str:
    """Return the wire over which a trouble comes."""
    return WIRES[[*TROUBLES].index(trouble) % len(WIRES)]


def talk(turns: int) -> list[Block]:
    """Return so many turns of a question and a long answer."""
    return [block for n in range(turns) for block in (prompt(text=f"Question {n}?"), answer(480))]


async def usable(timeline: Timeline) -> None:
    """Check that nobody holds the compaction, that the log verifies, and that the agent can go on."""
    assert timeline.window.lease is None
    await timeline.append(*turn(5))
    context = await timeline.render()
    assert context.to_anthropic()["messages"]
    report = await timeline.verify()
    assert report.ok, report.problems


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_where_the_policy_falls_back_the_summary_says_why(trouble: str) -> None:
    """The extractive summarizer writes it; the next compaction asks the model again."""
    step, _ = TROUBLES[trouble]
    with FakeProvider(lambda asked: step if asked.number == 0 else "- written by the model") as provider:
        timeline = await opened(
            MemoryStore(),
            policy=FALLBACK,
            summarizer=SUMMARIZERS[wire_for(trouble)](provider, timeout=0.4 if isinstance(step, Hang) else None),
        )
        await timeline.append(*FINISHED)
        context = await timeline.render()
        first = timeline.window.compaction
        await usable(timeline)
        await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
        await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    assert first is not None
    assert first.written_by.summarizer == "extractive"
    assert first.written_by.fallback_reason
    second = timeline.window.compaction
    assert second is not None
    assert second.written_by.usage is not None
    assert "- written by the model" in second.block.text


@pytest.mark.parametrize("trouble", [name for name in TROUBLES if name != "length stop"])  # used by this policy
async def test_where_the_policy_changes_nothing_the_log_says_why(trouble: str) -> None:
    """The failure is recorded with its cause, the messages stay, and a forced compaction works once the model does."""
    step, cause = TROUBLES[trouble]
    store = MemoryStore()
    with FakeProvider(lambda asked: step if asked.number == 0 else "- written by the model") as provider:
        timeline = await opened(
            store,
            policy=UNCHANGED,
            summarizer=SUMMARIZERS[wire_for(trouble)](provider, timeout=0.4 if isinstance(step, Hang) else None),
        )
        await timeline.append(*talk(20))
        before = timeline.window.items
        [decision] = (await timeline.render()).decisions
        [failed] = await payloads_of(store, "compaction.failed")
        assert timeline.window.items == before
        await usable(timeline)
        assert [taken.kind for taken in await timeline.compact()] == ["compacted"]
    assert decision.kind == "failed"
    assert (failed.reason, failed.cause) == ("summarizer", cause)
    assert failed.detail in decision.reason or decision.reason in failed.detail


@pytest.mark.parametrize(
    ("wire", "step"), [(wire, (Hang(), HALF_ANSWERED)[n % 2]) for n, wire in enumerate(WIRES)], ids=WIRES
)
async def test_a_compaction_that_is_cancelled_while_the_model_writes_frees_the_lease(wire: str, step: Step) -> None:
    """The request is closed, the log says that it was cancelled, and the next one compacts."""
    store = MemoryStore()
    with FakeProvider(lambda asked: step if asked.number == 0 else "- written by the model") as provider:
        timeline = await opened(store, policy=FALLBACK, summarizer=SUMMARIZERS[wire](provider))
        await timeline.append(*FINISHED)
        async with anyio.create_task_group() as group:
            group.start_soon(timeline.render)
            await to_thread.run_sync(lambda: provider.wait_for(asked=1))
            group.cancel_scope.cancel()
        await to_thread.run_sync(lambda: provider.wait_for(gone=1))
        [failed] = await payloads_of(store, "compaction.failed")
        assert failed.reason == "cancelled"
        assert timeline.window.lease is None
        assert [taken.kind for taken in (await timeline.render()).decisions] == ["compacted"]
        await usable(timeline)


async def test_a_cancellation_between_two_chunks_leaves_nothing_behind() -> None:
    """What the first chunk was answered is no summary."""
    store = MemoryStore()
    with FakeProvider(lambda asked: "- a part" if asked.number == 0 else Hang()) as provider:
        summarizer = SUMMARIZERS["anthropic"](provider, window_tokens=4_500)
        timeline = await opened(store, policy=UNCHANGED, summarizer=summarizer)
        await timeline.append(*talk(20))
        before = timeline.window.items
        async with anyio.create_task_group() as group:
            group.start_soon(timeline.render)
            await to_thread.run_sync(lambda: provider.wait_for(asked=2))
            group.cancel_scope.cancel()
        assert [failed.reason for failed in await payloads_of(store, "compaction.failed")] == ["cancelled"]
        assert timeline.window.items == before


def is_prefix(asked: Asked) -> bool:
    """Say whether the prefix of a turn is asked about."""
    return "in the middle of" in asked.system


@pytest.mark.parametrize(("wire", "fails"), [*zip(WIRES, ["history", "turn_prefix"] * 2, strict=True)])
async def test_of_two_requests_one_that_fails_ends_the_other(wire: str, fails: str) -> None:
    """Without a fallback, nothing is covered by half a summary; the other request is not waited for."""
    store = MemoryStore()
    broken = False

    def script(asked: Asked) -> Step:
        if not broken:
            return "- written by the model"
        return Answer("", delay=0.2) if is_prefix(asked) == (fails == "turn_prefix") else Hang()

    with FakeProvider(script) as provider:
        policy = FALLBACK.model_copy(update={"on_failure": "unchanged"})
        timeline = await opened(store, policy=policy, summarizer=SUMMARIZERS[wire](provider))
        await timeline.append(*SPLIT)
        broken = True
        with pytest.raises(SummarizerFailed) as failed:
            await timeline.compact()
        await to_thread.run_sync(lambda: provider.wait_for(gone=1))
        assert failed.value.cause == "empty"
        assert timeline.window.compaction is None
        broken = False
        await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.parts.history == compaction.parts.turn_prefix == "- written by the model"
    assert [failed.cause for failed in await payloads_of(store, "compaction.failed")] == ["empty"]


@pytest.mark.parametrize("fails", ["history", "turn_prefix"])
async def test_of_two_requests_one_that_falls_back_leaves_the_other_to_the_model(fails: str) -> None:
    """The summary names the one that stood in, with the reason, and what the model's half took."""

    def script(asked: Asked) -> Step:
        if is_prefix(asked) == (fails == "turn_prefix"):
            return Trouble("overloaded")
        return Answer("- written by the model", input_tokens=50, output_tokens=5)

    with FakeProvider(script) as provider:
        timeline = await opened(MemoryStore(), policy=FALLBACK, summarizer=SUMMARIZERS["anthropic"](provider))
        await timeline.append(*SPLIT)
        await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    by_model = compaction.parts.turn_prefix if fails == "history" else compaction.parts.history
    assert by_model == "- written by the model"
    assert compaction.written_by.summarizer == "extractive"
    assert "OverloadedError" in (compaction.written_by.fallback_reason or "")
    assert compaction.written_by.usage is not None
    assert compaction.written_by.usage.input_tokens == 50


RENDER_FOR_EVER: Final = """
import asyncio, sys
from timeline.summarizers import OpenAISummarizer
from timeline import Timeline, open_store, policies

async def main():
    summarizer = OpenAISummarizer("small-1", base_url=sys.argv[2], api_key="none")
    async with open_store(sys.argv[1]) as store:
        timeline = await Timeline.open(store, "c", summarizer=summarizer, create=False)
        await timeline.render()

asyncio.run(main())
"""


@pytest.mark.parametrize("step", [Hang(), HALF_ANSWERED], ids=["asked", "half answered"])
async def test_a_process_that_is_killed_while_the_model_writes_is_taken_over_from_at_once(
    tmp_path: Path, step: Step
) -> None:
    """Nothing of it is in the log but its lease, which is waited for while it runs, and ended once it was killed."""
    file = tmp_path / "agent.db"
    with FakeProvider(lambda asked: step if asked.number == 0 else "- written by the model") as provider:
        async with open_store(file) as store:
            timeline = await Timeline.open(store, "c", policy=FALLBACK)
            await timeline.append(*FINISHED)
            await timeline.use_policy(FALLBACK)
            before = timeline.window.items
        command = [sys.executable, "-c", RENDER_FOR_EVER, str(file), provider.openai_url]
        child = subprocess.Popen(command)  # noqa: ASYNC220 - it is killed, not awaited
        await to_thread.run_sync(lambda: provider.wait_for(asked=1))
        async with open_store(file) as store:
            timeline = await Timeline.open(store, "c", create=False)
            with pytest.raises(CompactionInProgress):
                await timeline.compact(wait=False)
        os.kill(child.pid, signal.SIGKILL)
        assert await to_thread.run_sync(child.wait) == -signal.SIGKILL
        async with open_store(file) as store:
            summarizer = OpenAISummarizer("small-1", base_url=provider.openai_url, api_key="none")
            timeline = await Timeline.open(store, "c", summarizer=summarizer, create=False)
            assert timeline.window.items == before
            context = await timeline.render()
            report = await timeline.verify()
            types = [event.type for event in await log_of(store)]
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    assert report.ok, report.problems
    assert types.count("compaction.started") == 2
    assert types.count("compaction.failed") == 1
    assert types.count("compaction.completed") == 1
    assert timeline.window.compaction is not None
    assert timeline.window.compaction.written_by.summarizer == "openai"


EMPTY: Final = Answer("", input_tokens=700, output_tokens=12)
TOOK: Final = Usage(input_tokens=700, output_tokens=12)


async def test_what_an_answer_took_that_could_not_be_used_is_in_the_log() -> None:
    """Whether another summarizer wrote the summary, a notice replaces it, or nothing does."""
    store = MemoryStore()
    with FakeProvider(EMPTY) as provider:
        for name, on_failure in (("a", "fallback"), ("b", "truncate"), ("c", "unchanged")):
            policy = FALLBACK.model_copy(update={"on_failure": on_failure})
            timeline = await opened(store, name, policy=policy, summarizer=SUMMARIZERS["anthropic"](provider))
            await timeline.append(*FINISHED)
            await timeline.render()
    told = [await payloads_of(store, "compaction.completed", name) for name in "abc"]
    assert [[done.written_by.usage for done in found] for found in told] == [[TOOK], [TOOK], []]
    [failed] = await payloads_of(store, "compaction.failed", "c")
    assert (failed.cause, failed.usage) == ("empty", TOOK)


async def test_the_half_that_was_answered_is_counted_where_the_other_one_fails() -> None:
    """A split turn is two requests, and both were paid for."""
    store = MemoryStore()

    def script(asked: Asked) -> Step:
        told: Any = {"input_tokens": 50, "output_tokens": 5}
        return Answer("", delay=0.2, **told) if is_prefix(asked) else Answer("- written by the model", **told)

    with FakeProvider(script) as provider:
        policy = FALLBACK.model_copy(update={"on_failure": "unchanged"})
        timeline = await opened(store, policy=policy, summarizer=SUMMARIZERS["anthropic"](provider))
        await timeline.append(*SPLIT)
        with pytest.raises(SummarizerFailed):
            await timeline.compact()
    [failed] = await payloads_of(store, "compaction.failed")
    assert failed.usage == Usage(input_tokens=100, output_tokens=10)


async def test_what_a_summary_took_is_in_the_log(tmp_path: Path) -> None:
    """Under the compaction and in the summary's own facts, and it comes back from the file."""
    file = tmp_path / "agent.db"
    told: dict[str, Any] = {"input_tokens": 700, "output_tokens": 12}
    with FakeProvider(Answer("- written by the model", **told)) as provider:
        async with open_store(file) as store:
            summarizer = SUMMARIZERS["anthropic"](provider)
            timeline = await Timeline.open(store, "c", policy=FALLBACK, summarizer=summarizer)
            await timeline.append(*FINISHED)
            await timeline.render()
    async with open_store(file) as store:
        [completed] = await payloads_of(store, "compaction.completed")
    assert completed.written_by.usage.model_dump(exclude_defaults=True) == told
    assert completed.block.meta["written_by"]["usage"] == told
