"""A block of many megabytes: whatever is done with it takes a small multiple of its size, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.depth import full_depth

if TYPE_CHECKING:
    from pathlib import Path

SIZE: Final = 8 * 1024 * 1024
MOST: Final = 16
"""How many times its size the memory of the process may grow: text, JSON, rows and tokens of one block at a time."""

MADE: Final = """
import asyncio, sys
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt

async def main():
    line = "a line of a log that is long\\n"
    async with open_store(sys.argv[1]) as store:
        timeline = await Timeline.open(store, "a")
        await timeline.append(UserPrompt(text="Read it."), ToolCall(call_id="c1", name="read", arguments={}))
        await timeline.append(ToolResult(call_id="c1", text=line * (int(sys.argv[2]) // len(line))))

asyncio.run(main())
"""
RENDER: Final = """
import asyncio, sys
from timeline import Timeline, open_store

async def main():
    async with open_store(sys.argv[1]) as store:
        timeline = await Timeline.open(store, "a")
        context = await timeline.render()
        assert len(str(context.to_anthropic())) < 100_000
        assert len((await timeline.read("tc:turn_1.c1.result")).text) > int(sys.argv[2]) // 2
        assert (await timeline.verify()).ok

asyncio.run(main())
"""
ASK: Final = """
import asyncio, sys
from timeline import open_store
from timeline.integrations.mcp.arguments import ReadArguments, SearchArguments
from timeline.integrations.mcp.questions import Questions

async def main():
    async with open_store(sys.argv[1], readonly=True) as store:
        questions = Questions(store, 4_000)
        answer = await questions.read(ReadArguments(conversation="a", path="tc:turn_1.c1.result", offset=1_000_000))
        assert answer.offset == 1_000_000
        assert (await questions.search(SearchArguments(query="log"))).found

asyncio.run(main())
"""
COMMAND: Final = "import sys; from timeline.cli import main; sys.exit(main(sys.argv[3:]))"
PEAK: Final = "\nimport resource; print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"


def _peak(program: str, file: Path, *words: object, size: int = SIZE) -> int:
    """Run a program; return the bytes of memory that it took at its highest."""
    program = program.replace("sys.exit(main(sys.argv[3:]))", "assert main(sys.argv[3:]) == 0")
    command = [sys.executable, "-c", program + PEAK, str(file), str(size), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    return int(done.stderr.split()[-1]) * (1 if sys.platform == "darwin" else 1024)


@full_depth
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say how much memory a process took")
def test_a_large_block_is_taken_through_everything_within_a_small_multiple_of_its_size(tmp_path: Path) -> None:
    """Appended, rendered, read, verified, searched, asked for, shown, exported, imported, backed up."""
    file, log = tmp_path / "agent.db", tmp_path / "log.jsonl"
    with_little = _peak(MADE, tmp_path / "little.db", size=1_000)
    peaks = {
        "append": _peak(MADE, file),
        "render, read, verify": _peak(RENDER, file),
        "asked by a client": _peak(ASK, file),
        "show": _peak(COMMAND, file, "show", "a", "--db", file),
        "read": _peak(COMMAND, file, "read", "a", "tc:turn_1.c1.result", "--db", file),
        "search": _peak(COMMAND, file, "search", "log", "--db", file),
        "export": _peak(COMMAND, file, "export", "a", "-o", log, "--db", file),
        "import": _peak(COMMAND, file, "import", log, "--db", tmp_path / "other.db"),
        "backup": _peak(COMMAND, file, "backup", "--to", tmp_path / "copy.db", "--db", file),
    }
    times = {what: round((peak - with_little) / SIZE, 1) for what, peak in peaks.items()}
    assert {what: grown for what, grown in times.items() if grown > MOST} == {}, times
