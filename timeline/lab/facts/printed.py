"""Find the paths and addresses that a context prints by themselves, beside what they are about.

The rule, without judgement: a line that prints an address holds other words, too, between it and the address before.
An address beside another one with no word between them is in a list, and neither counts. What stands for a block and
prints the block's own path may name its subject anywhere in the call and the result together. The words of the
library's frames (``300 tokens, hidden``) name nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.lab.facts.needs import entry_strings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from timeline.fold.window import Item
    from timeline.wire.neutral import Entry

_PATH: Final = r"(?<![\w.:/-])(?:ar|bl|fi|su|tc):[\w%-]+(?:\.[\w%~-]+)+"
REFERENCE: Final = re.compile(rf"{_PATH}|(?<![\w@/.])@[0-9]{{1,18}}(?!\w)")
_WORD: Final = re.compile(r"[^\W\d_]\w+")
_FRAMES: Final = (
    "all and arguments error exit hidden it left middle more of ok out picture pictures preview shortened the tokens"
    " with"
)
_FRAME: Final = frozenset(_FRAMES.split())


def beside_words(text: str) -> set[str]:
    """Return the paths and addresses of a text that stand by themselves, beside words."""
    found: set[str] = set()
    for line in text.splitlines():
        places = list(REFERENCE.finditer(line))
        ends = [0, *(place.end() for place in places)]
        starts = [*(place.start() for place in places), len(line)]
        says = [_says(line[end:start]) for end, start in zip(ends, starts, strict=True)]
        for number, place in enumerate(places):
            in_list = (number > 0 and not says[number]) or (number + 1 < len(places) and not says[number + 1])
            if not in_list and (says[number] or says[number + 1]):
                found.add(place[0])
    return found


def printed(entries: Sequence[Entry], items: Sequence[Item], names: Mapping[str, str]) -> set[str]:
    """Return the paths of the blocks that a context leads to.

    Only what the library wrote is looked at: summaries, and what is shown for hidden blocks.

    Args:
        entries: of the context.
        items: of its window.
        names: paths by address.
    """
    by_path = {entry.path: entry for entry in entries}
    by_version = {item.version: item for item in items}
    beside = {item.answers: item for item in items if item.answers is not None}
    found: set[str] = set()
    for item in items:
        entry = by_path.get(item.block.path)
        if entry is None or (item.replacement is None and not item.is_summary):
            continue
        strings = entry_strings(entry)
        found.update(name for text in strings for name in beside_words(text))
        other = by_version.get(item.answers or 0) or beside.get(item.version)
        pair = entry if other is None else by_path.get(other.block.path, entry)
        own = {item.block.path, f"@{item.version}"}
        if any(own & set(REFERENCE.findall(text)) for text in strings) and any(_subjects(entry, pair)):
            found.add(item.block.path)
    return {names.get(name, name) for name in found}


def _subjects(entry: Entry, pair: Entry) -> Iterator[str]:
    """Yield the words that say what a call and its result are about: neither the tool's name nor frames."""
    tools = {word for one in (entry, pair) for word in _WORD.findall(one.name)}
    for one in (entry, pair):
        for text in entry_strings(one):
            if text != one.name:
                yield from (word for word in _WORD.findall(REFERENCE.sub(" ", text)) if _tells(word, tools))


def _tells(word: str, tools: set[str]) -> bool:
    return word not in tools and word.lower() not in _FRAME


def _says(text: str) -> bool:
    return any(_tells(word, set()) for word in _WORD.findall(text))
