"""List every exact name before a summary, at an address of its own: all paths, and all other names.

A summary and its record name little of what they cover: most names that a later answer needs were in the results of
searches and listings, which no record has. So a summary has two more addresses, which lead to lists of names. A list is
made when it is read, from the blocks that are there then. Names that calls and people wrote come first, then names from
the same folders, then the others; those seen most often come first in each part. Each name is listed at the newest
block that has it.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from timeline.blocks import RangeSummary, Reasoning, ToolCall, ToolResult
from timeline.events.addresses import SIGN
from timeline.facts.exact_names import exact_names
from timeline.frozen import strings_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from timeline.blocks import Block

Listed: TypeAlias = Literal["paths", "names"]
"""The kind of a list: paths and files; or URLs, ids, numbers, and names with humps or underscores."""
LIST_KEY: Final = "lists_names_of"
"""Key of the summary's path in the ``meta`` of a list that is read."""
SCANNED: Final = 4_000_000
"""Most characters in which names are looked for, newest first, since the time is linear in them."""
LISTS: Final[tuple[Listed, ...]] = get_args(Listed)
"""Both lists."""
_WORDS: Final[dict[Listed, tuple[str, str]]] = {
    "paths": ("path or file", "paths and files"),
    "names": ("name, URL, id or number", "names, URLs, ids and numbers"),
}
"""The words for one entry of a list, and for several."""
_NUMBER: Final = re.compile(r"(?<![\w.,/-])[0-9]{4,18}(?![\w/-]|\.[0-9])")
_TOGETHER: Final = 64
"""So many names of about the same rank are grouped by their blocks."""


class NamesOf(NamedTuple):
    """The names of a block; ``meant`` if a call, a person or the model wrote them, and no tool."""

    paths: frozenset[str]
    names: frozenset[str]
    meant: bool
    characters: int


def names_of(block: Block) -> NamesOf:
    """Return the names of a block; none of a thought, nor of a summary, which has a list of its own."""
    if isinstance(block, Reasoning | RangeSummary):
        return NamesOf(frozenset(), frozenset(), meant=False, characters=0)
    texts = [block.text, *(strings_in(block.arguments) if isinstance(block, ToolCall) else ())]
    paths: set[str] = set()
    names: set[str] = set()
    for text in texts:
        names.update(_NUMBER.findall(text))
        for name in exact_names(text):
            (paths if name.kind in {"path", "file"} else names).add(name.text)
    meant = not isinstance(block, ToolResult)
    return NamesOf(frozenset(paths), frozenset(names), meant, sum(map(len, texts)))


def list_address(summary: str, listed: Listed) -> str:
    """Return the address of a list."""
    return f"{summary}.{listed}"


def asked_list(name: str) -> tuple[str, Listed] | None:
    """Return the path or address of the summary, and the kind of list; None if a name is not a list's address."""
    summary, _, last = name.rpartition(".")
    return next(((summary, listed) for listed in LISTS if listed == last and summary), None)


def list_block(summary: Block, blocks: Iterable[tuple[int, NamesOf]], listed: Listed) -> Block:
    """Return a list as the block that its address reads.

    Args:
        summary: the summary's block.
        blocks: the names of the blocks that it covers, each with its version, the newest first.
        listed: the kind of list.
    """
    path = list_address(summary.path, listed)
    text = "\n".join(_lines(blocks, listed))
    return summary.model_copy(update={"path": path, "text": text, "meta": {LIST_KEY: summary.path}})


class _Seen:
    """Where a name was seen, and how often."""

    __slots__ = ("last", "meant", "times")

    def __init__(self, last: int) -> None:
        self.last, self.times, self.meant = last, 0, False


def _lines(blocks: Iterable[tuple[int, NamesOf]], listed: Listed) -> Iterator[str]:
    seen: dict[str, _Seen] = {}
    left = SCANNED
    for version, found in blocks:
        if left <= 0:
            break
        left -= found.characters
        for name in found.paths if listed == "paths" else found.names:
            known = seen.setdefault(name, _Seen(version))
            known.times += 1
            known.meant = known.meant or found.meant
    one, many = _WORDS[listed]
    yield f"{len(seen):,} {one if len(seen) == 1 else many}, most used first, each behind the newest block that has it:"
    ranked = _ranked(seen)
    for start in range(0, len(ranked), _TOGETHER):
        together = sorted(ranked[start : start + _TOGETHER], key=lambda name: (-seen[name].last, name))
        for version, some in groupby(together, key=lambda name: seen[name].last):
            yield f"{SIGN}{version}: {' '.join(some)}"


def _ranked(seen: dict[str, _Seen]) -> Sequence[str]:
    """Return names by rank: the meant ones, then those in a folder with one of these, then the rest; each by use."""
    worked_in = Counter(_folder(name) for name, known in seen.items() if known.meant)

    def rank(name: str) -> tuple[bool, bool, int, int, str]:
        known = seen[name]
        return (not known.meant, not worked_in[_folder(name)], -known.times, -known.last, name)

    return sorted(seen, key=rank)


def _folder(name: str) -> str:
    """Return the folder of a path; empty for any other name."""
    return name.rpartition("/")[0]
