"""The contract of `append`: the four expectations, one transaction, refusals."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from timeline.blocks import UserPrompt
from timeline.errors import ConversationNotFound, DuplicateEvent, InvalidBlock, PathTaken, VersionConflict
from timeline.events import BlockAppended, BlocksHidden, ConversationOpened, ParentLink, Replacement, UnknownPayload
from timeline.frozen import sha256_hex
from timeline.ports import Appended, Expected, Snapshot

from .base import ContractBase
from .samples import block_event, compaction, contents, event, events, versions

if TYPE_CHECKING:
    from timeline.ports import EventStore


class AppendContract(ContractBase):
    """`EventStore.append`."""

    async def test_the_first_append_opens_the_conversation(self, store: EventStore) -> None:
        """Versions count from 1, and the written events are read back."""
        written = events(3)
        appended = await store.append("a", written)
        assert (appended.first_version, appended.version, appended.repeated) == (1, 3, False)
        read = [e async for e in store.read("a")]
        assert contents(read) == contents(written)
        assert [e.version for e in read] == [1, 2, 3]
        assert {e.conversation for e in read} == {"a"}
        assert read[-1].position == appended.position

    async def test_versions_are_gapless_in_each_conversation_and_positions_rise_over_all(
        self, store: EventStore
    ) -> None:
        """Two conversations that take turns each have their own versions; positions follow the order of appends."""
        for number in range(4):
            await store.append("ab"[number % 2], events(2))
        assert await versions(store, "a") == await versions(store, "b") == [1, 2, 3, 4]
        read = [e async for e in store.read_all()]
        assert [e.conversation for e in read] == ["a", "a", "b", "b"] * 2
        assert all(one.position < two.position for one, two in itertools.pairwise(read))

    @pytest.mark.parametrize("expected", [Expected.ANY, Expected.NO_STREAM, 0])
    async def test_a_new_conversation_meets_any_no_stream_and_version_zero(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """These three expectations hold where there is no conversation yet."""
        assert (await store.append("a", events(2), expected=expected)).version == 2

    @pytest.mark.parametrize("expected", [Expected.STREAM_EXISTS, 1, -1])
    async def test_a_missing_conversation_meets_neither_stream_exists_nor_another_version(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """The conflict names the expected version and version 0; no conversation is made."""
        with pytest.raises(VersionConflict) as conflict:
            await store.append("a", events(1), expected=expected)
        assert (conflict.value.conversation, conflict.value.expected, conflict.value.actual) == ("a", expected, 0)
        with pytest.raises(ConversationNotFound):
            await store.info("a")

    @pytest.mark.parametrize("expected", [Expected.ANY, Expected.STREAM_EXISTS, 3])
    async def test_an_open_conversation_meets_any_stream_exists_and_its_version(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """These three expectations hold where the conversation is at version 3."""
        await store.append("a", events(3))
        assert await store.append("a", events(2), expected=expected) == Appended(4, 5, await store.head())

    @pytest.mark.parametrize("expected", [Expected.NO_STREAM, 0, 2, 4, -1])
    async def test_an_open_conversation_refuses_no_stream_and_any_other_version(
        self, store: EventStore, expected: int | Expected
    ) -> None:
        """A conversation at version 3 meets none of these; the conflict names both versions and nothing is written."""
        await store.append("a", events(3))
        with pytest.raises(VersionConflict) as conflict:
            await store.append("a", events(1), expected=expected)
        assert (conflict.value.expected, conflict.value.actual) == (expected, 3)
        assert await versions(store, "a") == [1, 2, 3]

    async def test_an_empty_append_writes_nothing_and_returns_the_version(self, store: EventStore) -> None:
        """Without events no conversation, value or snapshot is written, with any expectation."""
        value = {sha256_hex("text"): "text"}
        assert await store.append("a", [], values=value) == Appended(1, 0, 0)
        with pytest.raises(ConversationNotFound):
            await store.info("a")
        await store.append("a", events(2))
        snapshot = Snapshot(version=2, window_start=2)
        assert await store.append("a", [], expected=7, values=value, snapshot=snapshot) == Appended(
            3, 2, await store.head()
        )
        assert (await store.load_window("a")).snapshot is None
        assert await store.values(value) == {}

    async def test_a_path_is_taken_for_ever(self, store: EventStore) -> None:
        """A second block at a path is refused; another conversation may use it."""
        await store.append("a", [block_event("ar:t.user.prompt")])
        with pytest.raises(PathTaken) as taken:
            await store.append("a", [block_event("ar:t.user.prompt")])
        assert (taken.value.conversation, taken.value.path) == ("a", "ar:t.user.prompt")
        await store.append("b", [block_event("ar:t.user.prompt")])

    async def test_a_path_is_taken_by_a_summary_and_by_an_unknown_event_too(self, store: EventStore) -> None:
        """Every event that appends a block takes its path."""
        later = UnknownPayload(type="block.later", data={"block": {"type": "x", "path": "bl:t.x"}, "tokens": 1})
        await store.append("a", [block_event(), compaction(1, 1), event(later)])
        for path in ("su:turn_1.conv.range.summary.1.1", "bl:t.x"):
            with pytest.raises(PathTaken):
                await store.append("a", [block_event(path)])

    async def test_blocks_without_a_path_do_not_stand_in_each_others_way(self, store: EventStore) -> None:
        """An empty path is no path."""
        await store.append("a", [block_event(""), block_event("")])
        assert await store.find("a", "") is None

    async def test_one_bad_event_in_the_middle_means_that_nothing_is_written(self, store: EventStore) -> None:
        """A taken path in the middle leaves no event, value, snapshot or conversation behind."""
        await store.append("a", [block_event("p")])
        before = await store.info("a")
        value = {sha256_hex("text"): "text"}
        with pytest.raises(PathTaken):
            await store.append(
                "a",
                [block_event("q"), block_event("p"), block_event("r")],
                values=value,
                snapshot=Snapshot(version=2, window_start=2),
            )
        assert await store.info("a") == before
        assert await versions(store, "a") == [1]
        assert await store.values(value) == {}
        assert (await store.load_window("a")).snapshot is None
        assert await store.paths_taken("a", ["q", "r"]) == set()
        assert (await store.append("a", [block_event("q")], expected=1)).version == 2

    async def test_an_id_or_a_path_twice_in_one_append_is_refused(self, store: EventStore) -> None:
        """An append cannot collide with itself, and nothing of it is written."""
        same = block_event()
        with pytest.raises(DuplicateEvent) as duplicate:
            await store.append("a", [same, block_event(), same])
        assert duplicate.value.event_id == str(same.id)
        with pytest.raises(PathTaken):
            await store.append("a", [block_event("p"), block_event("p")])
        with pytest.raises(ConversationNotFound):
            await store.info("a")

    async def test_what_cannot_be_stored_is_refused_before_anything_is_written(self, store: EventStore) -> None:
        """NaN, lone surrogates, a very long type, a value under a wrong hash, an empty id: each is named."""
        nan = event(BlocksHidden(reason="x", blocks=(Replacement(version=1, arguments={"x": float("nan")}),)))
        refused = [
            store.append("a", [nan]),
            store.append("a", [event(ConversationOpened(title="\ud800"))]),
            store.append("a\ud800", events(1)),
            store.append("a", [event(UnknownPayload(type="later.\ud800", data={}))]),
            store.append("a", [event(UnknownPayload(type="x" * 501, data={}))]),
            store.append("", events(1)),
            store.append("a", events(1), values={"0" * 64: "text"}),
            store.append("a", events(1), snapshot=Snapshot(version=1, window_start=0)),
        ]
        for append in refused:
            with pytest.raises(InvalidBlock):
                await append
        assert [info async for info in store.conversations()] == []

    async def test_the_opening_event_names_the_conversation_and_its_parent(self, store: EventStore) -> None:
        """Title, parent link and times of a conversation come from its events."""
        parent = ParentLink(conversation="mother", version=7, path="tc:t.c.call", relation="subagent")
        written = [event(ConversationOpened(title="Flashcards", parent=parent)), *events(2)]
        await store.append("a", written)
        later = block_event()
        await store.append("a", [later])
        info = await store.info("a")
        assert (info.id, info.version, info.window_start) == ("a", 4, 1)
        assert (info.title, info.parent) == ("Flashcards", parent)
        assert (info.created_at, info.updated_at) == (written[0].at, later.at)

    async def test_values_are_stored_once_under_their_hash(self, store: EventStore) -> None:
        """Values of several appends add up, the same one may come again, and unknown hashes are left out."""
        texts = {sha256_hex(text): text for text in ("policy", "système ☃", "")}
        await store.append("a", events(1), values=texts)
        await store.append("b", events(1), values=texts)
        assert await store.values([*texts, "0" * 64]) == texts
        assert await store.values([]) == {}

    async def test_a_long_text_and_every_character_come_back_as_they_were(self, store: EventStore) -> None:
        """A megabyte, control characters, quotes and characters beyond the first plane survive."""
        text = "".join(map(chr, range(0x250))) + "\u2028\uffff😀" + "x" * 1_000_000
        await store.append(
            "a", [event(BlockAppended(block=UserPrompt(text=text, path="p"), tokens=1, counter="chars"))]
        )
        found = await store.find("a", "p")
        assert found is not None
        assert isinstance(found.payload, BlockAppended)
        assert found.payload.block.text == text
