"""Read from a call's name and arguments which file it reads, writes or deletes, what it runs, or what it searches for.

Names are compared without case and separators, so that ``Write``, ``write_file`` and ``fs.writeFile`` are alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from timeline.blocks import ToolCall

UseKind: TypeAlias = Literal["read", "write", "command", "search"]

_SPLIT: Final = re.compile(r"[^a-z0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FILE_KEYS: Final = (
    "file_path",
    "filepath",
    "path",
    "notebook_path",
    "filename",
    "file_name",
    "file",
    "target_file",
    "relative_path",
    "absolute_path",
    "uri",
)
_COMMAND_KEYS: Final = ("command", "cmd", "script", "commands")
_QUERY_KEYS: Final = ("pattern", "query", "search_term", "regex", "q", "search", "keywords", "glob")
_WORDS: Final[dict[UseKind, frozenset[str]]] = {
    "command": frozenset(
        {"bash", "shell", "exec", "execute", "terminal", "run", "powershell", "cmd", "sh", "execbash"}
    ),
    "write": frozenset(
        {
            "write",
            "edit",
            "multiedit",
            "create",
            "replace",
            "insert",
            "patch",
            "update",
            "append",
            "save",
            "notebookedit",
        }
    ),
    "search": frozenset({"grep", "glob", "search", "find", "memsearch", "websearch", "ripgrep", "ls", "list", "query"}),
    "read": frozenset({"read", "view", "cat", "open", "get", "load", "fetch", "notebookread"}),
}
_EDITOR_COMMANDS: Final[dict[str, UseKind]] = {
    "view": "read",
    "create": "write",
    "str_replace": "write",
    "insert": "write",
    "undo_edit": "write",
    "delete": "write",
    "rename": "write",
}
_PATCH_FILE: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The use of a tool by one call: its kind, and the files, the command or the query that it names."""

    kind: UseKind
    subjects: tuple[str, ...]


def tool_use(call: ToolCall) -> ToolUse | None:
    """Return the use of a call; None for a tool that works with neither files, commands nor searches."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    raw = call.arguments if isinstance(call.arguments, str) else ""
    words = {word for word in _SPLIT.split(_CAMEL.sub(" ", call.name).lower()) if word}
    words.add("".join(_SPLIT.split(call.name.lower())))
    file = _first(arguments, _FILE_KEYS)
    editor = _EDITOR_COMMANDS.get(str(arguments.get("command")))
    if editor is not None and file is not None:
        return ToolUse(editor, (file,))
    patched = tuple(_PATCH_FILE.findall(_first(arguments, ("input", "patch", "diff")) or raw))
    if patched:
        return ToolUse("write", patched)
    command = _first(arguments, _COMMAND_KEYS)
    if command is not None and (words & _WORDS["command"] or file is None):
        return ToolUse("command", (command,))
    if file is not None and words & _WORDS["write"]:
        return ToolUse("write", (file,))
    query = _first(arguments, _QUERY_KEYS)
    if query is not None and words & _WORDS["search"]:
        return ToolUse("search", (query,))
    if file is not None and words & _WORDS["search"]:
        return ToolUse("search", (file,))
    if file is not None and words & _WORDS["read"]:
        return ToolUse("read", (file,))
    return ToolUse("search", (query,)) if query is not None else None


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """Return the value of the first key that holds a text; a list of words (an argv) is joined."""
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return " ".join(value)
    return None
