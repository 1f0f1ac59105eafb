"""What a recorded tool call did, by the name of the tool and its arguments: a table, and nothing else.

Every tool that occurs in the recordings is listed, also those that do nothing to be listed: a name that is not here is
an error, so that a new recording cannot bring a tool that is quietly passed over. A shell command is its text; which
files it touches is not guessed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal["file_read", "file_written", "file_deleted", "command", "search", "error"]

DOES: Final[Mapping[str, tuple[Kind, str]]] = {
    # Claude Code
    "Read": ("file_read", "file_path"),
    "Write": ("file_written", "file_path"),
    "Edit": ("file_written", "file_path"),
    "Bash": ("command", "command"),
    "Grep": ("search", "pattern"),
    "Glob": ("search", "pattern"),
    "WebSearch": ("search", "query"),
    "Task": ("search", "description"),
    "mcp__linear-server__list_projects": ("search", "query"),
    # pi; its shell has the name of SWE-agent's, and SWE-agent's edit names no file
    "read": ("file_read", "path"),
    "write": ("file_written", "path"),
    "edit": ("file_written", "path"),
    "bash": ("command", "command"),
    # Gemini CLI
    "read_file": ("file_read", "file_path"),
    "write_file": ("file_written", "file_path"),
    "run_shell_command": ("command", "command"),
    # SWE-agent
    "open": ("file_read", "path"),
    "create": ("file_written", "filename"),
    "find_file": ("search", "file_name"),
    # Codex
    "shell": ("command", "command"),
    "local_shell": ("command", "command"),
    "exec_command": ("command", "cmd"),
}
"""What a call of a tool does, and the argument that names what it is done to."""
PATCHES: Final = "apply_patch"
"""The tool whose argument is a patch: it writes some files, and deletes others."""
NOTHING: Final = frozenset(
    {
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "LSP",
        "Skill",
        "TaskCreate",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TodoWrite",
        "WebFetch",
        "insert",
        "submit",
        "mcp__ide__getDiagnostics",
        "mcp__linear-server__create_comment",
        "mcp__linear-server__create_issue",
        "mcp__linear-server__get_issue",
        "mcp__linear-server__update_issue",
    }
)
"""Tools whose calls read, write, run, search and ask nothing; they may still fail."""


@dataclass(frozen=True)
class Act:
    """One thing that a call did, or tried to do.

    Attributes:
        call: id of the call, and how many calls before it had the same id.
        subject: file, command or pattern; empty for an error.
        status: the exit status, where the record says it.
    """

    call: tuple[str, int]
    kind: Kind
    subject: str
    tool: str
    status: int | None
    failed: bool


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Attributes:
        text: what the result says.
    """

    failed: bool
    status: int | None = None
    text: str = ""


@dataclass
class Conversation:
    """What was done in a session, or by one of its subagents.

    Attributes:
        name: empty for the session itself.
        acts: in the order of the results.
        unanswered: ids of calls without a result, which did nothing that is known.
    """

    name: str = ""
    acts: list[Act] = field(default_factory=list)
    _open: dict[str, tuple[int, str, dict[str, Any]]] = field(default_factory=dict)
    _times: Counter[str] = field(default_factory=Counter)

    @property
    def unanswered(self) -> list[str]:
        """The ids of the calls that have no result."""
        return list(self._open)

    def call(self, id_: str, tool: str, arguments: dict[str, Any]) -> None:
        """Take a call."""
        if tool not in DOES and tool not in NOTHING and tool != PATCHES:
            raise ValueError(f"the table of tools has no {tool!r}, called with {sorted(arguments)}")
        self._open[id_] = (self._times[id_], tool, arguments)
        self._times[id_] += 1

    def result(self, id_: str, outcome: Outcome) -> None:
        """Take the result of a call; one of a call that is not there, or has its result, is no act."""
        if id_ not in self._open:
            return
        number, tool, arguments = self._open.pop(id_)
        call, failed, done = (id_, number), outcome.failed, _done(tool, arguments)
        for kind, subject in done:
            self.acts.append(Act(call, kind, subject, tool, outcome.status, failed))
        if failed and "command" not in {kind for kind, _ in done}:
            self.acts.append(Act(call, "error", "", tool, outcome.status, failed))

    def shell(self, id_: str) -> bool:
        """Return whether a call without a result runs a command."""
        return id_ in self._open and DOES.get(self._open[id_][1], ("",))[0] == "command"


def _done(tool: str, arguments: dict[str, Any]) -> list[tuple[Kind, str]]:
    """Return what a call does, and to what."""
    if tool == PATCHES:
        return list(_patched(arguments["input"]))
    if tool not in DOES:
        return []
    kind, argument = DOES[tool]
    subject = arguments.get(argument)
    words = " ".join(subject) if isinstance(subject, list) else subject
    return [(kind, words)] if words else []


def _patched(patch: str) -> Iterator[tuple[Kind, str]]:
    """Return the files that a patch names. One that is moved is written at its new place, and gone from its old one."""
    lines = patch.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        action, _, file = line.partition(" File: ")
        moved = following.startswith("*** Move to: ")
        if action == "*** Delete" or (action == "*** Update" and moved):
            yield "file_deleted", file
        elif action in {"*** Add", "*** Update"}:
            yield "file_written", file
        if moved:
            yield "file_written", following.removeprefix("*** Move to: ")
