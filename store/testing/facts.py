"""The contract of `facts`: what an append makes known, what each condition means, and what takes facts away."""

# ruff: noqa: S101 - asserts are what tests are made of
from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from timeline.blocks import ToolCall, ToolResult
from timeline.errors import ConversationNotFound, InvalidFilter
from timeline.events import BlockAppended, BlockRedacted, CompactionReverted, Covers
from timeline.facts.model import Fact
from timeline.facts.record import record_of
from timeline.ports import Snapshot

from .base import ContractBase
from .samples import block_event, compaction, event, fork

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.events import NewEvent
    from timeline.ports import EventStore
    from timeline.queries import StoredFact

_ITEMS: Final = (
    ("1", "Read", {"file_path": "src/app/main.py"}, "def main(): ...", 0),
    ("2", "Bash", {"command": "go test ./store -run Login"}, "FAIL: login", 1),
    ("3", "Bash", {"command": "go test ./store"}, "ok", 0),
    ("4", "Write", {"file_path": "docs/Überblick.md", "content": "# x"}, "Permission denied", 1),
    ("5", "Edit", {"file_path": "src/app/main.py", "old_string": "a", "new_string": "b"}, "done", 0),
    ("6", "Grep", {"pattern": "go test"}, "3 matches", 0),
)


def appended(block: Block) -> NewEvent:
    """Make the event that appends a block."""
    return event(BlockAppended(block=block, tokens=len(block.text), counter="chars"))


def call(id_: str, name: str, arguments: dict[str, Any], *, path: str | None = None) -> NewEvent:
    """Make the event of a call; its path is the one of its id."""
    at = f"tc:turn_1.{id_}.call" if path is None else path
    return appended(ToolCall(call_id=id_, name=name, arguments=arguments, path=at, turn_id="turn_1"))


def result(id_: str, text: str = "", *, failed: bool = False, path: str | None = None) -> NewEvent:
    """Make the event of a call's result."""
    at = f"tc:turn_1.{id_}.result" if path is None else path
    return appended(ToolResult(call_id=id_, text=text, is_error=failed, path=at, turn_id="turn_1"))


def command(id_: str, text: str, *, failed: bool = False) -> list[NewEvent]:
    """Make the events of a command that was run."""
    return [call(id_, "Bash", {"command": text}), result(id_, "it said so", failed=failed)]


async def _filled(store: EventStore) -> None:
    """Fill ``a``: six calls, each with its result behind it, at the versions 1 to 12."""
    for id_, name, arguments, text, failed in _ITEMS:
        await store.append("a", [call(id_, name, arguments)])
        await store.append("a", [result(id_, text, failed=bool(failed))])


async def found(store: EventStore, **conditions: Any) -> list[StoredFact]:
    """Return the facts that a query finds."""
    return [fact async for fact in store.facts(**conditions)]


async def _subjects(store: EventStore, **conditions: Any) -> list[str]:
    return [fact.subject for fact in await found(store, **conditions)]


class FactContract(ContractBase):
    """`Queries.facts`, `fact_record` and `fact_reach`."""

    async def test_a_result_makes_known_what_its_call_did(self, store: EventStore) -> None:
        """Kind, subject, tool, failure, the block to read, time and place are those of the log."""
        await _filled(store)
        events = [e async for e in store.read("a")]
        read, failed_test, test, denied, error, edited, search = await found(store, conversation="a")
        assert (read.kind, read.subject, read.tool, read.failed) == ("file_read", "src/app/main.py", "Read", False)
        assert (read.path, read.version, read.address) == ("tc:turn_1.1.result", 2, "@2")
        assert (read.at, read.position, read.conversation) == (events[1].at, events[1].position, "a")
        assert (failed_test.kind, failed_test.failed, failed_test.detail) == ("command", True, "FAIL: login")
        assert (test.failed, test.detail, test.source) == (False, "", "log")
        assert (denied.kind, denied.failed, denied.path) == ("file_written", True, "tc:turn_1.4.call")
        assert (denied.version, denied.position, denied.at) == (7, events[7].position, events[7].at)
        assert (error.kind, error.subject, error.detail) == ("error", "Write", "Permission denied")
        assert (error.path, error.version) == ("tc:turn_1.4.result", 8)
        assert (edited.kind, edited.failed, edited.version) == ("file_written", False, 9)
        assert (search.kind, search.subject, search.detail) == ("search", "go test", "3")

    async def test_which_test_runs_failed_is_one_query_without_a_false_hit(self, store: EventStore) -> None:
        """All conditions are met by one fact, not each by some entry."""
        await _filled(store)
        assert await _subjects(store, kind="command", subject="go test", failed=True) == ["go test ./store -run Login"]

    @pytest.mark.parametrize(
        ("conditions", "versions"),
        [
            ({}, [2, 4, 6, 7, 8, 9, 12]),
            ({"kind": "command"}, [4, 6]),
            ({"kind": ["file_read", "search"]}, [2, 12]),
            ({"kind": []}, []),
            ({"kind": "identifier"}, []),
            ({"subject": "main"}, [2, 9]),
            ({"subject": "Main"}, []),
            ({"subject": "go test"}, [4, 6, 12]),
            ({"subject": "%"}, []),
            ({"glob": "src/app/*.py"}, [2, 9]),
            ({"glob": "src/*"}, []),
            ({"glob": "**/*.md"}, [7]),
            ({"glob": "docs/Ü*"}, [7]),
            ({"glob": "src/**", "kind": "file_written"}, [9]),
            ({"tool": "Bash"}, [4, 6]),
            ({"tool": "bash"}, []),
            ({"failed": True}, [4, 7, 8]),
            ({"failed": False}, [2, 6, 9, 12]),
            ({"failed": True, "kind": "file_written"}, [7]),
            ({"failed": True, "kind": ["file_read", "error"]}, [8]),
            ({"query": "denied"}, [7, 8]),
            ({"query": "PERMISSION den*"}, [7, 8]),
            ({"query": "bash login"}, [4]),
            ({"query": '"test ./store"'}, [4, 6]),
            ({"query": "bash grep"}, []),
            ({"query": "go test", "tool": "Grep"}, [12]),
            ({"exit_status": 1}, []),
            ({"covered": True}, []),
            ({"covered": False, "kind": "search"}, [12]),
        ],
    )
    async def test_a_condition_finds_these(
        self, store: EventStore, conditions: dict[str, Any], versions: list[int]
    ) -> None:
        """In one conversation and in all of them, in pages of any size."""
        await _filled(store)
        for page in (1, 2, 200):
            assert [f.version for f in await found(store, page=page, **conditions)] == versions
            assert [f.version for f in await found(store, conversation="a", page=page, **conditions)] == versions

    async def test_an_exit_status_is_found_by_its_number(self, store: EventStore) -> None:
        """It is that of the result, or the one that the output of a command states."""
        await store.append("a", command("1", "true"))
        shown = ToolResult(call_id="2", text="x", exit_status=127, path="tc:turn_1.2.result", turn_id="turn_1")
        await store.append("a", [call("2", "Bash", {"command": "nosuch"}), appended(shown)])
        await store.append("a", [call("3", "Bash", {"command": "exit 3"}), result("3", "Exit code: 3")])
        assert [(f.subject, f.failed) for f in await found(store, exit_status=127)] == [("nosuch", True)]
        assert [(f.subject, f.exit_status) for f in await found(store, exit_status=3)] == [("exit 3", 3)]
        assert await _subjects(store, exit_status=-(2**70)) == []

    async def test_a_number_that_no_process_ends_with_is_no_exit_status(self, store: EventStore) -> None:
        """The command failed, and which number was recorded is in its result: no other is shown, and none is found."""
        for id_, status in (("1", 2**70), ("2", -(2**70)), ("3", 2**63 - 1), ("4", 2**32 - 1)):
            shown = ToolResult(
                call_id=id_, text="x", exit_status=status, path=f"tc:turn_1.{id_}.result", turn_id="turn_1"
            )
            await store.append("a", [call(id_, "Bash", {"command": id_}), appended(shown)])
        facts = [(f.subject, f.exit_status, f.failed) for f in await found(store)]
        assert facts == [("1", None, True), ("2", None, True), ("3", 2**63 - 1, True), ("4", 2**32 - 1, True)]
        assert await _subjects(store, exit_status=2**63 - 1) == ["3"]
        assert await _subjects(store, exit_status=2**70) == []

    async def test_bounds_of_time_are_part_of_it(self, store: EventStore) -> None:
        """``since`` and ``until`` compare with the time of the work."""
        await _filled(store)
        at = [fact.at for fact in await found(store)]
        assert [f.version for f in await found(store, since=at[1], until=at[2])] == [4, 6]
        later = at[1] + timedelta(microseconds=1)
        assert [f.version for f in await found(store, since=later, kind="command")] == [6]
        with pytest.raises(InvalidFilter, match="since"):
            await found(store, since=at[0].replace(tzinfo=None))

    @pytest.mark.parametrize(
        ("conditions", "named"),
        [
            ({"kind": "files"}, "kind"),
            ({"subject": ""}, "subject"),
            ({"tool": ""}, "tool"),
            ({"glob": ""}, "glob"),
            ({"glob": "[z-a]"}, "glob"),
            ({"query": "..."}, "query"),
            ({"query": 5}, "query"),
            ({"kind": 5}, "kind"),
            ({"tool": 5}, "tool"),
            ({"glob": ["src/**"]}, "glob"),
            ({"since": "2026-01-01"}, "since"),
        ],
    )
    async def test_a_condition_that_cannot_be_met_is_refused(
        self, store: EventStore, conditions: dict[str, Any], named: str
    ) -> None:
        """The error names the condition."""
        with pytest.raises(InvalidFilter, match=named):
            await found(store, **conditions)

    async def test_an_unknown_conversation_is_an_error(self, store: EventStore) -> None:
        """It is asked for by mistake, alone or among others."""
        await _filled(store)
        with pytest.raises(ConversationNotFound):
            await found(store, conversation="b")
        with pytest.raises(ConversationNotFound):
            await found(store, conversation=["a", "b"])
        with pytest.raises(ConversationNotFound):
            await store.fact_record("b")

    async def test_a_call_without_a_result_gives_no_fact(self, store: EventStore) -> None:
        """What came of it is not known; its result may come in a later append."""
        await store.append("a", [call("1", "Bash", {"command": "make"})])
        assert await found(store) == []
        await store.append("a", [block_event(text="still there?")])
        await store.append("a", [result("1", "made")])
        assert await _subjects(store, kind="command") == ["make"]

    async def test_a_result_of_its_own_path_answers_the_newest_call_of_its_id(self, store: EventStore) -> None:
        """Where no path leads to the call, its id does."""
        await store.append("a", [call("1", "Bash", {"command": "old"}, path="first")])
        await store.append("a", [call("1", "Bash", {"command": "new"}, path="second")])
        await store.append("a", [result("1", path="third")])
        assert [(f.subject, f.path, f.version) for f in await found(store)] == [("new", "third", 3)]
        both = [call("2", "Write", {"file_path": "x.py"}, path="w"), result("2", path="")]
        await store.append("a", [*both, call("2", "Write", {"file_path": "y.py"}, path="v")])
        assert [(f.subject, f.path, f.version) for f in await found(store, kind="file_written")] == [("x.py", "w", 4)]

    async def test_calls_of_one_response_with_the_same_id_have_their_own_results(self, store: EventStore) -> None:
        """Which of them failed is known by the path; the id is that of both."""
        test, lint = ({"command": f"make {name}"} for name in ("test", "lint"))
        second = "tc:turn_1.1~2"
        await store.append("a", [call("1", "Bash", test), call("1", "Bash", lint, path=f"{second}.call")])
        await store.append("a", [result("1", failed=True), result("1", path=f"{second}.result")])
        assert [(fact.subject, fact.failed) for fact in await found(store, conversation="a")] == [
            ("make test", True),
            ("make lint", False),
        ]

    async def test_no_call_that_a_parent_makes_later_is_answered_in_its_fork(self, store: EventStore) -> None:
        """The fork's result may have the id, and the path, of a call that only its parent has."""
        await store.append("a", command("1", "one"))
        await store.append("b", [fork("a", 2)])
        await store.append("a", [call("2", "Bash", {"command": "two"})])
        await store.append("b", [result("2"), result("2", path="bl:of.its.own")])
        assert await _subjects(store, conversation="b") == ["one"]
        await store.append("a", [result("2")])
        assert await _subjects(store, conversation="a") == ["one", "two"]

    async def test_a_result_without_a_call_gives_no_fact(self, store: EventStore) -> None:
        """An id alone says nothing of what was done."""
        await store.append("a", [result("1", "done"), call("1", "Bash", {"command": "later"})])
        assert await found(store) == []

    async def test_urls_and_identifiers_of_all_blocks_are_found(self, store: EventStore) -> None:
        """Each belongs to the block that names it; it has no tool that worked with it."""
        text = "see https://example.org/a and ENT-241"
        await store.append("a", [block_event("p", text), call("1", "Bash", {"command": "git show 0f3a9c1b"})])
        url, ticket, commit = await found(store, kind=["url", "identifier"])
        assert (url.subject, url.path, url.version, url.kind) == ("https://example.org/a", "p", 1, "url")
        assert (ticket.subject, ticket.kind, commit.subject, commit.version) == ("ENT-241", "identifier", "0f3a9c1b", 2)
        await store.append("a", [block_event("q", "again ENT-241")])
        assert [f.version for f in await found(store, kind="identifier", subject="ENT-241")] == [1, 3]

    async def test_what_a_prompt_asks_for_is_found_and_merged(self, store: EventStore) -> None:
        """Each sentence with its prompt; in the record with every prompt that says it."""
        say = ["Never touch `main`.", "yes", "Never touch `main`."]
        await store.append("a", [block_event(f"p{n}", text) for n, text in enumerate(say)])
        await store.append("a", [call("1", "Bash", {"command": "must be"}), result("1", "You must not ask.")])
        asked = await found(store, kind="request")
        assert [(f.subject, f.detail, f.version, f.path) for f in asked] == [
            (say[0], "constraint", 1, "p0"),
            (say[1], "said", 2, "p1"),
            (say[2], "constraint", 3, "p2"),
        ]
        for covers, versions in ((None, [(1, 3), (2,)]), (Covers(ranges=((2, 5),)), [(3,), (2,)])):
            record = await store.fact_record("a", covers=covers)
            assert [entry.versions for entry in record.done["request"]] == versions
            assert record.asked == dict.fromkeys(sorted(v for some in versions for v in some), 1)

    async def test_names_that_later_calls_and_prompts_repeat_are_counted(self, store: EventStore) -> None:
        """What a result or an answer says again does not count."""
        for number, block in enumerate(
            [
                block_event("p", "fix getUserName"),
                call("1", "Grep", {"pattern": "getUserName"}),
                result("1", "ENT-241 getUserName"),
                block_event("q", "getUserName of ENT-241"),
            ]
        ):
            await store.append("a", [block])
            await store.fact_record("a", most=number + 1)
        record = await store.fact_record("a")
        assert {entry.subject: entry.repeats for entry in record.done["identifier"]} == {"getUserName": 2, "ENT-241": 1}

    async def test_the_record_of_each_compaction_is_that_of_the_facts_it_covers(self, store: EventStore) -> None:
        """However far the one before it went, and whatever was redacted, undone or answered since."""
        last = 0
        for number in range(8):
            failed = number % 3 == 0
            late = [result("late", "ok")] if number == 4 else []
            used = [call("late", "Write", {"file_path": "late.py"})] if number == 1 else []
            asked = block_event(f"p{number}", f"Fix ENT-{number % 2}. Never touch {number % 3}.py.")
            await store.append("a", [asked, *command(f"{number}", f"make {number % 2}", failed=failed), *used, *late])
            last += 3 + len(used) + len(late)
            if number == 5:
                last += 1
                await store.append("a", [event(BlockRedacted(version=5))])
            for end in (last - 2, 4) if number == 6 else (last - 2, last):
                covers = Covers(ranges=((1, end),))
                facts = [f async for f in store.facts(conversation="a") if f.version in covers]
                expected = record_of(Fact(**{name: getattr(f, name) for name in Fact._fields}) for f in facts)
                assert repr(await store.fact_record("a", covers=covers)) == repr(expected)

    async def test_facts_of_several_conversations_come_by_position(self, store: EventStore) -> None:
        """Each once, under its own conversation."""
        for number, name in enumerate(["a", "b", "c", "a", "b"]):
            await store.append(name, command(f"{number}", f"{name} {number}"))
        assert await _subjects(store) == ["a 0", "b 1", "c 2", "a 3", "b 4"]
        assert await _subjects(store, conversation=["b", "a", "b"], page=1) == ["a 0", "b 1", "a 3", "b 4"]
        assert [f.conversation for f in await found(store, conversation=["c"])] == ["c"]
        assert await _subjects(store, conversation=[]) == []

    async def test_a_fork_reads_through_to_what_it_shares(self, store: EventStore) -> None:
        """Its parent's facts up to its base are its own, later ones are not; a result may answer a shared call."""
        await store.append("a", [*command("1", "one"), call("2", "Write", {"file_path": "two"}), *command("3", "no")])
        await store.append("b", [fork("a", 3), result("2", "ok"), *command("4", "four")])
        shared, written, own = await found(store, conversation="b")
        assert (shared.subject, shared.conversation, shared.version) == ("one", "a", 2)
        assert (written.subject, written.version, written.path) == ("two", 3, "tc:turn_1.2.call")
        assert (own.subject, own.conversation) == ("four", "b")
        assert await _subjects(store, conversation="a") == ["one", "no"]
        assert await _subjects(store) == ["one", "no", "two", "four"]
        assert await _subjects(store, conversation=["b", "a"]) == ["one", "no", "two", "four"]

    async def test_a_fork_that_begins_behind_a_result_has_its_fact(self, store: EventStore) -> None:
        """The last event that both share counts."""
        await store.append("a", [*command("1", "one"), *command("2", "two")])
        await store.append("b", [fork("a", 2)])
        assert await _subjects(store, conversation="b") == ["one"]

    async def test_a_fact_that_conversations_share_is_covered_where_its_owner_covers_it(
        self, store: EventStore
    ) -> None:
        """In whatever order they are asked for."""
        await store.append("a", command("1", "one"))
        await store.append("b", [fork("a", 2)])
        await store.append("a", [compaction(1, 2)])
        for asked in (["a", "b"], ["b", "a"]):
            assert [(f.conversation, f.covered) for f in await found(store, conversation=asked)] == [("a", True)]
        assert [f.covered for f in await found(store, conversation="b")] == [False]

    async def test_a_redacted_block_gives_no_facts(self, store: EventStore) -> None:
        """Neither what its result or its call made known, nor what it names, whether it was asked for before or not."""
        for asked in (False, True):
            name = f"asked {asked}"
            await store.append(
                name, [*command("1", "rm secret-1234"), *command("2", "git show 0f3a9c1b"), *command("3", "ls")]
            )
            if asked:
                assert len(await found(store, conversation=name)) == 4
            await store.append(name, [event(BlockRedacted(version=2)), event(BlockRedacted(version=3))])
            assert await _subjects(store, conversation=name) == ["ls"]

    async def test_a_redaction_takes_effect_where_it_is_made(self, store: EventStore) -> None:
        """A fork's does not reach its parent; one of what is not there yet redacts nothing."""
        await store.append("a", [event(BlockRedacted(version=3)), *command("1", "one"), *command("2", "two")])
        await store.append("b", [fork("a", 5), event(BlockRedacted(version=3)), *command("3", "three")])
        assert await _subjects(store, conversation="a") == ["one", "two"]
        assert await _subjects(store, conversation="b") == ["two", "three"]
        assert (await store.fact_record("b")).counts == {"command": 2}

    async def test_a_fork_makes_nothing_known_of_a_call_that_was_redacted_before_it(self, store: EventStore) -> None:
        """Also where the redaction is the last event that both share; a later one is the parent's alone."""
        run = call("1", "Bash", {"command": "rm secret-1234"})
        await store.append("a", [run, event(BlockRedacted(version=1)), call("2", "Bash", {"command": "ls"})])
        await store.append("b", [fork("a", 2), result("1")])
        await store.append("c", [fork("a", 3), result("2")])
        await store.append("a", [event(BlockRedacted(version=3)), result("2")])
        assert {id_: await _subjects(store, conversation=id_) for id_ in "abc"} == {"a": [], "b": [], "c": ["ls"]}

    async def test_covered_facts_are_those_of_compactions_in_force(self, store: EventStore) -> None:
        """Carried blocks are live; an undone compaction covers nothing."""
        await store.append("a", [*command("1", "one"), *command("2", "two"), *command("3", "three")])
        first = compaction(1, 4)
        carried = first.model_copy(update={"payload": first.payload.model_copy(update={"carried": (4,)})})
        await store.append("a", [carried])
        assert [f.covered for f in await found(store, conversation="a")] == [True, False, False]
        assert await _subjects(store, covered=True) == ["one"]
        await store.append("b", [fork("a", 7)])
        await store.append("a", [compaction(1, 6, round_=2)])
        assert await _subjects(store, covered=False) == []
        assert await _subjects(store, conversation="b", covered=False) == ["two", "three"]
        await store.append("a", [event(CompactionReverted(versions=(8,)))])
        assert await _subjects(store, conversation="a", covered=False) == ["two", "three"]

    async def test_facts_stay_when_their_events_are_scavenged(self, store: EventStore) -> None:
        """They are extracted first, also what nobody had asked for; redacting such a block takes them away."""
        named = block_event("p", "see https://example.org/a")
        await store.append("a", [*command("1", "one"), named, call("2", "Write", {"file_path": "two.py"}, path="own")])
        await store.append("a", [result("2", "ok", path="other"), *command("3", "three")])
        await store.append("a", [compaction(1, 5)], snapshot=Snapshot(version=8, window_start=6))
        before = [fact async for fact in store.facts(conversation="a", kind="command")]
        removal = await store.remove("a")
        assert removal.events == 5
        kept = await found(store, conversation="a")
        assert [(f.kind, f.subject, f.path) for f in kept] == [
            ("command", "one", "tc:turn_1.1.result"),
            ("url", "https://example.org/a", "p"),
            ("request", "see https://example.org/a", "p"),
            ("file_written", "two.py", "own"),
            ("command", "three", "tc:turn_1.3.result"),
        ]
        assert [fact for fact in kept if fact.kind == "command"] == before
        assert [fact.covered for fact in kept] == [True, True, True, True, False]
        await store.append("a", [event(BlockRedacted(version=1)), event(BlockRedacted(version=3))])
        assert await _subjects(store) == ["two.py", "three"]

    async def test_a_late_result_of_a_scavenged_call_gives_no_fact(self, store: EventStore) -> None:
        """Nothing is left that says what the call did, and all other facts are found as before."""
        await store.append("a", [call("1", "Bash", {"command": "make"}), *command("2", "make test")])
        await store.append("a", [compaction(1, 3)], snapshot=Snapshot(version=4, window_start=5))
        assert await _subjects(store) == ["make test"]
        assert (await store.remove("a")).events == 3
        await store.append("a", [result("1", "built", path="tc:turn_2.1.result")])
        assert await _subjects(store) == ["make test"]

    async def test_a_record_merges_what_was_done(self, store: EventStore) -> None:
        """An entry for each subject and outcome: how often, first and last; failures that are still open apart."""
        await _filled(store)
        await store.append("a", [*command("7", "go test ./store"), block_event("p", "ENT-241")])
        record = await store.fact_record("a")
        (entry,) = record.done["command"]
        assert (entry.subject, entry.times, entry.first, entry.last) == ("go test ./store", 2, 6, 14)
        assert (entry.path, entry.tool) == ("tc:turn_1.7.result", "Bash")
        assert [entry.subject for entry in record.open_failures] == ["docs/Überblick.md", "go test ./store -run Login"]
        assert (record.counts["file_written"], record.open_count) == (1, 2)
        assert [entry.subject for entry in record.done["identifier"]] == ["ENT-241"]
        assert entry.at == (await found(store, kind="command"))[-1].at

    async def test_of_two_results_of_one_call_the_newest_is_in_the_record(self, store: EventStore) -> None:
        """Both are about the call's version, at which the content of a written file is read."""
        await store.append("a", [call("1", "Write", {"file_path": "a.py", "content": "x"})])
        for text, path in (("Permission denied", "first.r"), ("No space left", "second.r")):
            await store.append("a", [result("1", text, failed=True, path=path)])
        [entry] = (await store.fact_record("a")).open_failures
        assert (entry.times, entry.last, entry.detail) == (2, 1, "No space left")

    async def test_a_record_of_covered_versions_holds_no_others(self, store: EventStore) -> None:
        """The block to read decides; at most so many entries of each kind are kept, and all are counted."""
        await _filled(store)
        record = await store.fact_record("a", covers=Covers(ranges=((1, 4), (9, 9))))
        assert (record.counts, record.open_count) == ({"file_read": 1, "file_written": 1}, 1)
        assert [entry.last for entry in record.done["file_written"]] == [9]
        await store.append("a", [*command("8", "x"), *command("9", "y"), *command("10", "z")])
        record = await store.fact_record("a", most=1)
        assert ([entry.subject for entry in record.done["command"]], record.counts["command"]) == (["z"], 4)
        with pytest.raises(InvalidFilter, match="most"):
            await store.fact_record("a", most=0)

    async def test_the_reach_is_the_head_once_a_query_asked(self, store: EventStore) -> None:
        """Before, it says how much a query will catch up; nothing, where a store learns facts as it appends."""
        await _filled(store)
        before = await store.fact_reach()
        assert before.position in {0, before.newest_position}
        assert before.newest_position == await store.head()
        await found(store)
        after = await store.fact_reach()
        assert (after.position, after.newest_position, after.rules) == (
            before.newest_position,
            before.newest_position,
            before.rules,
        )
