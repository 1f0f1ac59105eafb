"""Find which passages of new results are in sight, and which results are to be shown whole again.

An agent reads a file again after each edit, and about half of what it reads then is in sight already. A passage of a
new result that an earlier block shows, line by line, is shown as its first and its last line, and between them the
address of that block (ADR 0090).

Numbers in front of lines may differ between the two blocks, since an edit moves what is below it; those of the new
result follow from its first line's. Once the earlier block is out of sight, for whatever reason, the result is shown
whole again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events.addresses import Address
from timeline.fold.window import unsent_calls
from timeline.frozen import begins_with
from timeline.planning.line_numbers import Line, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Repeats

_BEGINNING: Final = 3
"""First lines of a passage, by which it is looked up."""
_PLACES: Final = 8
"""Most places with the same beginning that are compared, the newest ones: three empty lines may be anywhere."""
_LONG: Final = 64
"""A longer passage that is not worth leaving out is skipped as a whole, and not looked up again line by line."""
_ENDS: Final = 2
"""Lines of a passage that are shown: its first and its last one."""


class _Place(NamedTuple):
    """A line of what is shown of a block."""

    version: int
    line: int


class _Passage(NamedTuple):
    """Lines that an earlier block shows: how many, and the version of that block."""

    length: int
    version: int


_NOTHING: Final = _Passage(0, 0)


class References:
    """Finds the results that are to be shown whole again.

    Of a window that continues the last one asked about, only the new items are read: an append takes nothing out of
    sight.
    """

    def __init__(self) -> None:
        self._items: Sequence[Item] = ()

    def lost(self, window: Window) -> tuple[int, ...]:
        """Return the versions of the results that leave out what is not in sight any more."""
        known = len(self._items) if begins_with(window.items, self._items) else 0
        if not any(item.is_repeat for item in window.items[known:]):
            self._items = window.items
            return ()
        in_sight = {item.version for item in window.items if item.is_in_sight} - unsent_calls(window.items)
        repeats = (item for item in window.items if item.is_repeat)
        # In earlier releases, a redaction that took words out of a replacement took its references, too.
        lost = [item for item in repeats if not item.refers_to or not in_sight.issuperset(item.refers_to)]
        self._items = () if lost else window.items
        return tuple(item.version for item in lost)


class Passages:
    """Finds the places where lines are in sight. It keeps what was read for one plan for the next one."""

    def __init__(self) -> None:
        self._shown: dict[int, tuple[Block, str | None]] = {}
        self._lines: dict[int, list[Line]] = {}
        self._places: dict[tuple[str, ...], list[_Place]] = {}

    def unread(self, items: Iterable[Item]) -> int:
        """Return how many lines of some items were not read yet."""
        return sum(_text(item).count("\n") for item in items if item.version not in self._shown)

    def read(self, items: Iterable[Item]) -> None:
        """Read the new items, in timeline order; or all of them, if one that was read is now shown otherwise."""
        now = {item.version: item for item in items}
        if any(version not in now or _shown(now[version]) != shown for version, shown in self._shown.items()):
            self._shown, self._lines, self._places = {}, {}, {}
        for version, item in now.items():
            if version not in self._shown:
                self.add(item)

    def add(self, item: Item) -> None:
        """Read one more item."""
        self._shown[item.version] = _shown(item)
        lines = self._lines[item.version] = lines_of(_text(item))
        for number in range(len(lines) - _BEGINNING + 1):
            places = self._places.setdefault(_beginning(lines, number), [])
            places.append(_Place(item.version, number))
            del places[:-_PLACES]

    def longest(self, lines: Sequence[Line], start: int) -> _Passage:
        """Return the longest passage from a line on; of equally long ones the newest."""
        found = _NOTHING
        for version, place in self._places.get(_beginning(lines, start), ()):
            length = _alike(lines, start, self._lines[version], place)
            found = max(found, _Passage(length, version))
        return found


def _shown(item: Item) -> tuple[Block, str | None]:
    """Return the block and the text in its place. While both are the same, the item is shown as before."""
    return item.block, None if item.replacement is None else item.replacement.text


def _text(item: Item) -> str:
    """Return what is shown of an item; for a call, its arguments of several lines."""
    block = item.block
    if item.replacement is not None:
        return item.replacement.text
    if type(block) is ToolCall and isinstance(block.arguments, dict):
        return "\n\n".join(value for value in block.arguments.values() if isinstance(value, str) and "\n" in value)
    return block.text if type(block) in {ToolResult, UserPrompt} else ""


def _beginning(lines: Sequence[Line], start: int) -> tuple[str, ...]:
    return tuple([line.text for line in lines[start : start + _BEGINNING]])


def _alike(lines: Sequence[Line], start: int, others: Sequence[Line], place: int) -> int:
    """Return how many lines have the same text, and numbers that follow one another; or all of them have none."""
    first = lines[start].number
    most = min(len(lines) - start, len(others) - place)
    for length in range(most):
        number, text = lines[start + length].number, lines[start + length].text
        if text != others[place + length].text or number != (None if first is None else first + length):
            return length
    return most


def without_passages(text: str, repeats: Repeats, passages: Passages) -> tuple[str, tuple[int, ...]]:
    """Return a text without the passages that are in sight, and the versions of the blocks that show them.

    Args:
        text: of a result.
        repeats: says which passages are worth it.
        passages: what is in sight.
    """
    texts, lines = text.split("\n"), lines_of(text)
    sources: set[int] = set()
    written: list[str] = []
    place = 0
    while place < len(lines):
        length, version = passages.longest(lines, place)
        between = texts[place + 1 : place + length - 1]
        if length < repeats.lines + _ENDS or sum(map(len, between)) < repeats.characters:
            # Do not look up a long passage that says next to nothing, such as empty lines, from each of its lines.
            shown = length if length > _LONG else 1
            written += texts[place : place + shown]
            place += shown
            continue
        written += [texts[place], _left_out(len(between), Address(version)), texts[place + length - 1]]
        sources.add(version)
        place += length
    return "\n".join(written), tuple(sorted(sources))


def _left_out(lines: int, address: Address) -> str:
    return f"[… {lines} {'line' if lines == 1 else 'lines'}, as above in {address}]"
