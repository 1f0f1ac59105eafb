"""An application of the Claude Agent SDK, which resumes its session for each prompt; the SDK is the real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ResultMessage,
    create_sdk_mcp_server,
    fork_session_via_store,
    project_key_for_directory,
    query,
    tool,
)

from tests.integrations.sixty_turns.model import GOING_ON, PLOTS, prompt
from timeline.integrations.claude_agent_sdk import TimelineSessionStore
from timeline.integrations.testing import DrivenAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from timeline.policy.model import Policy
    from timeline.ports import EventStore

CLIENT: Final = Path(__file__).with_name("client.py")
DYING: Final = str(PLOTS["short"].dies_in_the_tool)
"""The turn in which the tool kills the process of the short scene."""


def of_scene(folder: Path, url: str, store: EventStore, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
    """Return an agent that keeps the id of its session in the folder."""
    return _Agent(folder, url, TimelineSessionStore(store, resume="compacted", policy=policy), store, tool)


def of_late_scene(folder: Path, url: str, store: EventStore, policy: Policy, tool: Callable[[str], Any]) -> DrivenAgent:
    """Return the same agent, for the short scene: the store is too slow in the turn in which the tool kills it."""
    sessions = _Late(store, resume="compacted", policy=policy)
    sessions.is_late = lambda: not (folder / "died").exists()
    return _Agent(folder, url, sessions, store, tool)


class _Late(TimelineSessionStore):
    """Keeps no line of one prompt for as long as it is late: the SDK hands lines over behind its client's back."""

    is_late: Callable[[], bool]

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Keep a batch of lines."""
        if prompt(DYING) in json.dumps(entries) and self.is_late():
            await anyio.sleep_forever()
        await super().append(key, entries)


class _Agent(DrivenAgent):
    def __init__(
        self, folder: Path, url: str, sessions: TimelineSessionStore, store: EventStore, work: Callable[[str], Any]
    ) -> None:
        self._folder = folder
        self._lines = TimelineSessionStore(store)
        self._sessions = sessions
        self._file = folder / "session"
        self._asked = folder / "asked"
        client = folder / "claude"
        client.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{CLIENT}" "$@"\n')
        client.chmod(0o755)

        async def called(arguments: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": work(arguments["step"])}]}

        self._options = {
            "cli_path": client,
            "cwd": folder,
            "env": {"ANTHROPIC_BASE_URL": url, "CLAUDE_CONFIG_DIR": str(folder / "config")},
            "mcp_servers": {
                "app": create_sdk_mcp_server("app", tools=[tool("work", "Do a step.", {"step": str})(called)])
            },
            "session_store": self._sessions,
            "session_store_flush": "eager",
        }

    async def run(self, prompt: str, *, place: Any = None) -> str:
        """Resume the session with a prompt; a place behind which the client compacted is gone on from in a fork."""
        if place is not None:
            forked = await fork_session_via_store(
                self._lines, self._id, directory=str(self._folder), up_to_message_id=place
            )
            self._file.write_text(forked.session_id)
        self._asked.write_text(prompt)
        return await self._ask(prompt)

    async def place(self) -> Any:
        """Return the newest message."""
        rows = await self._lines.load(self._key) or []
        return next(row["uuid"] for row in reversed(rows) if row["type"] in {"user", "assistant"})

    async def regenerate(self) -> str:
        """Go back in front of the newest prompt, and send it again: the SDK has no other way."""
        rows = await self._sessions.load(self._key) or []
        asked = [row for row in rows if row["type"] == "user" and isinstance(row["message"]["content"], str)]
        return await self._ask(asked[-1]["message"]["content"], resume_session_at=asked[-1]["parentUuid"])

    async def resume(self) -> str:
        """Go on, by a prompt; by the same one where the process ended before the SDK had handed it over."""
        rows = await self._lines.load(self._key) or []
        asked = self._asked.read_text()
        is_kept = any(row.get("message", {}).get("content") == asked for row in rows)
        return await self._ask(GOING_ON if is_kept else asked)

    async def trim(self, keep: int) -> None:
        """Not of the SDK's: the client's history is the client's."""
        raise NotImplementedError

    @property
    def _id(self) -> str:
        if not self._file.exists():
            self._file.write_text(str(uuid4()))
        return self._file.read_text()

    @property
    def _key(self) -> dict[str, str]:
        return {"project_key": project_key_for_directory(self._folder), "session_id": self._id}

    async def _ask(self, prompt: str, **options: Any) -> str:
        is_there = await self._lines.load(self._key) is not None
        session = {"resume" if is_there else "session_id": self._id}
        chosen = ClaudeAgentOptions(**self._options, **session, **options)
        said: list[str | None] = [
            message.result
            async for message in query(prompt=prompt, options=chosen)
            if isinstance(message, ResultMessage)
        ]
        return said[-1] or ""
