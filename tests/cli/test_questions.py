from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from tests.downgrade import before_digest_rows
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_digests_tell_what_each_compaction_covered(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Every compaction has its row: where its summary is, what it covers, and a digest with the commands."""
    rows = run("digests", "--json").json
    assert [row["version"] for row in rows] == [step["version"] for step in simulated["steps"]]
    assert [row["compaction_number"] for row in rows] == list(range(1, len(rows) + 1))
    for row, step in zip(rows, simulated["steps"], strict=True):
        assert set(row) == {
            "conversation",
            "version",
            "at",
            "compaction_number",
            "path",
            "address",
            "covers",
            "digest",
            "matched",
            "before_tokens",
            "after_tokens",
            "reverted_by",
            "duration",
            "unsaid",
        }
        assert row["path"] == step["summary_path"]
        assert row["address"] == f"{row['conversation']}@{step['version']}"
        assert row["covers"] == step["covers"]
    assert rows[0]["digest"]["commands"][0]["command"] == "make part-1-1"


def test_digests_of_one_conversation_leave_the_others_out(
    run: Callable[..., Done], recording: Path, simulated: dict[str, Any]
) -> None:
    """The id is an argument, as it is of every other command."""
    other = run("simulate", recording, "--max-tokens", 1400, "--json").json
    rows = run("digests", other["id"], "--json").json
    assert {row["conversation"] for row in rows} == {other["id"]}
    everything = run("digests", "--json").json
    assert len(everything) == len(rows) + simulated["compactions"]


def test_digests_are_readable_by_people(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Without `--json` each compaction says what was run and with which tools."""
    out = run("digests").out
    assert f"compaction 1, {sessions.BEGAN:%Y-%m-%d}" in out
    assert "  ran       make part-1-1" in out
    assert simulated["steps"][0]["summary_path"] in out


def test_digests_are_narrowed_by_filters(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Each filter of the store has its option; `matched` holds what was asked for, and people see only that."""
    (row,) = run("digests", "--command", "part-1-1", "--tool", "Bash", "--compaction", "1-9", "--json").json
    assert [command["command"] for command in row["matched"]["commands"]] == ["make part-1-1"]
    assert len(row["digest"]["commands"]) > 1
    assert run("digests", "--command", "part-1-1").out.count("make part-") == 1
    number = simulated["compactions"]
    assert [row["compaction_number"] for row in run("digests", "--compaction", number, "--json").json] == [number]
    for nothing in (["--failed"], ["--error-text", "x"], ["--path", "**/*.py"], ["--tool", "bash"], ["--reverted"]):
        assert run("digests", *nothing, "--json").json == []
    times = [row["at"] for row in run("digests", "--json").json]
    assert [row["at"] for row in run("digests", "--since", times[-1], "--json").json] == times[-1:]
    assert [row["at"] for row in run("digests", "--until", times[0], "--json").json] == times[:1]


def test_digests_that_nothing_meets_say_what_to_try(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A glob that does not begin at the root is the usual reason; the conversation's id is none."""
    assert simulated
    assert "try --path '**/src/*.py'" in run("digests", "--path", "src/*.py").out
    assert "Try fewer" in run("digests", "--tool", "nothing").out


def test_search_finds_blocks_by_their_words(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Covered blocks too, with path, time and a line of text; the JSON has its documented keys."""
    (row,) = run("search", "line3-1-1", "--json").json
    assert set(row) == {
        "conversation",
        "version",
        "at",
        "type",
        "path",
        "address",
        "snippet",
        "rank",
        "reverted_by",
        "call",
    }
    assert (row["conversation"], row["path"]) == (simulated["id"], "tc:turn_1.toolu_1-1.result")
    assert (row["type"], row["at"][-1]) == ("react.tool.result", "Z")
    assert "«line3-1-1»" in row["snippet"]
    out = run("search", "line3-1-1").out.splitlines()
    assert out[0].startswith(f"tc:turn_1.toolu_1-1.result  {row['address']}, ")
    assert "«line3-1-1»" in out[1]
    assert row["call"] is None
    assert run("read", row["address"]).out == run("read", row["conversation"], row["path"]).out


def test_search_names_the_call_that_a_block_was_said_in(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """It is the number that `call` takes; a prompt and a result are no part of a call's response."""
    rows = run("search", "step", "--type", "assistant.completion", "--json").json
    assert len(rows) == 18
    for row in rows:
        reply = run("call", simulated["id"], row["call"], "--json").json["reply"]
        assert row["path"] in [block["path"] for block in reply]
    assert f", said in call {rows[0]['call']}\n" in run("search", "step", "--type", "assistant.completion").out
    assert {row["call"] for row in run("search", "task OR part", "--type", "user.prompt", "--json").json} <= {None}


def test_search_says_of_a_summary_that_it_was_undone(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """In the words of `digests`."""
    run("undo", simulated["id"])
    assert ", undone at version" in run("search", "make", "--type", "conv.range.summary").out


def test_search_is_narrowed_by_conversation_type_time_and_number(
    run: Callable[..., Done], recording: Path, simulated: dict[str, Any]
) -> None:
    """`--type` may be given again; `--limit` counts, and people are told when there is more."""
    run("import", recording)
    rows = run("search", "part", "--json").json
    assert {row["conversation"] for row in rows} == {simulated["id"], sessions.SESSION}
    own = run("search", "part", sessions.SESSION, "--json").json
    assert {row["conversation"] for row in own} == {sessions.SESSION}
    kinds = run("search", "part", "--type", "user.prompt", "--type", "conv.range.summary", "--json").json
    assert {row["type"] for row in kinds} == {"user.prompt", "conv.range.summary"}
    assert {row["at"] for row in run("search", "part", "--until", rows[0]["at"], "--json").json} <= {
        row["at"] for row in rows if row["at"] <= rows[0]["at"]
    }
    assert len(run("search", "part", "--limit", 3, "--json").json) == 3
    assert "and more: raise --limit to 15" in run("search", "part", "--limit", 3).out
    assert "and more" not in run("search", "part", "--limit", len(rows)).out


def test_search_of_what_is_nowhere_says_so(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """`[]` for programs, and what to try for people."""
    assert simulated
    assert run("search", "xylophone", "--json").json == []
    assert "No block contains all of these words" in run("search", "xylophone").out


@pytest.mark.usefixtures("simulated")
def test_search_that_filters_narrow_does_not_say_that_the_words_are_nowhere(run: Callable[..., Done]) -> None:
    """They may be where the filters do not look."""
    assert "--since and --until let it look" in run("search", "make", "--since", "2199-01-01T00:00:00Z").out


def test_a_number_that_is_none_is_said_to_be_none(run: Callable[..., Done]) -> None:
    """In words, not in those of the library that reads it."""
    run("facts", "--exit-status", "abc").fails(Exit.USAGE, "'--exit-status': it is not a whole number")


def test_digests_where_all_compactions_were_undone_lead_to_those(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """There were some, so that `No compaction yet` would be wrong."""
    while run("undo", simulated["id"]).code == Exit.OK:
        continue
    assert "--reverted" in run("digests").out


@pytest.mark.usefixtures("simulated")
def test_a_filter_that_cannot_be_used_has_the_name_that_was_typed(run: Callable[..., Done]) -> None:
    """In Python some have other names."""
    run("digests", "--path", "[z-a]").fails(Exit.USAGE, "--path: '[z-a]' holds a class")
    run("search", "...").fails(Exit.USAGE, "WORDS: holds no word")


@pytest.mark.usefixtures("simulated")
def test_search_of_an_unknown_type_lists_the_types(run: Callable[..., Done]) -> None:
    """It may be one of the application's own, or mistyped."""
    told = run("search", "parser", "--type", "tool.results").out
    assert "of the type tool.results, the types are:" in told
    assert "react.tool.result," in told
    assert "the types are" not in run("search", "zebracrossing", "--type", "react.tool.result").out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["search", "***"], Exit.USAGE, "no word to look for"),
        (["search", "word", "nope"], Exit.NOT_FOUND, "nope"),
        (["search", "word", "--since", "yesterday"], Exit.USAGE, "--since 'yesterday'"),
        (["search", "word", "--limit", "0"], Exit.USAGE, "--limit"),
        (["digests", "--until", "2026-01-05"], Exit.USAGE, "--until '2026-01-05'"),
        (["digests", "--compaction", "two"], Exit.USAGE, "--compaction 'two'"),
        (["digests", "--compaction", "4-2"], Exit.USAGE, "--compaction '4-2'"),
        (["digests", "--path", ""], Exit.USAGE, "--path"),
        (["digests", "--tool", ""], Exit.USAGE, "tool"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    run: Callable[..., Done], recording: Path, words: list[str], code: int, told: str
) -> None:
    """An option that cannot be used is a line with the cure, JSON or not."""
    run("import", recording)
    run(*words).fails(code, told)
    run(*words, "--json").fails(code, told)


def test_a_database_of_an_earlier_version_is_brought_up_to_date(
    run: Callable[..., Done], simulated: dict[str, Any], db: Path
) -> None:
    """A command that only reads works too on what an earlier version wrote, and finds its compactions."""
    before_digest_rows(db)
    assert len(run("digests", "--json").json) == simulated["compactions"]
