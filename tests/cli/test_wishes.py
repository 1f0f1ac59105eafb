"""Which policy a command works under: the conversation's own, unless the options name another one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli import sessions
from tests.depth import DEPTH, sampled
from timeline import policies
from timeline.cli.exits import Exit
from timeline.policy.library import designs
from timeline.policy.presets import PRESETS
from timeline.store import open_store
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def policy_of(run: Callable[..., Done]) -> Any:
    """Return what `ls` says of the policy of the only conversation."""
    [row] = run("ls", "--json").json
    return row["policy"]


def about(run: Callable[..., Done], kind: str) -> list[str]:
    """Return the lines of `show --all` about events of a type."""
    return [line for line in run("show", sessions.SESSION, "--all").out.splitlines() if f"  {kind}" in line]


async def _begun(db: Path, **options: Any) -> None:
    async with open_store(db) as store:
        timeline = await Timeline.open(store, sessions.SESSION, **options)
        for number in range(8):
            await timeline.append({"type": "user.prompt", "text": f"Write card {number}. " * 150})


def begun(db: Path, **options: Any) -> None:
    """Begin a conversation as an application does."""
    asyncio.run(_begun(db, **options))


def test_a_render_is_held_against_the_conversations_own_limit(run: Callable[..., Done], db: Path) -> None:
    """And says whose policy that is; another one is named beside it."""
    begun(db, policy=policies.cut_point(max_tokens=6_000))
    own = run("render", sessions.SESSION).out
    assert "of 6,000" in own
    assert "\npolicy cut_point, release 1\n" in own
    other = run("render", sessions.SESSION, "--policy", "pi", "--max-tokens", 30_000)
    assert "of 30,000" in other.out
    assert "\npolicy pi, release 1; the conversation's own is cut_point, release 1\n" in other.out
    assert "of 5,000" in run("render", sessions.SESSION, "--max-tokens", 5_000).out


@pytest.mark.parametrize("command", ["render", "compact"])
def test_what_is_written_is_decided_under_the_conversations_policy(
    run: Callable[..., Done], db: Path, command: str
) -> None:
    """Nothing is overridden unless an option asks for it."""
    begun(db, policy=policies.keep_last(max_tokens=12_000, messages=2))
    done = run(command, sessions.SESSION, *(["--record"] if command == "render" else []))
    assert done.code == Exit.OK, done.err
    assert "policy keep_last, release 1\n" in done.out
    assert about(run, "policy.") == []
    assert "policy keep_last, release 1, of 12,000 tokens\n" in run("show", sessions.SESSION).out


def test_a_policy_that_is_named_is_an_override(run: Callable[..., Done], db: Path) -> None:
    """One event, a warning, and the next command is under the conversation's own again."""
    begun(db, policy=policies.keep_last(max_tokens=12_000, messages=2))
    for _ in range(2):
        run("render", sessions.SESSION, "--record", "--policy", "cut_point")
    [line] = about(run, "policy.overridden")
    assert line.endswith("policy cut_point, release 1")
    assert "of 12,000" in run("render", sessions.SESSION).out
    assert policy_of(run)["name"] == "keep_last"


def test_an_imported_conversation_has_no_policy_until_one_is_needed(run: Callable[..., Done], recording: Path) -> None:
    """Looking at it chooses none."""
    run("import", recording)
    run("render", sessions.SESSION)
    run("render", sessions.SESSION, "--policy", "pi")
    run("show", sessions.SESSION)
    assert policy_of(run) is None
    run("render", sessions.SESSION, "--record")
    made = policies.balanced()
    assert policy_of(run) == {"name": "balanced", "release": 2, "hash": made.hash()}


def test_undo_is_under_the_conversations_policy(run: Callable[..., Done], db: Path) -> None:
    """Nothing about policies is recorded by it."""
    begun(db, policy=policies.cut_point(max_tokens=4_000))
    assert run("compact", sessions.SESSION).code == Exit.OK
    assert run("undo", sessions.SESSION).code == Exit.OK
    assert about(run, "policy.") == []
    assert "policy cut_point, release 1" in about(run, "conversation.opened")[0]


@sampled
@pytest.mark.parametrize("name", [*PRESETS, *designs()][:: DEPTH.step])
def test_every_preset_and_every_published_design_can_be_named(
    run: Callable[..., Done], recording: Path, name: str
) -> None:
    """Where a conversation is rendered, simulated, or its policy shown."""
    run("import", recording)
    for words in (
        ("render", sessions.SESSION, "--policy", name),
        ("simulate", recording, "--policy", name),
        ("policies", "show", name),
    ):
        assert run(*words).code == Exit.OK


@pytest.mark.parametrize("words", [("render", "{id}"), ("compact", "{id}"), ("simulate", "{file}"), ("lab", "{file}")])
def test_a_slip_in_a_policys_name_is_answered_with_the_nearest(
    run: Callable[..., Done], recording: Path, words: tuple[str, ...]
) -> None:
    """Of presets and designs alike."""
    run("import", recording)
    told = [word.format(id=sessions.SESSION, file=recording) for word in words]
    run(*told, "--policy", "gose").fails(Exit.USAGE, "'gose'", "'goose'")


def test_a_files_preset_may_be_a_published_design(run: Callable[..., Done], tmp_path: Path) -> None:
    """With changes on top."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "pi"\nmax_tokens = 40_000\n', encoding="utf-8")
    assert run("policies", "show", file, "--json").json == policies.by_name("pi", max_tokens=40_000).model_dump(
        mode="json"
    )
