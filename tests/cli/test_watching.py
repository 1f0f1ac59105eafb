"""`timeline watch` in a process of its own, beside the one that appends."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from tests.scenes import answer, prompt, small_policy
from timeline.sync import Timeline, open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


def _work(db: Path, turns: int) -> int:
    """Add turns to a conversation, which compacts some of them; return its version."""
    with open_store(str(db)) as store:
        timeline = Timeline.open(store, "cards", policy=small_policy(max_tokens=2_000))
        for _ in range(turns):
            timeline.append(prompt(100), answer(100))
            timeline.render()
        return timeline.version


def _read(process: subprocess.Popen[str], until: int) -> list[str]:
    """Read lines until one of a version comes."""
    lines: list[str] = []
    assert process.stdout is not None
    while not lines or lines[-1].split("\t")[1] != str(until):
        lines.append(process.stdout.readline().rstrip("\n"))
        assert lines[-1], "it ended"
    return lines


def test_watch_prints_what_another_process_does_and_goes_on_behind_a_version(
    db: Path, command: list[str], run: Callable[..., Done]
) -> None:
    """A line an event into a pipe: time, version, name, and what happened; `--after` repeats and loses nothing."""
    del run
    begun = _work(db, 3)

    def watching(*words: object) -> subprocess.Popen[str]:
        called = [*command, "watch", "cards", *map(str, words)]
        return subprocess.Popen(called, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")

    with watching("--after", 0) as whole:
        before = _read(whole, begun)
        ended = _work(db, 12)
        lines = before + _read(whole, ended)
        whole.send_signal(signal.SIGINT)
        assert whole.wait(10) == 130
        assert whole.stderr is not None
        assert whole.stderr.read().count("\n") == 1
    names = [line.split("\t")[2] for line in lines]
    assert {"context-usage", "compaction-start", "compaction-summarize", "compaction-complete"} == set(names)
    assert any("Compacted (summarized): " in line for line in lines)
    with watching("--after", begun) as rest:
        assert before + _read(rest, ended) == lines
        rest.send_signal(signal.SIGINT)
    with watching("--after", begun, "--json") as shown:
        assert shown.stdout is not None
        rows: list[dict[str, Any]] = [json.loads(shown.stdout.readline()) for _ in lines[len(before) :]]
        shown.send_signal(signal.SIGINT)
    assert [(str(row["version"]), row["type"]) for row in rows] == [
        tuple(line.split("\t")[1:3]) for line in lines[len(before) :]
    ]


def test_watch_refuses_what_it_cannot_follow(db: Path, run: Callable[..., Done]) -> None:
    """A missing conversation, and a version that is not there yet."""
    version = _work(db, 1)
    run("watch", "nobody").fails(3, "nobody")
    run("watch", "cards", "--after", version + 1).fails(2, f"which is {version}")
