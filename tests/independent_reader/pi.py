"""Sessions of pi: JSON records, one a line, two where a line break was lost; a result names its call and its tool.

A failed result has ``isError``. A command that ended with another status than 0 says so at the end of its output; one
that was aborted has none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tests.independent_reader.acts import Conversation, Outcome
from tests.independent_reader.claude_code import records

if TYPE_CHECKING:
    from pathlib import Path

_EXIT: Final = re.compile(r"Command exited with code (\d+)\Z")


def read(path: Path) -> list[Conversation]:
    """Return the one conversation of a session of version 1, which has no branches."""
    conversation = Conversation()
    for row in records(path):
        message = row.get("message", {})
        match message.get("role"):
            case "assistant":
                for part in message["content"]:
                    if part["type"] == "toolCall":
                        conversation.call(part["id"], part["name"], part["arguments"])
            case "toolResult":
                conversation.result(message["toolCallId"], _outcome(message))
    return [conversation]


def _outcome(message: dict[str, Any]) -> Outcome:
    text = "\n".join(part.get("text", "") for part in message["content"])
    if not message["isError"]:
        return Outcome(failed=False, status=0 if message["toolName"] == "bash" else None, text=text)
    said = _EXIT.search(text)
    return Outcome(failed=True, status=int(said[1]) if said else None, text=text)
