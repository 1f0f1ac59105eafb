from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from timeline.cli.exits import Exit
from timeline.wire import WIRES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def test_the_last_two_contexts_are_compared(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """As JSON all of it, for a person what entered and that the prefix is whole."""
    done = run("diff", simulated["id"], "--json")
    assert done.code == 0, done.err
    assert [prefix["wire"] for prefix in done.json["prefixes"]] == ["neutral", "anthropic"]
    assert all(prefix["cause"]["kind"] == "appended" for prefix in done.json["prefixes"])
    assert done.json["entered"]
    out = run("diff", simulated["id"]).out
    assert all(row["path"] in out for row in done.json["entered"])
    assert "anthropic prefix: the same for " in out
    assert "only appended: the prefix is intact" in out


def test_a_compaction_between_two_contexts_is_told(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Rows name the summary; where the bytes part, both sides are shown."""
    step = simulated["steps"][0]
    recorded = run("diff", simulated["id"], "--list", "--json").json
    after = next(row for row in recorded if row["version"] > step["version"])
    words = ("diff", simulated["id"], f"#{after['number'] - 1}", after["version"], "--wire", "openai_chat")
    found = run(*words, "--json").json
    assert {row["covered_by"] for row in found["left"]} == {step["version"]}
    assert found["prefixes"][1]["wire"] == "openai_chat"
    assert found["prefixes"][1]["cause"]["version"] == step["version"]
    out = run(*words).out
    assert f"compaction at version {step['version']}, into {step['summary_path']}" in out
    assert f"covered by @{step['version']}" in out
    assert "changed: 1 block" in out
    assert "[Summary of the earlier" in out


def test_long_lists_are_cut_for_people_unless_all_is_wanted(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """Twelve rows a list, and how many more there are."""
    words = ("diff", simulated["id"], "#1", "#6")
    rows = run(*words, "--json").json["entered"]
    assert f"… and {len(rows) - 12} more: see --all" in run(*words).out
    assert all(row["path"] in run(*words, "--all").out for row in rows)


def test_the_recorded_contexts_are_listed(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """Each by its number and version, with its tokens."""
    rows = run("diff", simulated["id"], "--list", "--json").json
    assert [row["number"] for row in rows] == list(range(1, simulated["renders"] + 1))
    assert set(rows[0]) == {"number", "version", "at", "projected_from", "tokens", "fingerprint"}
    out = run("diff", simulated["id"], "--list").out
    assert f"#{len(rows)}" in out
    assert len(out.splitlines()) == len(rows) + 1


@pytest.mark.parametrize("name", ["#99", "last~99", "nonsense", "2"])
def test_an_unknown_context_is_one_line_with_the_cure(
    run: Callable[..., Done], simulated: dict[str, Any], name: str
) -> None:
    """The newest contexts are named, and how to name one."""
    run("diff", simulated["id"], name).fails(Exit.NOT_FOUND, f"#{simulated['renders']} (version ", "last~1")


def test_a_conversation_without_renders_has_nothing_to_compare(run: Callable[..., Done], recording: Path) -> None:
    """The error says that rendering records a context; the list says so, too."""
    run("import", recording)
    run("diff", sessions.SESSION).fails(Exit.NOT_FOUND, "none yet", "rendering records one")
    assert "render ID --record" in run("diff", sessions.SESSION, "--list").out


def test_each_wire_that_the_help_names_is_compared(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """And no other: of some wires no provider gets the bytes."""
    told = " ".join(run("diff", "--help").out.replace("│", " ").split())
    named = told.split("request bytes of this format: ")[1].split(".")[0].split(", ")
    for wire in WIRES:
        assert (run("diff", simulated["id"], "--wire", wire).code == 0) == (wire in named), wire


def test_an_unknown_wire_is_refused(run: Callable[..., Done], simulated: dict[str, Any]) -> None:
    """The formats that there are are named."""
    run("diff", simulated["id"], "--wire", "klingon").fails(Exit.USAGE, "anthropic, openai_chat")


def test_two_conversations_are_compared_by_what_each_was_sent(
    run: Callable[..., Done], simulated: dict[str, Any]
) -> None:
    """B is of the fork, and the head says whose each side is."""
    id_ = simulated["id"]
    run("fork", id_, "--as", "other way")
    run("render", "other way", "--record")
    shown = run("diff", id_, "last~1", "last", "--other", "other way")
    assert f"of {id_}" in shown.out
    assert "of other way" in shown.out
    sides = run("diff", id_, "last~1", "last", "--other", "other way", "--json").json
    assert [sides[side]["conversation"] for side in ("before", "after")] == [id_, "other way"]
