"""Addresses: the short names of blocks, ``@152``, and ``cards@152`` where several conversations are in sight.

The number is the version of the event that appended the block; of a compaction's event it is the summary. A fork
continues the numbers of its parent, so that an address up to its base means the same block in both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGN: Final = "@"
"""Begins an address, and never a path."""
_ADDRESS: Final = re.compile(r"(.*)@([0-9]{1,18})", re.DOTALL)


class Address(NamedTuple):
    """A block's address; ``conversation`` is empty where the conversation goes without saying.

    Its text is the address as it is printed.
    """

    version: int
    conversation: str = ""

    def __str__(self) -> str:
        return f"{self.conversation}{SIGN}{self.version}"

    @property
    def bare(self) -> Address:
        """The address inside its own conversation."""
        return Address(self.version)


def listed_addresses(versions: Sequence[int], most: int = 8) -> str:
    """Return the addresses of some versions in words; the rest of a long list is counted."""
    named = ", ".join(str(Address(version)) for version in versions[:most])
    return named if len(versions) <= most else f"{named} and {len(versions) - most:,} more"


def parse_address(text: str) -> Address | None:
    """Read an address; None for any other text, such as a path.

    A conversation's id may contain ``@`` itself: the last one parts it from the version.
    """
    match = _ADDRESS.fullmatch(text)
    return None if match is None else Address(int(match[2]), match[1])
