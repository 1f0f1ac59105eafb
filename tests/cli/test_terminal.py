from __future__ import annotations

import asyncio
import json
import re
import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.cli import sessions
from tests.cli.terminals import into_pipes, on_terminal
from tests.depth import at_night, sampled
from timeline import Timeline, open_store, policies
from timeline.blocks import AssistantCompletion, Attachment, ToolCall, ToolResult, UserPrompt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.terminals import Shown

HOSTILE = "\x1b[31m\x9b31m\u202e\u2066\x07"
"""Colours the screen, reorders the text, rings the bell; by escapes of C0, C1 and Unicode."""
ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
ID = f"evil{HOSTILE}"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Made(NamedTuple):
    """A database whose conversation is hostile, and the files that commands read."""

    folder: Path
    db: Path
    path: str
    call: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a conversation whose texts, names, ids and paths all hold control characters."""
    return asyncio.run(_make(tmp_path_factory.mktemp("hostile")))


async def _make(folder: Path) -> Made:
    db = folder / "timeline.db"
    policy = policies.cut_point(max_tokens=2_000).model_copy(update={"name": f"mine{HOSTILE}"})
    (folder / "mine.toml").write_text(policy.to_toml(), encoding="utf-8")
    (folder / "broken.toml").write_text(f'preset = "no{HOSTILE[-2]}"\n', encoding="utf-8")
    async with open_store(db) as store:
        timeline = await Timeline.open(store, ID, policy=policy, title=f"title{HOSTILE}", now=NOON)
        await timeline.append(UserPrompt(text=f"Go{HOSTILE}", turn_id=f"turn{HOSTILE}"), now=NOON)
        await timeline.append(Attachment(text="a", meta={"file": f"file{HOSTILE}.txt"}), now=NOON)
        for n in range(12):
            call = ToolCall(
                call_id=f"call_{n}{HOSTILE}",
                name=f"bash{HOSTILE}",
                arguments={"command": f"cat {n}{HOSTILE}", "file_path": f"/src/{n}{HOSTILE}.py"},
                response_id=f"msg_{n}",
            )
            result = ToolResult(call_id=call.call_id, text=f"error {n}{HOSTILE}\n" + "word " * 120, is_error=n % 2 > 0)
            stored = await timeline.append(
                AssistantCompletion(text=f"I look{HOSTILE}", response_id=call.response_id), call, result, now=NOON
            )
            await timeline.render(system=f"system{HOSTILE}", now=NOON)
        await timeline.record_model_call(model=f"model{HOSTILE}", finish_reason="stop")
        assert timeline.window.summary is not None
        path = timeline.window.summary.block.path
    sessions.write(folder)
    rows = [json.loads(line) for line in (folder / "session.jsonl").read_text(encoding="utf-8").splitlines()]
    rows[0]["message"]["content"] = f"Begin{HOSTILE}"
    (folder / "other.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Made(folder, db, path, stored[1].path)


def commands(made: Made) -> list[tuple[object, ...]]:
    """Return the commands, those that change the conversation last."""
    return [
        ("ls",),
        ("show", ID),
        ("show", ID, "--all"),
        ("render", ID, "--policy", "mine.toml"),
        ("render", ID, "--policy", "mine.toml", "--explain"),
        ("render", ID, "--policy", "mine.toml", "--wire", "anthropic"),
        ("render", ID, "--policy", "mine.toml", "--json"),
        ("diff", ID),
        ("diff", ID, "--list"),
        ("diff", ID, "--json"),
        ("read", ID, made.path),
        ("read", ID, made.call),
        ("read", ID, made.call, "--json"),
        ("read", ID, f"tc:{HOSTILE}"),
        ("why", RUN, "@2"),
        ("why", RUN, "@2", "--at", 9),
        ("digests",),
        ("digests", "--json"),
        ("search", "error"),
        ("search", HOSTILE),
        ("verify",),
        ("verify", ID),
        ("export", ID),
        ("export", "--all"),
        ("export", ID, "--format", "markdown"),
        ("export", ID, "--format", "markdown", "--window"),
        ("export", ID, "--wire", "openai-chat"),
        ("policies",),
        ("policies", "show", "mine.toml"),
        ("policies", "show", "mine.toml", "cut_point"),
        ("policies", "show", "mine.toml", "--toml"),
        ("policies", "show", "mine.toml", "--svg"),
        ("policies", "show", f"no{HOSTILE}"),
        ("policies", "show", "broken.toml"),
        ("import", "other.jsonl", f"no{HOSTILE}.jsonl", "--db", "imported.db"),
        ("simulate", "other.jsonl", "--policy", "mine.toml", "--max-tokens", 2000, "--db", "tried.db"),
        ("simulate", "other.jsonl", "--policy", "mine.toml", "--policy", "balanced", "--db", "tried.db"),
        ("lab", "other.jsonl", "--policy", "none", "--policy", "mine.toml", "--max-tokens", 2000, "--calls"),
        ("lab", "other.jsonl", "--validate", "--calls"),
        ("lab", f"no{HOSTILE}.jsonl"),
        (f"no{HOSTILE}",),
        ("show", f"no{HOSTILE}"),
        ("hide", ID, made.call),
        ("reveal", ID, made.call),
        ("pin", ID, made.call),
        ("unpin", ID, made.call),
        ("go-back", ID, made.call),
        ("reveal", ID, made.call),
        ("fork", ID, "--as", f"fork{HOSTILE}", "--title", HOSTILE),
        ("undo", ID),
        ("compact", ID, "--policy", "mine.toml"),
    ]


@sampled
@pytest.mark.parametrize("run", [on_terminal, pytest.param(into_pipes, marks=at_night)])
def test_no_command_writes_a_control_character_of_a_conversation(
    made: Made, tmp_path: Path, run: Callable[..., list[Shown]]
) -> None:
    """Neither on a terminal nor into a pipe: what is shown cannot steer the screen."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    asked = commands(made)
    answers = run(asked, tmp_path / "timeline.db", tmp_path)
    wrong = [
        f"{words[0]} {words[2:]}: {found!r}"
        for words, shown in zip(asked, answers, strict=True)
        for found in set(ACTS.findall(shown.text))
    ]
    assert wrong == []
    assert len([shown for shown in answers if shown.text.strip()]) > 30
    assert {shown.code for shown in answers} == {0, 2, 3}


LONG = "0b5c7a52-5d6e-4a53-9d4c-6e2f10d3a9b7"
RUN = f"{LONG}.cut_point-1500"
COPIED = re.compile(r"(Next:)?  +timeline ")
"""How a command to copy begins: it is never folded."""


def test_no_table_list_or_sentence_is_wider_than_the_terminal(tmp_path: Path) -> None:
    """At 80 columns every line of a command fits, long ids and titles too; only commands to copy stay whole."""
    sessions.write(tmp_path)
    text = sessions.text_of(sessions.rows()).replace("Task 1:", f"Task 1: {'a long title ' * 30}")
    (tmp_path / "two.jsonl").write_text(text.replace(sessions.SESSION, LONG), encoding="utf-8")
    limited = ("--max-tokens", 1500)
    several = ("--policy", "none", "--policy", "cut_point", "--policy", "pi", *limited)
    asked: list[tuple[object, ...]] = [
        ("demo",),
        ("import", "session.jsonl", "two.jsonl"),
        ("simulate", "two.jsonl", "--policy", "cut_point", *limited),
        ("simulate", "session.jsonl", "two.jsonl", "--policy", "cut_point", "--policy", "balanced", *limited),
        ("lab", "session.jsonl", "two.jsonl", *several, "--calls"),
        ("lab", "session.jsonl", "two.jsonl", "--validate", "--calls"),
        ("ls",),
        ("show", RUN),
        ("show", RUN, "--all"),
        ("render", RUN),
        ("render", RUN, "--policy", "cut_point", *limited, "--explain"),
        ("diff", RUN),
        ("diff", RUN, "--all"),
        ("diff", RUN, "--list"),
        ("calls", RUN),
        ("call", RUN, 1),
        ("digests",),
        ("search", "line1"),
        ("verify",),
        ("verify", RUN),
        ("policies",),
        ("policies", "show", "cut_point"),
        ("policies", "show", "cut_point", "keep_last"),
        ("pin", RUN, "ar:turn_3.user.prompt"),
        ("unpin", RUN, "ar:turn_3.user.prompt"),
        ("fork", RUN),
        ("undo", RUN),
    ]
    answers = on_terminal(asked, tmp_path / "timeline.db", tmp_path)
    wide = [(words, line) for words, shown in zip(asked, answers, strict=True) for line in shown.too_wide]
    assert [(words, line) for words, line in wide if not COPIED.match(line)] == []
    assert {shown.code for shown in answers} == {0}
    assert [words for words, shown in zip(asked, answers, strict=True) if not shown.text.strip()] == []
