"""The contract of removing history: what goes, what stays, and what is said of what is gone."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from timeline.errors import ConversationNotFound, DuplicateEvent, HistoryUnavailable, InvalidArgument, PathTaken
from timeline.events import (
    DISOWNED,
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionReverted,
    PolicyChanged,
    Replacement,
)
from timeline.events.other_payloads import HookFailed, RetentionSet
from timeline.frozen import sha256_hex
from timeline.ports import Snapshot

from .base import ContractBase
from .samples import START, block_event, compaction, event, events, fork, versions

if TYPE_CHECKING:
    from timeline.events import NewEvent
    from timeline.ports import EventStore

_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")
SAID = "a word that only the first events say: aardvark"


def _incompressible(number: int) -> str:
    """Return a long text of made-up words, of which a database that compresses texts stores hardly less."""
    words = (sha256_hex(f"{number} {part}").translate(_LETTERS) for part in range(150))
    return " ".join(words)


async def filled(store: EventStore, conversation: str = "a") -> list[NewEvent]:
    """Append ten events with paths, of which the window needs 3 and those from 8 on; return them."""
    written = [block_event(f"{conversation}.{number}", f"{SAID} {number}") for number in range(1, 11)]
    await store.append(conversation, written)
    snapshot = Snapshot(version=11, window_start=8, blocks=(3,))
    await store.append(conversation, [compaction(1, 7)], snapshot=snapshot)
    return written


class ScavengeContract(ContractBase):
    """`Scavenging` as tests."""

    async def test_events_before_the_window_go_and_those_that_it_needs_stay(self, store: EventStore) -> None:
        """The carried block, the window and the compaction are there; the rest is in no read of any kind."""
        await filled(store)
        removal = await store.remove("a")
        assert (removal.events, removal.first, removal.last, removal.done) == (6, 1, 7, True)
        assert removal.size > 6 * len(SAID)
        assert await versions(store, "a") == [3, 8, 9, 10, 11]
        assert [e.version async for e in store.read_all()] == [3, 8, 9, 10, 11]
        assert [e.version for e in await store.read_versions("a", range(1, 12))] == [3, 8, 9, 10, 11]
        assert await versions(store, "a", types=["block.appended"], page=1) == [3, 8, 9, 10]
        assert (await store.info("a")).first_version == 8
        assert await store.scavenged("a") == {"block.appended": 6}

    async def test_what_goes_while_hits_are_read_is_left_out(self, store: EventStore) -> None:
        """A search that is read slowly goes on to what stays; so does one of a conversation that is erased."""
        await filled(store)
        await filled(store, "b")
        hits = store.search("aardvark", page=1)
        await anext(hits)
        await store.remove("a")
        await store.erase("b")
        assert {(hit.conversation, hit.version) async for hit in hits} <= {("a", 3), ("a", 8), ("a", 9), ("a", 10)}

    async def test_the_window_is_as_it_was(self, store: EventStore) -> None:
        """What a conversation is opened with is the same before and after."""
        await filled(store)
        before = await store.load_window("a")
        await store.remove("a")
        after = await store.load_window("a")
        assert (after.snapshot, after.events) == (before.snapshot, before.events)

    async def test_a_removed_path_says_so(self, store: EventStore) -> None:
        """Looking a removed block up raises, with the first version that is there; others are found as before."""
        await filled(store)
        await store.remove("a")
        with pytest.raises(HistoryUnavailable, match="scavenge") as gone:
            await store.find("a", "a.2")
        assert (gone.value.version, gone.value.first_version, gone.value.last_version) == (2, 8, 11)
        assert gone.value.scavenged
        found = await store.find("a", "a.3")
        assert found is not None
        assert await store.find("a", "b.2") is None

    async def test_versions_ids_and_paths_stay_taken(self, store: EventStore) -> None:
        """A repeated append writes nothing, an id in other company and a path in use are refused."""
        written = await filled(store)
        await store.remove("a")
        again = await store.append("a", written)
        assert (again.first_version, again.version, again.repeated) == (1, 10, True)
        with pytest.raises(DuplicateEvent):
            await store.append("a", [written[0], block_event("new")])
        with pytest.raises(PathTaken):
            await store.append("a", [block_event("a.1")])
        assert await store.known_ids("a", [written[0].id]) == {written[0].id}
        assert await store.paths_taken("a", ["a.1"]) == {"a.1", "a.10"}
        assert (await store.append("a", [block_event("new")])).version == 12

    async def test_it_goes_step_by_step(self, store: EventStore) -> None:
        """Each step removes at most as much as it was asked to, and says where the next one begins."""
        await filled(store)
        reached, left = 0, [6, 5, 4, 3, 2, 1, 0]
        for number, there in enumerate(left):
            assert len(await versions(store, "a")) == 5 + there
            step = await store.remove("a", after=reached, most=1)
            assert step.events == min(1, there)
            assert step.done == (number >= 5)
            reached = step.reached
        assert (await store.remove("a")).events == 0

    async def test_without_a_snapshot_nothing_goes(self, store: EventStore) -> None:
        """A conversation that was never compacted is all window."""
        await store.append("a", events(5))
        assert await store.remove("a") == await store.remove("a")
        assert await versions(store, "a") == [1, 2, 3, 4, 5]
        assert await store.load_base("a") is None
        with pytest.raises(ConversationNotFound):
            await store.remove("b")

    async def test_an_undo_without_a_snapshot_of_its_own_keeps_everything(self, store: EventStore) -> None:
        """The blocks that it shows again lie before the window of the snapshot."""
        await filled(store)
        await store.append("a", [event(CompactionReverted(versions=(11,)))])
        assert (await store.remove("a")).events == 0

    async def test_what_was_decided_for_good_stays(self, store: EventStore) -> None:
        """Policies, retention, redactions, compactions and undos stay; other notices go."""
        kept = [PolicyChanged(policy="0" * 64), RetentionSet(retention="window"), BlockRedacted(version=1)]
        await store.append("a", [event(payload) for payload in (*kept, HookFailed(hook="x", error=SAID))])
        await store.append("a", [compaction(1, 4)], snapshot=Snapshot(version=5, window_start=6))
        assert (await store.remove("a")).events == 1
        assert await versions(store, "a") == [1, 2, 3, 5]

    async def test_that_blocks_never_happened_stays_and_other_hides_go(self, store: EventStore) -> None:
        """Their facts stay as well, and a later summary is not to tell them. What took such an omission back stays."""
        payloads = (
            *(BlocksHidden(mode="omit", reason=reason, blocks=(Replacement(version=1),)) for reason in DISOWNED),
            BlocksRevealed(versions=(1,)),
            BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=1),)),
            BlocksHidden(reason="abandoned", blocks=(Replacement(version=1, text=SAID),)),
        )
        await store.append("a", [block_event("a.1", SAID), *(event(payload) for payload in payloads)])
        await store.append("a", [compaction(1, 6)], snapshot=Snapshot(version=7, window_start=8))
        rehearsed = await store.rehearse(["a"])
        assert rehearsed.removals["a"].events == 3
        assert [(await store.remove("a", most=2)).events for _ in range(2)] == [2, 1]
        assert await versions(store, "a") == [2, 3, 4, 7]

    async def test_digests_stay(self, store: EventStore) -> None:
        """Every compaction is found afterwards, also one that a later one covers."""
        await filled(store)
        await store.append("a", [compaction(1, 11, round_=2)], snapshot=Snapshot(version=12, window_start=13))
        before = [digest async for digest in store.digests(reverted=None)]
        assert (await store.remove("a")).events == 10
        assert [digest async for digest in store.digests(reverted=None)] == before
        assert len(before) == 2

    async def test_the_words_of_what_goes_are_not_found(self, store: EventStore) -> None:
        """A search finds what is left, whether the index had reached the removed events or not."""
        await filled(store)
        assert len([found async for found in store.search("aardvark")]) == 10
        await store.remove("a", most=3)
        assert sorted([found.version async for found in store.search("aardvark")]) == [3, 5, 6, 7, 8, 9, 10]
        await filled(store, "b")
        await store.remove("a")
        await store.remove("b")
        found = [(found.conversation, found.version) async for found in store.search("aardvark")]
        assert sorted(found) == [(c, v) for c in "ab" for v in (3, 8, 9, 10)]

    async def test_what_a_fork_shares_stays(self, store: EventStore) -> None:
        """Nothing goes at or below the base of a fork, and the fork's own past goes without its parent's."""
        await filled(store)
        await store.append("f", [fork("a", 5)])
        removal = await store.remove("a")
        assert (removal.events, removal.first, removal.last, removal.fork) == (2, 6, 7, "f")
        assert await versions(store, "f") == [1, 2, 3, 4, 5, 6]
        await store.append("f", events(3), snapshot=Snapshot(version=9, window_start=9, blocks=(1,)))
        assert (await store.remove("f")).events == 2
        assert await versions(store, "f") == [1, 2, 3, 4, 5, 6, 9]
        assert await versions(store, "a") == [1, 2, 3, 4, 5, 8, 9, 10, 11]
        with pytest.raises(HistoryUnavailable):
            await store.append("g", [fork("a", 7)], snapshot=Snapshot(version=8, window_start=1))

    async def test_a_fork_of_what_is_left_reads_the_base_of_its_parent(self, store: EventStore) -> None:
        """Behind the snapshot that was kept, forks begin as before; its first version is its parent's."""
        await filled(store)
        await store.remove("a")
        with pytest.raises(HistoryUnavailable):
            await store.append("f", [fork("a", 7)])
        await store.append("f", [fork("a", 11)], snapshot=Snapshot(version=12, window_start=8, blocks=(3,)))
        assert (await store.info("f")).first_version == 8
        assert [e.version for e in (await store.load_window("f")).events] == [3, 8, 9, 10, 11, 12]
        base = await store.load_base("f")
        assert base is not None
        assert base.snapshot == Snapshot(version=11, window_start=8, blocks=(3,))

    async def test_a_snapshot_that_needs_what_is_gone_is_refused(self, store: EventStore) -> None:
        """An undo that was folded before the removal, and comes after it, is not written."""
        await filled(store)
        await store.remove("a", most=1)
        late = event(CompactionReverted(versions=(11,)))
        with pytest.raises(HistoryUnavailable):
            await store.append("a", [late], expected=11, snapshot=Snapshot(version=12, window_start=1))
        assert (await store.info("a")).version == 11
        assert (await store.append("a", events(1), snapshot=Snapshot(version=12, window_start=8, blocks=(3,)))).version

    async def test_the_base_is_the_snapshot_that_the_log_is_folded_from(self, store: EventStore) -> None:
        """It stays when a later compaction replaces the snapshot, until its own window is removed."""
        await filled(store)
        await store.remove("a")
        base = await store.load_base("a")
        assert base is not None
        assert [e.version for e in base.events] == [3, 8, 9, 10, 11]
        await store.append("a", events(3), snapshot=Snapshot(version=14, window_start=13))
        assert await store.load_base("a", 10) is None
        later = await store.load_base("a")
        assert later is not None
        assert later.snapshot == base.snapshot
        assert (await store.remove("a")).events == 5
        newest = await store.load_base("a", 14)
        assert newest is not None
        assert newest.snapshot == Snapshot(version=14, window_start=13)
        assert await store.load_base("a", 13) is None

    async def test_texts_that_nothing_names_go(self, store: EventStore) -> None:
        """A text stays while an event or a snapshot names it."""
        texts = {sha256_hex(text): text for text in ("policy", "forgotten", "in the state")}
        policy, forgotten, state = texts
        await store.append("a", [event(PolicyChanged(policy=policy))], values=texts)
        snapshot = Snapshot(version=2, window_start=3, state={"policy": state})
        await store.append("a", [event(HookFailed(hook="x", error=forgotten))], snapshot=snapshot)
        assert await store.remove_values() == (0, 0)
        await store.remove("a")
        assert await store.remove_values() == (1, len("forgotten"))
        assert (await store.values(texts)).keys() == {policy, state}

    async def test_shrinking_gives_room_back_once(self, store: EventStore) -> None:
        """The size falls by what was removed; nothing is done where nothing was removed since."""
        written = [block_event(str(number), _incompressible(number)) for number in range(50)]
        await store.append("a", written)
        await store.append("a", [compaction(1, 50)], snapshot=Snapshot(version=51, window_start=52))
        assert await store.shrink() is None
        removal = await store.remove("a")
        shrunk = await store.shrink()
        assert shrunk is not None
        assert shrunk[0] - shrunk[1] > 0.9 * removal.size
        assert await store.shrink() is None

    async def test_a_rehearsal_says_what_happens_and_changes_nothing(self, store: EventStore) -> None:
        """Its figures are those of the steps that follow."""
        await filled(store)
        await filled(store, "b")
        before = [e async for e in store.read_all()]
        rehearsal = await store.rehearse(["a", "b"])
        assert [e async for e in store.read_all()] == before
        assert await store.scavenged("a") == {}
        assert (await store.remove("a"), await store.remove("b")) == (rehearsal.removals["a"], rehearsal.removals["b"])
        assert await store.remove_values() == (rehearsal.values, rehearsal.value_size)
        assert await store.shrink() == (rehearsal.before, rehearsal.after)

    async def test_one_runner_has_the_turn(self, store: EventStore) -> None:
        """Another one is shown when it ends, and gets it then; a runner renews its own, and gives it back."""
        end, later = START + timedelta(seconds=10), START + timedelta(seconds=20)
        assert await store.take_lease("one", START, end) is None
        assert await store.take_lease("two", START, end) == end
        assert await store.take_lease("one", START, later) is None
        assert await store.take_lease("two", end, later) == later
        assert await store.take_lease("two", later, later + timedelta(seconds=1)) is None
        assert await store.take_lease("two", later, later) is None
        assert await store.take_lease("one", later, later + timedelta(seconds=1)) is None

    async def test_a_store_keeps_everything_unless_it_is_set_otherwise(self, store: EventStore) -> None:
        """The setting lasts, and removes nothing by itself."""
        await filled(store)
        assert await store.retention() == "keep"
        await store.set_retention("window")
        assert await store.retention() == "window"
        assert len(await versions(store, "a")) == 11

    @pytest.mark.parametrize("value", ["windows", "", None, 30])
    async def test_a_retention_that_there_is_not_is_refused(self, store: EventStore, value: Any) -> None:
        """It would be kept, and nothing ever be removed for it; the setting stays as it was."""
        await store.set_retention("window")
        with pytest.raises(InvalidArgument, match="'keep' or 'window'"):
            await store.set_retention(value)
        assert await store.retention() == "window"
