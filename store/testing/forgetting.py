"""The contract of forgetting: payloads that are overwritten, and conversations that are erased."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from timeline.digest import Digest
from timeline.errors import (
    ConversationErased,
    ConversationNotFound,
    ForksRemain,
    HistoryUnavailable,
    InvalidArgument,
    UnderLegalHold,
    VersionConflict,
)
from timeline.events import (
    BlockAppended,
    BlockRedacted,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ParentLink,
    block_appended,
)
from timeline.events.chain import START, link
from timeline.events.encoding import encode_payload
from timeline.events.other_payloads import RetentionSet
from timeline.frozen import sha256_hex
from timeline.ports import Expected, Rewriting, Snapshot

from .base import ContractBase
from .samples import block_event, compaction, event, events, fork, versions

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.events import Payload
    from timeline.ports import EventStore

WORD = "aardvark"


def same(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as it is."""
    return snapshot


async def rewriting(
    store: EventStore, conversation: str, version: int, change: Callable[[Snapshot], Snapshot] = same
) -> Rewriting:
    """Return what overwrites the block at a version, with the redaction behind it."""
    [found] = await store.read_versions(conversation, [version])
    assert isinstance(found.payload, BlockAppended)
    blank = found.payload.block.model_copy(update={"text": "[gone]"})
    new: Payload = block_appended(blank, found.payload.tokens, found.payload.counter)
    at = (await store.info(conversation)).version
    redacted = event(BlockRedacted(version=version, erased=True))
    return Rewriting(conversation, at, [redacted], {version: new}, [version], change)


class ForgetContract(ContractBase):
    """`Forgetting` as tests."""

    async def test_an_overwritten_event_is_read_anew_everywhere(self, store: EventStore) -> None:
        """By version, by path, in pages and in the window; all but its payload and its checksum is as it was."""
        await store.append("a", [block_event("a.1", f"one {WORD}"), block_event("a.2", "two")])
        [before] = await store.read_versions("a", [1])
        await store.rewrite([await rewriting(store, "a", 1)])
        [after] = await store.read_versions("a", [1])
        assert WORD not in encode_payload(after.payload)
        assert after.checksum != before.checksum
        assert (after.id, after.version, after.at, after.position) == (before.id, 1, before.at, before.position)
        assert await store.find("a", "a.1") == after
        assert await anext(aiter(store.read_all())) == after
        assert (await store.load_window("a")).events[0] == after
        assert await versions(store, "a") == [1, 2, 3]

    async def test_no_search_finds_its_words(self, store: EventStore) -> None:
        """Whether the index was made before or is made afterwards."""
        await store.append("a", [block_event("a.1", f"one {WORD}"), block_event("a.2", f"two {WORD}")])
        assert len([hit async for hit in store.search(WORD)]) == 2
        await store.rewrite([await rewriting(store, "a", 1)])
        assert [hit.version async for hit in store.search(WORD)] == [2]
        await store.rewrite([await rewriting(store, "a", 2)])
        assert [hit async for hit in store.search(WORD)] == []
        assert [hit async for hit in store.search("gone")] == []

    async def test_the_digest_of_an_overwritten_compaction_is_the_new_one(self, store: EventStore) -> None:
        """With its undo, which another event made."""
        await store.append("a", [*events(3), compaction(1, 3)])
        [old] = [e async for e in store.read("a", types=["compaction.completed"])]
        new = compaction(1, 3, digest=Digest(stages=("written anew",))).payload
        part = Rewriting("a", 4, [event(BlockRedacted(version=1, erased=True))], {old.version: new}, [1], same)
        await store.rewrite([part])
        [digest] = [digest async for digest in store.digests()]
        assert digest.digest.stages == ("written anew",)
        [stored] = await store.read_versions("a", [4])
        assert stored.payload == new

    async def test_a_text_that_a_redaction_left_out_is_not_found_once_it_is_written_anew(
        self, store: EventStore
    ) -> None:
        """As of a summary that an earlier release redacted, and that another redaction changes."""
        await store.append("a", [block_event("a.1", f"one {WORD}"), block_event("a.2", f"two {WORD}")])
        await store.append("a", [event(BlockRedacted(version=1))])
        assert [hit.version async for hit in store.search(WORD)] == [2]
        old, _ = await store.read_versions("a", [1, 2])
        assert isinstance(old.payload, BlockAppended)
        block = old.payload.block.model_copy(update={"text": f"another {WORD}"})
        part = await rewriting(store, "a", 2)
        new: Payload = block_appended(block, 1, "")
        await store.rewrite([replace(part, payloads={**part.payloads, 1: new})])
        assert [hit.version async for hit in store.search(WORD)] == []
        assert await store.examine() == []

    async def test_snapshots_are_given_to_be_changed(self, store: EventStore) -> None:
        """The conversation's own newest one; what is returned is stored."""
        snapshot = Snapshot(version=2, window_start=1, state={"said": WORD})
        await store.append("a", [block_event("a.1", WORD), block_event("a.2", "two")], snapshot=snapshot)
        part = await rewriting(store, "a", 1, lambda old: old.model_copy(update={"state": {"said": "gone"}}))
        done = await store.rewrite([part])
        assert done["snapshots"] == 1
        found = (await store.load_window("a")).snapshot
        assert found is not None
        assert found.state == {"said": "gone"}

    async def test_a_conversation_that_moved_on_is_a_conflict_and_nothing_is_written(self, store: EventStore) -> None:
        """Of several conversations none is written then."""
        for id_ in ("a", "b"):
            await store.append(id_, [block_event(f"{id_}.1", WORD)])
        parts = [await rewriting(store, id_, 1) for id_ in ("a", "b")]
        await store.append("b", [block_event()])
        before = [e async for e in store.read_all()]
        with pytest.raises(VersionConflict):
            await store.rewrite(parts)
        assert [e async for e in store.read_all()] == before

    async def test_a_fork_that_shares_the_block_must_be_part_of_the_call(self, store: EventStore) -> None:
        """One that began in the meantime is a conflict; one that shares less is none."""
        await store.append("a", [block_event("a.1", "one"), block_event("a.2", WORD)])
        part = await rewriting(store, "a", 2)
        await store.append("early", [fork("a", 1)])
        assert await store.forks("a") == {"early": 1}
        await store.append("late", [fork("a", 2)])
        for conflicting in (part, replace(part, blocks=[])):  # an event that is overwritten is shared, too
            with pytest.raises(VersionConflict):
                await store.rewrite([conflicting])
        other = Rewriting("late", 3, [event(BlockRedacted(version=2, erased=True))], {}, [2], same)
        await store.rewrite([part, other])
        assert WORD not in str(await store.read_versions("late", [2]))

    async def test_a_dropped_text_stays_as_long_as_something_names_it(self, store: EventStore) -> None:
        """Another conversation's event, say."""
        hash_ = sha256_hex(WORD)
        context = ContextRendered(version=1, projection=3, fingerprint="f", policy=hash_)
        await store.append("a", [block_event("a.1", WORD), event(context)], values={hash_: WORD})
        part = await rewriting(store, "a", 1)
        await store.rewrite([part], dropped=[hash_])
        assert await store.values([hash_]) == {hash_: WORD}
        new = {2: context.model_copy(update={"policy": sha256_hex("gone")})}
        again = Rewriting("a", 3, [event(BlockRedacted(version=0, erased=True))], new, [], same)
        done = await store.rewrite([again], values={sha256_hex("gone"): "gone"}, dropped=[hash_])
        assert done["values"] == 1
        assert await store.values([hash_, sha256_hex("gone")]) == {sha256_hex("gone"): "gone"}

    async def test_an_erased_conversation_is_gone_and_its_id_stays_taken(self, store: EventStore) -> None:
        """Its events, its texts, its facts and words; each call with its id says when and why."""
        hash_ = sha256_hex(WORD)
        context = ContextRendered(version=1, projection=3, fingerprint="f", policy=hash_)
        await store.append("a", [block_event("a.1", WORD), event(context), compaction(1, 1)], values={hash_: WORD})
        await store.append("b", [block_event("b.1", "stays")])
        assert len([hit async for hit in store.search(WORD)]) == 1
        report = await store.erase("a", reason="asked for")
        assert (report.conversations, report.reached["payloads"], report.reached["values"]) == (("a",), 3, 1)
        assert report.physical
        assert [e.conversation async for e in store.read_all()] == ["b"]
        assert [info.id async for info in store.conversations()] == ["b"]
        assert [hit async for hit in store.search(WORD)] == []
        assert [digest async for digest in store.digests()] == []
        assert await store.values([hash_]) == {}
        for call in (store.info("a"), store.load_window("a"), store.forks("a")):
            with pytest.raises(ConversationErased, match="asked for"):
                await call
        with pytest.raises(ConversationErased):
            await store.append("a", [block_event("a.1", "again")], expected=Expected.NO_STREAM)
        with pytest.raises(ConversationErased):
            [e async for e in store.read("a")]
        await store.append("b", [block_event("b.2", "goes on")])

    async def test_every_query_of_an_erased_conversation_says_that_it_was_erased(self, store: EventStore) -> None:
        """No query says that there never was one."""
        await store.append("a", [block_event("a.1", WORD)])
        await store.append("b", [block_event("b.1", WORD)])
        await store.erase("a", reason="asked for")
        for found in (
            store.digests(conversation="a"),
            store.search(WORD, conversation="a"),
            store.facts(conversation="a"),
            store.facts(conversation=["b", "a"]),
        ):
            with pytest.raises(ConversationErased, match="asked for"):
                [each async for each in found]
        with pytest.raises(ConversationErased, match="asked for"):
            await store.fact_record("a")

    async def test_erasing_again_is_harmless(self, store: EventStore) -> None:
        """The files are rewritten once more, and the reason stays the first one."""
        await store.append("a", [block_event("a.1", WORD)])
        await store.erase("a", reason="first")
        report = await store.erase("a", reason="second")
        assert (report.reached, report.physical) == ({}, True)
        with pytest.raises(ConversationErased, match="first"):
            await store.info("a")
        with pytest.raises(ConversationNotFound):
            await store.erase("never there")

    async def test_forks_refuse_an_erasure_unless_it_says_what_becomes_of_them(self, store: EventStore) -> None:
        """Nothing is erased then."""
        await store.append("a", [block_event("a.1", WORD)])
        await store.append("f", [fork("a", 1)])
        with pytest.raises(ForksRemain) as refused:
            await store.erase("a")
        assert refused.value.forks == ["f"]
        with pytest.raises(InvalidArgument):
            await store.erase("a", forks="keep")  # type: ignore[arg-type] # what an application may do
        assert await versions(store, "f") == [1, 2]

    async def test_the_newest_setting_says_whether_a_legal_hold_is_on(self, store: EventStore) -> None:
        """However often it was set and taken off, and whether in one append or in several."""
        for number, holds in enumerate([(False, True), (True, False, True), (False, False, True)]):
            id_ = f"c{number}"
            await store.append(id_, [block_event(text=WORD), *(event(RetentionSet(legal_hold=each)) for each in holds)])
            with pytest.raises(UnderLegalHold):
                await store.erase(id_)
            await store.append(id_, [event(RetentionSet())])
            await store.erase(id_)

    async def test_a_legal_hold_keeps_a_conversation(self, store: EventStore) -> None:
        """Its own, or that of the past that a fork shares; once it is off, the conversation goes."""
        await store.append("a", [block_event("a.1", WORD), event(RetentionSet(legal_hold=True))])
        await store.append("f", [fork("a", 2)])
        for id_ in ("f", "a"):
            with pytest.raises(UnderLegalHold):
                await store.erase(id_, forks="erase")
        await store.append("f", [event(RetentionSet())])
        await store.erase("f")
        with pytest.raises(UnderLegalHold):
            await store.erase("a")

    async def test_forks_are_erased_with_it(self, store: EventStore) -> None:
        """Theirs too; a fork of another conversation stays."""
        await store.append("a", [block_event("a.1", WORD)])
        await store.append("f", [fork("a", 1), block_event("f.1", WORD)])
        await store.append("g", [fork("f", 3)])
        await store.append("other", [block_event()])
        report = await store.erase("a", forks="erase")
        assert set(report.conversations) == {"a", "f", "g"}
        assert [info.id async for info in store.conversations()] == ["other"]
        for id_ in ("a", "f", "g"):
            with pytest.raises(ConversationErased):
                await store.info(id_)

    async def test_forks_keep_a_copy_of_what_they_share(self, store: EventStore) -> None:
        """As events of their own: same versions, ids, paths and contents, one positions behind another."""
        await store.append("a", [block_event("a.1", "shared"), compaction(1, 1), block_event("a.3", WORD)])
        await store.append("f", [fork("a", 2), block_event("f.4", "own")], snapshot=Snapshot(version=4, window_start=2))
        await store.append("g", [fork("f", 4), block_event("g.6", "further")])
        before = {id_: [e async for e in store.read(id_)] for id_ in ("f", "g")}
        digests = [digest.digest async for digest in store.digests(conversation="a")]
        report = await store.erase("a", forks="copy")
        assert report.conversations == ("a",)
        assert "f" in report.left["forks"]
        for id_, old in before.items():
            now = [e async for e in store.read(id_)]
            assert [(e.id, e.version, e.at, e.payload) for e in now] == [
                (e.id, e.version, e.at, e.payload) for e in old
            ]
        assert {e.conversation for e in [e async for e in store.read("f")]} == {"f"}
        positions = [e.position async for e in store.read("f")]
        assert positions == sorted(positions)
        assert ((await store.info("f")).base, (await store.info("g")).base) == (0, 4)
        assert (await store.load_window("f")).events[0].version == 2
        assert [digest.digest async for digest in store.digests(conversation="f")] == digests
        assert [hit.conversation async for hit in store.search("shared")] == ["f"]
        assert await store.find("g", "a.1") is not None
        assert WORD not in "".join([encode_payload(e.payload) async for e in store.read_all()])
        await store.append("f", [block_event("f.5", "goes on")])
        with pytest.raises(ConversationErased):
            await store.append("late", [fork("a", 1)])

    async def test_the_log_of_a_fork_that_keeps_a_copy_is_appended_as_that_forks(self, store: EventStore) -> None:
        """Its title and its parent are those of its own opening, though its past begins with its parent's."""
        parent = ParentLink(conversation="a", version=2, relation="fork")
        past = [event(ConversationOpened(title="of the parent")), block_event("a.2", "shared")]
        own = [event(ConversationOpened(title="of the fork", parent=parent)), block_event("f.4", "own")]
        await store.append("at once", [*past, *own])
        await store.append("in two", past)
        await store.append("in two", own)
        for id_ in ("at once", "in two"):
            info = await store.info(id_)
            assert (info.title, info.parent, info.base) == ("of the fork", parent, 0)
        assert await store.examine() == []

    async def test_the_facts_of_a_fork_that_keeps_a_copy_are_those_of_the_log(self, store: EventStore) -> None:
        """An examination finds nothing wrong, before the facts are asked for again and after."""
        await store.append("a", [block_event("a.1", "read src/app.py, then https://example.org/a"), block_event()])
        await store.append("f", [fork("a", 1), block_event("f.3", "src/other.py")])
        before = [fact.subject async for fact in store.facts(conversation="f")]
        assert before
        await store.erase("a", forks="copy")
        assert await store.examine() == []
        assert [fact.subject async for fact in store.facts(conversation="f")] == before
        assert await store.examine() == []

    async def test_a_fork_that_keeps_a_copy_keeps_its_own_compactions_and_undos(self, store: EventStore) -> None:
        """What it undid of the shared past is undone in its copy; what its parent undid behind it is not."""
        await store.append("a", [*events(2), compaction(1, 1), compaction(2, 2)])
        undo = event(CompactionReverted(versions=(3,)))
        await store.append("f", [fork("a", 4), undo, block_event("f.7", "own"), compaction(7, 7)])
        await store.append("g", [fork("f", 8), compaction(9, 9)])
        await store.append("a", [event(CompactionReverted(versions=(4,)))])
        before = [await store.info(id_) for id_ in ("f", "g")]
        await store.erase("a", forks="copy")
        assert [((i := await store.info(old.id)).compactions, i.last_compaction_at) for old in before] == [
            (old.compactions, old.last_compaction_at) for old in before
        ]
        assert [(d.version, d.reverted_by) async for d in store.digests(conversation="f", reverted=None)] == [
            (3, 6),
            (4, None),
            (8, None),
        ]
        assert [d.version async for d in store.digests(conversation="g")][-1:] == [10]
        assert await store.examine() == []

    async def test_forks_are_named_in_the_order_of_their_opening(self, store: EventStore) -> None:
        """Wherever they part from it, and whatever their names are."""
        await store.append("a", events(4))
        parts = {"late": 4, "b": 2, "a-3": 3, "early": 1}
        for id_, version in parts.items():
            await store.append(id_, [fork("a", version)])
        assert list((await store.forks("a")).items()) == list(parts.items())

    async def test_forks_of_a_fork_that_keeps_a_copy_are_chained_behind_it(self, store: EventStore) -> None:
        """The copy has a chain of its own, since links name their conversation; so have they that continue it."""
        await store.append("a", [block_event("a.1", "shared"), block_event("a.2", WORD)])
        await store.append("f", [fork("a", 1), block_event("f.3", "own")])
        await store.append("g", [fork("f", 3), block_event("g.5", "further")])
        await store.append("h", [fork("g", 4), block_event("h.6", "and further")])
        await store.erase("a", forks="copy")
        await store.append("h", [block_event("h.7", "goes on")])
        for id_ in ("f", "g", "h"):
            before = START
            for each in [each async for each in store.chained(id_)]:
                place = (each.conversation, each.version, each.id, each.type, each.schema_version, each.at)
                assert each.c is not None
                assert each.link == link(before, *place, each.c)
                before = each.link
            assert await store.chain_head(id_) == before

    async def test_a_fork_of_scavenged_history_keeps_what_is_left(self, store: EventStore) -> None:
        """Removed versions stay removed, and taken."""
        await store.append("a", [block_event(f"a.{n}", f"text {n}") for n in range(1, 6)])
        await store.append("a", [compaction(1, 4)], snapshot=Snapshot(version=6, window_start=5))
        await store.remove("a")
        await store.append("f", [fork("a", 6)], snapshot=Snapshot(version=7, window_start=5))
        left = await versions(store, "f")
        await store.erase("a", forks="copy")
        assert await versions(store, "f") == left
        assert sum((await store.scavenged("f")).values()) == 4
        with pytest.raises(HistoryUnavailable):
            await store.find("f", "a.1")
        assert await store.load_base("f") is not None
