"""A policy that is put in force: recorded, followed by every writer, and used by each opener that names none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import AT, Mute, Scribe, exchange, log_of, opened, payloads_of, prompt, small_policy
from timeline import Hooks, policies
from timeline.errors import InvalidArgument, InvalidPolicy, SummarizerFailed
from timeline.events import PolicyChanged, event_id
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline


async def test_a_policy_that_is_put_in_force_is_recorded_with_its_text() -> None:
    """Once: what is in force already is not recorded again."""
    store = MemoryStore()
    timeline = await opened(store)
    policy = policies.keep_last(max_tokens=20_000)
    await timeline.use_policy(policy)
    await timeline.use_policy(policy)
    assert [p.policy for p in await payloads_of(store, "policy.changed")] == [policy.hash()]
    assert await store.values([policy.hash()]) == {policy.hash(): policy.canonical()}
    assert timeline.policy == policy
    assert timeline.window.policy == policy.hash()


async def test_whoever_opens_the_conversation_without_a_policy_gets_the_one_in_force() -> None:
    """Before one was put in force that is `balanced`; a policy that is named goes before it."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c")
    assert timeline.policy == policies.balanced()
    await timeline.use_policy(policies.keep_ratio(max_tokens=30_000))
    assert (await Timeline.open(store, "c")).policy == policies.keep_ratio(max_tokens=30_000)
    assert (await Timeline.open(store, "c", policy=policies.none())).policy == policies.none()


async def test_another_writer_follows_with_its_next_render() -> None:
    """Both count, decide and record under one policy."""
    store = MemoryStore()
    one, other = await opened(store), await opened(store)
    await one.append(prompt())
    await one.use_policy(policies.keep_last(max_tokens=20_000))
    assert (await other.render()).policy == one.policy == other.policy


async def test_compactor_and_counter_follow_the_policy() -> None:
    """The trigger, the counter and what happens after a failure are the new policy's."""
    timeline = await opened(MemoryStore(), summarizer=Mute())
    await timeline.append(prompt(50))
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 100))
    assert not (await timeline.render()).decisions
    await timeline.use_policy(small_policy(max_tokens=3_000, counter="o200k_base", on_failure="unchanged"))
    assert timeline.counter.name == "o200k_base"
    with pytest.raises(SummarizerFailed):
        await timeline.compact()
    await timeline.use_policy(small_policy(max_tokens=3_000))
    assert [taken.kind for taken in await timeline.compact()] == ["compacted"]


async def test_the_own_summarizer_hooks_and_counter_stay() -> None:
    """They are the application's, not the policy's."""
    scribe = Scribe()
    seen: list[dict[str, Any]] = []

    async def after(facts: dict[str, Any]) -> None:
        seen.append(facts)

    timeline = await opened(MemoryStore(), summarizer=scribe, hooks=Hooks(on_after_compaction=after))
    await timeline.append(prompt(50))
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 100))
    await timeline.use_policy(small_policy(max_tokens=3_000))
    await timeline.render()
    assert scribe.asked
    assert seen


async def test_a_new_policy_lifts_what_an_undo_holds_back() -> None:
    """Automatic compaction goes on under it."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=3_000))
    await timeline.append(prompt(50))
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 100))
    await timeline.render()
    await timeline.undo_compaction()
    assert [taken.kind for taken in (await timeline.render()).decisions] == ["held"]
    await timeline.use_policy(small_policy(max_tokens=2_900))
    assert "compacted" in [taken.kind for taken in (await timeline.render()).decisions]
    assert (await timeline.verify()).ok


async def test_an_undo_holds_back_under_the_policy_that_another_writer_put_in_force() -> None:
    """Its next render does not fold again at once what it just took back."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=3_000))
    await timeline.append(prompt(50))
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 100))
    await timeline.render()
    await (await opened(store)).use_policy(small_policy(max_tokens=2_900))
    await timeline.undo_compaction()
    assert [taken.kind for taken in (await timeline.render()).decisions] == ["held"]


async def test_the_past_has_the_policy_of_its_time() -> None:
    """Where one was in force then; a fork goes on under the present one."""
    timeline = await opened(MemoryStore())
    await timeline.use_policy(policies.keep_last(max_tokens=20_000))
    first = timeline.version
    await timeline.use_policy(policies.keep_last(max_tokens=40_000))
    assert (await timeline.at(first)).policy.max_tokens == 20_000
    assert (await timeline.fork()).policy.max_tokens == 40_000


async def test_a_policy_that_is_not_in_the_store_is_asked_for() -> None:
    """The error says so; naming one opens the conversation."""
    store = MemoryStore()
    timeline = await opened(store)
    await timeline.decide([PolicyChanged(policy="0" * 64)], at=AT, ids=[event_id(AT)])
    with pytest.raises(InvalidPolicy, match="not in the store"):
        await Timeline.open(store, "c")
    assert (await opened(store)).policy == small_policy()


async def test_what_is_no_policy_is_refused() -> None:
    """And nothing is written."""
    store = MemoryStore()
    timeline = await opened(store)
    before = await log_of(store)
    name: Any = "keep_last"
    with pytest.raises(InvalidArgument):
        await timeline.use_policy(name)
    assert await log_of(store) == before
