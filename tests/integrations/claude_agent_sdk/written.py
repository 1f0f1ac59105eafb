"""Sessions as the client writes them today, to feed to a store in batches."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

from tests.importers.session import Session, said, use
from timeline import Timeline
from timeline.integrations.claude_agent_sdk import TimelineSessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.ports import EventStore

KEY: Final = {"project_key": "-home-me-project", "session_id": "6a1f0c52-7f7e-4c0e-9d55-0d3a5d7c1b11"}
"""Of the session that is written."""
SUB: Final = {**KEY, "subpath": "subagents/agent-a75353995cda43722"}
"""Of its subagent."""


class Written(Session):
    """A session in which each row goes on from the row before, and each response says why it ended."""

    def __init__(self, id_: str = KEY["session_id"], *, answers: int = 0) -> None:
        super().__init__(id_)
        self._answers = answers

    def row(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add a row behind the newest one."""
        parent = next((row["uuid"] for row in reversed(self.rows) if "uuid" in row), None)
        return super().row(type_, **{"parentUuid": parent, **fields})

    def unnamed(self, type_: str, **fields: Any) -> dict[str, Any]:
        """Add a row of the client's own state, which has no uuid."""
        row = {"type": type_, "sessionId": self.id, **fields}
        self.rows.append(row)
        return row

    def ends(self, text: str, **fields: Any) -> dict[str, Any]:
        """Add an answer that ends a turn."""
        self._answers += 1
        row = self.answer(f"msg_{self._answers}", said(text), **fields)
        row["message"]["stop_reason"] = "end_turn"
        return row

    def asks(self, *calls: dict[str, Any], text: str = "Running.", **fields: Any) -> None:
        """Add a response with calls: a row a part, as the client writes it."""
        self._answers += 1
        for part in (said(text), *calls):
            row = self.answer(f"msg_{self._answers}", part, **fields)
            row["message"]["stop_reason"] = "tool_use"

    def works(self, rounds: int, *, words: int = 60) -> Written:
        """Add turns with two calls each, whose results are long."""
        for number in range(rounds):
            self.unnamed("last-prompt", lastPrompt=f"Step {number}")
            self.user(f"Step {number}")
            self.asks(
                use(f"call_{number}a", command=f"make {number}"),
                use(f"call_{number}b", "Read", file_path=f"{number}.py"),
            )
            self.result(f"call_{number}b", f"file {number}\n" + "x = 1\n" * words)
            self.result(f"call_{number}a", f"made {number}\n" + "a line of its output\n" * words)
            self.ends(f"Step {number} is done.")
        return self


def batches(rows: Sequence[dict[str, Any]], *, seed: int, most: int = 7) -> Iterator[list[dict[str, Any]]]:
    """Yield rows in batches of random sizes."""
    rng, start = random.Random(seed), 0
    while start < len(rows):
        end = start + rng.randint(1, most)
        yield list(rows[start:end])
        start = end


async def feed(store: EventStore, rows: Sequence[dict[str, Any]], *, seed: int = 1) -> TimelineSessionStore:
    """Append rows to a session in batches; return the session store."""
    sessions = TimelineSessionStore(store)
    for batch in batches(rows, seed=seed):
        await sessions.append(KEY, batch)
    return sessions


async def opened(store: EventStore, conversation: str = KEY["session_id"]) -> Timeline:
    """Open a conversation that is there."""
    return await Timeline.open(store, conversation, create=False)
