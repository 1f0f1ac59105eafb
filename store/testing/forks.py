"""The contract of forks: a fork reads the versions that it shares with its parent, and nothing else of the parent's."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from timeline.blocks import instant_text
from timeline.errors import ConversationNotFound, DuplicateEvent, HistoryUnavailable, PathTaken, VersionConflict
from timeline.events import ConversationOpened, ParentLink
from timeline.events.encoding import checksum, encode_payload
from timeline.frozen import sha256_hex
from timeline.ports import Expected, Snapshot

from .base import ContractBase
from .samples import block_event, compaction, event, events, fork, versions

if TYPE_CHECKING:
    from timeline.events import Event
    from timeline.ports import EventStore


async def _family(store: EventStore) -> None:
    """Open a conversation ``a`` of 6 versions, its fork ``b`` at 4, and that one's fork ``c`` at 6; then ``a`` goes on.

    ====  ==============================  ==========================
    log   its own versions                paths
    ====  ==============================  ==========================
    a     1 2 3(compaction) 4 5 6 7       p1 p2 - p4 p5 p6 p7
    b     5(opening) 6 7(compaction) 8    - q6 - q8
    c     7(opening) 8                    - r8
    ====  ==============================  ==========================
    """
    await store.append("a", [block_event("p1"), block_event("p2"), compaction(1, 2)])
    await store.append("a", [block_event("p4"), block_event("p5"), block_event("p6")])
    await store.append("b", [fork("a", 4), block_event("q6")], expected=Expected.NO_STREAM)
    await store.append("b", [compaction(4, 6), block_event("q8")])
    await store.append("c", [fork("b", 6), block_event("r8")], expected=Expected.NO_STREAM)
    await store.append("a", [block_event("p7")])


async def _read(store: EventStore, conversation: str, **bounds: Any) -> list[tuple[str, int]]:
    return [(e.conversation, e.version) async for e in store.read(conversation, **bounds)]


def _places(events: list[Event]) -> list[tuple[str, int]]:
    return [(e.conversation, e.version) for e in events]


C = [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 5), ("b", 6), ("c", 7), ("c", 8)]
"""The conversation of each version of ``c``."""


class ForkContract(ContractBase):
    """The forks of `EventStore`."""

    @pytest.mark.parametrize("expected", [Expected.NO_STREAM, Expected.ANY, 0])
    async def test_a_fork_goes_on_where_it_left_its_parent(self, store: EventStore, expected: int | Expected) -> None:
        """The opening event comes right behind the shared versions, and the store reports their number."""
        await store.append("a", events(5))
        appended = await store.append("b", [fork("a", 3), *events(2)], expected=expected)
        assert (appended.first_version, appended.version, appended.repeated) == (4, 6, False)
        info = await store.info("b")
        assert (info.version, info.base, info.window_start) == (6, 3, 1)
        assert info.parent == ParentLink(conversation="a", version=3, relation="fork")
        assert (await store.info("a")).base == 0
        assert (await store.append("b", events(1), expected=6)).version == 7

    async def test_a_fork_counts_the_compactions_that_it_shares(self, store: EventStore) -> None:
        """Those of the shared versions and its own are counted, and its parent's later ones are not."""
        await _family(store)
        await store.append("d", [fork("b", 2)])
        listed = {info.id: info async for info in store.conversations()}
        assert {id_: info.compactions for id_, info in listed.items()} == {"a": 1, "b": 2, "c": 1, "d": 0}
        times = {(e.conversation, e.version): e.at async for e in store.read_all(types={"compaction.completed"})}
        assert listed["c"].last_compaction_at == listed["a"].last_compaction_at == times["a", 3]
        assert listed["b"].last_compaction_at == times["b", 7]
        assert listed["d"].last_compaction_at is None
        assert listed["b"] == await store.info("b") == (await store.load_window("b")).info

    @pytest.mark.parametrize("page", [1, 2, 3, 500])
    async def test_a_fork_of_a_fork_reads_through_to_both(self, store: EventStore, page: int) -> None:
        """Versions are gapless from 1; each event has the conversation that appended it, and its checksum."""
        await _family(store)
        assert await _read(store, "c", page=page) == C
        assert await _read(store, "b", page=page) == [*C[:6], ("b", 7), ("b", 8)]
        assert await _read(store, "a", page=page) == [("a", version) for version in range(1, 8)]
        async for e in store.read("c", page=page):
            text, at = encode_payload(e.payload), instant_text(e.at)
            assert e.checksum == checksum(e.conversation, e.version, e.id, e.type, e.schema_version, at, text)

    @pytest.mark.parametrize(
        ("bounds", "found"),
        [
            ({"after": 3}, C[3:]),
            ({"after": 4}, C[4:]),
            ({"after": 5, "until": 7}, C[5:7]),
            ({"until": 4}, C[:4]),
            ({"after": 2, "until": 5}, C[2:5]),
            ({"after": 8}, []),
            ({"types": {"compaction.completed"}}, [("a", 3)]),
            ({"types": {"conversation.opened", "compaction.completed"}, "after": 3}, [("b", 5), ("c", 7)]),
            ({"types": {"block.appended"}, "after": 3}, [("a", 4), ("b", 6), ("c", 8)]),
        ],
    )
    async def test_bounds_and_types_hold_across_the_parents(
        self, store: EventStore, bounds: dict[str, Any], found: list[tuple[str, int]]
    ) -> None:
        """``after < version <= until``, of the given types, from any conversation of the lineage."""
        await _family(store)
        for page in (1, 2, 500):
            assert await _read(store, "c", page=page, **bounds) == found

    async def test_a_fork_may_leave_before_its_parent_did(self, store: EventStore) -> None:
        """A fork of a fork at a version that the parent itself shares has none of the parent's own events."""
        await _family(store)
        await store.append("d", [fork("b", 2), block_event("q6")])
        assert await _read(store, "d") == [("a", 1), ("a", 2), ("d", 3), ("d", 4)]
        await store.append("e", [fork("d", 3), block_event("p4")])
        assert await _read(store, "e") == [("a", 1), ("a", 2), ("d", 3), ("e", 4), ("e", 5)]

    async def test_versions_and_paths_are_looked_up_in_the_parents(self, store: EventStore) -> None:
        """Blocks appended up to the fork are found in it; the parent's later ones are not."""
        await _family(store)
        assert _places(await store.read_versions("c", [8, 4, 5, 1, 99, 0])) == [C[0], C[3], C[4], C[7]]
        assert _places(await store.read_versions("b", [7, 5])) == [("b", 5), ("b", 7)]
        found = {path: await store.find("c", path) for path in ("p1", "p4", "p5", "p7", "q6", "q8", "r8")}
        places = {path: (e.conversation, e.version) for path, e in found.items() if e is not None}
        assert places == {"p1": ("a", 1), "p4": ("a", 4), "q6": ("b", 6), "r8": ("c", 8)}
        summary = await store.find("c", "su:turn_1.conv.range.summary.1.2")
        assert summary is not None
        assert (summary.conversation, summary.version) == ("a", 3)
        assert await store.find("c", "su:turn_1.conv.range.summary.4.6") is None
        assert await store.paths_taken("c", ["p", "q", "r"]) == {"p1", "p2", "p4", "q6", "r8"}
        assert await store.paths_taken("b", ["p", "q", "r"]) == {"p1", "p2", "p4", "q6", "q8"}
        assert await store.paths_taken("a", ["p", "q", "r"]) == {"p1", "p2", "p4", "p5", "p6", "p7"}

    async def test_a_shared_path_is_taken_and_a_later_one_of_the_parent_is_free(self, store: EventStore) -> None:
        """A path means one block in a fork as anywhere; the parent's later blocks are not the fork's."""
        await _family(store)
        before = await store.info("c")
        for path in ("p1", "q6", "r8"):
            with pytest.raises(PathTaken) as taken:
                await store.append("c", [block_event("new"), block_event(path)])
            assert (taken.value.conversation, taken.value.path) == ("c", path)
        with pytest.raises(PathTaken):
            await store.append("d", [fork("c", 8), block_event("p2")])
        assert await store.info("c") == before
        with pytest.raises(ConversationNotFound):
            await store.info("d")
        await store.append("c", [block_event("p5"), block_event("q8"), block_event("new")])
        found = await store.find("c", "p5")
        assert found is not None
        assert (found.conversation, found.version) == ("c", 9)
        await store.append("a", [block_event("new")])

    async def test_the_parent_goes_on_for_itself(self, store: EventStore) -> None:
        """Blocks, compactions and snapshots of the parent after the fork never show in it."""
        await _family(store)
        before = [e async for e in store.read("c")], await store.load_window("c")
        snapshot = Snapshot(version=9, window_start=9, blocks=(1,))
        await store.append("a", [block_event("later"), compaction(1, 8)], snapshot=snapshot)
        await store.append("b", [compaction(1, 8)], snapshot=snapshot)
        assert ([e async for e in store.read("c")], await store.load_window("c")) == before
        assert await store.find("c", "later") is None

    async def test_all_events_are_read_once_under_their_own_conversations(self, store: EventStore) -> None:
        """A shared event is one event of the store."""
        await _family(store)
        read = [(e.conversation, e.version) async for e in store.read_all(page=2)]
        assert read == [
            *(("a", version) for version in range(1, 7)),
            *(("b", version) for version in range(5, 9)),
            ("c", 7),
            ("c", 8),
            ("a", 7),
        ]
        assert [(info.id, info.version, info.base) async for info in store.conversations()] == [
            ("a", 7, 0),
            ("b", 8, 4),
            ("c", 8, 6),
        ]

    async def test_without_a_snapshot_the_window_of_a_fork_is_everything(self, store: EventStore) -> None:
        """A parent's snapshot is of the parent's version; a fork without one is folded from the beginning."""
        await _family(store)
        window = await store.load_window("c")
        assert window.snapshot is None
        assert window.info == await store.info("c")
        assert _places(list(window.events)) == C

    @pytest.mark.parametrize(
        ("start", "carried", "loaded"),
        [
            (2, (), C[1:]),
            (5, (1, 3), [C[0], C[2], *C[4:]]),
            (6, (1, 5), [C[0], *C[4:]]),
            (7, (2, 6), [C[1], *C[5:]]),
            (8, (7, 6, 4), [C[3], *C[5:]]),
            (9, (4, 7), [C[3], C[6]]),
        ],
    )
    async def test_the_window_of_a_fork_may_begin_and_carry_anywhere(
        self, store: EventStore, start: int, carried: tuple[int, ...], loaded: list[tuple[str, int]]
    ) -> None:
        """The snapshot in the opening append may name versions of any conversation of the lineage."""
        await store.append("a", events(5))
        await store.append("b", [fork("a", 4), *events(1)])
        snapshot = Snapshot(version=8, window_start=start, blocks=carried)
        await store.append("c", [fork("b", 6), *events(1)], expected=Expected.NO_STREAM, snapshot=snapshot)
        window = await store.load_window("c")
        assert window.snapshot == snapshot
        assert _places(list(window.events)) == loaded

    async def test_event_ids_are_each_conversations_own(self, store: EventStore) -> None:
        """An id of the parent's is new in the fork, and the other way round."""
        written = events(2)
        await store.append("a", written)
        await store.append("b", [fork("a", 2)])
        assert await store.known_ids("b", {e.id for e in written}) == set()
        assert (await store.append("b", written)).first_version == 4
        assert await store.known_ids("b", {e.id for e in written}) == {e.id for e in written}

    @pytest.mark.parametrize("expected", [Expected.NO_STREAM, 0, Expected.ANY, 3])
    async def test_a_repeated_opening_of_a_fork_is_answered_with_its_own_versions(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """The same opening again writes nothing, even after later appends to both conversations."""
        await store.append("a", events(5))
        opening = [fork("a", 3), block_event("p")]
        first = await store.append("b", opening, expected=Expected.NO_STREAM)
        await store.append("b", events(2))
        await store.append("a", events(2))
        again = await store.append("b", opening, expected=expected)
        assert (again.first_version, again.version, again.position) == (4, 5, first.position)
        assert again.repeated

    @pytest.mark.parametrize("expected", [Expected.NO_STREAM, 0, 1, 3, 4, 7, 9])
    async def test_an_open_fork_refuses_no_stream_and_any_other_version(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """A fork at version 8 with the base 3 meets none of these; shared events are no repetition."""
        written = events(5)
        await store.append("a", written)
        await store.append("b", [fork("a", 3), *events(4)])
        for attempt in (events(1), written[1:3], written):
            with pytest.raises(VersionConflict) as conflict:
                await store.append("b", attempt, expected=expected)
            assert (conflict.value.expected, conflict.value.actual) == (expected, 8)

    @pytest.mark.parametrize("expected", [Expected.STREAM_EXISTS, 1, 3, 4, -1])
    async def test_a_fork_that_is_not_open_meets_no_version(self, store: EventStore, expected: int | Expected) -> None:
        """Before its opening there is no conversation, not even at the version where it will leave its parent."""
        await store.append("a", events(5))
        with pytest.raises(VersionConflict) as conflict:
            await store.append("b", [fork("a", 3)], expected=expected)
        assert conflict.value.actual == 0

    async def test_known_ids_in_other_company_are_a_duplicate_in_a_fork(self, store: EventStore) -> None:
        """The rules of a repetition are those of any conversation, also when the append has a shared path."""
        await store.append("a", [block_event("p1")])
        one, two = block_event("q1"), block_event("q2")
        await store.append("b", [fork("a", 1), one, two])
        for attempt in ([two, one], [one, block_event("p1")]):
            with pytest.raises(DuplicateEvent):
                await store.append("b", attempt)
        assert (await store.append("b", [one, two])).repeated

    async def test_a_fork_of_an_unknown_conversation_is_refused(self, store: EventStore) -> None:
        """The error names the missing parent and the cure; nothing is written. A fork of itself has no parent."""
        value = {sha256_hex("text"): "text"}
        for parent in ("nobody", "b"):
            with pytest.raises(ConversationNotFound, match="timeline ls") as missing:
                await store.append("b", [fork(parent, 1)], values=value)
            assert missing.value.conversation == parent
        assert [info async for info in store.conversations()] == []
        assert await store.values(value) == {}

    @pytest.mark.parametrize("version", [6, 10**30, 0, -1])
    async def test_a_fork_at_a_version_that_the_parent_does_not_hold_is_refused(
        self, store: EventStore, version: int
    ) -> None:
        """The error names the versions that the parent holds, and nothing is written."""
        await store.append("a", events(5))
        with pytest.raises(HistoryUnavailable, match="the versions 1 to 5") as unavailable:
            await store.append("b", [fork("a", version), *events(1)], snapshot=Snapshot(version=2, window_start=1))
        facts = unavailable.value
        assert (facts.conversation, facts.version, facts.first_version, facts.last_version) == ("a", version, 1, 5)
        with pytest.raises(ConversationNotFound):
            await store.info("b")

    async def test_any_other_link_is_a_mere_reference(self, store: EventStore) -> None:
        """A subagent, and a fork without a version, begin at version 1, with or without an existing parent."""
        link = ParentLink(conversation="nobody", version=7, relation="subagent")
        await store.append("a", [event(ConversationOpened(parent=link)), block_event("p")])
        await store.append("b", [fork("a", None), block_event("p")])
        for name in ("a", "b"):
            assert await versions(store, name) == [1, 2]
            assert (await store.info(name)).base == 0

    async def test_only_the_opening_makes_a_fork(self, store: EventStore) -> None:
        """A parent link in a later append changes nothing: the opening alone decides which versions are shared."""
        await store.append("a", events(3))
        await store.append("b", events(1))
        assert (await store.append("b", [fork("a", 3)])).version == 2
        info = await store.info("b")
        assert (info.base, info.parent) == (0, None)
        assert await versions(store, "b") == [1, 2]
