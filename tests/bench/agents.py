"""Sixteen conversations of one process at work, and a process that times their steps, in any checkout.

``python tests/bench/agents.py FOLDER`` reads a line, and answers with the seconds of CPU time that one step of each
conversation took: a result is appended, the context rendered, recorded and encoded, and the model's reply recorded. It
uses nothing that the first releases lack, so that the same file measures both.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from timeline import open_store, policies
from timeline.blocks import ToolCall, ToolResult
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.blocks import Block

CONVERSATIONS: Final = 16
ROUNDS: Final = 300
"""Calls with a result in each conversation before the first step: 100,000 tokens, with the system prompt."""
STEPS: Final = 5
"""Steps of each conversation for one answer."""
SYSTEM: Final = "You are an agent. " * 400
OUTPUT: Final = "".join(f'{n:3} |     def line_{n}(self) -> str:  # "quoted"\n' for n in range(26))


class Agent:
    """One conversation at work."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._round = 0

    async def begin(self) -> None:
        """Append the rounds before the first step."""
        made: list[Block] = [block for _ in range(ROUNDS) for block in self._blocks()]
        await self._timeline.append(*made)
        await self._timeline.record(self._reply())
        await self.step()

    async def step(self) -> None:
        """Append the result of the last call, ask the model, and record its reply."""
        await self._timeline.append(self._result())
        context = await self._timeline.render(system=SYSTEM)
        context.to_anthropic(model="claude-opus-5")
        await self._timeline.record(self._reply())

    def _blocks(self) -> list[Block]:
        self._round += 1
        use: Any = {"command": f"pytest tests/test_{self._round}.py"}
        call = ToolCall(call_id=f"c{self._round}", name="bash", arguments=use, response_id=f"r{self._round}")
        return [call, self._result()]

    def _result(self) -> Block:
        return ToolResult(call_id=f"c{self._round}", name="bash", text=f"{self._round} {OUTPUT}")

    def _reply(self) -> dict[str, Any]:
        self._round += 1
        use = {"command": f"pytest tests/test_{self._round}.py"}
        return {
            "id": f"msg_{self._round}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5",
            "content": [{"type": "tool_use", "id": f"c{self._round}", "name": "bash", "input": use}],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 4, "output_tokens": 42, "cache_read_input_tokens": 900},
        }


async def answer(folder: Path, asked: Iterator[str]) -> None:
    """Time a few steps of all conversations, side by side, each time that it is asked."""
    store = await open_store(folder / "agents.db")
    policy = policies.cut_point(max_tokens=10_000_000)
    agents = [Agent(await Timeline.open(store, f"c{n}", policy=policy)) for n in range(CONVERSATIONS)]
    for agent in agents:
        await agent.begin()

    async def work(agent: Agent) -> None:
        for _ in range(STEPS):
            await agent.step()

    for _ in asked:
        gc.collect()
        begun = process_time()
        await asyncio.gather(*map(work, agents))
        sys.stdout.write(f"{process_time() - begun}\n")
        sys.stdout.flush()
    await store.aclose()


if __name__ == "__main__":
    asyncio.run(answer(Path(sys.argv[1]), iter(sys.stdin.readline, "")))
