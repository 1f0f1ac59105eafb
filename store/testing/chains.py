"""The contract of the chain, and of what proves and mends a store."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from timeline.errors import ConversationNotFound, InvalidBlock, VersionConflict
from timeline.events.chain import START, Seal, commitment, link, remains
from timeline.events.encoding import checksum
from timeline.ports import Expected, Snapshot

from .base import ContractBase
from .samples import block_event, events, fork

if TYPE_CHECKING:
    from timeline.ports import ChainedEvent, EventStore


async def _chained(store: EventStore, conversation: str) -> list[ChainedEvent]:
    return [event async for event in store.chained(conversation, page=2)]


def _follows(event: ChainedEvent, before: bytes) -> bool:
    """Return whether an event is linked behind another link."""
    place = (event.conversation, event.version, event.id, event.type, event.schema_version, event.at)
    return event.c is not None and event.link == link(before, *place, event.c)


class ChainContract(ContractBase):
    """The chain of `EventStore.append`, and `Proofs`."""

    async def test_each_event_is_linked_behind_the_one_before(self, store: EventStore) -> None:
        """Whatever the appends were; the last link is the head."""
        await store.append("a", events(2))
        await store.append("b", events(1))
        await store.append("a", [block_event("p"), *events(2)])
        before = START
        for event in await _chained(store, "a"):
            assert _follows(event, before)
            assert event.salt is not None
            assert event.c == commitment(event.salt, event.checksum)
            before = event.link or b""
        assert await store.chain_head("a") == before
        assert [event.path for event in await _chained(store, "a")][2] == "p"

    async def test_events_are_written_as_they_are_read_and_chained(self, store: EventStore) -> None:
        """With the text that their checksums cover; a fork's shared past too, and between two versions."""
        await store.append("a", [*events(3), block_event("p")])
        await store.append("b", [fork("a", 3), *events(2)], expected=Expected.NO_STREAM)
        for conversation in ("a", "b"):
            read = [event async for event in store.read(conversation)]
            chained = await _chained(store, conversation)
            written = [event async for event in store.read_written(conversation, page=2)]
            assert [(w.version, w.id, w.type, w.schema_version, w.checksum) for w in written] == [
                (e.version, str(e.id), e.type, e.schema_version, e.checksum) for e in read
            ]
            assert [(w.at, w.salt, w.c, w.link) for w in written] == [(c.at, c.salt, c.c, c.link) for c in chained]
            for event, whole in zip(written, read, strict=True):
                place = (whole.conversation, event.version, event.id, event.type, event.schema_version, event.at)
                assert checksum(*place, event.text) == event.checksum
                assert event.payload is None or event.payload == whole.payload
            assert [w async for w in store.read_written(conversation, after=1, until=3, page=1)] == written[1:3]

    async def test_a_fork_begins_with_the_link_at_its_base(self, store: EventStore) -> None:
        """Read whole, it is one chain; behind a version, the rest of it."""
        await store.append("a", events(5))
        await store.append("b", [fork("a", 3), *events(2)], expected=Expected.NO_STREAM)
        chained = await _chained(store, "b")
        assert [(event.conversation, event.version) for event in chained] == [
            ("a", 1),
            ("a", 2),
            ("a", 3),
            ("b", 4),
            ("b", 5),
            ("b", 6),
        ]
        assert all(_follows(b, a.link or b"") for a, b in pairwise(chained))
        assert [event async for event in store.chained("b", after=4)] == chained[4:]

    @pytest.mark.parametrize("base", [1, 2, 3])
    async def test_a_fork_of_a_fork_is_chained_behind_the_log_that_holds_its_base(
        self, store: EventStore, base: int
    ) -> None:
        """Where it leaves at or before its parent's own base, nothing of its parent is in its chain or in its link."""
        await store.append("a", events(5))
        await store.append("b", [fork("a", 3), *events(3)], expected=Expected.NO_STREAM)
        await store.append("c", [fork("b", base), *events(1)], expected=Expected.NO_STREAM)
        await store.append("d", [fork("c", 1), *events(1)], expected=Expected.NO_STREAM)
        for name, shared in (("c", base), ("d", 1)):
            chained = await _chained(store, name)
            assert [(event.conversation, event.version) for event in chained] == [
                *(("a", version) for version in range(1, shared + 1)),
                (name, shared + 1),
                (name, shared + 2),
            ]
            assert _follows(chained[0], START)
            assert all(_follows(b, a.link or b"") for a, b in pairwise(chained))
            assert await store.chain_head(name) == chained[-1].link

    async def test_events_keep_the_seals_that_they_come_with(self, store: EventStore) -> None:
        """So that their links are what they were elsewhere; an erased one has its commitment alone."""
        kept = [Seal(bytes(16), b"\x01" * 33), Seal(None, b"\x02" * 33)]
        await store.append("a", events(2), seals=kept)
        first, second = await _chained(store, "a")
        assert (first.salt, first.c) == (bytes(16), commitment(bytes(16), first.checksum))
        assert (second.salt, second.c) == (None, b"\x02" * 33)
        assert _follows(second, first.link or b"")

    async def test_a_seal_too_few_is_refused(self, store: EventStore) -> None:
        """Nothing is written."""
        with pytest.raises(InvalidBlock, match="seals"):
            await store.append("a", events(2), seals=[Seal(None, b"c")])
        with pytest.raises(ConversationNotFound):
            await store.info("a")

    async def test_a_scavenged_event_keeps_its_place_in_the_chain(self, store: EventStore) -> None:
        """Its salt is gone; type and path are vouched for."""
        await store.append("a", [block_event("p1"), *events(3)])
        await store.append("a", events(1), snapshot=Snapshot(version=5, window_start=4, state={}))
        whole = await _chained(store, "a")
        await store.remove("a")
        left = await _chained(store, "a")
        assert [(e.version, e.type, e.path, e.c, e.link) for e in left] == [
            (e.version, e.type, e.path, e.c, e.link) for e in whole
        ]
        first = left[0]
        assert (first.checksum, first.salt) == ("", remains(first.link or b"", "block.appended", "p1"))

    async def test_the_chain_of_an_unknown_conversation_is_a_typed_error(self, store: EventStore) -> None:
        """There is none."""
        with pytest.raises(ConversationNotFound):
            await store.chain_head("nowhere")
        with pytest.raises(ConversationNotFound):
            await _chained(store, "nowhere")
        with pytest.raises(ConversationNotFound):
            await anext(store.read_written("nowhere"))

    async def test_a_sound_store_has_nothing_to_mend(self, store: EventStore) -> None:
        """Neither is what is derived different from the log, nor is anything changed."""
        await store.append("a", [*events(3), block_event("p")])
        assert [found async for found in store.search("hello")]
        assert [fact async for fact in store.facts()]
        assert await store.examine() == []
        assert await store.mend() == []

    async def test_a_snapshot_is_replaced_or_taken_away(self, store: EventStore) -> None:
        """The window begins where it says, or at version 1."""
        await store.append("a", events(5))
        snapshot = Snapshot(version=5, window_start=4, state={})
        await store.replace_snapshot("a", snapshot)
        window = await store.load_window("a")
        assert (window.snapshot, [event.version for event in window.events]) == (snapshot, [4, 5])
        await store.replace_snapshot("a", None)
        window = await store.load_window("a")
        assert (window.snapshot, len(window.events)) == (None, 5)

    async def test_a_snapshot_of_another_version_of_the_log_is_refused(self, store: EventStore) -> None:
        """A redaction may have come since; and so is one of no conversation."""
        await store.append("a", events(5))
        snapshot = Snapshot(version=5, window_start=4, state={})
        with pytest.raises(VersionConflict):
            await store.replace_snapshot("a", snapshot, expected=4)
        assert (await store.load_window("a")).snapshot is None
        await store.replace_snapshot("a", snapshot, expected=5)
        assert (await store.load_window("a")).snapshot == snapshot
        with pytest.raises(ConversationNotFound):
            await store.replace_snapshot("nowhere", snapshot)
