"""Say what the model was given by an attachment of a Claude Code session, which the client puts beside the messages.

Most kinds are the client's own state. These reach the model: a file that the user named, what somebody changed in a
file that the model knows, the instructions of a folder, what a language server found, and a hook's words.
"""

from __future__ import annotations

from typing import Any

from timeline.wire.anthropic import joined_text
from timeline.wire.foreign import object_of, objects_of, text_of
from timeline.wire.usage import count_of


def given_text(attachment: dict[str, Any]) -> str:
    """Return the text that the model was given; empty for the client's own state, and where there is none."""
    match text_of(attachment, "type"):
        case "file":
            file = object_of(object_of(attachment, "content"), "file")
            return _under(text_of(attachment, "filename") or text_of(file, "filePath"), text_of(file, "content"))
        case "edited_text_file":
            return _under(text_of(attachment, "filename"), text_of(attachment, "snippet"))
        case "nested_memory":
            text = text_of(attachment, "content") or text_of(object_of(attachment, "content"), "content")
            return _under(text_of(attachment, "path"), text)
        case "diagnostics":
            found = (_under(text_of(file, "uri"), _diagnostics(file)) for file in objects_of(attachment, "files"))
            return "\n\n".join(filter(None, found))
        case "hook_additional_context":
            return joined_text(attachment.get("content"))
        case _:
            return ""


def _under(name: str, text: str) -> str:
    return f"{name}\n\n{text}" if text else ""


def _diagnostics(file: dict[str, Any]) -> str:
    """Return a line for each diagnostic of a file; lines and columns count from 1, as the client shows them."""
    lines = []
    for found in objects_of(file, "diagnostics"):
        start = object_of(object_of(found, "range"), "start")
        place = f"{count_of(start, 'line') + 1}:{count_of(start, 'character') + 1} " if start else ""
        lines.append(f"{place}{text_of(found, 'severity')}: {text_of(found, 'message')}")
    return "\n".join(lines)
