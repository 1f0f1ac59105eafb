"""Codex rollouts: JSON records, one a line, of which the response's items hold calls and outputs.

A status is in the head of a shell's output (``Exit code: 2``, ``Process exited with code 2``) or in its metadata. A
patch is an argument with a form of its own: each file that it adds, updates, moves or deletes has a line in it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tests.independent_reader.acts import Conversation, Outcome

if TYPE_CHECKING:
    from pathlib import Path

_EXIT: Final = re.compile(r"^(?:Exit code:|Process exited with code) (\d+)$", re.MULTILINE)
_HEAD: Final = "\nOutput:\n"


def read(path: Path) -> list[Conversation]:
    """Return the one conversation of a rollout."""
    conversation = Conversation()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        item = row["payload"] if row["type"] == "response_item" else {}
        match item.get("type"):
            case "function_call":
                conversation.call(item["call_id"], item["name"], json.loads(item["arguments"]))
            case "custom_tool_call":
                conversation.call(item["call_id"], item["name"], {"input": item["input"]})
            case "local_shell_call":
                conversation.call(item["call_id"], "local_shell", item["action"])
            case "function_call_output" | "custom_tool_call_output":
                conversation.result(item["call_id"], _outcome(item["output"]))
    return [conversation]


def _outcome(output: Any) -> Outcome:
    said = output["content"] if isinstance(output, dict) else output
    told = json.loads(said) if said.startswith("{") else {}
    head, found, _ = said.partition(_HEAD)
    line = _EXIT.search(head) if found else None
    status = told.get("metadata", {}).get("exit_code", int(line[1]) if line else None)
    refused = isinstance(output, dict) and output.get("success") is False
    return Outcome(refused or bool(status), status, said)
