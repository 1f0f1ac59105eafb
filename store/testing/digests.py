"""The contract of `digests`: the meaning of each filter, the order of compactions, and the effect of undoing one."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

import pytest

from timeline.digest import Artifact, Command, Digest, FileUse, Problem, Search, ToolOutputs
from timeline.errors import ConversationNotFound, InvalidFilter
from timeline.events import CompactionReverted, Covers
from timeline.ports import Expected

from .base import ContractBase
from .samples import block_event, compaction, event, events, fork

if TYPE_CHECKING:
    from timeline.events import NewEvent
    from timeline.ports import EventStore
    from timeline.queries import StoredDigest

BUILT: Final = Digest(
    tool_outputs=(ToolOutputs(tool="Bash", count=2, tokens=90, errors=1), ToolOutputs(tool="Read", count=1, tokens=9)),
    files_read=(FileUse(file="src/app/main.py", tool="Read", path="tc:1"),),
    files_written=(FileUse(file="src/app/views/list.py", tool="Edit", path="tc:2", times=3),),
    commands=(
        Command(command="pytest -x tests", path="tc:3", exit_status=1, failed=True, output="1 failed: test_login"),
        Command(command="git status", path="tc:4", exit_status=0),
    ),
)
LOOKED: Final = Digest(
    artifacts=(Artifact(path="fi:turn_2.plan%2Epdf"),),
    tool_outputs=(ToolOutputs(tool="Grep", count=1, tokens=5),),
    files_read=(FileUse(file="docs/Überblick.md", tool="Read", path="tc:5"),),
    searches=(Search(query="login", tool="Grep", path="tc:6", hits=3),),
)
BROKE: Final = Digest(
    tool_outputs=(ToolOutputs(tool="Edit", count=1, tokens=5, errors=1),),
    files_written=(FileUse(file="src/app.py", tool="Edit", path="tc:7"),),
    files_deleted=(FileUse(file="src/gone/old_app.py", tool="delete_file", path="tc:8"),),
    errors=(Problem(tool="Edit", path="tc:7", message="no such string in src/app.py"),),
)


async def _filled(store: EventStore) -> list[NewEvent]:
    """Fill two conversations: ``a`` with compactions at versions 3 (BUILT) and 6 (BROKE), ``b`` with one at 3 (LOOKED).

    They were completed in the order BUILT, LOOKED, BROKE.
    """
    made = [compaction(1, 2, digest=BUILT), compaction(1, 2, digest=LOOKED), compaction(3, 5, digest=BROKE, round_=2)]
    await store.append("a", [*events(2), made[0]])
    await store.append("b", [*events(2), made[1]])
    await store.append("a", [*events(2), made[2]])
    return made


async def _found(store: EventStore, **filters: Any) -> list[StoredDigest]:
    return [digest async for digest in store.digests(**filters)]


async def _places(store: EventStore, **filters: Any) -> list[tuple[str, int]]:
    return [(digest.conversation, digest.version) for digest in await _found(store, **filters)]


BUILT_AT, LOOKED_AT, BROKE_AT = ("a", 3), ("b", 3), ("a", 6)


class DigestContract(ContractBase):
    """`Queries.digests`."""

    async def test_a_compaction_comes_with_all_that_was_recorded(self, store: EventStore) -> None:
        """Place, time, round, summary, covered versions, tokens, and the digest in full."""
        made = await _filled(store)
        (found,) = await _found(store, conversation="a", compaction_number=2)
        assert (found.conversation, found.version, found.compaction_number) == ("a", 6, 2)
        assert found.at == made[2].at
        assert found.path == "su:turn_1.conv.range.summary.3.5"
        assert found.covers == Covers(ranges=((3, 5),))
        assert (found.digest, found.matched, found.reverted_by) == (BROKE, Digest(), None)
        assert (found.before_tokens, found.after_tokens) == (100, 20)
        assert [e.position async for e in store.read("a", after=5)] == [found.position]

    @pytest.mark.parametrize("page", [1, 2, 3, 200])
    async def test_all_compactions_come_by_position_in_pages_of_any_size(self, store: EventStore, page: int) -> None:
        """Without a filter every compaction comes, in the order of the whole store."""
        await _filled(store)
        assert await _places(store, page=page) == [BUILT_AT, LOOKED_AT, BROKE_AT]
        assert await _places(store, conversation="a", page=page) == [BUILT_AT, BROKE_AT]
        assert await _places(store, tool="Read", page=page) == [BUILT_AT, LOOKED_AT]
        assert await _places(store, path_glob="src/**", page=page) == [BUILT_AT, BROKE_AT]
        assert await _places(store, path_glob="**/*p*", page=page) == [BUILT_AT, LOOKED_AT, BROKE_AT]

    @pytest.mark.parametrize(
        ("filters", "found"),
        [
            ({"tool": "Bash"}, [BUILT_AT]),
            ({"tool": "Edit"}, [BUILT_AT, BROKE_AT]),
            ({"tool": "bash"}, []),
            ({"path_glob": "src/app/main.py"}, [BUILT_AT]),
            ({"path_glob": "src/*.py"}, [BROKE_AT]),
            ({"path_glob": "src/app/*"}, [BUILT_AT]),
            ({"path_glob": "**/main.py"}, [BUILT_AT]),
            ({"path_glob": "main.py"}, []),
            ({"path_glob": "SRC/**"}, []),
            ({"path_glob": "docs/Ü*"}, [LOOKED_AT]),
            ({"path_glob": "fi:*plan*"}, [LOOKED_AT]),
            ({"path_glob": "src/app?py"}, [BROKE_AT]),
            ({"path_glob": "src/[a-c]pp.py"}, [BROKE_AT]),
            ({"path_glob": "src/[!a-c]pp.py"}, []),
            ({"path_glob": "src/gone/**"}, [BROKE_AT]),
            ({"path_glob": "**/old_*.py"}, [BROKE_AT]),
            ({"path_glob": "src/[!a]one/*"}, [BROKE_AT]),
            ({"path_glob": "gone/**"}, []),
            ({"path_glob": "tc:*"}, []),
            ({"command": "pytest"}, [BUILT_AT]),
            ({"command": "t s"}, [BUILT_AT]),
            ({"command": "Pytest"}, []),
            ({"command": "pytest%"}, []),
            ({"error": True}, [BUILT_AT, BROKE_AT]),
            ({"error": False}, [LOOKED_AT]),
            ({"error": "test_login"}, [BUILT_AT]),
            ({"error": "no such string"}, [BROKE_AT]),
            ({"error": "nothing of the kind"}, []),
            ({"compaction_number": 1}, [BUILT_AT, LOOKED_AT]),
            ({"compaction_number": range(2, 9)}, [BROKE_AT]),
            ({"compaction_number": 10**30}, []),
            ({"tool": "Read", "path_glob": "src/**"}, [BUILT_AT]),
            ({"tool": "Edit", "error": "string", "compaction_number": 2, "conversation": "a"}, [BROKE_AT]),
            ({"tool": "Edit", "command": "git"}, [BUILT_AT]),
            ({"conversation": "b", "tool": "Bash"}, []),
            ({"path_glob": "\ud800**"}, []),
            ({"command": "\ud800"}, []),
        ],
    )
    async def test_a_filter_finds_what_it_says(
        self, store: EventStore, filters: dict[str, Any], found: list[tuple[str, int]]
    ) -> None:
        """Names and texts match exactly, globs match whole paths; one compaction must match all filters."""
        await _filled(store)
        assert await _places(store, **filters) == found

    async def test_times_are_bounds_that_are_included(self, store: EventStore) -> None:
        """From ``since`` to ``until``, in any time zone."""
        built, looked, broke = await _filled(store)
        assert await _places(store, since=looked.at) == [LOOKED_AT, BROKE_AT]
        assert await _places(store, until=looked.at) == [BUILT_AT, LOOKED_AT]
        assert await _places(store, since=built.at + timedelta(microseconds=1), until=broke.at) == [LOOKED_AT, BROKE_AT]
        elsewhere = looked.at.astimezone(timezone(timedelta(hours=9)))
        assert await _places(store, since=elsewhere, until=elsewhere) == [LOOKED_AT]
        assert await _places(store, since=datetime(2100, 1, 1, tzinfo=UTC)) == []

    async def test_what_was_asked_for_comes_apart(self, store: EventStore) -> None:
        """``matched`` holds exactly the entries that the filters match."""
        await _filled(store)
        (found,) = await _found(store, tool="Edit", command="pytest")
        assert found.matched == Digest(files_written=BUILT.files_written, commands=BUILT.commands[:1])
        (found,) = await _found(store, path_glob="**/main.py", error="1 failed")
        assert found.matched == Digest(files_read=BUILT.files_read, commands=BUILT.commands[:1])
        (found,) = await _found(store, conversation="a", error=True, compaction_number=2)
        assert found.matched == Digest(tool_outputs=BROKE.tool_outputs, errors=BROKE.errors)

    async def test_a_compaction_that_was_taken_back_is_found_only_when_asked_for(self, store: EventStore) -> None:
        """``reverted`` chooses; the first event that undid it is named, other conversations are untouched."""
        await _filled(store)
        await store.append("a", [event(CompactionReverted(versions=(6,)))])
        await store.append("b", [event(CompactionReverted(versions=(6, 99)))])
        await store.append("a", [event(CompactionReverted(versions=(6,)))])
        assert await _places(store) == [BUILT_AT, LOOKED_AT]
        assert await _places(store, reverted=None) == [BUILT_AT, LOOKED_AT, BROKE_AT]
        assert [(d.version, d.reverted_by) for d in await _found(store, reverted=True)] == [(6, 7)]
        assert await _places(store, reverted=True, tool="Bash") == []

    async def test_a_compaction_and_its_undoing_may_be_one_append(self, store: EventStore) -> None:
        """The order of the events counts."""
        await store.append("a", [*events(2), compaction(1, 2, digest=BUILT), event(CompactionReverted(versions=(3,)))])
        assert await _places(store) == []
        assert [d.reverted_by for d in await _found(store, reverted=True)] == [4]

    async def test_a_fork_does_not_repeat_what_its_parent_recorded(self, store: EventStore) -> None:
        """A compaction belongs to its own conversation; undoing it in a fork leaves the parent's unchanged."""
        await _filled(store)
        opening = [fork("a", 6), event(CompactionReverted(versions=(6,)))]
        await store.append("f", [*opening, compaction(4, 7, digest=LOOKED)], expected=Expected.NO_STREAM)
        assert await _places(store, conversation="f") == [("f", 9)]
        assert await _places(store, conversation="a") == [BUILT_AT, BROKE_AT]

    async def test_an_append_that_is_refused_or_repeated_leaves_one_compaction(self, store: EventStore) -> None:
        """A compaction is stored once with its event, or not at all."""
        made = compaction(1, 2, digest=BUILT)
        await store.append("a", [*events(2), block_event("p")])
        await store.append("a", [made], expected=3)
        assert (await store.append("a", [made], expected=3)).repeated
        with pytest.raises(Exception, match="path"):
            await store.append("a", [compaction(3, 4), block_event("p")])
        assert await _places(store) == [("a", 4)]

    async def test_a_search_may_pause_while_others_append(self, store: EventStore) -> None:
        """Nothing is locked between two pages; compactions completed meanwhile are found too."""
        await _filled(store)
        seen = []
        async for digest in store.digests(page=1):
            seen.append((digest.conversation, digest.version))
            if len(seen) == 1:
                await store.append("b", [compaction(3, 3, digest=BROKE)])
        assert seen == [BUILT_AT, LOOKED_AT, BROKE_AT, ("b", 4)]

    @pytest.mark.parametrize(
        ("filters", "field"),
        [
            ({"since": datetime(2026, 1, 1)}, "since"),  # noqa: DTZ001 - the missing zone is the point
            ({"until": datetime(2026, 1, 1)}, "until"),  # noqa: DTZ001 - the same
            ({"tool": ""}, "tool"),
            ({"command": ""}, "command"),
            ({"error": ""}, "error"),
            ({"path_glob": ""}, "path_glob"),
            ({"path_glob": ["src/**"]}, "path_glob"),
            ({"since": "2026-01-01"}, "since"),
            ({"until": 5}, "until"),
            ({"tool": ["bash"]}, "tool"),
            ({"error": 1}, "error"),
            ({"path_glob": "x" * 2_000}, "path_glob"),
            ({"path_glob": "[z-a]"}, "path_glob"),
            ({"compaction_number": range(0)}, "compaction_number"),
            ({"compaction_number": range(1, 9, 2)}, "compaction_number"),
        ],
    )
    async def test_a_filter_that_cannot_be_used_is_refused(
        self, store: EventStore, filters: dict[str, Any], field: str
    ) -> None:
        """The error names the filter, and the cure."""
        await _filled(store)
        with pytest.raises(InvalidFilter) as refused:
            await _found(store, **filters)
        assert refused.value.field == field

    async def test_an_unknown_conversation_and_an_empty_page_are_refused(self, store: EventStore) -> None:
        """As in any other reading."""
        with pytest.raises(ConversationNotFound):
            await _found(store, conversation="nobody")
        with pytest.raises(ValueError, match="page"):
            await _found(store, page=0)
        assert await _found(store) == []
