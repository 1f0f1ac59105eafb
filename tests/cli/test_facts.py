"""`timeline facts`: what was done and named, from a shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline.cli.exits import Exit
from timeline.queries import FACT_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_facts_have_the_stable_keys_and_an_address_that_is_read(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Those of the whole log: more than a compaction covers."""
    rows = run("facts", "--json").json
    keys = {"conversation", "kind", "subject", "tool", "exit_status", "failed", "at", "path", "version", "address"}
    assert all(set(row) == keys | {"detail", "covered", "source"} for row in rows)
    assert {row["covered"] for row in rows} == {True, False}
    one = rows[0]
    assert one["address"] == f"{simulated['id']}@{one['version']}"
    by_address = run("read", simulated["id"], f"@{one['version']}", "--json").json
    assert by_address == run("read", simulated["id"], one["path"], "--json").json


def test_all_conditions_hold_of_one_fact(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Each condition alone finds what it says, and together they find the common ones."""
    rows = run("facts", simulated["id"], "--json").json
    some = rows[len(rows) // 2]
    given: dict[tuple[str, ...], Callable[[dict[str, Any]], bool]] = {
        ("--kind", some["kind"]): lambda row: row["kind"] == some["kind"],
        ("--tool", some["tool"]): lambda row: row["tool"] == some["tool"],
        ("--subject", some["subject"]): lambda row: some["subject"] in row["subject"],
        ("--since", some["at"]): lambda row: row["at"] >= some["at"],
        ("--covered",): lambda row: row["covered"],
        ("--worked",): lambda row: not row["failed"],
    }
    for option, holds in given.items():
        found = run("facts", *option, "--json").json
        assert found == [row for row in rows if holds(row)]
    words = [word for option in given if option != ("--covered",) for word in option]
    assert some in run("facts", *words, "--json").json


def test_people_get_a_line_a_fact_and_how_many_there_are(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Of one conversation the short address, of all with the conversation in front."""
    one = run("facts", simulated["id"], "--limit", 2).out
    assert "the newest of" in one
    assert f"{simulated['id']}@" not in one
    assert f"{simulated['id']}@" in run("facts", "--limit", 2).out


def test_a_limit_takes_the_newest_facts_in_json_too(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Whoever asks for the newest value of a file gets it in either form."""
    every = run("facts", simulated["id"], "--json").json
    assert run("facts", simulated["id"], "--json", "--limit", 2).json == every[-2:]
    shown = run("facts", simulated["id"], "--limit", 2).out
    assert [f"@{row['version']}" in shown for row in every[-2:]] == [True, True]


def test_the_record_is_one_for_each_conversation(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Each subject once, with how often; conditions would make it untrue."""
    (row,) = run("facts", "--record", "--json").json
    assert row["conversation"] == simulated["id"]
    facts = run("facts", "--json").json
    for kind, count in row["counts"].items():
        subjects = {fact["subject"] for fact in facts if fact["kind"] == kind and not fact["failed"]}
        assert count == len(subjects) == len(row["done"][kind])
    assert simulated["id"] in run("facts", "--record").out
    assert run("facts", "--record", "--failed").code == Exit.USAGE


def test_the_reach_of_the_index_is_printed(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """After a query it is the newest event."""
    run("facts", simulated["id"])
    reach = run("facts", "--reach", "--json").json
    assert reach["position"] == reach["newest_position"] > 0
    told = run("facts", "--reach").out
    newest = f"{reach['newest_position']:,}"
    assert told == f"Facts are indexed up to event {newest} of {newest}; a query indexes the rest.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--kind", "file"), "file_written"),
        (("--since", "yesterday"), "not a time with a zone"),
        (("--since", "2026"), "not a time with a zone"),
        (("nothing",), "nothing"),
        (("--glob", "[z-a]"), "glob"),
        (("--subject", "nowhere at all"), "Try fewer"),
        (("--glob", "nowhere.py"), "**/nowhere.py"),
        (("--failed", "--worked"), "--failed and --worked exclude each other"),
        (("--live", "--covered"), "--covered and --live exclude each other"),
        (("--reach", "--record"), "--reach is about the whole database"),
        (("--reach", "--failed"), "--reach is about the whole database"),
        (("nothing", "--reach"), "--reach is about the whole database"),
        (("--failed", "--failed", "--subject", "nowhere at all"), "Try fewer"),
        (("--worked", "--subject", "--failed"), "Try fewer"),
    ],
)
def test_what_cannot_be_asked_or_found_says_what_to_try(
    run: Callable[..., Done], simulated: dict[str, Any], words: tuple[str, ...], told: str
) -> None:
    """In one line, without a traceback."""
    assert simulated
    done = run("facts", *words)
    assert told in done.out + done.err
    assert "Traceback" not in done.out + done.err


def test_a_limit_above_all_numbers_lists_all(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Whoever wants all of them types many nines."""
    assert run("facts", simulated["id"], "--limit", "9" * 30).out == run("facts", simulated["id"], "--limit", 10**6).out


def test_the_help_names_every_kind(run: Callable[..., Done]) -> None:
    """What a user asked for was not among them."""
    told = " ".join(run("facts", "--help").out.split())
    assert f"{', '.join(FACT_KINDS)};" in told


def test_a_conversation_without_tools_has_what_was_asked(run: Callable[..., Done], tmp_path: Path) -> None:
    """And nothing else."""
    run("import", sessions.write(tmp_path, sessions.rows(1, 0)))
    assert {row["kind"] for row in run("facts", "--json").json} == {"request"}
    assert run("facts", "--kind", "request").out.count("request") >= 1
