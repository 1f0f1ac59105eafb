from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli import sessions
from timeline import policies
from timeline.cli.exits import Exit
from timeline.policy.compare import flat
from timeline.policy.files import parse_policy
from timeline.policy.library import designs
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


@pytest.mark.parametrize("words", [["--json"], []])
def test_policies_lists_every_preset_and_every_published_design(run: Callable[..., Done], words: list[str]) -> None:
    """All are named, for people and for programs."""
    done = run("policies", *words)
    assert done.code == 0
    names = [*PRESETS, *designs()]
    assert all(name in done.out for name in names)
    if words:
        assert done.json == [policies.by_name(name).model_dump(mode="json") for name in names]


def test_the_list_says_what_matters(run: Callable[..., Done]) -> None:
    """The seed, the limit, the line and the steps of each stand in one row."""
    row = next(line for line in run("policies").out.splitlines() if line.startswith("keep_last"))
    assert all(told in row for told in ("001", "128,000", "93,599", "the newest 10 messages", "nothing changes"))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_one_policy_is_shown_with_every_field(run: Callable[..., Done], name: str) -> None:
    """What it does in words, then each field by its place."""
    done = run("policies", "show", name)
    assert done.out.startswith(f"{name}\n")
    shown = {words[0] for line in done.out.splitlines() if (words := line.split())}
    assert flat(PRESETS[name]()).keys() <= shown
    assert run("policies", "show", name, "--json").json == PRESETS[name]().model_dump(mode="json")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_policy_is_printed_as_a_file_that_reads_back(run: Callable[..., Done], name: str) -> None:
    """`--toml` gives a whole policy, the wishes of the command line included."""
    done = run("policies", "show", name, "--max-tokens", 9_000, "--toml")
    assert parse_policy(done.out) == PRESETS[name](max_tokens=9_000)


def test_two_policies_stand_side_by_side(run: Callable[..., Done]) -> None:
    """A star before each field that differs, and how many do."""
    lines = run("policies", "show", "keep_last", "keep_ratio").out.splitlines()
    stars = {line.split()[1] for line in lines if line.startswith("*\t")}
    rows = policies.diff_policies(policies.keep_last(), policies.keep_ratio())
    assert stars == {row.field for row in rows}
    assert lines[-1].startswith(f"{len(rows)} of ")
    assert run("policies", "show", "none", "none").out.endswith("The two are equal.\n")


def test_two_policies_as_json_are_both_and_their_differences(run: Callable[..., Done]) -> None:
    """The stable shape that `shapes.ComparedRow` documents."""
    report = run("policies", "show", "none", "cut_point", "--json").json
    assert [policy["name"] for policy in report["policies"]] == ["none", "cut_point"]
    assert {"field": "trigger.kind", "before": "never", "after": "over_share"} in report["differences"]


def test_a_policy_is_drawn(run: Callable[..., Done]) -> None:
    """`--svg` prints a picture, of a preset with its seed."""
    out = run("policies", "show", "keep_ratio", "--svg").out
    assert out.startswith("<svg ")
    assert "seed 003" in out


def test_a_model_gives_the_limit(run: Callable[..., Done], recording: Path) -> None:
    """In `show`, `render`, `compact` and `simulate` alike; a limit that is given goes before it."""
    assert run("policies", "show", "keep_last", "--model", "gpt-4", "--json").json["max_tokens"] == 8_192
    words = ("--model", "gpt-4", "--max-tokens", 9_000)
    assert run("policies", "show", "keep_last", *words, "--json").json["max_tokens"] == 9_000
    run("import", recording)
    assert run("render", sessions.SESSION, "--model", "gpt-4", "--json").json["account"]["limit"] == 8_192


@pytest.mark.parametrize("command", ["render", "compact"])
def test_a_file_stands_for_a_policy_everywhere(
    run: Callable[..., Done], recording: Path, tmp_path: Path, command: str
) -> None:
    """Whatever takes `--policy` takes a path that ends in .toml."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "cut_point"\nmax_tokens = 1_500\n', encoding="utf-8")
    run("import", recording)
    done = run(command, sessions.SESSION, "--policy", file, "--json")
    assert done.code == 0, done.err
    assert done.json["decisions"][-1]["kind"] == "compacted"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "keep_lst"], "keep_last"),
        (["show", "missing.toml"], "missing.toml"),
        (["show", "none", "cut_point", "--toml"], "one policy"),
        (["show", "none", "--toml", "--svg"], "do not go together"),
        (["show"], "A"),
        (["shew"], "shew"),
    ],
)
def test_a_wrong_word_is_told_in_one_line(run: Callable[..., Done], words: list[str], told: str) -> None:
    """With the nearest preset, or what goes together."""
    run("policies", *words).fails(Exit.USAGE, told)


def test_a_wrong_file_is_told_with_its_field_and_the_nearest_name(run: Callable[..., Done], tmp_path: Path) -> None:
    """The file, the field, the cure."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "keep_last"\nmesages = 3\n', encoding="utf-8")
    run("policies", "show", file).fails(Exit.USAGE, "mine.toml", "'mesages'", "'messages'")
