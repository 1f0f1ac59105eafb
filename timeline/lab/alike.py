"""What the replays of one recording make alike, whatever their policies are: most blocks, and what is sent of them.

A policy decides which blocks are shown, and shortens some. The others get the same turn and path under most policies,
so that their entries are the same, too. The first replay makes them, and the others take them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from timeline.lab.segments import Thoughts, hash_of
from timeline.planning.originals import CutBlocks
from timeline.planning.replacements import Replacements

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.projection.project import Form
    from timeline.wire.neutral import Entry

_Entries: TypeAlias = tuple["Entry", ...]


class Alike:
    """The blocks of one recording with their places, their entries, and the hashes of these.

    Attributes:
        hashes: of the entries, by the id of each object; the entries stay as long as this does.
        thoughts: knows which of them models are sent.
        replacements: makes those of hidden blocks.
        cut: cuts blocks for summaries.
    """

    def __init__(self) -> None:
        self.hashes: Final[dict[int, int]] = {}
        self.thoughts: Final = Thoughts()
        self.replacements: Final = Replacements()
        self.cut: Final = CutBlocks()
        self._blocks: dict[int, Block] = {}
        self._entries: dict[int, dict[tuple[int, Form], _Entries]] = {}

    def block(self, position: int, block: Block) -> Block:
        """Return a block of the recording as another replay has it, where it has the same place there.

        Args:
            position: of its event in the recording.
            block: with its place.
        """
        known = self._blocks.get(position)
        if known is None:
            self._blocks[position] = block
            self._entries[id(block)] = {}
            return block
        same = (known.path, known.turn_id, known.at) == (block.path, block.turn_id, block.at)
        return known if same else block

    def entries(self, item: Item, form: Form, make: Callable[[Item, Form], _Entries]) -> _Entries:
        """Return the entries of an item, which are made once where it shows a block of the recording as it is."""
        of_block = self._entries.get(id(item.block))
        if of_block is None or item.replacement is not None or item.omitted:
            return make(item, form)
        key = item.response, form
        if key not in of_block:
            of_block[key] = made = make(item, form)
            self.hashes.update((id(entry), hash_of(entry)) for entry in made)
        return of_block[key]
