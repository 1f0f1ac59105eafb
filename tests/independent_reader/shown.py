"""The record that a summary shows, entry by entry, and the addresses that it and other texts print."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.independent_reader.claims import COUNTED
from timeline.facts.record_lines import RECORD_HEADING

if TYPE_CHECKING:
    from tests.independent_reader.acts import Kind

PLAYED: Final = "played"
"""The conversation that is replayed."""
ADDRESS: Final = re.compile(rf"(?<![\w@./:~-])(?:{PLAYED})?@\d+\b(?![\w@/-]|\.\d)")
"""A short address by itself, or across conversations: no part of a name such as ``pi-ai@0.23.2`` or ``checkout@4``."""
PATH: Final = re.compile(r"(?<![\w/.-])(?:ar|bl|fi|su|tc):turn_\d+\.[\w%~.-]*[\w%~](?![\w%~]|[\w%~.-]*…)")
"""A block's path: its family, the turn, and the rest; not one of which only the beginning had room."""
_ENTRY: Final = re.compile(r"- (?P<said>.*?)(?: \((?P<address>@\d+)(?:, first (?P<first>@\d+))?\))?", re.DOTALL)
_TITLE: Final = re.compile(r"(?P<title>.*?)(?: \((?:in (?P<folder>.+)|(?P<too>there too))\))?:")
_LEFT: Final = re.compile(r"Not shown: (?P<counts>.*)\. Full record: (?P<path>\S+)")

_LISTS: Final = re.compile(r"Lists of all paths: (?P<path>\S+)\.paths, of names, ids and numbers: (?P=path)\.names")


@dataclass(frozen=True)
class Entry:
    """A line of the record.

    Attributes:
        section: the title that it is under.
        folder: of the files of the section, where they share one.
        said: what it says, without its address.
        address: of the block to read; empty where the line is a path.
        first: of a file, the address of its first use; empty where that is the only one.
    """

    section: str
    folder: str
    said: str
    address: str
    first: str = ""


@dataclass
class Record:
    """What a record shows.

    Attributes:
        left: how many of each kind have no room, as its last line counts them.
        full: the path to the full record; empty where all is shown.
        lists: the path that the lists of names are behind; empty where the policy has none.
    """

    entries: list[Entry] = field(default_factory=list)
    left: dict[Kind, int] = field(default_factory=dict)
    full: str = ""
    lists: str = ""


def record_in(text: str) -> str:
    """Return the record at the end of a summary's text; empty where it has none."""
    return text.partition(f"## {RECORD_HEADING}\n\n")[2]


def parsed(text: str) -> Record:
    """Return the entries of a record, each with the title that it is under, and the counts of its last line."""
    record, section, folder = Record(), "", ""
    for line in text.splitlines():
        if line.startswith("- ") and (entry := _ENTRY.fullmatch(line)):
            record.entries.append(Entry(section, folder, entry["said"], entry["address"] or "", entry["first"] or ""))
        elif left := _LEFT.fullmatch(line):
            record.full = left["path"]
            record.left = dict(_counts(left["counts"]))
        elif lists := _LISTS.fullmatch(line):
            record.lists = lists["path"]
        elif title := _TITLE.fullmatch(line):
            section, folder = title["title"], folder if title["too"] else title["folder"] or ""
        else:
            raise ValueError(f"no line of a record: {line!r}")
    return record


def _counts(text: str) -> list[tuple[Kind, int]]:
    words = (part.split(" ", 1) for part in text.split(", "))
    named = ((name.replace("files", "file").replace("searches", "search").rstrip("s"), count) for count, name in words)
    return [(COUNTED[name], int(count)) for name, count in named if name in COUNTED]


def printed(text: str) -> list[str]:
    """Return the addresses and the paths that a text prints, each once."""
    return list(dict.fromkeys([*ADDRESS.findall(text), *PATH.findall(text)]))
