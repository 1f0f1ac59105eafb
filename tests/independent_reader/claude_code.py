"""Claude Code sessions: JSON records, one a line, two where a line break was lost; calls and results by their ids.

A failed result has ``is_error``. A command's exit status is the first line of a failed result, ``Exit code 2``. A
result that did not fail was 0 where the row has the client's own record of the command (``toolUseResult``, which the
rows of subagents lack), unless that says that the command goes on in the background, was interrupted, or ended with a
status that it puts into words (``returnCodeInterpretation``): then no status is recorded.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tests.independent_reader.acts import Conversation, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EXIT: Final = re.compile(r"Exit code (\d+)(?:\n|$)")


def read(path: Path) -> list[Conversation]:
    """Return the session and its subagents, as far as the session shows their steps."""
    found: dict[str, Conversation] = {}
    seen: set[str] = set()
    for row in records(path):
        data = row.get("data")
        agent, told = "", row
        if isinstance(data, dict) and data.get("type") == "agent_progress":
            agent, told = data["agentId"], data["message"]
        message = told.get("message")
        if told.get("type") not in {"user", "assistant"} or not isinstance(message, dict) or told["uuid"] in seen:
            continue
        seen.add(told["uuid"])
        conversation = found.setdefault(agent, Conversation(agent))
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "tool_use":
                conversation.call(part["id"], part["name"], part["input"])
            elif part["type"] == "tool_result":
                id_ = part["tool_use_id"]
                conversation.result(id_, _outcome(part, told.get("toolUseResult"), runs=conversation.shell(id_)))
    return list(found.values())


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Return the JSON objects of a file, however many are on a line; what is torn is left out."""
    decoder = json.JSONDecoder()
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        at = 0
        while (at := line.find("{", at)) >= 0:
            try:
                row, at = decoder.raw_decode(line, at)
            except json.JSONDecodeError:
                break
            yield row


def _outcome(part: dict[str, Any], more: Any, *, runs: bool) -> Outcome:
    content = part.get("content") or ""
    text = content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content)
    failed = part.get("is_error") is True
    if not runs:
        return Outcome(failed, text=text)
    if failed:
        said = _EXIT.match(text)
        return Outcome(failed, int(said[1]) if said else None, text)
    left_open = ("backgroundTaskId", "returnCodeInterpretation")
    ended = isinstance(more, dict) and not more["interrupted"] and not any(key in more for key in left_open)
    return Outcome(failed, 0 if ended else None, text)
