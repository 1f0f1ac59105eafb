"""The record of facts: merged by subject and outcome, and shown within a cap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, COUNTER, words
from timeline.facts.model import Fact
from timeline.facts.record import record_of, settled, with_asked
from timeline.facts.record_lines import shown_record, unsaid
from timeline.facts.said import searchable_line
from timeline.queries import FactRecord

if TYPE_CHECKING:
    from timeline.facts.model import FactKind


def fact(kind: FactKind, subject: str, version: int, **fields: Any) -> Fact:
    """Return a fact of some version."""
    known = {"tool": "Tool", "path": f"tc:t.{version}.result"} | fields
    return Fact(kind, subject, version=version, at=AT, **known)


def shown(*facts: Fact, most: int = 300, summary: str = "", **extra: list[str]) -> str:
    """Return the shown record of facts."""
    return shown_record(
        record_of(facts),
        open_calls=extra.get("open_calls", []),
        pins=extra.get("pins", []),
        most_tokens=most,
        counter=COUNTER,
        address="su:t.summary",
        summary=summary,
    )


def test_facts_are_merged_by_subject_and_outcome() -> None:
    """How often, and the first and last time."""
    record = record_of([fact("file_written", "a.py", 3), fact("file_written", "a.py", 9), fact("file_read", "a.py", 5)])
    [written] = record.done["file_written"]
    assert (written.times, written.first, written.last, written.path) == (2, 3, 9, "tc:t.9.result")
    assert record.counts == {"file_read": 1, "file_written": 1}


def test_a_failure_is_open_until_the_same_succeeds() -> None:
    """Another command's success is none of this one's."""
    failed = fact("command", "make", 3, failed=True, exit_status=2)
    assert [e.subject for e in record_of([failed, fact("command", "ls", 5)]).open_failures] == ["make"]
    assert record_of([failed, fact("command", "make", 5)]).open_failures == ()
    again = record_of([fact("command", "make", 1), failed])
    assert [entry.last for entry in again.open_failures] == [3]


def test_what_succeeded_behind_the_record_is_no_open_failure_of_it() -> None:
    """Nor is an earlier result of a command that ran again behind it its last one."""
    done = [fact("command", "make", 3), fact("command", "ls", 4), fact("file_written", "a.py", 5, failed=True)]
    failed = fact("command", "make test", 6, failed=True, exit_status=2)
    record = record_of([*done, failed])
    later = [fact("command", "make", 8, failed=True), fact("command", "make test", 9), fact("file_written", "a.py", 10)]
    left = settled(record, later)
    assert (left.open_failures, left.open_count) == ((), 0)
    assert [entry.subject for entry in left.done["command"]] == ["ls"]
    assert left.counts == record.counts
    assert settled(record, ()) == record
    assert [
        e.subject for e in settled(record, [*later, fact("command", "make test", 11, failed=True)]).open_failures
    ] == ["make test"]


def test_a_file_that_could_not_be_read_is_no_open_failure_once_it_is_written() -> None:
    """It is there now."""
    missing = fact("file_read", "a.py", 3, failed=True)
    assert record_of([missing, fact("file_written", "a.py", 5)]).open_failures == ()


def test_a_failed_write_is_not_among_the_files_written() -> None:
    """It is shown as a failure, with what was said."""
    text = shown(
        fact("file_written", "/etc/x", 4, failed=True, tool="Write", detail="Permission denied"),
        fact("error", "Write", 5, failed=True, tool="Write", detail="Permission denied"),
    )
    assert text == "Failed, and not done since:\n- Write /etc/x: Permission denied (@4)"


def test_the_sections_come_in_order_with_short_addresses() -> None:
    """Failures, what was asked, files, repeated names, searches, commands by last result, open calls and pins."""
    text = shown(
        fact("identifier", "ENT-241", 1, tool=""),
        fact("identifier", "#12", 1, tool=""),
        fact("file_written", "a.py", 2, tool="Write"),
        fact("file_written", "b.py", 4, tool="Write"),
        fact("file_written", "a.py", 6, tool="Edit"),
        fact("file_deleted", "c.py", 7),
        fact("command", "make", 9, exit_status=0),
        fact("command", "make test", 11, exit_status=2, failed=True),
        fact("identifier", "ENT-241", 12, tool="Bash"),
        fact("error", "WebFetch", 14, failed=True, tool="WebFetch", detail="502"),
        fact("file_read", "d.py", 15),
        fact("search", "x", 16),
        fact("request", "Never push.", 17, detail="constraint"),
        fact("request", "fix it", 3, detail="request"),
        open_calls=["tc:t.20.call"],
        pins=["bl:t.note"],
    )
    assert text == (
        "Failed, and not done since:\n- make test (exit 2) (@11)\n"
        "Failed calls of other tools:\n- WebFetch: 502 (@14)\n"
        "Asked by the user:\n- Never push. (@17)\n- fix it (@3)\n"
        "Files written:\n- a.py x2 (@6, first @2)\n- b.py (@4)\n"
        "Files deleted:\n- c.py (@7)\n"
        "Files read:\n- d.py (@15)\n"
        "Named again:\n- ENT-241 (@1)\n"
        "Searched:\n- x (@16)\n"
        "Commands by last result:\n- make (exit 0) (@9)\n"
        "Open calls:\n- tc:t.20.call\n"
        "Pinned:\n- bl:t.note\n"
        "Not shown: 1 identifier. Full record: su:t.summary"
    )


def test_what_holds_for_all_that_comes_is_shown_before_what_is_done_once() -> None:
    """The newest first of each; what the context says word for word is neither shown nor counted."""
    asked = [
        fact("request", f"{manner} {version}", version, detail=manner)
        for manner, version in (("said", 9), ("request", 7), ("constraint", 3), ("constraint", 5), ("request", 2))
    ]
    text = shown(*asked, summary=searchable_line(["as I said: request 7"]))
    assert re.findall(r"- (\w+) (\d)", text) == [
        ("constraint", "5"), ("constraint", "3"), ("request", "2"), ("said", "9")
    ]  # fmt: skip
    assert shown(*asked, most=30).splitlines()[-1] == "Not shown: 3 requests of the user. Full record: su:t.summary"


def test_names_that_one_block_named_first_share_a_line() -> None:
    """The one that was repeated most comes first; what was never repeated is counted."""
    named = [fact("identifier", name, 1, tool="", detail="prompt") for name in ("getUser", "max_tokens", "oldName")]
    later = [fact("identifier", name, 5, tool="Edit") for name in ("max_tokens", "newName")]
    again = [
        fact("identifier", name, 8, tool="", detail=by)
        for name, by in (("max_tokens", "prompt"), ("getUser", "prompt"))
    ]
    result = [fact("identifier", "oldName", 9, tool=""), fact("identifier", "newName", 10, tool="Edit")]
    assert shown(*named, *later, *again, *result) == (
        "Named again:\n- max_tokens, getUser (@1)\n- newName (@5)\nNot shown: 1 identifier. Full record: su:t.summary"
    )


def test_of_a_line_of_names_as_many_are_listed_as_have_room() -> None:
    """Those that were repeated most."""
    names = [f"nameNumber{number}" for number in range(8)]
    facts = [fact("identifier", name, version) for version in (1, 5) for name in names]
    assert ", ".join(names) in shown(*facts)
    half = ", ".join(names[:4])
    assert shown(*facts, most=31).startswith(f"Named again:\n- {half} (@1)\nNot shown: 4 identifiers.")


@pytest.mark.parametrize("most", [60, 100, 140])
def test_no_further_line_fits_into_the_cap(most: int) -> None:
    """Lines that are counted one by one cost more than together, and what is not shown becomes less."""
    facts = [fact("search", f"word{version}", version) for version in range(10, 90)]
    text = shown(*facts, most=most)
    listed = text.count("- word")
    further = text.replace("Not shown", f"- word{89 - listed} (@{89 - listed})\nNot shown")
    assert COUNTER.count(text) <= most < COUNTER.count(further)


def test_a_url_that_later_calls_name_is_listed_by_its_repeats() -> None:
    """Beside identifiers; one that was named once is counted."""
    urls = [fact("url", "https://a.example/b", version) for version in (1, 4, 5)]
    facts = [*urls, *(fact("identifier", "getUser", version) for version in (2, 3))]
    text = shown(*facts, fact("url", "https://a.example/c", 6))
    assert text.startswith("Named again:\n- https://a.example/b (@1)\n- getUser (@2)\nNot shown: 1 URL.")


def test_a_prompt_is_unsaid_unless_each_of_its_requests_is_said_or_listed() -> None:
    """Two prompts that say the same are said together; of a beginning nobody knows what followed."""
    facts = [
        fact("request", "Never push.", 2, detail="constraint"),
        fact("request", "fix it", 2, detail="request"),
        fact("request", "Never push.", 4, detail="constraint"),
        fact("request", "Lorem ipsum…", 6, detail="said"),
        fact("request", "x" * 500 + "…", 8, detail="request"),
    ]
    record = record_of(facts)
    assert dict(record.asked) == {2: 2, 4: 1, 6: 1, 8: 1}
    assert unsaid(record, "") == (2, 4, 6, 8)
    assert unsaid(record, searchable_line(["He said: Never push. Lorem ipsum… (@6)"])) == (2, 6, 8)
    assert unsaid(record, searchable_line(["Never push. fix it (@2)"]), whole=[6]) == (8,)
    listed = searchable_line([shown(*facts, most=100_000)])
    assert unsaid(record, listed) == (6, 8)
    assert unsaid(record_of(facts, most=1), listed) == (2, 6, 8)


def test_a_request_of_which_the_line_is_cut_is_unsaid() -> None:
    """What it asks for may be behind the cut."""
    wish = f"It is slow on the {'old ' * 40}machines, so let us never download anything."
    record = record_of([fact("request", wish, 2, detail="constraint"), fact("request", "Fix it.", 3, detail="request")])
    assert unsaid(record, searchable_line([shown(fact("request", wish, 2, detail="constraint"))])) == (2, 3)
    assert unsaid(record, searchable_line([wish])) == (3,)


def test_a_prompt_that_says_more_than_its_requests_is_unsaid_and_what_it_says_besides_is_not_listed() -> None:
    """Neither by a line nor in the count of what has no room."""
    facts = [fact("request", "Fix it.", 2, detail="request"), fact("request", "", 2, detail="more")]
    for record in (record_of(facts), with_asked(record_of([]), facts)):
        assert unsaid(record, searchable_line(["Fix it. The API is frozen…"])) == (2,)
        assert unsaid(record, "", whole=[2]) == ()
        assert record.counts == {"request": 1}
        assert [entry.subject for entry in record.done["request"]] == ["Fix it."]


def test_a_request_that_a_prompt_shown_whole_makes_too_is_listed() -> None:
    """That prompt may be hidden next; what it alone asks for needs no line."""
    facts = [fact("request", "Never push.", 2, detail="constraint"), fact("request", "Never push.", 9)]
    record = record_of([*facts, fact("request", "Use tabs.", 9, detail="constraint")])
    text = shown_record(
        record, open_calls=[], pins=[], most_tokens=90, counter=COUNTER, address="su:t.summary", whole=[9]
    )
    assert text == "Asked by the user:\n- Never push. (@9)"


def test_a_short_request_is_said_as_words_of_its_own() -> None:
    """Not inside of other words."""
    record = record_of([fact("request", "no", 2, detail="said")])
    assert unsaid(record, searchable_line(["nothing is noted"])) == (2,)
    assert unsaid(record, searchable_line(["he said", "no"])) == ()


def test_requests_of_prompts_outside_a_record_are_taken_into_it() -> None:
    """Merged with those that say the same, and ranked."""
    record = record_of(
        [fact("request", "Never push.", 2, detail="constraint"), fact("request", "go", 3, detail="said")]
    )
    further = [
        fact("request", "Never push.", 8, detail="constraint"),
        fact("request", "Use x.", 9, detail="constraint"),
    ]
    both = with_asked(record, [*further, fact("url", "https://x.y", 9)])
    assert [(e.subject, e.versions, e.last) for e in both.done["request"]] == [
        ("Use x.", (9,), 9), ("Never push.", (2, 8), 8), ("go", (3,), 3)
    ]  # fmt: skip
    assert (both.counts["request"], dict(both.asked)) == (3, {2: 1, 3: 1, 8: 1, 9: 1})
    assert with_asked(record, [fact("url", "https://x.y", 9)]) is record


def test_an_earlier_success_of_a_failing_command_is_not_its_last_result() -> None:
    """It failed since."""
    text = shown(fact("command", "make", 1, exit_status=0), fact("command", "make", 3, exit_status=2, failed=True))
    assert text == "Failed, and not done since:\n- make (exit 2) (@3)"


def test_the_folder_of_most_files_is_named_once() -> None:
    """Others keep their whole path."""
    text = shown(
        fact("file_written", "/home/me/project/src/a.py", 3),
        fact("file_written", "/home/me/project/src/b.py", 2),
        fact("file_written", "/other/x", 1),
    )
    assert text == "Files written (in /home/me/project/src/):\n- a.py (@3)\n- b.py (@2)\n- /other/x (@1)"


def test_the_folder_of_all_files_is_named_above_the_first_of_them_alone() -> None:
    """The other sections refer to it; a path outside of it is whole."""
    text = shown(
        fact("file_written", "/home/me/project/src/a.py", 3),
        fact("file_deleted", "/other/x", 4),
        fact("file_read", "/home/me/project/src/b.py", 2),
        fact("file_read", "/home/me/project/src/c.py", 1),
    )
    assert text == (
        "Files written (in /home/me/project/src/):\n- a.py (@3)\nFiles deleted:\n- /other/x (@4)\n"
        "Files read (there too):\n- b.py (@2)\n- c.py (@1)"
    )


def test_a_file_that_was_read_and_changed_is_listed_once_with_its_first_use() -> None:
    """The first reading most often shows all of it; the newest change shows a part."""
    text = shown(
        fact("file_read", "a.py", 2),
        fact("file_written", "a.py", 4),
        fact("file_read", "b.py", 5),
        fact("file_read", "a.py", 6),
        fact("file_written", "a.py", 8),
        fact("file_read", "b.py", 9),
        fact("file_written", "c.py", 10),
    )
    assert text == ("Files written:\n- c.py (@10)\n- a.py x2 (@8, first @2)\nFiles read:\n- b.py x2 (@9, first @5)")


def test_a_relative_path_is_never_taken_for_one_in_the_folder() -> None:
    """With one among them every path is whole."""
    text = shown(
        fact("file_written", "/home/me/project/a.py", 3),
        fact("file_written", "/home/me/project/b.py", 2),
        fact("file_written", "c.py", 1),
    )
    assert "in /home" not in text


def test_no_section_takes_all_the_room() -> None:
    """Many failures leave room for the files."""
    failures = [fact("command", f"make target_{n}", n, failed=True, exit_status=1) for n in range(1, 60)]
    files = [fact("file_written", f"src/{n}.py", 100 + n) for n in range(60)]
    text = shown(*failures, *files)
    assert 5 <= text.count("(exit 1)") < 30
    assert text.count("- src/") >= 10
    assert "Not shown: " in text


def test_what_other_agents_were_asked_comes_before_searches() -> None:
    """Their answers are long, were dear, and are of things that no file's name leads to."""
    text = shown(
        fact("search", "def load", 4, tool="Grep", detail="12"),
        fact("search", "Compare both stores", 2, tool="Task"),
        fact("search", "**/*.sql", 6, tool="Glob"),
    )
    assert text == (
        "Asked of other agents:\n- Compare both stores (@2)\nSearched:\n- **/*.sql (@6)\n- def load (12 hits) (@4)"
    )


def test_a_long_command_is_cut() -> None:
    """One line a command."""
    line = shown(fact("command", words(400), 3, failed=True, exit_status=1)).splitlines()[1]
    assert line.endswith("… (exit 1) (@3)")
    assert len(line) < 160


def test_an_empty_record_is_no_text() -> None:
    """Nothing to say, nothing said."""
    assert shown() == ""
    assert (
        shown_record(FactRecord(), open_calls=[], pins=[], most_tokens=0, counter=COUNTER, address="su:t.summary") == ""
    )


KINDS = ("file_read", "file_written", "file_deleted", "command", "search", "error", "url", "identifier", "request")
FACTS = st.lists(
    st.builds(
        lambda kind, subject, version, failed, called: fact(
            kind,
            subject,
            version,
            failed=(failed and kind not in {"url", "identifier", "request"}) or kind == "error",
            tool="Tool" if called else "",
            detail="no" if failed else "",
        ),
        st.sampled_from(KINDS),
        st.sampled_from(["a", "/src/long/folder/a.py", "/src/long/folder/b.py", "make\ntest", "ENT-1", "x" * 300]),
        st.integers(1, 60),
        st.booleans(),
        st.booleans(),
    ),
    max_size=60,
)


@given(FACTS, st.integers(0, 400))
def test_the_shown_record_keeps_its_cap_and_claims_nothing_that_is_not_so(facts: list[Fact], most: int) -> None:
    """Whatever the facts and the cap: whole lines, true addresses, and everything shown or counted."""
    facts = sorted(facts, key=lambda each: each.version)
    text = shown(*facts, most=most)
    assert COUNTER.count(text) <= most
    whole = set(shown(*facts, most=100_000).splitlines())
    lines = text.splitlines()
    folders = [line for line in lines if " (in /" in line]
    assert folders or all(line in whole for line in lines if line.startswith("- "))
    assert {int(version) for version in re.findall(r"[( ]@(\d+)[,)]", text)} <= {each.version for each in facts}
    done = {each.subject for each in facts if each.kind == "file_written" and not each.failed}
    if text:
        section = re.search(r"^Files written[^\n]*:\n((?:- [^\n]*\n?)+)", text, re.MULTILINE)
        claimed = section[1].count("- ") if section else 0
        left = re.search(r"(\d+) files? written", text.splitlines()[-1])
        assert claimed + (int(left[1]) if left else 0) == len(done)
