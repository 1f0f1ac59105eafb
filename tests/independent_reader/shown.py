"""The record that a summary shows: what it claims, entry by entry, and the addresses that it and other texts print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from timeline.planning.summary_block import RECORD_HEADING

ADDRESS: Final = re.compile(r"(?<![\w@./:~-])@\d+\b(?![\w@/-]|\.\d)")
"""A short address by itself: no part of a name such as ``pi-ai@0.23.2`` or ``actions/checkout@4``."""
PATH: Final = re.compile(r"(?<![\w/.-])(?:ar|bl|fi|su|tc):turn_\d+\.[\w%~.-]*[\w%~](?![\w%~…]|[.-]…)")
"""A block's path: its family, the turn, and the rest; not one of which only the beginning had room."""
_ENTRY: Final = re.compile(r"- (?P<said>.*?)(?: \((?P<address>@\d+|[a-z]{2}:\S+)\))?", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A line of the record.

    Attributes:
        section: the title that it is under.
        said: what it says, without its address.
        address: of the block to read; empty for a line that counts what has no room.
    """

    section: str
    said: str
    address: str


def record_in(text: str) -> str:
    """Return the record at the end of a summary's text; empty where it has none."""
    return text.partition(f"## {RECORD_HEADING}\n\n")[2]


def entries(record: str) -> list[Entry]:
    """Return the lines of a record, each with the title that it is under."""
    found: list[Entry] = []
    section = ""
    for line in record.splitlines():
        if line.startswith("- ") and (entry := _ENTRY.fullmatch(line)):
            found.append(Entry(section, entry["said"], entry["address"] or ""))
        else:
            section = line.removesuffix(":")
    return found


def printed(text: str) -> list[str]:
    """Return the addresses and the paths that a text prints, each once."""
    return list(dict.fromkeys([*ADDRESS.findall(text), *PATH.findall(text)]))
