from __future__ import annotations

import asyncio
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from tests.abridged import read_numbered
from tests.cli import sessions
from tests.cli.test_output import Terminal, writing_to
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.cli import main
from timeline.cli.rows import read_rows
from timeline.store import open_store
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

STATES = {"visible", "abridged", "hidden", "carried", "omitted", "covered", "redacted", "deleted"}
KEYS = {"version", "at", "type", "path", "state", "covered_by", "turn_id", "call_id", "tokens", "duration", "unsaid"}


@pytest.mark.parametrize("limit", [1000, 1300, 2000, 4000, 80000])
def test_every_event_has_a_row_and_every_block_one_clear_state(
    run: Callable[..., Done], recording: Path, limit: int
) -> None:
    """Versions have no gap; a block has one of the eight states, and a covering summary exactly when it is covered."""
    report = run("simulate", recording, "--max-tokens", limit, "--json").json
    rows = run("show", report["id"], "--json").json
    assert [row["version"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(set(row) == KEYS for row in rows)
    summaries = {row["version"] for row in rows if row["type"] == "conv.range.summary"}
    for row in rows:
        if row["path"] is None:
            assert (row["state"], row["covered_by"], row["tokens"]) == (None, None, None)
        else:
            assert row["state"] in STATES
            assert (row["covered_by"] in summaries) == (row["state"] == "covered")
    assert len(summaries) == report["compactions"]


def test_the_states_are_those_that_a_reader_of_the_log_would_find(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """What lies in the newest summary's ranges is covered or carried; what lies behind them is visible."""
    rows = run("show", simulated["id"], "--json").json
    last = simulated["steps"][-1]
    ranges = last["covers"]["ranges"]
    for row in rows:
        inside = any(first <= row["version"] <= end for first, end in ranges)
        if row["type"] == "conv.range.summary":
            assert row["state"] == ("visible" if row["version"] == last["version"] else "covered")
        elif row["path"] is not None:
            assert row["state"] in ({"covered", "carried"} if inside else {"visible"})
    assert Counter(row["state"] for row in rows)["carried"] == last["carried"]


def test_events_that_are_no_blocks_tell_their_own_type(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Renders and model calls are rows, too."""
    types = Counter(row["type"] for row in run("show", simulated["id"], "--json").json if row["path"] is None)
    assert types["conversation.opened"] == 1
    assert types["context.rendered"] == simulated["renders"]
    assert types["model.called"] > 0


def test_what_a_summary_covers_takes_a_line_a_turn_under_it(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """In timeline order: the summary first, its turns with their prompts and sizes, then what is visible."""
    rows = run("show", simulated["id"], "--json").json
    out = run("show", simulated["id"]).out
    lines = out.splitlines()
    top = next(i for i, line in enumerate(lines) if simulated["steps"][-1]["summary_path"] in line)
    covered = [row for row in rows if row["covered_by"] is not None]
    turns = {turn: [row for row in covered if row["turn_id"] == turn] for turn in {row["turn_id"] for row in covered}}
    for number, (turn, blocks) in enumerate(sorted(turns.items()), start=top + 1):
        assert lines[number].split()[:4] == [
            f"@{blocks[0]['version']}",
            "covered",
            f"{sum(row['tokens'] for row in blocks):,}",
            turn,
        ]
        assert f"({len(blocks)} " in lines[number]
    assert "  Task 1: make part 1 work." in lines[top + 1]
    assert "tc:turn_1.toolu_1-1.result" not in out
    assert "context.rendered" not in out
    assert "\x1b" not in out


def test_blocks_stand_under_their_round_and_rounds_under_their_turn(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Into a pipe by indentation: a turn, a round with the tools it called, then its blocks."""
    lines = run("show", simulated["id"]).out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith("  Bash"))
    heading = next(line for line in reversed(lines[:at]) if line[27:].startswith("turn_"))
    tokens = [int(line[17:25].replace(",", "")) for line in lines[at : at + 4]]
    assert heading[:16].strip() == ""
    assert lines[at][27:].startswith("  round ")
    assert [line[27:31] for line in lines[at + 1 : at + 4]] == ["    "] * 3
    assert [line[31:34] for line in lines[at + 1 : at + 4]] == ["ar:", "tc:", "tc:"]
    assert tokens[0] == sum(tokens[1:])


def test_the_cache_points_of_the_newest_policy_are_marked(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Where the next context's markers go, by kind."""
    words = ("render", simulated["id"], "--policy", "cut_point", "--max-tokens", 1500)
    points = run(*words, "--explain", "--json").json["cache_points"]
    marked = [line for line in run("show", simulated["id"]).out.splitlines() if "  ^ " in line]
    assert [line.split()[3] for line in marked] == [point["path"] for point in points]
    assert "^ tail" in marked[-1]


def test_a_hidden_block_shows_what_its_replacement_says(run: Callable[..., Done], tmp_path: Path) -> None:
    """Its tokens are those of the replacement, its whole size stands in front of the words."""
    run("import", sessions.write(tmp_path, sessions.rows(1, 1, words=4000)[:-1]))
    run("render", sessions.SESSION, "--max-tokens", 1000, "--record")
    row = next(row for row in run("show", sessions.SESSION, "--json").json if row["state"] == "hidden")
    line = next(line for line in run("show", sessions.SESSION).out.splitlines() if str(row["path"]) in line)
    shown = int(line.split()[2].replace(",", ""))
    assert line.split()[:2] == [f"@{row['version']}", "hidden"]
    assert shown < row["tokens"]
    assert f"(of {row['tokens']:,}) line0-" in line


def test_an_abridged_result_is_counted_apart_from_hidden_blocks(run: Callable[..., Done], tmp_path: Path) -> None:
    """By `show`, and by `render`, which says so of its decision as well."""
    db = tmp_path / "numbered.db"

    async def read_and_hide() -> None:
        async with open_store(str(db)) as store:
            timeline = await read_numbered(store)
            await timeline.append(UserPrompt(text="Thanks."))
            await timeline.hide(f"@{timeline.version}")

    asyncio.run(read_and_hide())
    assert "1 visible, 1 abridged, 1 hidden; the window holds" in run("show", "c", "--db", db).out
    assert "blocks: 1 visible, 1 abridged, 1 hidden" in run("render", "c", "--db", db).out


def test_a_terminal_gets_lines_colours_and_no_line_that_is_too_long(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """States are coloured, branches drawn, texts cut at the edge; paths are whole."""
    assert run("ls").code == 0
    screen = Terminal()
    with writing_to(screen, COLUMNS="80"):
        assert main(["show", simulated["id"]]) == 0
    text = screen.getvalue()
    assert "├ " in text
    assert "└ " in text
    assert "\x1b[32mvisible \x1b[0m" in text
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(map(cell_len, plain.splitlines()[3:])) <= 80
    assert all(row["path"] in plain for row in run("show", simulated["id"], "--json").json if row["state"] == "carried")


def test_all_lists_every_event(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """`--all` shows covered blocks one by one, and renders, each on a line of its own."""
    rows = run("show", simulated["id"], "--json").json
    out = run("show", simulated["id"], "--all").out
    assert all(row["path"] in out for row in rows if row["path"] is not None)
    lines = [line for line in out.splitlines() if line[:6].strip(" @").isdigit()]
    assert len(lines) == len(rows)


def test_text_of_a_conversation_cannot_break_a_line(run: Callable[..., Done], tmp_path: Path) -> None:
    """A prompt with line ends and escape characters takes one line."""
    made = sessions.rows(1, 1)
    made[0]["message"]["content"] = "first\nsecond\x1b[31m third"
    run("import", sessions.write(tmp_path, made))
    out = run("show", sessions.SESSION).out
    assert "turn_1  first second␛[31m third\n" in out


async def test_stages_say_what_was_decided_and_where_their_messages_stand() -> None:
    """Events of stages are rows as any other; for a person they tell the decision."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "c")
    await timeline.enter_stage("topic", "Topic")
    await timeline.append(UserPrompt(text="Flashcards?"))
    await timeline.approve_stage(decision="spaced repetition")
    await timeline.rewind_stage("topic")
    rows = (await read_rows(store, "c")).rows
    assert [(row.type, row.about) for row in rows if row.type.startswith("stage.") and row.path is None] == [
        ("stage.entered", "Topic"),
        ("stage.approved", "Topic (1 message, 3 to 3): spaced repetition"),
        ("stage.rewound", "back to topic"),
    ]
    assert all(set(row.dump().model_dump()) == KEYS for row in rows)


def test_an_address_alone_lacks_its_conversation(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The example must not be an address with two versions."""
    assert simulated
    done = run("read", "@2")
    done.fails(2, "@2 is an address without its conversation", "ID@2")
