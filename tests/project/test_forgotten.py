"""The rule that the agent forgot is found with the three commands of docs/calls.md, typed into a fresh shell."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.project.forgotten import BROKEN_AT, RULE, SHOP, WRITTEN, work
from tests.project.pages import code_blocks, commands
from tests.project.sources import ROOT
from timeline import open_store
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

HEADING: Final = "## A rule that the agent forgot\n"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Let the agent work, once for all tests."""
    file = tmp_path_factory.mktemp("forgotten") / "shop.db"
    asyncio.run(work(file))
    return file


@pytest.fixture(scope="module")
def answers(file: Path) -> list[str]:
    """Type the page's commands; each has a process of its own, that knows nothing but the file."""
    return [shell(command, file.parent) for command in of_the_page()]


def of_the_page() -> list[str]:
    """Return the commands of the page's section."""
    section = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8").split(HEADING)[1].split("\n## ")[0]
    return [
        command.text for block in code_blocks(section) if block.language == "console" for command in commands(block)
    ]


def shell(command: str, folder: Path) -> str:
    """Run a `timeline` command in a new process with an empty environment, and return what it printed."""
    words = [sys.executable, "-m", "timeline.cli", *shlex.split(command)[1:]]
    environment = {"HOME": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_three_commands_find_it_and_none_names_a_policy() -> None:
    """That is what the page promises."""
    assert len(of_the_page()) == 3
    assert not [
        word for command in of_the_page() for word in ("--policy", "--max-tokens", "--model") if word in command
    ]


async def test_the_conversation_is_what_the_page_says(file: Path) -> None:
    """It has 99 calls and 7 compactions, and verifies; the call that broke the rule was not sent it any more."""
    async with open_store(file, readonly=True) as store:
        timeline = await Timeline.open(store, SHOP, create=False)
        report = await timeline.verify()
        calls = [call async for call in timeline.calls()]
    assert report.ok, report.problems
    assert (report.calls, report.unverifiable, report.compactions) == (99, {}, 7)
    assert [call.number for call in calls if WRITTEN in json.dumps([block.dump() for block in call.reply])] == [
        BROKEN_AT
    ]
    told = [call.number for call in calls if RULE in json.dumps(call.request, ensure_ascii=False)]
    assert told == list(range(12, told[-1] + 1)), "from the second prompt on, until a summary lost it"
    assert told[-1] < BROKEN_AT


def test_the_first_command_names_the_rule_and_the_call_that_broke_it(answers: list[str]) -> None:
    """Both are in the lines of one search."""
    lines = answers[0].splitlines()
    [rule] = [line for line in lines if line.startswith("ar:") and ".user.prompt" in line]
    [broken] = [line for line in lines if f"said in call {BROKEN_AT}" in line]
    assert rule.split()[1] == "shop@56,"
    assert broken.startswith("tc:")
    assert f"«migrations»{WRITTEN.removeprefix('migrations')}" in lines[lines.index(broken) + 1]


def test_the_second_command_names_the_compaction_that_lost_it(answers: list[str]) -> None:
    """When it was, with what figures, what was in its place, and the commands that bring it back."""
    said = answers[1]
    assert f"covered at call {BROKEN_AT}, version 433, since version 178" in said
    assert "because   compaction 2 (over trigger): 2,740 -> 1,408 tokens, it covered 86 blocks of 4,864 tokens" in said
    assert "shown as  @408 su:turn_7.conv.range.summary: [Summary of the earlier conversation" in said
    lines = said.splitlines()
    [lost] = [number for number, line in enumerate(lines) if "lost: " in line and "never touch migrations/" in line]
    figures = "compaction 3 (over trigger), 2026-03-02T09:22:45: 2,753 -> 1,363 tokens, by extractive"
    assert lines[lost - 1] == f"     9  @235  {figures}"
    assert lines[-3:] == [
        "Next:  timeline read shop @56 --db shop.db",
        "       timeline undo shop --version 178 --cascade --db shop.db",
        "       timeline diff shop @178 @235 --db shop.db",
    ]


def test_the_third_command_prints_the_very_bytes_that_were_sent(answers: list[str], file: Path) -> None:
    """They have the recorded hash, and the rule is not among them."""
    body = json.loads(answers[2])
    assert (body["model"], body["max_tokens"], len(body["messages"])) == ("claude-opus-5", 4_096, 21)
    assert "migrations" not in answers[2]
    assert "Support wants to note a reason" in answers[2]
    recorded = json.loads(shell("timeline calls shop --db shop.db --json", file.parent))[BROKEN_AT - 1]
    assert hashlib.sha256(answers[2].encode()).hexdigest() == recorded["sha256"]


def test_the_compaction_that_lost_it_reported_it(file: Path) -> None:
    """Nobody has to compare words: the prompt is named by the digest of the compaction, and of those behind it."""
    rows = json.loads(shell("timeline digests --db shop.db --json", file.parent))
    assert [56 in row["unsaid"] for row in rows] == [False, *[True] * 6]
    assert "unsaid of what was asked in @56" in shell("timeline digests --db shop.db", file.parent)


def test_what_the_second_command_offers_brings_the_rule_back(answers: list[str], file: Path, tmp_path: Path) -> None:
    """The prompt is read whole, the difference shows the rest of it go, and a fork goes on before the mistake."""
    shutil.copyfile(file, tmp_path / file.name)
    read, undo, diff = [line.removeprefix("Next:").strip() for line in answers[1].splitlines()[-3:]]
    assert RULE in shell(read, tmp_path)
    went, left = [line for line in shell(diff, tmp_path).splitlines() if "Go on with refunds" in line]
    assert went.startswith("- ")
    assert RULE in went
    assert left.startswith("+ ")
    assert "migrations" not in left
    forked = json.loads(shell(f"timeline fork shop --call {BROKEN_AT} --db shop.db --json", tmp_path))
    assert forked["base"] == 433
    shell(undo, tmp_path)
    assert "shown as  itself, in full" in shell("timeline why shop @56 --db shop.db", tmp_path)
