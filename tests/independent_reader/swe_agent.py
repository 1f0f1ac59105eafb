"""Trajectories of SWE-agent: one JSON document; its history has function calls, or actions that are text.

An action that is text goes to a shell, where SWE-agent's own commands are functions: it is a command. Results record
neither a status nor a failure; the words of an observation are not interpreted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.independent_reader.acts import Conversation, Outcome

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path) -> list[Conversation]:
    """Return the one conversation of a trajectory; its demonstrations are none of it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    conversation = Conversation()
    waiting: list[str] = []
    for number, entry in enumerate(document["history"], start=1):
        if entry.get("is_demo"):
            continue
        if entry["role"] == "assistant":
            waiting = _calls(conversation, entry, number)
        elif waiting:
            for id_ in waiting:
                conversation.result(id_, Outcome(failed=False))
            waiting = []
    # The run ends with an action, whose observation only the steps have.
    if waiting and document.get("trajectory"):
        conversation.result(waiting[-1], Outcome(failed=False))
    return [conversation]


def _calls(conversation: Conversation, entry: dict[str, Any], number: int) -> list[str]:
    """Take the calls of an entry; return their ids."""
    if calls := entry.get("tool_calls"):
        for call in calls:
            conversation.call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        return [call["id"] for call in calls]
    if action := entry.get("action", "").strip():
        conversation.call(f"action-{number}", "bash", {"command": action})
        return [f"action-{number}"]
    return []
