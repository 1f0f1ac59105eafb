"""The contract of reading: pages, types, addresses, the window, all conversations, and events of later versions."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from timeline.blocks import instant_text
from timeline.errors import ConversationNotFound, VersionConflict
from timeline.events import BlocksPinned, CompactionReverted, Event, UnknownPayload
from timeline.events.encoding import checksum, encode_payload
from timeline.ports import Expected, Snapshot

from .base import ContractBase
from .samples import block_event, compaction, contents, event, events, versions

if TYPE_CHECKING:
    from timeline.ports import EventStore


async def _filled(store: EventStore) -> None:
    """Fill conversation a: versions 1 to 7 are blocks, but 3 and 6 are compactions and 4 is a pin."""
    await store.append("a", [block_event("p1"), block_event("p2"), compaction(1, 2)])
    await store.append(
        "a", [event(BlocksPinned(versions=(1,))), block_event("p5"), compaction(4, 5), block_event("p7")]
    )


class ReadContract(ContractBase):
    """Every read of `EventStore`."""

    @pytest.mark.parametrize("page", [1, 2, 3, 7, 500])
    async def test_reading_in_pages_of_any_size_gives_the_same_events(self, store: EventStore, page: int) -> None:
        """A page sets how many events are read at a time, not how many are returned."""
        await _filled(store)
        assert await versions(store, "a", page=page) == [1, 2, 3, 4, 5, 6, 7]
        assert await versions(store, "a", page=page, types={"compaction.completed"}) == [3, 6]
        assert await versions(store, "a", page=page, types={"block.appended"}) == [1, 2, 5, 7]
        mixed = {"block.appended", "compaction.completed"}
        assert await versions(store, "a", page=page, types=mixed) == [1, 2, 3, 5, 6, 7]
        rare = {"blocks.pinned", "compaction.completed"}
        assert await versions(store, "a", page=page, types=rare) == [3, 4, 6]
        every = [e async for e in store.read_all(page=page)]
        assert [e.version for e in every] == [1, 2, 3, 4, 5, 6, 7]
        assert all(one.position < two.position for one, two in itertools.pairwise(every))
        assert [e.version async for e in store.read_all(page=page, types=rare)] == [3, 4, 6]
        assert [e.version async for e in store.read_all(page=page, types=mixed)] == [1, 2, 3, 5, 6, 7]

    async def test_compactions_are_counted_undone_ones_included(self, store: EventStore) -> None:
        """A conversation knows how many compactions it had, and when the newest one was."""
        await store.append("a", events(2))
        info = await store.info("a")
        assert (info.compactions, info.last_compaction_at) == (0, None)
        older, newest = compaction(1, 2), compaction(3, 3, round_=2)
        await store.append("a", [older, newest, event(CompactionReverted(versions=(4,))), block_event()])
        info = await store.info("a")
        assert (info.compactions, info.last_compaction_at) == (2, newest.at)
        assert [listed async for listed in store.conversations()] == [info]

    async def test_a_page_holds_at_least_one_event(self, store: EventStore) -> None:
        """An empty page would never end."""
        await _filled(store)
        with pytest.raises(ValueError, match="page"):
            await versions(store, "a", page=0)

    @pytest.mark.parametrize(
        ("bounds", "found"),
        [
            ({"after": 0}, [1, 2, 3, 4, 5, 6, 7]),
            ({"after": 3}, [4, 5, 6, 7]),
            ({"after": -5, "until": 2}, [1, 2]),
            ({"after": 2, "until": 5}, [3, 4, 5]),
            ({"after": 7}, []),
            ({"until": 0}, []),
            ({"after": 10**30}, []),
            ({"after": 6, "until": 10**30}, [7]),
            ({"after": 2, "until": 6, "types": {"compaction.completed"}}, [3, 6]),
            ({"types": set()}, []),
        ],
    )
    async def test_bounds_are_after_and_up_to(
        self, store: EventStore, bounds: dict[str, Any], found: list[int]
    ) -> None:
        """``after < version <= until``, of the given types."""
        await _filled(store)
        assert [e.version async for e in store.read("a", page=2, **bounds)] == found

    async def test_reading_an_unknown_conversation_says_so(self, store: EventStore) -> None:
        """Reading a missing conversation raises; look-ups in it find nothing."""
        for read in (store.load_window("b"), store.info("b"), versions(store, "b")):
            with pytest.raises(ConversationNotFound) as missing:
                await read
            assert missing.value.conversation == "b"
        assert await store.read_versions("b", [1]) == []
        assert await store.find("b", "p1") is None
        assert await store.paths_taken("b", ["p"]) == set()

    async def test_a_reading_may_pause_while_others_append(self, store: EventStore) -> None:
        """Nothing is locked between two pages: an append succeeds, and the read ends at the version it began with."""
        await _filled(store)
        seen = []
        async for read in store.read("a", page=2):
            seen.append(read.version)
            await store.append("a", events(1))
        assert seen == [1, 2, 3, 4, 5, 6, 7]
        assert (await store.info("a")).version == 14

    async def test_a_reading_may_be_left_in_the_middle(self, store: EventStore) -> None:
        """A read that is abandoned leaves nothing behind that blocks later calls."""
        await _filled(store)
        reading = store.read("a", page=2)
        assert (await anext(reading)).version == 1
        await store.append("a", events(1), expected=7)

    async def test_versions_are_read_in_order_and_missing_ones_left_out(self, store: EventStore) -> None:
        """`read_versions` sorts, drops repeated versions and leaves out versions that do not exist."""
        await _filled(store)
        assert [e.version for e in await store.read_versions("a", [6, 2, 99, 2, 0, -1])] == [2, 6]
        assert await store.read_versions("a", []) == []

    async def test_a_block_is_found_at_its_path(self, store: EventStore) -> None:
        """The event that appended the block is returned, a summary's too; another conversation's is not."""
        await _filled(store)
        found = await store.find("a", "p5")
        assert found is not None
        assert found.version == 5
        summary = await store.find("a", "su:turn_1.conv.range.summary.1.2")
        assert summary is not None
        assert summary.version == 3
        assert await store.find("a", "p") is None
        await store.append("b", events(1))
        assert await store.find("b", "p5") is None

    async def test_taken_paths_are_those_that_begin_with_a_stem(self, store: EventStore) -> None:
        """Stems are prefixes, compared character by character: no wildcard, no change of case."""
        paths = ["tc:t.c.call", "tc:t.c~2.call", "tc:t.c%.call", "tc:t.C.call", "tc:t.d.call", "tc:t.c😀", "tc:t.c"]
        await store.append("a", [block_event(path) for path in paths])
        await store.append("b", [block_event("tc:t.c.other")])
        assert await store.paths_taken("a", ["tc:t.c"]) == {p for p in paths if p.startswith("tc:t.c")}
        assert await store.paths_taken("a", ["tc:t.c.call", "tc:t.d", "x"]) == {"tc:t.c.call", "tc:t.d.call"}
        assert await store.paths_taken("a", ["tc:t.%", "tc:t._", "tc:t.?"]) == set()
        assert await store.paths_taken("a", [""]) == set(paths)
        assert await store.paths_taken("a", []) == set()

    async def test_without_a_snapshot_the_window_is_everything(self, store: EventStore) -> None:
        """A conversation that was never compacted has its window from version 1 on."""
        await _filled(store)
        window = await store.load_window("a")
        assert window.snapshot is None
        assert window.info == await store.info("a")
        assert [e.version for e in window.events] == [1, 2, 3, 4, 5, 6, 7]

    async def test_with_a_snapshot_the_window_is_its_blocks_and_what_follows_its_start(self, store: EventStore) -> None:
        """Carried blocks below the window's start, then everything from there, later appends included."""
        await _filled(store)
        snapshot = Snapshot(version=8, window_start=6, blocks=(4, 1), state={"rounds": 3, "open": ["ä", None, 1.5]})
        await store.append("a", [compaction(1, 5)], expected=7, snapshot=snapshot)
        await store.append("a", events(1))
        window = await store.load_window("a")
        assert window.snapshot == snapshot
        assert window.info.window_start == 6
        assert [e.version for e in window.events] == [1, 4, 6, 7, 8, 9]

    async def test_a_snapshot_replaces_the_one_before(self, store: EventStore) -> None:
        """A conversation has one snapshot, the newest; an append without one keeps it."""
        await _filled(store)
        await store.append("a", events(1), snapshot=Snapshot(version=8, window_start=5, blocks=(1, 2)))
        newest = Snapshot(version=9, window_start=9, blocks=(2,))
        await store.append("a", events(1), snapshot=newest)
        await store.append("a", events(1))
        window = await store.load_window("a")
        assert window.snapshot == newest
        assert [e.version for e in window.events] == [2, 9, 10]

    async def test_a_window_may_begin_behind_the_last_event(self, store: EventStore) -> None:
        """When everything is covered or carried, only the carried blocks are read."""
        await _filled(store)
        await store.append("a", [compaction(1, 7)], snapshot=Snapshot(version=8, window_start=9, blocks=(7,)))
        assert [e.version for e in (await store.load_window("a")).events] == [7]

    @pytest.mark.parametrize("page", [1, 2, 200])
    async def test_conversations_come_in_the_order_in_which_they_were_opened(
        self, store: EventStore, page: int
    ) -> None:
        """A later append to an old conversation does not move it."""
        for name in ("c", "a", "b", "a"):
            await store.append(name, events(1), expected=Expected.ANY)
        infos = [info async for info in store.conversations(page=page)]
        assert [(info.id, info.version) for info in infos] == [("c", 1), ("a", 2), ("b", 1)]

    @pytest.mark.parametrize("page", [1, 2, 200])
    async def test_recent_conversations_begin_with_the_one_that_changed_last(
        self, store: EventStore, page: int
    ) -> None:
        """Those of one moment come by their ids, the greatest first; an event of an earlier time moves one back."""
        begin = block_event().at
        for name, minutes in (("c", 5), ("a", 2), ("b", 2), ("Z", 2), ("a\x00", 2), ("c", 1), ("a", 9)):
            changed = block_event().model_copy(update={"at": begin + timedelta(minutes=minutes)})
            await store.append(name, [changed], expected=Expected.ANY)
        infos = [info async for info in store.recent_conversations(page=page)]
        assert [(info.id, info.version) for info in infos] == [("a", 2), ("b", 1), ("a\x00", 1), ("Z", 1), ("c", 2)]
        assert await store.conversation_count() == len(infos)
        for number, info in enumerate(infos, 1):
            behind = store.recent_conversations(before=(info.updated_at, info.id), page=page)
            assert [found async for found in behind] == infos[number:]

    async def test_reading_all_goes_on_after_a_position(self, store: EventStore) -> None:
        """A position is a checkpoint: later appends to any conversation come after it."""
        await store.append("a", events(2))
        checkpoint = [e.position async for e in store.read_all()][-1]
        assert [e async for e in store.read_all(after=checkpoint)] == []
        await store.append("b", [block_event(), compaction(1, 1)])
        await store.append("a", events(1))
        later = [(e.conversation, e.version) async for e in store.read_all(after=checkpoint)]
        assert later == [("b", 1), ("b", 2), ("a", 3)]
        rare = [e.version async for e in store.read_all(after=checkpoint, types={"compaction.completed"})]
        assert rare == [2]
        assert [e async for e in store.read_all(types=set())] == []
        assert [e async for e in store.read_all(after=10**30)] == []

    async def test_the_head_is_the_position_of_the_last_event(self, store: EventStore) -> None:
        """A reader that read up to the head continues behind it; a refused append does not move it."""
        assert await store.head() == 0
        await store.append("a", events(2))
        head = await store.head()
        assert head == [e.position async for e in store.read_all()][-1]
        with pytest.raises(VersionConflict):
            await store.append("a", events(1), expected=Expected.NO_STREAM)
        assert await store.head() == head
        appended = await store.append("b", events(3))
        assert await store.head() == appended.position > head
        assert [e.version async for e in store.read_all(after=head)] == [1, 2, 3]

    async def test_events_of_a_later_version_survive_byte_for_byte(self, store: EventStore) -> None:
        """An unknown type and a newer schema version of a known one are returned unchanged."""
        data: dict[str, Any] = {
            "block": {"type": "note", "colour": "green", "path": "p"},
            "z": [1, 2.5, None],
            "a": "ä",
        }
        written = [
            event(UnknownPayload(type="stage.dreamt", data=data)),
            event(UnknownPayload(type="block.appended", data={"new": True}, stored_schema_version=99)),
        ]
        await store.append("a", written)
        read = [e async for e in store.read("a")]
        assert contents(read) == contents(written)
        assert [encode_payload(e.payload) for e in read] == [encode_payload(e.payload) for e in written]
        assert [e.schema_version for e in read] == [1, 99]
        found = await store.find("a", "p")
        assert found is not None
        assert found.version == 1

    async def test_the_checksum_is_that_of_the_log_format(self, store: EventStore) -> None:
        """It can be computed again from the event's own fields."""
        await _filled(store)
        async for read in store.read("a"):
            assert isinstance(read, Event)
            text, at = encode_payload(read.payload), instant_text(read.at)
            assert read.checksum == checksum("a", read.version, read.id, read.type, read.schema_version, at, text)

    async def test_any_text_may_name_a_conversation(self, store: EventStore) -> None:
        """Slashes, quotes, spaces, other scripts and long names are plain text; an impossible name is not found."""
        names = ["a/b\\c", 'it\'s "x"', "  ", "会話😀", "%_*?", "x" * 5_000, "a\x00b", "a"]
        for name in names:
            await store.append(name, events(1), expected=Expected.NO_STREAM)
        assert [info.id async for info in store.conversations()] == names
        for name in names:
            assert await versions(store, name) == [1]
        with pytest.raises(ConversationNotFound):
            await store.info("\ud800")
