from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

STATES = {"visible", "hidden", "carried", "omitted", "covered", "redacted", "deleted"}
KEYS = {"version", "at", "type", "path", "state", "covered_by", "turn_id", "call_id", "tokens"}


@pytest.mark.parametrize("limit", [1000, 1300, 2000, 4000, 80000])
def test_every_event_has_a_row_and_every_block_one_clear_state(
    run: Callable[..., Done], recording: Path, limit: int
) -> None:
    """Versions have no gap; a block has one of the seven states, and a covering summary exactly when it is covered."""
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
    ranges = last["covers"]
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


def test_a_person_sees_turns_and_covered_ranges_in_one_line(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Turns stand under their prompts; what is covered is summed up, with the path of its summary."""
    out = run("show", simulated["id"]).out
    assert "turn_1  Task 1: make part 1 work." in out
    assert f"by {simulated['steps'][-1]['summary']}" in out
    assert "tc:turn_1.toolu_1-1.result" not in out
    assert "context.rendered" not in out
    assert "\x1b" not in out


def test_all_lists_every_event(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """`--all` shows covered blocks one by one, and renders, each on a line of its own."""
    rows = run("show", simulated["id"], "--json").json
    out = run("show", simulated["id"], "--all").out
    assert all(row["path"] in out for row in rows if row["path"] is not None)
    lines = [line for line in out.splitlines() if line[:6].strip().isdigit()]
    assert len(lines) == len(rows)


def test_text_of_a_conversation_cannot_break_a_line(run: Callable[..., Done], tmp_path: Path) -> None:
    """A prompt with line ends and escape characters takes one line."""
    made = sessions.rows(1, 1)
    made[0]["message"]["content"] = "first\nsecond\x1b[31m third"
    run("import", sessions.write(tmp_path, made))
    out = run("show", sessions.SESSION).out
    assert "turn_1  first second␛[31m third\n" in out
