"""Chats of Gemini CLI: one JSON document; a call stands with its result in the message of the model.

A call's ``status`` says whether it succeeded. A shell's answer is a form with a line ``Exit Code``.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from tests.independent_reader.acts import Conversation, Outcome

if TYPE_CHECKING:
    from pathlib import Path

_EXIT: Final = re.compile(r"^Exit Code: (\d+)$", re.MULTILINE)
"""The form's last lines stand behind the output, so the last such line counts."""


def read(path: Path) -> list[Conversation]:
    """Return the one conversation of a chat."""
    conversation = Conversation()
    for message in json.loads(path.read_text(encoding="utf-8"))["messages"]:
        for call in message.get("toolCalls", ()):
            conversation.call(call["id"], call["name"], call["args"])
            conversation.result(call["id"], _outcome(call))
    return [conversation]


def _outcome(call: dict[str, Any]) -> Outcome:
    told = [part["functionResponse"]["response"] for part in call["result"]]
    text = "\n".join(str(response.get("output", response.get("error", ""))) for response in told)
    said = _EXIT.findall(text)
    status = int(said[-1]) if said else None
    return Outcome(call["status"] != "success" or bool(status), status, text)
