"""No answer has more tokens than it may, in its text or in its structured form, whatever was recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integrations.mcp.recorded import ask, asking, said
from tests.scenes import small_policy
from timeline import Timeline, open_store
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.frozen import compact_json
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

COUNT = get_counter("o200k_base").count
MOST = 1_000
CODE = "".join(f'\t{{"name": "part_{number}", "path": "C:\\\\src\\\\{number}"}},\n' for number in range(600))
"""Text that takes a third more tokens as JSON."""
ID = f"call__thought__{'Ab3/' * 600}"
"""A call id that holds a signature, as some gateways make them."""


async def pages(client: Client, tool: str, place: str = "cursor", **arguments: Any) -> list[Any]:
    """Ask for all pages of an answer, each within the bound."""
    answers: list[Any] = []
    while True:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        assert max(COUNT(said(result)), COUNT(compact_json(result.structured_content))) <= MOST
        answers.append(result.structured_content)
        if answers[-1][f"next_{place}"] is None:
            return answers
        arguments[place] = answers[-1][f"next_{place}"]


@pytest.fixture
async def db(tmp_path: Path) -> Path:
    """A conversation in which everything that has no bound is long: ids of calls, names of tools, commands, errors."""
    file = tmp_path / "long.db"
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "work", policy=small_policy(max_tokens=1_500), title="漢字" * 2_000)
        await timeline.append(UserPrompt(text=f"Never delete {'漢字/' * 300}. Make the tests pass."))
        for number in range(4):
            call_id, written = f"{ID}{number}", f'cat > part_{number}.py <<"EOF"\n{"漢字" * 1_500}\nEOF'
            await timeline.append(
                ToolCall(call_id=call_id, name="bash", arguments={"command": written}),
                ToolResult(call_id=call_id, text=f'Error: {"漢" * 2_000} "', is_error=True),
                ToolCall(call_id=f"f{call_id}", name=f"read_{'界' * 2_000}", arguments={"file_path": f"{number}.py"}),
                ToolResult(call_id=f"f{call_id}", text=f"no such file: {CODE}", is_error=True),
            )
        await timeline.compact()
    return file


@pytest.mark.parametrize(
    ("tool", "arguments", "place"),
    [
        ("conversations", {}, "cursor"),
        ("search", {"query": "error", "limit": 100}, "cursor"),
        ("digests", {"limit": 100}, "cursor"),
        ("facts", {"limit": 100}, "cursor"),
        ("record", {"conversation": "work"}, "offset"),
    ],
)
async def test_a_row_that_is_too_long_for_an_answer_is_shortened(
    db: Path, tool: str, arguments: dict[str, Any], place: str
) -> None:
    """What it leaves out is read at its address, which it still has."""
    async with asking(db, max_tokens=MOST) as client:
        answers = await pages(client, tool, place, **arguments)
        rows = [row for answer in answers for row in answer.get("facts", ())]
        for row in rows:
            assert (await ask(client, "read", path=row["path"], conversation="work"))["outcome"] == "found"
    assert "…" in json.dumps(answers, ensure_ascii=False) or tool == "digests"


async def test_each_line_of_the_record_keeps_its_address(db: Path) -> None:
    """Also one that is cut."""
    async with asking(db, max_tokens=MOST) as client:
        lines = [
            line for answer in await pages(client, "record", "offset", conversation="work") for line in answer["lines"]
        ]
        cut = [line for line in lines if "…" in line]
        assert len(cut) > 4
        for line in cut:
            address = line.rpartition("(")[2].removesuffix(")")
            assert (await ask(client, "read", path=address, conversation="work"))["outcome"] == "found"


async def test_a_block_is_read_in_pieces_that_fit_as_json_too(db: Path) -> None:
    """Quotes, backslashes and tabs take more tokens there; together the pieces are the whole block."""
    async with open_store(db, readonly=True) as store:
        timeline = await Timeline.open(store, "work")
        found = [entry.block for entry in [item async for item in timeline.history()] if CODE in entry.block.text]
    async with asking(db, max_tokens=MOST) as client:
        for block in found:
            answers = await pages(client, "read", "offset", path=block.path, conversation="work")
            assert [answer["offset"] for answer in answers[1:]] == [answer["end"] for answer in answers[:-1]]
            assert answers[-1]["end"] == answers[-1]["characters"] == len(block.text)
    assert len(found) == 4


async def test_what_is_like_an_unknown_path_is_named_within_the_bound(db: Path) -> None:
    """A path that is as long as an answer is not."""
    async with asking(db, max_tokens=MOST) as client:
        answers = await pages(client, "read", "offset", conversation="work", path=f"tc:turn_1.{ID}9.result")
    assert answers[0]["outcome"] == "unknown"
