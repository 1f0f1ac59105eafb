"""The contract of snapshots of the past: which are kept, which one is near, and what becomes of them."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline.errors import ConversationNotFound, VersionConflict
from timeline.events import BlockRedacted
from timeline.ports import Expected, Rewriting, Snapshot

from .base import ContractBase
from .samples import block_event, compaction, event, events, fork

if TYPE_CHECKING:
    from pydantic import JsonValue

    from timeline.ports import EventStore


def _at(version: int, prefix: str = "") -> Snapshot:
    return Snapshot(version=version, window_start=version, state={"said": f"{prefix}{version}"})


async def _kept(store: EventStore, conversation: str = "a") -> None:
    """Append four events with a snapshot, and four, and four."""
    for version in (4, 8, 12):
        await store.append(conversation, events(4), snapshot=_at(version))


class WaypointContract(ContractBase):
    """`EventStore.load_waypoint` and those of `Proofs` as tests."""

    async def test_each_snapshot_is_kept_and_the_nearest_one_is_found(self, store: EventStore) -> None:
        """Up to a version, and behind another one; the newest one is among them."""
        await _kept(store)
        assert await store.waypoints("a") == [4, 8, 12]
        found = [await store.load_waypoint("a", until) for until in (3, 4, 7, 8, 99)]
        assert found == [None, _at(4), _at(4), _at(8), _at(12)]
        assert await store.load_waypoint("a", 11, after=8) is None
        assert await store.load_waypoint("a", 11, after=7) == _at(8)

    async def test_keys_keep_their_order(self, store: EventStore) -> None:
        """What a snapshot shows of a hidden call is sent from it: sorted keys would be other bytes to a cache."""
        shown: dict[str, JsonValue] = {"path": "a.py", "content": {"z": 1, "a": 2}}
        snapshot = Snapshot(version=4, window_start=4, state={"turns": {}, "items": [{"arguments": shown}]})
        await store.append("a", events(4), snapshot=snapshot)
        own, past = (await store.load_window("a")).snapshot, await store.load_waypoint("a", 4)
        assert own is not None
        assert past is not None
        assert repr(own.state) == repr(past.state) == repr(snapshot.state)

    async def test_a_conversation_without_one_has_none(self, store: EventStore) -> None:
        """Asking an unknown conversation is a typed error."""
        await store.append("a", events(2))
        assert await store.waypoints("a") == []
        assert await store.load_waypoint("a", 2) is None
        for asked in (store.waypoints("b"), store.load_waypoint("b", 1), store.replace_waypoints("b", [])):
            with pytest.raises(ConversationNotFound):
                await asked

    async def test_a_fork_has_those_of_the_past_that_it_shares(self, store: EventStore) -> None:
        """Up to its base, and its own behind it."""
        await _kept(store)
        await store.append("f", [fork("a", 9)], expected=Expected.NO_STREAM)
        assert await store.waypoints("f") == []
        assert await store.load_waypoint("f", 99) == _at(8)
        await store.append("f", events(1), snapshot=_at(11, "fork "))
        assert await store.load_waypoint("f", 99) == _at(11, "fork ")
        assert await store.load_waypoint("f", 10) == _at(8)
        assert await store.waypoints("f") == [11]

    async def test_they_can_be_replaced_and_dropped(self, store: EventStore) -> None:
        """Others stay as they are, and so does the snapshot that the conversation is opened from."""
        await _kept(store)
        await store.replace_waypoints("a", [_at(2, "new "), _at(8, "new ")], dropped=[4, 5])
        assert await store.waypoints("a") == [2, 8, 12]
        assert await store.load_waypoint("a", 9) == _at(8, "new ")
        assert (await store.load_window("a")).snapshot == _at(12)

    async def test_they_are_replaced_at_the_expected_version_alone(self, store: EventStore) -> None:
        """A redaction may have come since they were made, whose content they would bring back."""
        await _kept(store)
        with pytest.raises(VersionConflict):
            await store.replace_waypoints("a", [_at(8, "new ")], dropped=[4], expected=11)
        assert await store.waypoints("a") == [4, 8, 12]
        assert await store.load_waypoint("a", 9) == _at(8)

    async def test_what_a_redaction_changes_in_snapshots_it_changes_in_all(self, store: EventStore) -> None:
        """None of the past quotes what is gone."""
        await store.append("a", [block_event("p", "secret")], snapshot=_at(1, "secret "))
        await store.append("a", events(2), snapshot=_at(3, "secret "))
        part = Rewriting(
            "a",
            3,
            [event(BlockRedacted(version=1))],
            {},
            [1],
            lambda old: old.model_copy(update={"state": {"said": "gone"}}),
        )
        await store.rewrite([part])
        for version in (1, 3):
            found = await store.load_waypoint("a", version)
            assert found is not None
            assert found.state == {"said": "gone"}

    async def test_a_scavenge_leaves_those_whose_events_are_there(self, store: EventStore) -> None:
        """What is left of the past begins at the snapshot that it keeps."""
        await store.append("a", [block_event(f"p{number}") for number in range(4)], snapshot=_at(2))
        await store.append("a", [compaction(1, 3)], snapshot=Snapshot(version=5, window_start=4))
        await store.remove("a")
        assert await store.waypoints("a") == [5]

    async def test_an_erased_conversation_leaves_none(self, store: EventStore) -> None:
        """A fork that keeps what it shared keeps its own."""
        await _kept(store)
        await store.append("f", [fork("a", 9)], expected=Expected.NO_STREAM, snapshot=_at(10, "fork "))
        await store.erase("a", forks="copy")
        assert await store.waypoints("f") == [10]
        assert await store.load_waypoint("f", 9) is None
        assert await store.examine() == []
