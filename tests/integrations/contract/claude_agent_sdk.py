"""The contract's driver of the Claude Agent SDK: a client that is resumed from our session store for each prompt.

The SDK's client is a program of 380 MB, which is not in the tests' environment. This one does what that one does with a
session: it is given the lines of `load`, follows the links from the newest row to a boundary, drops a call that has no
result, sends the rest, and has each row that it writes appended as the SDK does when it flushes eagerly.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from timeline.integrations.claude_agent_sdk import TimelineSessionStore
from timeline.integrations.testing import DrivenAgent, Driver, Sent
from timeline.integrations.testing.driver import CONVERSATION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from timeline.integrations.testing import Reply, ScriptedModel
    from timeline.policy.model import Policy
    from timeline.ports import EventStore
    from timeline.sync import Store

KEY: Final = {"project_key": "-home-me", "session_id": CONVERSATION}
Row = dict[str, Any]


class ClaudeAgentSDK(Driver):
    """An application of the SDK: it keeps nothing, and names the session to resume."""

    def agent(self, store: EventStore | Store, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
        """Return a client over the session store."""
        sessions = TimelineSessionStore(store, resume="compacted", policy=policy)  # type: ignore[arg-type]
        return _Client(self.model, sessions, tool)


class _Client(DrivenAgent):
    def __init__(self, model: ScriptedModel, sessions: TimelineSessionStore, tool: Callable[[str], Any]) -> None:
        self._model = model
        self._sessions = sessions
        self._tool = tool
        self._rows: list[Row] = []
        self._leaf: str | None = None

    async def run(self, prompt: str, *, place: Any = None) -> str:
        """Resume the session, from a row where one is given, and send a prompt."""
        self._rows = await self._sessions.load(KEY) or []
        self._leaf = place or await self.place()
        await self._write("user", {"role": "user", "content": prompt})
        while True:
            reply = self._model.asked(_sent(self._chain()))
            await self._answered(reply)
            if not reply.calls:
                return reply.text
            for call in reply.calls:
                result = self._tool(call.step)
                text = await result if isawaitable(result) else result
                part = {"type": "tool_result", "tool_use_id": call.id, "content": text}
                await self._write("user", {"role": "user", "content": [part]})

    async def place(self) -> Any:
        """Return the newest row."""
        rows = await self._sessions.load(KEY) or []
        return next((row["uuid"] for row in reversed(rows) if "uuid" in row), None)

    async def resume(self) -> str:
        """Go on: the SDK does so by a prompt."""
        return await self.run("Continue from where you left off.")

    async def regenerate(self) -> str:
        """Not of the SDK's: it goes back to a row, and on with a prompt."""
        raise NotImplementedError

    async def trim(self, keep: int) -> None:
        """Not of the SDK's: the client's history is the client's."""
        raise NotImplementedError

    async def _answered(self, reply: Reply) -> None:
        parts: list[Row] = [{"type": "text", "text": reply.text}] if reply.text else []
        parts += [{"type": "tool_use", "id": c.id, "name": "work", "input": {"step": c.step}} for c in reply.calls]
        usage = {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens}
        message = {"id": f"msg_{uuid4()}", "role": "assistant", "model": "claude-opus-5", "usage": usage}
        stop = "tool_use" if reply.calls else "end_turn"
        for part in parts:
            await self._write("assistant", {**message, "content": [part], "stop_reason": stop})

    async def _write(self, type_: str, message: Row) -> None:
        row = {"type": type_, "uuid": str(uuid4()), "parentUuid": self._leaf, "message": message}
        self._rows.append(row)
        self._leaf = str(row["uuid"])
        await self._sessions.append(KEY, [row])

    def _chain(self) -> list[Row]:
        by_id = {row["uuid"]: row for row in self._rows if "uuid" in row}
        found: list[Row] = []
        row = by_id.get(self._leaf or "")
        while row is not None:
            found.append(row)
            row = by_id.get(row["parentUuid"] or "")
        return [row for row in reversed(found) if "message" in row]


def _sent(rows: Sequence[Row]) -> list[Sent]:
    parts = [(row["message"]["role"], part) for row in rows for part in _parts(row["message"]["content"])]
    answered = {part["tool_use_id"] for _, part in parts if part["type"] == "tool_result"}
    sent: list[Sent] = []
    for role, part in parts:
        if part["type"] == "tool_result":
            sent.append(Sent("tool", part["content"], answers=part["tool_use_id"]))
        elif part["type"] == "text":
            sent.append(Sent(role, part["text"]))
        elif part["id"] in answered:
            before = sent.pop() if sent and sent[-1].role == "assistant" else Sent("assistant")
            sent.append(Sent("assistant", before.text, (*before.calls, part["id"])))
    return sent


def _parts(content: str | list[Row]) -> list[Row]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
