"""What a thousand recorded calls cost: how large the database is beside the text of the conversation."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import Depth, full_depth
from timeline import Timeline, open_store, policies
from timeline.blocks import ToolResult, UserPrompt

if TYPE_CHECKING:
    from pathlib import Path

CALLS: Final = 1_000
MOST: Final = 2.0
MOST_OF_A_CALL: Final = 450
"""Bytes of the event of a call, its usage and its request."""
LEAST_PACKED: Final = 0.33
"""What packing leaves of recorded outputs is 0.30 to 0.41: made ones that pack better would measure nothing."""
LINES: Final = (0, 14, 64, 0, 18, 84, 0, 24, 105, 1, 28, 155, 3, 33, 245, 7, 42, 340, 10, 52)
"""Lines of the outputs, in turn, in the proportions of recorded ones: most are short, a few hold half of the text."""
TOOL: Final[dict[str, Any]] = {
    "name": "bash",
    "description": "Run a command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}
SYSTEM: Final = "You are a coding agent. " * 100
PROMPT: Final = "Make the tests pass, one file after another. Leave the public names as they are."
PARTS: Final = [
    first + second
    for first in ("re", "wri", "no", "lis", "ha", "co")
    for second in ("ad", "te", "de", "ne", "st", "me")
]
WORDS: Final = [f"{first}_{second}" for first in PARTS for second in PARTS] + PARTS * 10


def said(number: int, characters: int) -> tuple[str, str, str]:
    """Return what the model says, the command that it runs, and the output; together so many characters in the mean."""
    text = f"I run the tests of part {number}, to see what is left."
    command = f"cd /home/user/project && pytest tests/unit/test_part_{number}.py -x -q 2>&1 | tail -60"
    length = (characters - len(text) - len(command)) * LINES[number % len(LINES)] * len(LINES) // sum(LINES)
    words, lines, size = Random(number), [f"FAILED tests/unit/test_part_{number}.py"], 0
    while size < length:
        line = " ".join(words.choice(WORDS) for _ in range(words.randrange(2, 9)))
        lines.append(f"{' ' * words.choice((4, 4, 8, 12))}{line} = {words.randrange(10**8)}"[: length - size])
        size += len(lines[-1]) + 1
    return text, command, "\n".join(lines)


async def loop(file: Path, wanted: int) -> int:
    """Let an agent make its calls, each with so much text, and return the characters of the conversation."""
    characters = len(PROMPT)
    async with open_store(file, durability="normal") as store:
        timeline = await Timeline.open(store, "c", policy=policies.balanced(max_tokens=32_000))
        await timeline.append(UserPrompt(text=PROMPT))
        for number in range(CALLS):
            context = await timeline.render(system=SYSTEM, tools=[TOOL])
            request = context.request("anthropic", model="claude-opus-5", max_tokens=4_096)
            text, command, output = said(number, wanted)
            use = {"type": "tool_use", "id": f"toolu_01{number:022d}", "name": "bash", "input": {"command": command}}
            read = len(str(request.arguments)) // 4
            reply = {
                "id": f"msg_01{number:022d}",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-5",
                "stop_reason": "tool_use",
                "content": [{"type": "text", "text": text}, use],
                "usage": {
                    "input_tokens": 12,
                    "output_tokens": 85,
                    "cache_read_input_tokens": read,
                },
            }
            await timeline.record(reply, request=request, duration=2.314)
            await timeline.append(ToolResult(call_id=str(use["id"]), text=output))
            characters += len(text) + len(command) + len(output)
        assert timeline.window.calls == CALLS
        assert timeline.window.compactions > 1
        assert (await timeline.call(CALLS // 2)).unproved is None
        assert (await timeline.verify()).ok
    return characters


def asked(file: Path, query: str) -> dict[str, int]:
    """Return the rows of a query: bytes by name, the largest first."""
    with closing(sqlite3.connect(file)) as connection:
        return dict(connection.execute(f"{query} ORDER BY 2 DESC LIMIT 8").fetchall())


def test_the_made_outputs_are_no_easier_to_pack_than_recorded_ones() -> None:
    """Each by itself, as a payload is packed."""
    outputs = [said(number, 3_500)[2].encode() for number in range(len(LINES))]
    packed = sum(len(zlib.compress(each, 9)) for each in outputs)
    assert packed >= LEAST_PACKED * sum(map(len, outputs))


@full_depth
@pytest.mark.parametrize("wanted", [2_500, pytest.param(3_500, marks=pytest.mark.from_depth(Depth.NIGHT))])
async def test_a_database_with_a_thousand_calls_is_at_most_twice_the_text_of_the_conversation(
    tmp_path: Path, wanted: int
) -> None:
    """The context of each is some 20,000 tokens: with their bodies it would be a hundred times as large.

    Of 55 recordings a quarter has less than 2,500 characters a call, half have less than 3,500. What a call takes
    besides is the same for both: the share of the smaller one is the larger.
    """
    file = tmp_path / "agent.db"
    characters = await loop(file, wanted)
    size = file.stat().st_size
    tables = asked(file, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
    print(f"{size / characters:.3f} of {characters:,} characters, {characters // CALLS:,} a call; {tables}")
    (largest,) = asked(file, "SELECT 'm', max(length(payload)) FROM events WHERE type = 'model.called'").values()
    assert largest <= MOST_OF_A_CALL
    assert size <= MOST * characters
