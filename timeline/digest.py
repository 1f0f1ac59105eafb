"""The values of a digest: a deterministic, structured record of the blocks that a compaction covered.

`timeline.planning.covered_digest` builds them. Lists keep the order of the log.
"""

from __future__ import annotations

from typing import Any

from timeline.frozen import Frozen


class Artifact(Frozen):
    """A thing that a turn produced or was given: a file, an attachment, a source."""

    path: str
    mime: str = "text/plain"
    visibility: str = "visible"
    sources_used: tuple[str, ...] = ()


class ToolOutputs(Frozen):
    """All outputs of one tool: their number, tokens and errors, and the paths to read them at."""

    tool: str
    count: int
    tokens: int
    errors: int = 0
    paths: tuple[str, ...] = ()


class FileUse(Frozen):
    """A file that was read, written or deleted, without failures; ``times`` is how often.

    ``path`` is the block that did it last: the result of reading, the call of writing or deleting.
    """

    file: str
    tool: str
    path: str
    times: int = 1


class Command(Frozen):
    """A shell command, its exit status where it is known, and whether it failed."""

    command: str
    path: str
    exit_status: int | None = None
    failed: bool = False
    output: str = ""
    """First words of a failing command's output."""


class Search(Frozen):
    """A search (files, text, memory or web), its hits where the output shows their number, and two of their paths."""

    query: str
    tool: str
    path: str
    hits: int | None = None
    hit_paths: tuple[str, ...] = ()


class HiddenBlock(Frozen):
    """A block that a text already replaced when it was covered, and the beginning of that text, without the path.

    Of stripped chitchat it is the beginning of its own text.
    """

    path: str
    replacement: str


class Problem(Frozen):
    """A failed tool call other than a shell command."""

    tool: str
    path: str
    message: str
    subject: str = ""
    """The file or the query that the call was about, where it is known."""


class Named(Frozen):
    """A URL or an identifier, and the last block that names it; ``times`` is how many do."""

    name: str
    path: str
    times: int = 1


class Digest(Frozen):
    """What a compaction newly covers. ``more`` counts, by list name, the items that a shortened copy leaves out."""

    artifacts: tuple[Artifact, ...] = ()
    tool_outputs: tuple[ToolOutputs, ...] = ()
    files_read: tuple[FileUse, ...] = ()
    files_written: tuple[FileUse, ...] = ()
    commands: tuple[Command, ...] = ()
    searches: tuple[Search, ...] = ()
    hidden: tuple[HiddenBlock, ...] = ()
    errors: tuple[Problem, ...] = ()
    stages: tuple[str, ...] = ()
    files_deleted: tuple[FileUse, ...] = ()
    urls: tuple[Named, ...] = ()
    identifiers: tuple[Named, ...] = ()
    more: dict[str, int] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the blocks that the entries name, each once, in the order of the lists."""
        outputs = (path for output in self.tool_outputs for path in output.paths)
        entries: tuple[Artifact | FileUse | Command | Search | HiddenBlock | Problem | Named, ...] = (
            *self.artifacts,
            *self.files_read,
            *self.files_written,
            *self.commands,
            *self.searches,
            *self.hidden,
            *self.errors,
            *self.files_deleted,
            *self.urls,
            *self.identifiers,
        )
        return tuple(dict.fromkeys((*outputs, *(entry.path for entry in entries))))

    def shortened(self, most: int) -> Digest:
        """Return a copy with the newest ``most`` items of each list, and the number of items left out."""
        lists = {name: getattr(self, name) for name in type(self).model_fields if name != "more"}
        more = {name: len(items) - most for name, items in lists.items() if len(items) > most}
        newest = {name: items[max(0, len(items) - most) :] for name, items in lists.items()}
        return self.model_copy(update={**newest, "more": more})

    def dump(self) -> dict[str, Any]:
        """Return the JSON form without empty lists."""
        return self.model_dump(mode="json", exclude_defaults=True)
