from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline.cli.exits import Exit
from timeline.sync import Timeline, open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_ls_lists_conversations_in_the_order_in_which_they_were_opened(
    run: Callable[..., Done], recording: Path
) -> None:
    """Each conversation has its id, its title, where its window begins, and its times in UTC."""
    run("import", recording)
    report = run("simulate", recording, "--max-tokens", 1500, "--json").json
    imported, simulated = run("ls", "--json").json
    keys = {"id", "title", "version", "window_start", "created_at", "updated_at", "policy", "parent"}
    assert set(imported) == set(simulated) == keys | {"compactions", "last_compaction_at"}
    assert (imported["id"], simulated["id"]) == (sessions.SESSION, report["id"])
    assert imported["window_start"] == 1
    assert simulated["window_start"] > 1
    assert imported["created_at"] == "2026-01-05T08:00:00.000000Z"
    assert imported["parent"] is None


def test_ls_with_a_limit_lists_the_conversations_that_changed_last(run: Callable[..., Done], db: Path) -> None:
    """A database of a year has more than a terminal shows."""
    with open_store(str(db)) as store:
        for day, name in ((3, "third"), (1, "first"), (2, "second")):
            Timeline.open(store, name, now=datetime(2026, 1, day, tzinfo=UTC))
    assert [row["id"] for row in run("ls", "--limit", 2, "--json").json] == ["third", "second"]
    assert run("ls", "--limit", 1).out.split()[-5] == "third"


@pytest.mark.shows("004-134")
def test_ls_counts_compactions(run: Callable[..., Done], recording: Path) -> None:
    """Each conversation has the number of its compactions, and the time of the newest one."""
    run("import", recording)
    report = run("simulate", recording, "--max-tokens", 1500, "--json").json
    imported, simulated = run("ls", "--json").json
    assert (imported["compactions"], imported["last_compaction_at"]) == (0, None)
    digests = run("digests", report["id"], "--json").json
    assert simulated["compactions"] == len(digests) > 0
    assert simulated["last_compaction_at"] == max(digest["at"] for digest in digests)
    assert f" {len(digests)} " in next(line for line in run("ls").out.splitlines() if report["id"] in line)


def test_ls_says_where_a_subagent_belongs(run: Callable[..., Done], tmp_path: Path) -> None:
    """An imported side chain has its parent's id."""
    made = sessions.rows(1)
    run("import", sessions.write(tmp_path, made + sessions.subagent(made)))
    main, helper = run("ls", "--json").json
    assert helper["parent"]["conversation"] == main["id"]
    assert helper["parent"]["relation"] == "subagent"
    assert sessions.SESSION in run("ls").out.splitlines()[2].partition("helper")[2]


def test_read_prints_a_covered_block_in_full(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A block that a summary covers is read back by its path, to the last word."""
    done = run("read", simulated["id"], "tc:turn_1.toolu_1-1.result")
    assert done.code == 0
    assert done.out == " ".join(f"line{n}-1-1" for n in range(22)) + "\n"


def test_read_as_json_is_the_blocks_own_form(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The JSON of a block has its type, its address and its call."""
    block = run("read", simulated["id"], "tc:turn_1.toolu_1-1.call", "--json").json
    assert block["type"] == "react.tool.call"
    assert block["arguments"] == {"command": "make part-1-1"}
    assert block["path"] == "tc:turn_1.toolu_1-1.call"


@pytest.mark.parametrize("words", [("{id}", "@4"), ("{id}@4",), ("{id}", "{id}@4")])
def test_read_takes_an_address(run: Callable[..., Done], simulated: dict[str, Any], words: tuple[str, ...]) -> None:
    """Behind the conversation's id, or as one word with it, as `search` and `digests` print it."""
    named = [word.format(id=simulated["id"]) for word in words]
    row = next(row for row in run("show", simulated["id"], "--json").json if row["version"] == 4)
    block = run("read", *named, "--json").json
    assert (block["path"], block["address"]) == (row["path"], f"{simulated['id']}@4")


def test_show_prints_the_address_of_each_block(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """What appends no block has its version without a sign, since nothing is there to be read."""
    rows = {str(row["version"]): row["path"] for row in run("show", simulated["id"], "--json").json}
    lefts = [line[:6].strip() for line in run("show", simulated["id"], "--all").out.splitlines()]
    printed = [left for left in lefts if left.removeprefix("@").isdigit()]
    assert sorted(printed) == sorted(f"@{version}" if path else version for version, path in rows.items())


def test_an_address_without_a_block_is_one_line_with_what_is_near(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Of the conversation's beginning, of a version that it does not have, and where no block is named at all."""
    run("read", simulated["id"], "@1").fails(
        Exit.NOT_FOUND, "version 1 is not a block: it is conversation.opened", "@2"
    )
    run("read", simulated["id"], "@99999").fails(Exit.NOT_FOUND, "it has the versions 1 to ")
    run("read", simulated["id"]).fails(Exit.USAGE, "Name a block", f"{simulated['id']}@152")
    run("hide", simulated["id"], "@1").fails(Exit.NOT_FOUND, "version 1 is not a block")


def test_read_shows_a_call_with_its_arguments(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A person reads a call's name and arguments."""
    out = run("read", simulated["id"], "tc:turn_1.toolu_1-1.call").out
    name, _, arguments = out.partition(" ")
    assert name == "Bash"
    assert json.loads(arguments) == {"command": "make part-1-1"}


def test_read_of_a_summary_gives_the_full_digest(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """A summary comes with the whole record of what it covers."""
    block = run("read", simulated["id"], simulated["steps"][0]["summary_path"], "--json").json
    assert block["meta"]["compaction_digest"]["tool_outputs"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["read", "nope", "ar:turn_1.user.prompt"], "nope"),
        (["read", sessions.SESSION, "ar:turn_9.user.prompt"], "ar:turn_9.user.prompt"),
        (["show", "nope"], "nope"),
        (["render", "nope"], "nope"),
        (["render", "nope", "--record"], "nope"),
        (["compact", "nope"], "nope"),
        (["verify", "nope"], "nope"),
        (["export", "nope"], "nope"),
        (["digests", "nope"], "nope"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    run: Callable[..., Done], recording: Path, words: list[str], told: str
) -> None:
    """An unknown conversation or path gives exit code 3, one line that names it, and no output; JSON or not."""
    run("import", recording)
    before = run("ls", "--json").out
    run(*words).fails(Exit.NOT_FOUND, told)
    if words[0] != "export":
        run(*words, "--json").fails(Exit.NOT_FOUND, told)
    assert run("ls", "--json").out == before


def test_lists_without_rows_are_empty_json_lists_and_say_so_to_people(
    run: Callable[..., Done], recording: Path
) -> None:
    """No compaction yet: `[]` for programs, and what to type for people."""
    run("import", recording)
    assert run("digests", "--json").json == []
    assert "timeline compact" in run("digests").out
