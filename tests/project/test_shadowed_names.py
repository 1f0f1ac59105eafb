"""`store` and `summarizers` are names that applications use too; ours are inside `timeline`, in a checkout too."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

THEIRS_FIRST = "import store, summarizers"
OURS_ALONE = ""
PROGRAM = """
import asyncio
{before}
from timeline import Timeline, open_store, policies, summarizers as ours
from timeline.blocks import UserPrompt
from timeline.store import SQLiteStore, open_store as opens
from timeline.summarizers import extractive

assert opens is open_store and extractive.ExtractiveSummarizer is ours.ExtractiveSummarizer


async def talk(url):
    async with open_store(url) as opened:
        timeline = await Timeline.open(
            opened, "c", policy=policies.cut_point(), summarizer=ours.ExtractiveSummarizer()
        )
        await timeline.append(UserPrompt(text="Build a flashcard app"))
        context = await timeline.render()
        assert "flashcard" in str(context.to_anthropic())


for url in ("memory://", "conversations.db"):
    asyncio.run(talk(url))

import store, summarizers
assert store.OWNER == summarizers.OWNER == "the application", (store, summarizers)
assert ours is not summarizers
print("both are reached")
"""


@pytest.mark.parametrize("before", [OURS_ALONE, THEIRS_FIRST])
@pytest.mark.parametrize("as_package", [False, True])
def test_an_application_with_modules_of_the_same_names_gets_both(
    tmp_path: Path, before: str, *, as_package: bool
) -> None:
    """An application's own `store` and `summarizers` hide neither ours from it nor their own."""
    for name in ("store", "summarizers"):
        file = tmp_path / name / "__init__.py" if as_package else tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text('OWNER = "the application"\n')
    (tmp_path / "application.py").write_text(PROGRAM.format(before=before))
    done = subprocess.run(
        [sys.executable, "-W", "error", "application.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("both are reached\n", ""), done.stderr
