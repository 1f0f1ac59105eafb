"""The form of a packed vocabulary: tokens in the order of their bytes, on pages that are unpacked one at a time.

The first text of a process needs some dozen of 200,000 tokens, and a dictionary of all of them was a quarter of the
time that a first use of the library took. So a token is looked up on the one page where it would be. Who needs all of
them, to start an engine, unpacks all pages.

A pack is the number of pages in four bytes, the size of each page in four, the length of each page's first token in
one, these first tokens without a gap, and the pages. A page is compressed with zlib: the number of its tokens in four
bytes, the length of each token in one, the lowest bytes of all ranks, the middle ones, the highest ones, and the tokens
without a gap. With lengths and bytes of ranks apart, reading a page is a few calls and no loop in Python.
"""

from __future__ import annotations

import io
import struct
import zlib
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE: Final = 512
"""Tokens of a page. With half as many a look-up unpacks less, and the pack is larger by 3 %."""
_NUMBER_BYTES: Final = 4
_RANK_BYTES: Final = 3


class Pages:
    """The pages of a pack, on which tokens are looked up by their bytes.

    Args:
        packed: the pack, as `pack` writes it.
    """

    def __init__(self, packed: bytes) -> None:
        head = io.BytesIO(packed)
        number = _number(head)
        sizes = struct.unpack(f"<{number}I", head.read(number * _NUMBER_BYTES))
        self._firsts = list(map(head.read, head.read(number)))
        self._bounds = list(accumulate(sizes, initial=head.tell()))
        self._packed = memoryview(packed)
        self._read: dict[int, dict[bytes, int]] = {}

    def rank(self, token: bytes) -> int | None:
        """Return the rank of a token; None where the bytes are no token."""
        number = bisect_right(self._firsts, token) - 1
        if number < 0:
            return None
        page = self._read.get(number)
        if page is None:
            page = self._read[number] = self._unpacked(number)
        return page.get(token)

    def all(self) -> dict[bytes, int]:
        """Return all tokens with their ranks, in the order of their bytes."""
        ranks: dict[bytes, int] = {}
        for number in range(len(self._firsts)):
            ranks |= self._unpacked(number)
        return ranks

    def _unpacked(self, number: int) -> dict[bytes, int]:
        page = io.BytesIO(zlib.decompress(self._packed[self._bounds[number] : self._bounds[number + 1]]))
        tokens = _number(page)
        lengths, ranks = page.read(tokens), bytearray(tokens * _NUMBER_BYTES)
        for place in range(_RANK_BYTES):
            ranks[place::_NUMBER_BYTES] = page.read(tokens)
        return dict(zip(map(page.read, lengths), struct.unpack(f"<{tokens}I", ranks), strict=True))


def pack(tokens: Sequence[bytes]) -> bytes:
    """Write a pack of tokens, given in rank order."""
    ranks = sorted(range(len(tokens)), key=tokens.__getitem__)
    parts = [ranks[start : start + PAGE] for start in range(0, len(ranks), PAGE)]
    pages = [_packed(part, [tokens[rank] for rank in part]) for part in parts]
    firsts = [tokens[part[0]] for part in parts]
    sizes = struct.pack(f"<{len(pages)}I", *map(len, pages))
    return b"".join((_written(len(pages)), sizes, bytes(map(len, firsts)), *firsts, *pages))


def _packed(ranks: Sequence[int], tokens: Sequence[bytes]) -> bytes:
    whole = struct.pack(f"<{len(ranks)}I", *ranks)
    planes = [whole[place::_NUMBER_BYTES] for place in range(_RANK_BYTES)]
    return zlib.compress(b"".join((_written(len(ranks)), bytes(map(len, tokens)), *planes, *tokens)), level=9)


def _number(source: io.BytesIO) -> int:
    return int.from_bytes(source.read(_NUMBER_BYTES), "little")


def _written(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "little")
