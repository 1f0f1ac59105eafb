"""What a thousand recorded calls cost: the log keeps the hash of each body, and never a body."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from tests.depth import full_depth
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolResult, UserPrompt

if TYPE_CHECKING:
    from pathlib import Path

CALLS: Final = 1_000
MOST: Final = 2.0
MOST_OF_A_CALL: Final = 450
"""Bytes of the event of a call, its usage and its request."""
LINES: Final = (0, 14, 64, 0, 18, 84, 0, 24, 105, 1, 28, 155, 3, 33, 245, 7, 42, 340, 10, 52)
"""Lines of the outputs, in turn, in the proportions of recorded ones: most are short, a few hold half of the text."""
TOOL: Final[dict[str, Any]] = {
    "name": "bash",
    "description": "Run a command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}
SYSTEM: Final = "You are a coding agent. " * 100
PROMPT: Final = "Make the tests pass, one file after another. Leave the public names as they are."


def said(number: int) -> tuple[str, str, str]:
    """Return what the model says, the command that it runs, and the output, of 5,200 characters in the mean."""
    command = f"cd /home/user/project && pytest tests/unit/test_part_{number}.py -x -q 2>&1 | tail -60"
    lines = [f"FAILED tests/unit/test_part_{number}.py::test_it - assert {number} == {number + 1}"]
    for line in range(LINES[number % len(LINES)]):
        lines.append(f"tests/unit/test_part_{number}.py:{line * 7}: in helper_{line * number % 13}")
        lines.append(f"    assert compute({line}, {number}) == {line * number}")
    return f"I run the tests of part {number}, to see what is left.", command, "\n".join(lines)


async def loop(file: Path) -> int:
    """Let an agent make its calls, and return the characters of the conversation."""
    characters = len(PROMPT)
    async with open_store(file, durability="normal") as store:
        timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=32_000))
        await timeline.append(UserPrompt(text=PROMPT))
        for number in range(CALLS):
            context = await timeline.render(system=SYSTEM, tools=[TOOL])
            request = context.request("anthropic", model="claude-opus-5", max_tokens=4_096)
            text, command, output = said(number)
            use = {"type": "tool_use", "id": f"toolu_01{number:022d}", "name": "bash", "input": {"command": command}}
            reply = {
                "id": f"msg_01{number:022d}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5",
                "stop_reason": "tool_use",
                "content": [{"type": "text", "text": text}, use],
                "usage": {"input_tokens": 12, "output_tokens": 85, "cache_read_input_tokens": 20_000 + number},
            }
            await timeline.record(reply, request=request, duration=2.314)
            await timeline.append(ToolResult(call_id=str(use["id"]), text=output))
            characters += len(text) + len(command) + len(output)
        assert timeline.window.calls == CALLS
        assert timeline.window.rounds > 1
        assert (await timeline.call(CALLS // 2)).unproved is None
    return characters


def asked(file: Path, query: str) -> dict[str, int]:
    """Return the rows of a query: bytes by name, the largest first."""
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute(f"{query} ORDER BY 2 DESC LIMIT 8").fetchall())


@full_depth
async def test_a_database_with_a_thousand_calls_is_at_most_twice_the_text_of_the_conversation(tmp_path: Path) -> None:
    """The context of each is some 20,000 tokens: with their bodies it would be a hundred times as large.

    Columns, indexes, JSON, facts and digests cost about 4,700 bytes a call, so that this holds from as much text a call
    on. That is above what recorded agents have: of 55 recordings a quarter has less than 2,500 characters a call (2.8
    times the text), half less than 3,500 (2.3), a quarter more than 4,600 (2.0).
    """
    file = tmp_path / "agent.db"
    characters = await loop(file)
    size = file.stat().st_size
    tables = asked(file, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
    events = asked(file, "SELECT type, sum(length(payload)) FROM events GROUP BY type")
    print(f"{size / characters:.3f} of {characters:,} characters; {tables}; {events}")
    assert events["model.called"] <= MOST_OF_A_CALL * CALLS
    assert size <= MOST * characters
