from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import anyio
import anyio.lowlevel
import pytest

from timeline import policies
from timeline.audit.deep import verify_deep
from timeline.audit.replay import find_context, rebuild_contexts, recorded_contexts
from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.errors import (
    ContextUnavailable,
    ConversationNotFound,
    HistoryUnavailable,
    ImportFailed,
    InvalidArgument,
    ScavengeInProgress,
)
from timeline.events import NewEvent, event_id
from timeline.events.other_payloads import CompactionStarted
from timeline.lifecycle import recorded
from timeline.log.history import load_fold
from timeline.portable import Exported, export_log, import_copy, read_copies
from timeline.ports import StoppedClock, Summary
from timeline.retention import Budget, Kept, kept, rehearse, scavenge, scavenging
from timeline.retention.scavenging import STEP
from timeline.store import open_store
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore, SummaryRequest

POLICY: Final = policies.cut_point(max_tokens=4_000)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
END: Final = datetime.max.replace(tzinfo=UTC)


class _Told:
    """A summarizer that remembers what it was asked."""

    name = "told"

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    async def summarize(self, request: SummaryRequest) -> Summary:
        self.requests.append(request)
        return Summary(text="They wrote cards.", summarizer=self.name)


async def worked(store: EventStore, id_: str = "cards", *, turns: int = 30, told: _Told | None = None) -> Timeline:
    """Make a conversation that was rendered, and so compacted, turn by turn."""
    timeline = await Timeline.open(store, id_, policy=POLICY, summarizer=told or _Told())
    for number in range(turns):
        await timeline.append(
            {"type": "user.prompt", "text": f"Write card {number}. " + "Say more. " * 40},
            {"type": "assistant.completion", "text": f"Card {number}. " + "It is done. " * 40},
        )
        await timeline.render(system="You write cards.")
    assert timeline.window.window_start > 1
    return timeline


@pytest.fixture
async def store() -> MemoryStore:
    """Give an empty store."""
    return MemoryStore()


async def test_what_a_snapshot_of_an_earlier_version_does_not_say_is_kept_before_the_log_loses_it(
    store: MemoryStore,
) -> None:
    """A program that runs on knows it: here, how often something that was sent before was rewritten."""
    timeline = await worked(store)
    path = timeline.window.items[-1].block.path
    await timeline.hide(path)
    await timeline.reveal(path)
    timeline = await worked(store)
    stored = (await store.load_window("cards")).snapshot
    assert stored is not None
    state = {name: value for name, value in stored.state.items() if name != "reported"}
    await store.replace_snapshot("cards", stored.model_copy(update={"state": state}))
    await store.replace_waypoints("cards", [], dropped=await store.waypoints("cards"))
    await timeline.set_retention("window")
    await scavenge(store)
    assert (await store.info("cards")).first_version > 1
    assert (await load_fold(store, "cards")).window == timeline.window
    await timeline.append({"type": "user.prompt", "text": "Write one more. " * 200})
    await timeline.compact()
    assert (await verify_deep(store)).ok


@pytest.mark.shows("002-62")
async def test_everything_is_kept_by_default(store: MemoryStore) -> None:
    """Neither a new store nor a new conversation lets anything go."""
    timeline = await worked(store)
    assert await timeline.retention() == Kept("keep")
    report = await scavenge(store)
    assert [(found.conversation, found.stays, found.events) for found in report.conversations] == [("cards", "keep", 0)]
    assert len([event async for event in store.read("cards")]) == timeline.version


async def test_a_conversations_own_setting_goes_before_the_stores(store: MemoryStore) -> None:
    """And None gives it back to the store's; the newest setting holds, and setting the same again writes nothing."""
    timeline = await worked(store)
    await store.set_retention("window")
    assert await timeline.retention() == Kept("window")
    await timeline.set_retention("keep")
    await timeline.set_retention("keep")
    assert await kept(store, "cards") == Kept("keep", "keep")
    version = timeline.version
    await timeline.set_retention(None)
    assert await timeline.retention() == Kept("window")
    assert timeline.version == version + 1
    with pytest.raises(InvalidArgument, match="'keep' or 'window'"):
        await timeline.set_retention("everything")  # type: ignore[arg-type]


async def test_a_fork_begins_with_the_setting_of_its_past(store: MemoryStore) -> None:
    """What the parent sets later is its own."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    fork = await timeline.fork()
    await timeline.set_retention("keep")
    assert await fork.retention() == Kept("window", "window")


async def test_nobody_goes_back_behind_what_was_removed(store: MemoryStore) -> None:
    """A pinned block is there itself, but of what follows it some is gone: it could not leave and come back whole."""
    timeline = await worked(store)
    [pinned] = await timeline.append({"type": "user.prompt", "text": "Never push."})
    await timeline.pin(pinned.path)
    for _ in range(2):
        await timeline.append({"type": "user.prompt", "text": "Go on. " * 40}, {"type": "note", "text": "Done. " * 40})
        await timeline.compact()
    await timeline.set_retention("window")
    assert (await scavenge(store)).events > 0
    version = timeline.version
    for reopened in (timeline, await Timeline.open(store, "cards")):
        with pytest.raises(HistoryUnavailable):
            await reopened.go_back(pinned.path)
    assert timeline.version == version


async def test_a_legal_hold_keeps_everything_until_it_is_taken_off(store: MemoryStore) -> None:
    """Whatever is set meanwhile; also in the middle of a run."""
    timeline = await worked(store)
    await timeline.set_legal_hold(on=True)
    await timeline.set_retention("window")
    assert await timeline.retention() == Kept("window", "window", legal_hold=True)
    assert [found.stays for found in (await scavenge(store)).conversations] == ["legal_hold"]
    await timeline.set_legal_hold(on=False)
    assert (await scavenge(store)).events > 0
    with pytest.raises(InvalidArgument):
        await timeline.set_legal_hold(on="yes")  # type: ignore[arg-type]


async def test_a_conversation_that_is_being_compacted_stays_until_the_lease_is_over(store: MemoryStore) -> None:
    """Its summary may be of what lies before the next window."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    until = NOW + timedelta(seconds=120)
    started = NewEvent(id=event_id(NOW), at=NOW, payload=CompactionStarted(expires_at=until))
    await store.append("cards", [started])
    report = await scavenge(store, clock=StoppedClock(NOW))
    assert [found.stays for found in report.conversations] == ["compacting"]
    assert (await scavenge(store, clock=StoppedClock(until))).events > 0


@pytest.mark.shows("002-62")
async def test_the_window_and_the_next_render_are_the_same(store: MemoryStore) -> None:
    """Of a timeline that was open meanwhile, and of one that is opened afterwards; both go on."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    window, shown = timeline.window, await timeline.render(system="You write cards.", record=False)
    report = await scavenge(store)
    assert report.done
    assert report.events > 0
    again = await Timeline.open(store, "cards", policy=POLICY)
    for one in (timeline, again):
        assert one.window == window
        assert (await one.render(system="You write cards.", record=False)).fingerprint == shown.fingerprint
    await again.append({"type": "user.prompt", "text": "Another one. " * 300})
    await timeline.compact()
    assert (await timeline.verify()).ok
    assert len(timeline.window.items) < len(window.items)


@pytest.mark.shows("002-62")
async def test_what_is_gone_says_so_with_what_is_left(store: MemoryStore) -> None:
    """Reading by path, the past, an undo and a fork raise `HistoryUnavailable`; what is left is as before."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    compacted = max([digest.version async for digest in store.digests(conversation="cards")])
    await scavenge(store)
    start = timeline.window.window_start
    with pytest.raises(HistoryUnavailable, match=f"versions {start} to {timeline.version}") as gone:
        await timeline.read("ar:turn_1.user.prompt")
    assert (gone.value.version, gone.value.first_version, gone.value.scavenged) == (2, start, True)
    for call in (timeline.at(2), timeline.at(start), timeline.fork(at=5), timeline.undo_compaction()):
        with pytest.raises(HistoryUnavailable, match="backup"):
            await call
    assert (await timeline.at(timeline.version - 2)).version == timeline.version - 2
    assert (await timeline.at(compacted + 1)).window.window_start == start
    assert (await timeline.fork()).window.items == timeline.window.items
    recall = await timeline.recall_tool("anthropic").look({"path": "ar:turn_1.user.prompt"})
    assert "cannot be read" in recall.text


async def test_an_undo_that_is_refused_appends_nothing(store: MemoryStore) -> None:
    """Not even the policy of a log that names none, which a decision records first."""
    timeline = await Timeline.open(store, "cards", source="recorded")
    for number in range(30):
        await timeline.append({"type": "user.prompt", "text": f"Write card {number}. " + "Say more. " * 40})
    imported = await Timeline.open(store, "cards", policy=None, source="recorded")
    await imported.compact()
    await imported.set_retention("window")
    await scavenge(store)
    opened = await Timeline.open(store, "cards")
    version = opened.version
    with pytest.raises(HistoryUnavailable):
        await opened.undo_compaction()
    await opened.catch_up()
    assert (opened.window.policy, opened.version) == (None, version)


async def test_a_later_compaction_is_still_undone(store: MemoryStore) -> None:
    """What the scavenge left can be shown again, and what it removed cannot."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    await scavenge(store)
    before = timeline.window.items
    await timeline.append({"type": "user.prompt", "text": "Another one. " * 300})
    await timeline.compact()
    await timeline.undo_compaction()
    assert [item.block.path for item in timeline.window.items][:-1] == [item.block.path for item in before]
    assert (await timeline.verify()).ok


async def test_contexts_recorded_before_are_unverifiable_and_later_ones_are_rebuilt(store: MemoryStore) -> None:
    """Verifying counts them for the reason retention, replaying raises it, and nothing counts as broken."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    before = await timeline.verify()
    assert before.unverifiable == {}
    report = await scavenge(store)
    await timeline.append({"type": "user.prompt", "text": "And now?"})
    await timeline.render(system="You write cards.")
    after = await timeline.verify()
    assert after.ok
    assert after.scavenged == report.events
    assert after.renders == before.renders + 1
    assert 0 < after.unverifiable["retention"] < after.renders
    contexts = await recorded_contexts(store, "cards")
    assert await rebuild_contexts(store, "cards", [find_context(contexts, "last")])
    with pytest.raises(ContextUnavailable, match="scavenge"):
        await rebuild_contexts(store, "cards", [find_context(contexts, "#1")])
    with pytest.raises(ContextUnavailable, match="scavenge"):
        await timeline.diff("#1", "last")


async def test_the_policy_that_was_put_in_force_survives(store: MemoryStore) -> None:
    """Its event and its text stay, however long ago it was, for those that open the conversation without one."""
    policy = POLICY
    timeline = await Timeline.open(store, "cards")
    await timeline.use_policy(policy)
    await timeline.set_retention("window")
    for number in range(30):
        await timeline.append({"type": "user.prompt", "text": f"Card {number}. " * 60})
        await timeline.render()
    assert (await scavenge(store)).events > 0
    assert (await Timeline.open(store, "cards")).policy == policy


async def test_a_scavenged_first_prompt_is_no_task_of_later_summaries(store: MemoryStore) -> None:
    """A later prompt would be taken for the original task; the earlier summary says what that was."""
    told = _Told()
    timeline = await worked(store, told=told)
    await timeline.set_retention("window")
    assert (told.requests[-1].original_task or "").startswith("Write card 0.")
    await scavenge(store)
    await timeline.append({"type": "user.prompt", "text": "Another one. " * 300})
    await timeline.compact()
    assert told.requests[-1].original_task is None
    assert told.requests[-1].previous == "They wrote cards."


async def test_the_lifecycle_tells_what_is_left(store: MemoryStore) -> None:
    """Compactions stay in the stream from the beginning; what went leaves no broken event behind."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    before = [told async for told in recorded(store, "cards")]
    await scavenge(store)
    after = [told async for told in recorded(store, "cards")]
    assert 0 < len(after) < len(before)
    assert [told for told in before if told in after] == after


async def test_an_export_says_what_is_missing_and_is_not_imported(store: MemoryStore, tmp_path: Path) -> None:
    """An import would end at the gap, and the conversation would be another one."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    await scavenge(store)
    result = Exported()
    lines = [line async for line in export_log(store, ["cards"], result=result)]
    assert result.scavenged == [("cards", timeline.window.window_start)]
    assert not result.damaged
    file = tmp_path / "cards.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    [copy] = read_copies(file) or []
    with pytest.raises(ImportFailed, match="scavenged"):
        await import_copy(MemoryStore(), copy)


@pytest.mark.shows("004-147")
async def test_an_event_that_goes_is_gone_for_every_reader_of_the_store(store: MemoryStore) -> None:
    """Conversations that keep everything are not touched."""
    await worked(store)
    other = await worked(store, "other")
    before = [event async for event in store.read("other")]
    await (await Timeline.open(store, "cards")).set_retention("window")
    report = await scavenge(store)
    assert [found.stays for found in report.conversations] == ["", "keep"]
    assert [event async for event in store.read("other")] == before
    assert (await other.verify()).unverifiable == {}


async def test_a_budget_ends_a_run_and_the_next_one_goes_on(store: MemoryStore) -> None:
    """By events, until there is nothing left; the whole is what one run would have removed."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    whole, removed, runs = await rehearse(store), 0, 0
    while True:
        report = await scavenge(store, budget=Budget(events=20))
        assert report.events <= 20
        removed, runs = removed + report.events, runs + 1
        assert (await timeline.verify()).ok
        if report.done:
            break
    assert removed == whole.events
    assert runs == whole.events // 20 + 1
    assert (report.before, report.after) == (whole.before, whole.after)


async def test_a_budget_of_no_time_begins_nothing(store: MemoryStore) -> None:
    """And a budget that is none is refused."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    report = await scavenge(store, budget=Budget(seconds=1e-9))
    assert (report.done, report.events) == (False, 0)
    for wrong in ({"events": 0}, {"seconds": 0}, {"seconds": float("nan")}):
        with pytest.raises(InvalidArgument):
            Budget(**wrong)


async def test_an_unknown_conversation_is_said_to_be(store: MemoryStore) -> None:
    """Before anything is removed."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    for call in (scavenge(store, ["cards", "none"]), rehearse(store, ["none"])):
        with pytest.raises(ConversationNotFound):
            await call
    assert await store.scavenged("cards") == {}


async def test_a_second_runner_waits_for_the_turn_of_a_killed_one_and_no_longer(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a live one renews it, the second gives up."""
    monkeypatch.setattr(scavenging, "LEASE", timedelta(seconds=0.5))
    timeline = await worked(store)
    await timeline.set_retention("window")
    clock = _Ticking()
    assert await store.take_lease("killed", clock.now(), clock.now() + timedelta(seconds=0.3)) is None
    assert (await scavenge(store, clock=clock)).events > 0

    async def live() -> None:
        while True:
            assert await store.take_lease("live", clock.now(), clock.now() + timedelta(seconds=0.5)) is None
            await anyio.sleep(0.1)

    async with anyio.create_task_group() as runners:
        runners.start_soon(live)
        await anyio.lowlevel.checkpoint()
        with pytest.raises(ScavengeInProgress), anyio.fail_after(5):
            await scavenge(store, clock=clock)
        runners.cancel_scope.cancel()


@pytest.mark.parametrize("ahead", [timedelta(days=1), END - NOW])
async def test_a_killed_runner_whose_clock_was_ahead_keeps_others_out_no_longer(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, ahead: timedelta
) -> None:
    """Its lease ends tomorrow, or never, but nobody renews it."""
    monkeypatch.setattr(scavenging, "LEASE", timedelta(seconds=0.5))
    timeline = await worked(store)
    await timeline.set_retention("window")
    assert await store.take_lease("killed", NOW + ahead - timedelta(seconds=1), NOW + ahead) is None
    with anyio.fail_after(5):
        assert (await scavenge(store, clock=StoppedClock(NOW))).events > 0


async def test_a_clock_at_the_end_of_time_scavenges(store: MemoryStore) -> None:
    """A lease of five seconds would end behind the last moment that there is."""
    timeline = await worked(store)
    await timeline.set_retention("window")
    assert (await scavenge(store, clock=StoppedClock(END))).events > 0


class _Ticking:
    def now(self) -> datetime:
        return datetime.now(UTC)


async def test_several_thousand_events_go_in_bounded_steps(tmp_path: Path) -> None:
    """An append of the same process comes in between, and is not lost."""
    async with open_store(tmp_path / "a.db", durability="normal") as store:
        timeline = await Timeline.open(store, "cards", policy=POLICY, summarizer=_Told())
        for _ in range(4):
            await timeline.append(*[{"type": "user.prompt", "text": f"Card {n}."} for n in range(STEP)])
        await timeline.compact()
        await timeline.set_retention("window")
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(timeline.append, {"type": "user.prompt", "text": f"Meanwhile {number}."})
            report = await scavenge(store)
        assert report.events > 3 * STEP
        texts = [item.block.text for item in timeline.window.items]
        assert sorted(text for text in texts if text.startswith("Meanwhile")) == sorted(
            f"Meanwhile {number}." for number in range(20)
        )
        assert (await timeline.verify()).ok


@pytest.mark.parametrize("turns", [30, 41])
async def test_a_loop_that_hands_out_its_whole_list_goes_on_after_a_scavenge(store: MemoryStore, turns: int) -> None:
    """A new process takes nothing for new that was in the log once, and misses nothing that is new."""
    messages: list[dict[str, str]] = []
    for number in range(turns):
        messages += [
            {"role": "user", "content": f"Write card {number % 5}. " + "Say more. " * 40},
            {"role": "assistant", "content": "Done. " * 60},
        ]
        timeline = await Timeline.open(store, "cards", policy=POLICY, summarizer=_Told())
        hook = timeline.step_hook("openai_chat", system="You write cards.")
        await hook.prepare_step(messages=messages)
    await timeline.set_retention("window")
    assert (await scavenge(store)).events > 0
    for again in (False, True):
        version = timeline.version
        if not again:
            messages.append({"role": "user", "content": "And another one."})
        timeline = await Timeline.open(store, "cards", policy=POLICY, summarizer=_Told())
        await timeline.step_hook("openai_chat", system="You write cards.").prepare_step(messages=messages)
        new = [event async for event in store.read("cards", after=version, types=["block.appended"])]
        assert len(new) == (0 if again else 1)
        assert timeline.window.items[-1].block.text == "And another one."
    follower = timeline.list_follower()
    kinds = {"user": UserPrompt, "assistant": AssistantCompletion}
    said = [[kinds[message["role"]](text=message["content"])] for message in messages]
    for last in ("One more.", "And the last."):
        said.append([UserPrompt(text=last)])
        assert [block.text for block in await follower.take(said)] == [last]


async def test_a_timeline_that_fell_behind_what_was_scavenged_catches_up(store: MemoryStore) -> None:
    """It was open before the events that went were appended, and ends with the same window as every other."""
    behind = await Timeline.open(store, "cards", policy=POLICY)
    timeline = await worked(store)
    await timeline.set_retention("window")
    await scavenge(store)
    await behind.catch_up()
    assert behind.window == timeline.window
    await behind.append({"type": "user.prompt", "text": "And now?"})
    assert (await behind.verify()).ok
