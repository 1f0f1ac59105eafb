"""Read from a call's name and arguments which files it reads, writes or deletes, what it runs, or what it looks for.

Names of tools and of arguments are compared without case and separators, so that ``Write``, ``write_file`` and
``fs.writeFile`` are alike, and ``file_path`` and ``filePath``. For a tool of a server (``mcp__files__read_file``), only
the tool's own name counts. A shell command is its text; nobody guesses which files it touches.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

UseKind: TypeAlias = Literal["read", "write", "delete", "command", "search"]
_Verb: TypeAlias = Literal["read", "write", "delete", "command", "search", "move", "copy", "ask", "whole", "part"]
"""What a call does; ``whole`` and ``part`` say to what: to whole files, or to something that may be inside a file."""
_Role: TypeAlias = Literal[
    "file",
    "folder",
    "old",
    "source",
    "old_name",
    "new",
    "destination",
    "new_name",
    "command",
    "code",
    "query",
    "question",
    "patch",
    "parts",
]

_SPLIT: Final = re.compile(r"[^a-z0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SERVER: Final = re.compile(r"^.*(?:__|\.|/|:)(?=.)", re.DOTALL)
_LONGEST_NAME: Final = 200
_LONGEST_FILE: Final = 4_096
_LONGEST_KEYS: Final = 400
"""Most characters of all keys of a call whose roles are remembered."""
_new: Final = tuple.__new__
"""Makes a `ToolUse` in a third of the time that its constructor takes."""

_ROLES: Final[Mapping[_Role, str]] = {
    "file": "file_path path notebook_path filename file target_file relative_path absolute_path path_in_project"
    " relative_workspace_path uri file_paths paths notebook_paths filenames files target_files",
    "folder": "dir_path directory dir folder directory_path",
    "old": "old_path source_path src_path from_path",
    "source": "source src from",
    "old_name": "old_name",
    "new": "new_path destination_path dest_path dst_path to_path target_path",
    "destination": "destination dest dst to target",
    "new_name": "new_name",
    "command": "command cmd script commands command_line",
    "code": "code",
    "query": "pattern query search_term regex q search keywords glob file_pattern glob_pattern",
    "question": "description task question message prompt",
    "patch": "input patch diff patch_text",
    "parts": "edits changes operations operation action reads writes",
}
_ROLE: Final[Mapping[str, tuple[_Role, int]]] = {
    "".join(_SPLIT.split(key)): (role, rank) for role, keys in _ROLES.items() for rank, key in enumerate(keys.split())
}
_VERBS: Final[Mapping[_Verb, str]] = {
    "command": "bash shell exec execute execution terminal run powershell cmd sh execbash console ipython",
    "write": "write edit multiedit create replace insert patch update append save notebookedit modify rewrite",
    "delete": "delete remove rm unlink trash",
    "move": "move rename mv",
    "copy": "copy cp duplicate",
    "search": "grep glob search find memsearch websearch ripgrep ls list query",
    "read": "read view cat notebookread open",
    "ask": "task agent subagent delegate",
}
_WORDS: Final[Mapping[_Verb, frozenset[str]]] = {verb: frozenset(words.split()) for verb, words in _VERBS.items()}
_ASKS: Final[frozenset[_Verb]] = frozenset({"ask"})
"""The only verb of a tool that hands a task to another agent. ``TaskCreate`` has more, since it writes a list."""
_FETCH: Final = frozenset({"get", "load", "fetch"})
"""Words of tools that read files only if the name also has a word for files: ``get_file``, not ``get_diagnostics``."""
_FILES: Final = frozenset({"file", "files", "contents", "content", "text", "document", "notebook", "image"})
_FOLDERS: Final = frozenset({"directory", "dir", "folder", "mkdir"})
_OBJECTS: Final[Mapping[Literal["whole", "manner", "mark"], str]] = {
    "whole": "file files path paths document documents notebook notebooks image images dir dirs directory directories"
    " folder folders",
    "manner": "a all and batch by force fs git local many mcp multiple or permanently recursive recursively safe safely"
    " temp temporary the to tool",
    "mark": "bookmark bookmarks breakpoint breakpoints caret cursor watchpoint watchpoints",
}
"""Words for whole files, for how something is done to them, and for marks that an editor shows and no file holds."""
_WHOLE, _MANNER, _MARKS = (frozenset(words.split()) for words in _OBJECTS.values())
_EDITOR_COMMANDS: Final[Mapping[str, _Verb]] = {
    "view": "read",
    "read": "read",
    "create": "write",
    "write": "write",
    "edit": "write",
    "str_replace": "write",
    "insert": "write",
    "undo_edit": "write",
    "delete": "delete",
    "rename": "move",
}
_OPERATIONS: Final[Mapping[str, _Verb]] = {
    "create_file": "write",
    "update_file": "write",
    "delete_file": "delete",
    "create": "write",
    "update": "write",
    "edit": "write",
    "write": "write",
    "modify": "write",
    "delete": "delete",
    "read": "read",
}
"""What one part of a call does, by its ``type``, ``action`` or ``kind``."""
_PATCH_FILE: Final = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): ([^\n]++)", re.MULTILINE)
_DIFF_FILE: Final = re.compile(r"^--- (\S[^\n]*+)\n\+\+\+ (\S[^\n]*+)", re.MULTILINE)
"""It matches whole lines: to look for the end of a name would read a long line once for each of its characters."""
_ADDRESS: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_QUOTED: Final = "|".join(rf"{mark}([^{mark}\\]*(?:\\.[^{mark}\\]*)*){mark}" for mark in "\"'`")
_RUNS: Final = re.compile(rf"""\bexec_command\(\s*\{{[^}}]{{0,200}}?\bcmd["']?\s*:\s*(?:{_QUOTED})""", re.DOTALL)
"""A command in a script of calls, where tools are functions: ``await tools.exec_command({cmd: "make"})``."""
_PATCH: Final = "*** Begin Patch"
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_CHARACTERS: Final[Mapping[str, str]] = {"n": "\n", "t": "\t", "r": ""}


class CallFields(Protocol):
    """The fields of a `timeline.blocks.ToolCall` that the rules read; a store has them without the rest."""

    @property
    def path(self) -> str:
        """Address of the call."""
        ...

    @property
    def name(self) -> str:
        """Name of the tool."""
        ...

    @property
    def arguments(self) -> dict[str, Any] | str:
        """An object, or the raw text if the model wrote no valid object."""
        ...


class ToolUse(NamedTuple):
    """One use of a tool by a call: its kind, and the files, the command or the query that it names."""

    kind: UseKind
    subjects: tuple[str, ...]


def tool_use(call: CallFields) -> ToolUse | None:
    """Return the first use of a call; None for a tool that works with neither files, commands nor searches."""
    uses = tool_uses(call)
    return uses[0] if uses else None


def tool_uses(call: CallFields) -> tuple[ToolUse, ...]:
    """Return all uses of a call: a patch may write some files and delete others, a move writes one and deletes one."""
    arguments = call.arguments
    if not isinstance(arguments, dict):
        return _patched(arguments) if arguments.lstrip().startswith(_PATCH) else _scripted(arguments)
    verbs = _verbs(call.name[:_LONGEST_NAME])
    given = _given(arguments)
    return _uses(verbs, given) if given else ()


def _scripted(script: str) -> tuple[ToolUse, ...]:
    """Return what a script of calls does: the files of patches in its texts, and the commands that it runs."""
    patched = _patched(script) or (_patched(_unescaped(script)) if _PATCH in script else ())
    commands = (_unescaped("".join(found)).strip() for found in _RUNS.findall(script))
    return (*patched, *(ToolUse("command", (command,)) for command in commands if command))


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _CHARACTERS.get(found[1], found[1]), text)


def asks_agents(tool: str) -> bool:
    """Return whether a tool hands a task to another agent, by its name."""
    return _verbs(tool[:_LONGEST_NAME]) == _ASKS


def own_name(tool: str) -> str:
    """Return a tool's own name, without that of its server; of a very long name, its beginning."""
    return _SERVER.sub("", tool[:_LONGEST_NAME])


@lru_cache(maxsize=1_024)
def _verbs(name: str) -> frozenset[_Verb]:
    """Return what the words of a tool's name say that it does."""
    own = own_name(name)
    words = {word for word in _SPLIT.split(_CAMEL.sub(" ", own).lower()) if word}
    whole = "".join(_SPLIT.split(own.lower()))
    verbs = {verb for verb, known in _WORDS.items() if words & known or whole in known}
    if words & _FETCH and (words & _FILES or len(words) == 1):
        verbs.add("read")
    if verbs & {"move", "copy", "delete"}:
        verbs = _of_object(verbs, words)
    if words & _FOLDERS or words & _MARKS:
        verbs.discard("write")  # to make a folder writes no file
    return frozenset(verbs)


def _of_object(verbs: set[_Verb], words: set[str]) -> set[_Verb]:
    """Return the verbs of a name that moves, copies or deletes, given what it does that to: ``delete_lines`` writes."""
    objects = words - _WORDS["move"] - _WORDS["copy"] - _WORDS["delete"]
    if not objects <= _WHOLE | _MANNER:
        change: set[_Verb] = {"part", "write"} if verbs & {"move", "delete"} else {"part"}
        return verbs - {"delete"} | change
    if objects & _WHOLE:
        return verbs | {"whole"}
    return verbs | {"write"} if "move" in verbs else verbs


@lru_cache(maxsize=4_096)
def _role(key: str) -> tuple[_Role, int] | None:
    return _ROLE.get("".join(_SPLIT.split(key.lower())))


def names_file(key: str) -> bool:
    """Return whether an argument of this name holds a file's path, by the names that tools give it."""
    role = _role(key) if len(key) <= _LONGEST_NAME else None
    return role is not None and role[0] == "file"


def _given(arguments: Mapping[str, Any]) -> dict[_Role, Any]:
    """Return the arguments that name something, by their role; of several with one role, the best known one."""
    keys = (*arguments,)
    known = _by_rank(keys) if len("".join(keys)) <= _LONGEST_KEYS else _by_rank.__wrapped__(keys)
    given: dict[_Role, Any] = {}
    for key, role in known:
        value = arguments[key]
        if value and role not in given and isinstance(value, (str, list, dict)):
            given[role] = value
    return given


@lru_cache(maxsize=1_024)
def _by_rank(keys: tuple[str, ...]) -> tuple[tuple[str, _Role], ...]:
    """Return the keys that name something, with their roles, the best known of each role first.

    The result is remembered, since the calls of a tool mostly have the same keys.
    """
    known = [(key, role) for key in keys if len(key) <= _LONGEST_NAME and (role := _role(key)) is not None]
    known.sort(key=lambda each: each[1][1])
    return tuple((key, role) for key, (role, _) in known)


def _uses(verbs: frozenset[_Verb], given: dict[_Role, Any]) -> tuple[ToolUse, ...]:
    files = _files(given.get("file"))
    if "command" in given or "code" in given:
        editor = _EDITOR_COMMANDS.get(str(given.get("command"))) if "command" not in verbs else None
        if editor is not None and (files or "old" in given or "source" in given):
            return _file_uses(frozenset({editor}), files, given)
        patch = given.get("command")
        if isinstance(patch, list) and len(patch) > 1 and patch[0] == "apply_patch":
            return _patched(patch[1])
        command = _command(given, verbs)
        if command is not None and ("command" in verbs or not files):
            return (_new(ToolUse, ("command", (command,))),)
    if "patch" in given and (patched := _patched(given["patch"])):
        return patched
    if uses := _file_uses(verbs, files, given):
        return uses
    if uses := _parts(verbs, given) or _searches(verbs, files, given):
        return uses
    return (_new(ToolUse, ("read", files)),) if files and "read" in verbs else ()


def _file_uses(verbs: frozenset[_Verb], files: tuple[str, ...], given: dict[_Role, Any]) -> tuple[ToolUse, ...]:
    """Return the files that are written, deleted, moved or copied, or read by an editor's command."""
    if verbs & {"move", "copy"}:
        old, new = _moved(verbs, files, given)
        if old and new:
            kind: UseKind = "delete" if "move" in verbs else "read"
            return (ToolUse("write", new), ToolUse(kind, old))
    if not files:
        return ()
    if "delete" in verbs:
        return (ToolUse("delete", files),)
    if "write" in verbs:
        return (_new(ToolUse, ("write", files)),)
    return (_new(ToolUse, ("read", files)),) if "read" in verbs and len(verbs) == 1 else ()


def _moved(
    verbs: frozenset[_Verb], files: tuple[str, ...], given: dict[_Role, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that are moved or copied, and what they become.

    Paths are files for any tool. For a tool about a part of a file, ``to`` and ``source`` may be lines or cells. A
    ``new_name`` may as well be a symbol's, unless the tool's name says that it is about files.
    """
    olds: list[_Role] = ["old"]
    news: list[_Role] = ["new"]
    if "part" not in verbs:
        olds.append("source")
        news.append("destination")
    if "whole" in verbs:
        olds.append("old_name")
        news.append("new_name")
    old = next((named for role in olds if (named := _files(given.get(role)))), () if "part" in verbs else files)
    return old, next((named for role in news if (named := _files(given.get(role)))), ())


def _parts(verbs: frozenset[_Verb], given: dict[_Role, Any]) -> tuple[ToolUse, ...]:
    """Return the uses of a call whose files are named in its parts: a list of edits, one operation."""
    if "parts" not in given:
        return ()
    parts = given["parts"]
    by_kind: dict[UseKind, list[str]] = {}
    for part in parts if isinstance(parts, list) else (parts,):
        if not isinstance(part, dict):
            continue
        named = _given(part)
        declared = next((v for key in ("type", "action", "kind") if isinstance(v := part.get(key), str)), "")
        operation = _OPERATIONS.get(declared.lower())
        if "command" in named and "file" not in named and (command := _text(named["command"], " ")) is not None:
            by_kind.setdefault("command", []).append(command)
        for use in _file_uses(frozenset({operation}) if operation else verbs, _files(named.get("file")), named):
            by_kind.setdefault(use.kind, []).extend(use.subjects)
    return tuple(ToolUse(kind, tuple(dict.fromkeys(subjects))) for kind, subjects in by_kind.items())


def _searches(verbs: frozenset[_Verb], files: tuple[str, ...], given: dict[_Role, Any]) -> tuple[ToolUse, ...]:
    query = _text(given.get("query"), " ")
    if "search" in verbs:
        found = (query,) if query is not None else files or _files(given.get("folder"))
        return (_new(ToolUse, ("search", found)),) if found else ()
    if verbs == _ASKS and isinstance(asked := given.get("question"), str):
        return (_new(ToolUse, ("search", (asked,))),)
    if query is None or verbs & {"write", "delete", "move", "copy"} or ("read" in verbs and files):
        return ()
    return (ToolUse("search", (query,)),)


def _command(given: dict[_Role, Any], verbs: frozenset[_Verb]) -> str | None:
    """Return the command; a list of words (an argv) is joined. Code counts only for a tool that runs something."""
    command = _text(given.get("command"), " ")
    if command is None and "command" in verbs:
        return _text(given.get("code"), "\n")
    return command


def _text(value: Any, between: str) -> str | None:
    if isinstance(value, str):
        return value or None
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        return between.join(value)
    return None


def _files(value: Any) -> tuple[str, ...]:
    """Return the files that an argument names: a path, a list of paths, or a list of objects with one each."""
    if isinstance(value, str):
        return (value,) if _is_file(value) else ()
    if not isinstance(value, list):
        return ()
    named = (_given(entry).get("file") if isinstance(entry, dict) else entry for entry in value)
    return tuple(dict.fromkeys(file for file in named if isinstance(file, str) and _is_file(file)))


def _is_file(value: str) -> bool:
    """Return whether a text can be a file's path: it is one line, and no page's address."""
    if not value or len(value) > _LONGEST_FILE or "\n" in value:
        return False
    return "://" not in value or value.startswith("file://") or _ADDRESS.match(value) is None


def _patched(patch: Any) -> tuple[ToolUse, ...]:
    """Return the files that a patch writes and deletes, in the form of ``apply_patch`` or of ``diff``."""
    if not isinstance(patch, str):
        return ()
    written: dict[str, None] = {}
    deleted: dict[str, None] = {}
    for done, file in _changes(patch):  # later changes win: a file that is updated and then moved is not written
        if not _is_file(file):
            continue
        now, before = (deleted, written) if done == "delete" else (written, deleted)
        now[file] = None
        before.pop(file, None)
    kinds: Iterable[tuple[UseKind, dict[str, None]]] = (("write", written), ("delete", deleted))
    return tuple(ToolUse(kind, tuple(files)) for kind, files in kinds if files)


def _changes(patch: str) -> Iterator[tuple[UseKind, str]]:
    if "*** " in patch:
        updated = ""
        for done, line in _PATCH_FILE.findall(patch):
            file = line.strip()
            if done == "Move to":  # the updated file is moved to another place
                yield "delete", updated
                yield "write", file
            else:
                yield ("delete" if done == "Delete File" else "write"), file
            updated = file
    elif "+++ " in patch:
        for lines in _DIFF_FILE.findall(patch):
            old, new = (line.split(maxsplit=1)[0] for line in lines)  # a time may follow the path
            gone = new == "/dev/null"
            yield ("delete" if gone else "write"), (old if gone else new).removeprefix("a/" if gone else "b/")
