"""The calls that a store appended lately and that wait for their results, whose facts then need no look-up.

What is remembered cannot become wrong: a path is taken once in a log, and an appended event stays what it is. A call
may be redacted or removed, by another process too, which the log's head and its redactions say. What is not remembered
(a call of another process, or of a parent) is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.facts.extracting import ReadCall

MOST: Final = 1_024
"""The most calls that are remembered; an agent's calls are answered by its next append."""
LARGEST: Final = 4_096
"""Characters of the files, commands and queries of a call above which it is not remembered."""


class RecentCalls:
    """Calls by conversation and path, oldest first; only those of committed transactions."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, str], tuple[int, ReadCall]] = {}
        self._written: list[tuple[tuple[int, str], tuple[int, ReadCall]]] = []

    def written(self, key: int, first: int, calls: Sequence[tuple[int, ReadCall]]) -> None:
        """Note calls of the open transaction, by their places behind version ``first``."""
        self._written += [((key, call.path), (first + n, call)) for n, call in calls if call.path and _is_small(call)]

    def committed(self) -> None:
        """Remember the calls of the transaction that was committed."""
        if self._written:
            self._calls.update(self._written)
            self._written.clear()
            while len(self._calls) > MOST:
                del self._calls[next(iter(self._calls))]

    def rolled_back(self) -> None:
        """Forget the calls of the transaction that was rolled back."""
        self._written.clear()

    def take(self, key: int, first_version: int, path: str) -> tuple[int, ReadCall] | None:
        """Return the call at a path, with its version, and forget it: one result answers it.

        Not a call that may have been scavenged.

        Args:
            key: the conversation's key.
            first_version: of the versions that its log still has, as the open transaction read it.
            path: the call's path.
        """
        call = self._calls.pop((key, path), None)
        return None if call is None or call[0] < first_version else call


def _is_small(call: ReadCall) -> bool:
    return sum([len(subject) for use in call.uses for subject in use.subjects]) <= LARGEST
