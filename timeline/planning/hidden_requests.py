"""Find the prompts whose replacement leaves something unsaid. A hide reports them, as a compaction does (ADR 0077)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.facts.of_items import said_by_users
from timeline.facts.said import says_all, searchable_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from timeline.blocks import Block, ToolCall
    from timeline.events import Replacement
    from timeline.fold.window import Item


class ReadPrompts:
    """Decides if a replacement says all that a user says in a block, and remembers the answer.

    To read what a long prompt asks for takes milliseconds, and each dry run plans the same hides again.
    """

    def __init__(self) -> None:
        self._read: dict[int, _Read] = {}

    def says_all(self, shown: str, item: Item, call: ToolCall | None) -> bool:
        """Return whether ``shown`` says all that a user says in an item, as `timeline.facts.said.says_all` does."""
        read = self._read.get(item.version)
        if read is None or read.block is not item.block or read.call is not call or read.shown != shown:
            said = says_all(searchable_line([shown]), item.block, call)
            read = self._read[item.version] = _Read(item.block, call, shown, said)
        return read.said

    def keep(self, versions: Collection[int]) -> None:
        """Forget all but these blocks."""
        self._read = {version: read for version, read in self._read.items() if version in versions}


class _Read(NamedTuple):
    """A block, the call that it answers, what stands for it, and whether that says all."""

    block: Block
    call: ToolCall | None
    shown: str
    said: bool


def left_unsaid(
    items: Iterable[Item], replacements: Iterable[Replacement], prompts: ReadPrompts | None = None
) -> tuple[int, ...]:
    """Return the versions of the prompts whose replacement does not say everything, in order.

    A user's reason for refusing a call counts as a prompt, and so do answers to a call's questions and attached texts.

    Args:
        items: of the window that the hide is planned for.
        replacements: what is shown from now on.
        prompts: remembers the prompts of earlier hides, so that they are not read again.
    """
    prompts = prompts or ReadPrompts()
    shown = {replacement.version: replacement.text for replacement in replacements}
    said = said_by_users(items, lambda item: item.version in shown)
    lost = [item.version for item, call in said if not prompts.says_all(shown[item.version], item, call)]
    prompts.keep(shown)
    return tuple(sorted(lost))
