"""Check the pairing of calls and results in each context of a log, one after the other: `Pairing`.

In a context that continues the one before it, only new entries can break the pairing. So each context costs only as
much as it grew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from timeline.fold.window import Item, Window
    from timeline.wire.neutral import Entry, NeutralContext


class Pairing:
    """The pairs of the newest context.

    Args:
        paths: the path of each block of the log, by version; it grows while the log is read.
    """

    def __init__(self, paths: Mapping[int, str]) -> None:
        self._paths = paths
        self._items = 0
        self._entries = 0
        self._shown: dict[str, Entry] = {}
        self._calls: dict[int, Item] = {}

    def problems(self, window: Window, neutral: NeutralContext, *, continues: bool) -> Iterator[str]:
        """Return the calls and results that a context shows without their other half (design: Invariants, 2).

        Args:
            window: the context's window.
            neutral: the context.
            continues: whether it begins with the items and entries of the last one.
        """
        if not continues:
            self._items, self._entries, self._shown, self._calls = 0, 0, {}, {}
        new = window.items[self._items :]
        self._shown.update((entry.path, entry) for entry in neutral.entries[self._entries :])
        self._calls.update((item.version, item) for item in new)
        self._items, self._entries = len(window.items), len(neutral.entries)
        shown = self._shown
        for item in new:
            if item.answers is None:
                continue
            path, call = item.block.path, self._calls.get(item.answers)
            if path in shown and self._paths.get(item.answers) not in shown and not shown[path].loose:
                yield f"{path} is shown without its call"
            if call is not None and call.block.path in shown and path not in shown:
                yield f"{call.block.path} is shown without its result"
