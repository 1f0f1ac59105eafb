"""Find the answers of the recall tool that repeat what is removed: `Recalls`.

An answer goes with what it repeats, be that a block, a summary or another answer. A model may write a path in several
ways, and a framework may give the tool another name. So an answer is known by what its call asks for, or by its own
first line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import ToolCall, ToolResult
from timeline.events.addresses import Address, parse_address
from timeline.facts.call_versions import CallVersions
from timeline.fold.window import TOMBSTONE
from timeline.log.recall_form import RECALL, readings, repeated

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.blocks import Block


class Recalls:
    """Follows the calls and results of one conversation.

    Args:
        conversations: its id, and those of the conversations it was forked from: an address may begin with any of them.
    """

    def __init__(self, conversations: Collection[str]) -> None:
        self._conversations = {"", *conversations}
        self._removed: set[str] = set()
        """Paths and addresses of what is removed."""
        self._calls = CallVersions()
        self._asking: set[int] = set()
        """Versions of the calls that ask for something of that."""

    def remove(self, version: int, path: str) -> None:
        """Take note that a block or a summary is erased, or written anew."""
        self._removed |= {path, str(Address(version))}

    def answered(self, block: Block) -> int | None:
        """Return the version of the call that a result answers; None where that was not taken."""
        return self._calls.answered(block)

    def repeats(self, version: int, block: Block) -> bool:
        """Take the next block; return whether it is an answer that repeats something that is removed."""
        if isinstance(block, ToolCall):
            self._calls.add(version, block)
            if any(map(self._is_removed, _asked_for(block))):
                self._asking.add(version)
        elif isinstance(block, ToolResult) and block.text != TOMBSTONE:
            return self.answered(block) in self._asking or self.is_answer(block.text)
        return False

    def is_answer(self, text: str) -> bool:
        """Return whether a text is an answer that repeats something that is removed, by its first line."""
        return any(map(self._is_removed_at, repeated(text)))

    def _is_removed(self, name: str) -> bool:
        address = parse_address(name)
        return name in self._removed or (address is not None and self._is_removed_at(address))

    def _is_removed_at(self, address: Address) -> bool:
        return address.conversation in self._conversations and str(address.bare) in self._removed


def _asked_for(call: ToolCall) -> tuple[str, ...]:
    """Return the paths and addresses that a call may ask the recall tool for."""
    path = call.arguments.get("path") if isinstance(call.arguments, dict) else None
    return readings(path) if call.name == RECALL and isinstance(path, str) else ()
