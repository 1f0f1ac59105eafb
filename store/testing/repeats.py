"""The contract of a repeated append: event ids make a retry harmless, and no other append passes for a retry."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline.errors import DuplicateEvent, VersionConflict
from timeline.frozen import sha256_hex
from timeline.ports import Expected, Snapshot

from .base import ContractBase
from .samples import block_event, events, versions

if TYPE_CHECKING:
    from timeline.events import NewEvent
    from timeline.ports import EventStore


def _changed(written: NewEvent) -> NewEvent:
    return written.model_copy(update={"payload": block_event(text="something else").payload})


class RepeatContract(ContractBase):
    """The table of `store.append_rules`, row by row."""

    @pytest.mark.parametrize("expected", [Expected.ANY, Expected.STREAM_EXISTS, 2])
    async def test_a_repeated_append_is_answered_with_its_own_versions(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """The same events again write nothing, even after later appends."""
        await store.append("a", events(2))
        written = events(3)
        first = await store.append("a", written, expected=expected)
        await store.append("a", events(2))
        value = {sha256_hex("text"): "text"}
        snapshot = Snapshot(version=7, window_start=7)
        again = await store.append("a", written, expected=expected, values=value, snapshot=snapshot)
        assert (again.first_version, again.version, again.position) == (3, 5, first.position)
        assert (first.repeated, again.repeated) == (False, True)
        assert await versions(store, "a") == list(range(1, 8))
        assert await store.values(value) == {}
        assert (await store.load_window("a")).snapshot is None

    @pytest.mark.parametrize("expected", [Expected.NO_STREAM, 0])
    async def test_a_repeated_opening_is_answered_with_its_own_versions(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """The first append is recognised again, although it expected no conversation."""
        written = events(3)
        first = await store.append("a", written, expected=expected)
        again = await store.append("a", written, expected=expected)
        assert (again.first_version, again.version, again.position) == (1, 3, first.position)
        assert again.repeated

    async def test_a_part_of_an_earlier_append_counts_as_a_repetition(self, store: EventStore) -> None:
        """The events at these versions count, not the appends that wrote them."""
        written = events(4)
        await store.append("a", written)
        again = await store.append("a", written[1:3], expected=1)
        assert (again.first_version, again.version, again.repeated) == (2, 3, True)

    @pytest.mark.parametrize("expected", [Expected.ANY, Expected.STREAM_EXISTS, 3])
    async def test_known_and_new_ids_together_are_a_duplicate(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """At the end of the log an append is new or known, never half of each; nothing is written."""
        written = events(3)
        await store.append("a", written)
        with pytest.raises(DuplicateEvent) as duplicate:
            await store.append("a", [block_event(), written[1]], expected=expected)
        assert duplicate.value.event_id == str(written[1].id)
        assert await versions(store, "a") == [1, 2, 3]

    async def test_known_ids_at_the_exact_end_are_a_duplicate(self, store: EventStore) -> None:
        """An append that expects the current version cannot repeat events before it."""
        written = events(3)
        await store.append("a", written)
        with pytest.raises(DuplicateEvent):
            await store.append("a", written, expected=3)

    @pytest.mark.parametrize("expected", [Expected.NO_STREAM, 0, 1])
    async def test_other_events_at_an_earlier_version_are_a_conflict(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """New ids, a different order, or more events than the log has there: another writer appended."""
        written = events(3)
        await store.append("a", written)
        for attempt in (events(1), written[::-1], [*written, block_event()]):
            with pytest.raises(VersionConflict):
                await store.append("a", attempt, expected=expected)

    @pytest.mark.parametrize("expected", [Expected.ANY, Expected.STREAM_EXISTS])
    async def test_known_ids_in_another_order_or_company_are_a_duplicate(
        self, store: EventStore, expected: Expected
    ) -> None:
        """All ids are known, but the log never had them in this order."""
        one, two, three = events(3)
        await store.append("a", [one, two, three])
        for attempt in ([two, one], [one, three]):
            with pytest.raises(DuplicateEvent):
                await store.append("a", attempt, expected=expected)

    @pytest.mark.parametrize("expected", [Expected.ANY, Expected.STREAM_EXISTS, Expected.NO_STREAM, 0])
    async def test_the_same_id_with_other_content_is_a_duplicate(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """A changed event with a known id never passes for the stored one."""
        one, two = events(2)
        await store.append("a", [one, two])
        with pytest.raises(DuplicateEvent) as duplicate:
            await store.append("a", [one, _changed(two)], expected=expected)
        assert duplicate.value.event_id == str(two.id)

    async def test_an_id_may_be_used_again_in_another_conversation(self, store: EventStore) -> None:
        """Ids are unique in a conversation only, since forks and imports repeat them."""
        written = events(2)
        await store.append("a", written)
        again = await store.append("b", written, expected=Expected.NO_STREAM)
        assert (again.first_version, again.version, again.repeated) == (1, 2, False)

    async def test_known_ids_are_those_that_the_conversation_holds(self, store: EventStore) -> None:
        """Ids of other conversations and new ones are left out; an unknown conversation holds none."""
        written, others, new = events(2), events(2), events(2)
        await store.append("a", written)
        await store.append("b", others)
        ids = {e.id for e in (*written, *others, *new)}
        assert await store.known_ids("a", ids) == {e.id for e in written}
        assert await store.known_ids("nobody", ids) == set()
        assert await store.known_ids("a", []) == set()
