"""The policy belongs to the conversation: it records one, and another one holds for its handle alone."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from tests.other_release import OtherRelease
from tests.scenes import AT, Scribe, exchange, log_of, opened, payloads_of, prompt, small_policy, turn
from timeline import open_store, policies
from timeline.audit.verify import verify
from timeline.errors import InvalidPolicy
from timeline.events import ConversationOpened, NewEvent, PolicyChanged, event_id
from timeline.events.other_payloads import PolicyOverridden
from timeline.frozen import compact_json, sha256_hex
from timeline.policy.model import Policy
from timeline.portable import export_log, import_copy, read_copies
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore

POLICY = small_policy(max_tokens=6_000)
OTHER = policies.keep_last(max_tokens=20_000)


async def changed(store: EventStore) -> list[PolicyChanged]:
    """Return the changes of the policy in the log."""
    return [payload for payload in await payloads_of(store, "policy.changed") if isinstance(payload, PolicyChanged)]


async def overridden(store: EventStore) -> list[PolicyOverridden]:
    """Return the overrides in the log."""
    found = await payloads_of(store, "policy.overridden")
    return [payload for payload in found if isinstance(payload, PolicyOverridden)]


async def unnamed(store: EventStore) -> None:
    """Begin a conversation whose log names no policy, as an import does."""
    await Timeline.open(store, "c", source="chat", now=AT)


async def test_the_append_that_begins_a_conversation_records_its_policy() -> None:
    """Name, release, arguments, hash and text."""
    store = MemoryStore()
    await Timeline.open(store, "c", policy=policies.balanced(max_tokens=9_000, keep_recent=0.3), now=AT)
    [event] = await log_of(store)
    assert isinstance(event.payload, ConversationOpened)
    origin = event.payload.origin
    assert origin is not None
    assert (origin.name, origin.preset, origin.release) == ("balanced", "balanced", 2)
    assert origin.arguments == {"max_tokens": 9_000, "keep_recent": 0.3}
    [text] = (await store.values([event.payload.policy or ""])).values()
    assert Policy.parse(text) == policies.balanced(max_tokens=9_000, keep_recent=0.3)


async def test_without_a_policy_it_records_the_default() -> None:
    """In the same append, so that no later release changes it in the middle."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", now=AT)
    [event] = await log_of(store)
    assert isinstance(event.payload, ConversationOpened)
    assert event.payload.policy == policies.balanced().hash() == timeline.window.policy


async def test_reopening_without_a_policy_takes_the_recorded_one(tmp_path: Path) -> None:
    """Also in another process; nothing is appended."""
    file = tmp_path / "timeline.db"
    async with open_store(file) as store:
        await Timeline.open(store, "c", policy=POLICY)
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "c")
        assert (timeline.policy, timeline.policy.origin, timeline.version) == (POLICY, POLICY.origin, 1)


async def test_another_policy_holds_for_its_handle_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The log says so once for each policy, and a warning names both each time."""
    store = MemoryStore()
    await Timeline.open(store, "c", policy=POLICY)
    with caplog.at_level(logging.WARNING, logger="timeline"):
        own = await Timeline.open(store, "c", policy=OTHER)
        await Timeline.open(store, "c", policy=OTHER)
    await own.append(prompt(5))
    assert (await own.render()).policy == own.policy == OTHER
    assert (await Timeline.open(store, "c")).policy == POLICY
    told = PolicyOverridden(policy=OTHER.hash(), origin=OTHER.origin, in_force=POLICY.hash())
    assert await overridden(store) == [told]
    assert await store.values([OTHER.hash()]) == {OTHER.hash(): OTHER.canonical()}
    assert len(caplog.records) == 2
    assert "keep_last, release 1 (20,000 tokens" in caplog.text
    assert "cut_point, release 1 (6,000 tokens" in caplog.text


async def test_a_change_for_everybody_reaches_all_but_handles_with_a_policy_of_their_own() -> None:
    """Those keep theirs until they change it for everybody themselves, also where it was everybody's for a while."""
    store = MemoryStore()
    one, own = await Timeline.open(store, "c", policy=POLICY), await Timeline.open(store, "c", policy=OTHER)
    third = small_policy(max_tokens=7_000)
    await one.use_policy(third)
    other = await Timeline.open(store, "c")
    assert ((await own.render()).policy, (await other.render()).policy) == (OTHER, third)
    await one.use_policy(OTHER)
    await own.catch_up()
    await one.use_policy(POLICY)
    assert (await own.render()).policy == OTHER
    assert [change.policy for change in await changed(store)] == [third.hash(), OTHER.hash(), POLICY.hash()]


async def test_after_a_change_an_override_is_news_again() -> None:
    """What the log said before was about another policy."""
    store = MemoryStore()
    one = await Timeline.open(store, "c", policy=POLICY)
    for _ in range(2):
        await Timeline.open(store, "c", policy=OTHER)
    await one.use_policy(small_policy(max_tokens=7_000))
    for _ in range(2):
        await Timeline.open(store, "c", policy=OTHER)
    assert len(await overridden(store)) == 2


async def test_an_own_policy_becomes_everybodys_by_use_policy() -> None:
    """The change is recorded although the handle worked under it before."""
    store = MemoryStore()
    await Timeline.open(store, "c", policy=POLICY)
    own = await Timeline.open(store, "c", policy=OTHER)
    await own.use_policy(OTHER)
    assert (await Timeline.open(store, "c")).policy == OTHER
    assert [change.policy for change in await changed(store)] == [OTHER.hash()]


async def test_a_store_for_reading_only_stays_as_it_is(tmp_path: Path) -> None:
    """The handle has the policy all the same; nobody else has to know."""
    file = tmp_path / "timeline.db"
    async with open_store(file) as store:
        await unnamed(store)
        await Timeline.open(store, "d", policy=POLICY)
    async with open_store(file, readonly=True) as store:
        for conversation in ("c", "d"):
            own = await Timeline.open(store, conversation, policy=OTHER)
            assert (own.policy, own.version, (await own.at(1)).policy) == (OTHER, 1, OTHER)


async def test_looking_appends_nothing() -> None:
    """Not even where the log names no policy yet."""
    store = MemoryStore()
    await unnamed(store)
    timeline = await Timeline.open(store, "c")
    await timeline.render(record=False)
    await timeline.at(1)
    await timeline.verify()
    assert (await store.info("c")).version == 1


async def test_a_log_without_a_policy_takes_the_first_one_that_is_named() -> None:
    """At the opening; a second one is an override."""
    store = MemoryStore()
    await unnamed(store)
    await Timeline.open(store, "c", policy=POLICY)
    await Timeline.open(store, "c", policy=OTHER)
    assert await changed(store) == [PolicyChanged(policy=POLICY.hash(), origin=POLICY.origin, adopted=True)]
    assert [payload.policy for payload in await overridden(store)] == [OTHER.hash()]


@pytest.mark.parametrize("act", ["append", "render", "compact", "undo", "hide"])
async def test_a_log_without_a_policy_names_the_default_ahead_of_what_is_done_first(act: str) -> None:
    """It is counted and decided under it."""
    store = MemoryStore()
    recorded = await Timeline.open(store, "c", source="chat", now=AT)
    blocks = await recorded.append(*[block for _ in range(60) for block in turn(500)])
    await recorded.compact(now=AT)
    version = recorded.version
    timeline = await Timeline.open(store, "c")
    match act:
        case "append":
            await timeline.append(prompt())
        case "render":
            await timeline.render()
        case "compact":
            await timeline.append(*turn(30_000))
            await timeline.compact()
        case "undo":
            await timeline.undo_compaction()
        case _:
            await timeline.hide(blocks[-1].path)
    [event] = await store.read_versions("c", [version + 1])
    assert event.payload == PolicyChanged(
        policy=policies.balanced().hash(), origin=policies.balanced().origin, adopted=True
    )
    assert len(await changed(store)) == 1
    assert (await timeline.verify()).ok


async def test_naming_the_policy_of_a_log_leaves_an_undos_hold() -> None:
    """Nothing was changed by it."""
    store = MemoryStore()
    timeline = await opened(store, policy=None, source="chat", summarizer=Scribe())
    await timeline.append(prompt(50))
    for number in range(30):
        await timeline.append(*exchange(f"c{number}", 4_000))
    await timeline.compact(now=AT)
    await timeline.undo_compaction(now=AT)
    again = await Timeline.open(store, "c", policy=POLICY)
    assert [change.adopted for change in await changed(store)] == [True]
    assert [taken.kind for taken in (await again.render(now=AT)).decisions][-1] == "held"


async def test_a_fork_has_the_policy_of_the_version_that_it_shares() -> None:
    """It records one of its own only where its past names none; an override stays its handle's."""
    store = MemoryStore()
    await unnamed(store)
    timeline = await Timeline.open(store, "c", policy=POLICY)
    await timeline.use_policy(small_policy(max_tokens=7_000))
    own = await Timeline.open(store, "c", policy=OTHER)
    before, first, newest = await own.fork(at=1), await own.fork(at=2), await own.fork()
    assert [branch.policy.max_tokens for branch in (before, first, newest)] == [20_000, 6_000, 7_000]
    for branch, named in ((before, OTHER.hash()), (first, None), (newest, None)):
        [event] = await store.read_versions(branch.id, [branch.version])
        assert isinstance(event.payload, ConversationOpened)
        assert event.payload.policy == named
        assert (await Timeline.open(store, branch.id)).policy == branch.policy


async def test_another_release_of_the_preset_leaves_a_conversation_its_figures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same preset with the same arguments is the same choice; `use_policy` takes the new figures."""
    file, model = tmp_path / "timeline.db", {"model": "claude-opus-5"}
    with OtherRelease(tmp_path / "release") as release:
        wanted = {"preset": "balanced", "arguments": model}
        theirs = release.do(do="open", file=str(file), handle="h", policy=wanted)["policy"]
    own = policies.balanced(model="claude-opus-5")
    assert theirs != own.hash()
    async with open_store(file) as store:
        for policy in (None, own):
            timeline = await Timeline.open(store, "c", policy=policy)
            assert (timeline.policy.hash(), timeline.policy.compact_when_cold, timeline.version) == (theirs, 0.4, 1)
            assert timeline.policy.origin.release == 3
        other = await Timeline.open(store, "c", policy=policies.balanced(model="gpt-4o"))
        assert other.version == 2
        await timeline.use_policy(own)
        assert (await Timeline.open(store, "c")).policy.compact_when_cold == 0.3
    assert len(caplog.records) == 1


async def test_limits_of_the_users_own_file_are_another_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who lowers the limit of a server means it for conversations that go on."""
    limits = tmp_path / "limits.toml"
    monkeypatch.setenv("TIMELINE_LIMITS", str(limits))
    store = MemoryStore()
    for context in (64_000, 32_000):
        limits.write_text(f'[[limits]]\nmodels = ["mine"]\ncontext = {context}\n', encoding="utf-8")
        timeline = await Timeline.open(store, "c", policy=policies.balanced(model="mine"))
        assert timeline.policy.max_tokens == context
    assert len(await overridden(store)) == 1


async def test_a_changed_policy_is_not_the_presets() -> None:
    """What was calibrated or copied with changes has a name, and no release."""
    made = policies.balanced(max_tokens=9_000)
    for other in (made.calibrated(1.2), made.model_copy(update={"target": 0.5})):
        assert (other.origin.name, other.origin.preset, other.origin.release) == ("balanced", "", 0)
    assert made.model_copy().origin == made.origin


async def test_an_exported_log_keeps_all_its_policies(tmp_path: Path) -> None:
    """Those of its beginning, its changes and its overrides."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY)
    await Timeline.open(store, "c", policy=OTHER)
    await timeline.use_policy(small_policy(max_tokens=7_000))
    file = tmp_path / "c.jsonl"
    file.write_text("".join([line async for line in export_log(store, ["c"])]), encoding="utf-8")
    copy = MemoryStore()
    for found in read_copies(file) or ():
        await import_copy(copy, found)
    assert (await Timeline.open(copy, "c")).policy.max_tokens == 7_000
    assert (await (await Timeline.open(copy, "c")).at(1)).policy == POLICY
    assert (await verify(copy, "c")).ok


async def test_verifying_names_a_policy_that_is_not_in_the_store() -> None:
    """A conversation could not be opened without one."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY)
    await timeline.decide([PolicyChanged(policy="0" * 64)], at=AT, ids=[event_id(AT)])
    report = await verify(store, "c")
    assert (report.ok, report.checksum) == (False, 1)
    assert "version 2 names the policy 000" in report.problems[0]
    with pytest.raises(InvalidPolicy):
        await Timeline.open(store, "c")
    assert (await Timeline.open(store, "c", policy=OTHER)).policy == OTHER


async def test_a_policy_that_a_later_version_recorded_is_refused_with_the_cure() -> None:
    """Its field is named; a policy that is given holds for the handle, as ever."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c", policy=POLICY)
    later = compact_json({**json.loads(POLICY.canonical()), "shares": 3})
    change = NewEvent(id=event_id(AT), at=AT, payload=PolicyChanged(policy=sha256_hex(later)))
    await store.append("c", [change], values={sha256_hex(later): later})
    with pytest.raises(InvalidPolicy, match=r"'shares'.*Upgrade timeline-engine, or name a policy"):
        await Timeline.open(store, "c")
    assert (await Timeline.open(store, "c", policy=POLICY)).policy == timeline.policy
