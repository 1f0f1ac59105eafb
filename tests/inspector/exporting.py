"""A conversation to export as one file, and the file."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tests.scenes import small_policy
from timeline import Timeline, open_store
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.inspector.onefile.page import one_file

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path

    from timeline.inspector.onefile.collecting import Carried, Wish
    from timeline.ports import EventStore

T = TypeVar("T")

TRAP: Final = "</script><img src=x onerror='document.title=\"owned\"'><!-- "
SECRET: Final = "ghp_" + "a1B2" * 9
ID: Final = 'talk <b>1</b> & "more"'


def reply(number: int) -> dict[str, Any]:
    """Return what a model says at a turn, as its provider has it."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": [{"type": "text", "text": f"Answer {number}."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 900, "output_tokens": 5},
    }


async def converse(store: EventStore, turns: int = 12) -> Timeline:
    """Hold a conversation that is compacted several times, undone once, and hides a block by hand."""
    timeline = await Timeline.open(store, ID, policy=small_policy(max_tokens=2_000), title=TRAP)
    for number in range(turns):
        call = ToolCall(call_id=f"call_{number}", name="bash", arguments={"command": f"cat /home/ada/{number}.txt"})
        output = ToolResult(call_id=call.call_id, text=f"line {number}\n" * 40 + TRAP)
        asked = UserPrompt(text=f"Look at {number}. " + "x" * 170 + f" token={SECRET} {TRAP}")
        await timeline.append(asked, call, output, AssistantCompletion(text=f"Looked at {number}. " + "y " * 80))
        context = await timeline.render(system="You are careful.")
        request = context.request("anthropic", model="claude-opus-5")
        await timeline.record(reply(number), request=request)
        if number == 7:
            await timeline.hide(output_path := (await timeline.read(f"@{timeline.version - 4}")).path)
            await timeline.reveal(output_path)
        if number == 9:
            await timeline.undo_compaction()
    await timeline.compact()
    return timeline


def apart(work: Coroutine[None, None, T]) -> T:
    """Run something in an event loop of its own: a browser that is driven has one running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def write(folder: Path, wish: Wish, turns: int = 12) -> tuple[Path, Carried]:
    """Write the file of the conversation."""

    async def work() -> tuple[str, Carried]:
        async with open_store("memory://") as store:
            return await one_file(store, (await converse(store, turns)).id, wish)

    text, carried = apart(work())
    file = folder / "talk.html"
    file.write_text(text, encoding="utf-8")
    return file, carried
