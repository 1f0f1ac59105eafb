"""What was done in the conversations of a file, by whatever client wrote it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.independent_reader import claude_code, codex, gemini, pi, swe_agent

if TYPE_CHECKING:
    from pathlib import Path

    from tests.independent_reader.acts import Conversation


def read(path: Path) -> list[Conversation]:
    """Return the conversations of a file: the session, then its subagents, each with what was done in it."""
    match path.suffix:
        case ".traj":
            return swe_agent.read(path)
        case ".json":
            return gemini.read(path)
        case _:
            with path.open(encoding="utf-8") as file:
                first = json.loads(file.readline())["type"]
            by_first = {"session": pi.read, "session_meta": codex.read}
            return by_first.get(first, claude_code.read)(path)
