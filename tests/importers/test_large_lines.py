"""A line as large as a disk image, imported by a process of its own: how much memory that takes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.depth import at_night, full_depth

if TYPE_CHECKING:
    from pathlib import Path

MOST = 4
"""Times its size that a line may take."""
LEAST = 40
"""Megabytes of the smallest line: glibc gives memory back at once from 32 megabytes on."""
ROW = "line {} of the output\tof 1 tool: \u00e4 quick brown fox\n"

IMPORT = """
import asyncio, resource, sys
if sys.argv[3] == "tiktoken":
    sys.modules["toktok"] = None
from timeline import open_store
from timeline.importers import read_recording
from timeline.portable.recordings import import_recording

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

async def main():
    async with open_store(sys.argv[2]) as store:
        for recording in read_recording(sys.argv[1] + ".small"):  # loads what every import needs
            await import_recording(store, recording)
        base = peak()
        for recording in read_recording(sys.argv[1]):
            await import_recording(store, recording)
        info = await store.info("large")
        print(info.version, peak() - base)

asyncio.run(main())
"""


def codex(text: str) -> str:
    """Return a Codex rollout with a result of this text."""
    row = '{{"timestamp":"2026-01-20T09:00:0{}.000Z","type":"{}","payload":{}}}'.format
    head = {"id": "large", "timestamp": "2026-01-20T09:00:00Z"}
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": text},
    ]
    rows = [row(0, "session_meta", json.dumps(head))]
    return "\n".join(
        [*rows, *(row(n, "response_item", json.dumps(i, ensure_ascii=False)) for n, i in enumerate(items, 1))]
    )


def claude_code(text: str) -> str:
    """Return a session of Claude Code with a result of this text."""
    common = {"sessionId": "large", "timestamp": "2026-01-20T09:00:00.000Z"}
    used = [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "x"}}]
    result = [{"type": "tool_result", "tool_use_id": "a", "content": text}]
    rows: list[dict[str, Any]] = [
        {"parentUuid": None, "type": "user", "message": {"role": "user", "content": "Go."}, "uuid": "1"},
        {
            "parentUuid": "1",
            "type": "assistant",
            "message": {"id": "m", "role": "assistant", "content": used},
            "uuid": "2",
        },
        {"parentUuid": "2", "type": "user", "message": {"role": "user", "content": result}, "uuid": "3"},
    ]
    return "\n".join(json.dumps({**row, **common}, ensure_ascii=False) for row in rows)


@pytest.mark.skipif(sys.platform == "win32", reason="resource is of Unix")
@pytest.mark.parametrize(
    ("write", "megabytes", "counter"),
    [
        (codex, LEAST, "any"),
        pytest.param(codex, 200, "any", marks=at_night),
        pytest.param(codex, LEAST, "tiktoken", marks=full_depth),
        pytest.param(codex, 200, "tiktoken", marks=at_night),
        pytest.param(claude_code, 200, "any", marks=at_night),
    ],
)
def test_a_large_line_is_imported_within_four_times_its_size(
    tmp_path: Path, write: Any, megabytes: int, counter: str
) -> None:
    """Into a database: the peak of the process, beyond what it takes before the import."""
    count = megabytes * 1024 * 1024 // len(ROW.format(100_000).encode())
    path = tmp_path / "large.jsonl"
    path.write_text(write("".join(ROW.format(number) for number in range(count))), encoding="utf-8")
    (tmp_path / "large.jsonl.small").write_text(write("done").replace("large", "small"), encoding="utf-8")
    command = [sys.executable, "-c", IMPORT, str(path), str(tmp_path / "large.db"), counter]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert int(told[0]) >= 4
    assert int(told[1]) < MOST * path.stat().st_size
