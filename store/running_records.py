"""Records of facts that continue from one compaction to the next, so that rows are not read and merged again.

A record is a cache of the rows of facts, which are derived from the log: to drop one costs only time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import StoreCorrupt
from timeline.facts.running import PlacedFact, RunningRecord
from timeline.queries import FACT_KINDS

from .column_numbers import LARGEST
from .fact_making import moment_of
from .facts import fact_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Covers
    from timeline.queries import FactRecord

    from .facts import FactRow

MOST_SUBJECTS: Final = 60_000
"""Most subjects of one record, of about 1 KB each: those of a log of some 40,000 blocks."""
TOGETHER: Final = 20_000
"""Most subjects of all records of one store, unless the newest record alone has more. Records of many short logs are
not worth their memory: the rows of 1,000 events are merged anew in 30 ms."""
_MOST_LOGS: Final = 1_000
_BEFORE_ALL: Final = (0, LARGEST)
CURE: Final = "`timeline repair` makes facts anew; `timeline verify --deep` lists all damage."


class RunningLog:
    """The record of one log's facts, as far as its rows were read.

    Attributes:
        after: position and number of the last row that was read.
        at: the time of its event; empty before the first row.
    """

    __slots__ = ("_covers", "_redactions", "_running", "_waiting", "after", "at")

    def __init__(self, covers: Covers, redactions: int) -> None:
        self.after: tuple[int, int] = _BEFORE_ALL
        self.at: str = ""
        self._covers, self._redactions = covers, redactions
        self._running = RunningRecord()
        self._waiting: list[PlacedFact] = []

    def __len__(self) -> int:
        return len(self._running) + len(self._waiting)

    def leads_to(self, covers: Covers, redactions: int) -> bool:
        """Return whether the record of these versions can continue this one; after a redaction it cannot."""
        return redactions == self._redactions and covers.includes(self._covers)

    def read(self, rows: Sequence[tuple[FactRow, str, str]]) -> None:
        """Take the next rows, each with the time and the path of its event.

        Raises:
            StoreCorrupt: one of them is damaged.
        """
        for row, at, path in rows:
            if not (isinstance(at, str) and isinstance(row.subject, str) and 0 <= row.kind < len(FACT_KINDS)):
                raise StoreCorrupt(f"fact {row.number} at position {row.position} is damaged. {CURE}")
            self._waiting.append(PlacedFact(row[:2], fact_of(row, moment_of(at), path)))
        if rows:
            self.after, self.at = rows[-1][0][:2], rows[-1][1]

    def record(self, covers: Covers, most: int) -> FactRecord:
        """Merge the facts of these versions that were not merged yet; return the record of all of them."""
        waiting, self._waiting, self._covers = self._waiting, [], covers
        for placed in waiting:
            if placed.fact.version in covers:
                self._running.take(placed)
            else:
                self._waiting.append(placed)
        return self._running.record(most)


class RunningRecords:
    """The records of the logs of one store that were compacted last, at most `TOGETHER` subjects or a single record.

    The database merges the record of a log's first compaction, which is quicker for a single one. The second compaction
    begins a record that all later ones continue. A log with more subjects than a record may have is merged each time.
    """

    def __init__(self, most: int = MOST_SUBJECTS, together: int = TOGETHER) -> None:
        self._most, self._together = most, together
        self._kept: OrderedDict[Any, RunningLog | None] = OrderedDict()

    def take(self, key: object, covers: Covers, redactions: int) -> RunningLog | None:
        """Take out a log's record to continue; None where there is none yet: the next compaction gets one.

        The caller gives it back with `keep`, so that two callers never have the same record at a time.
        """
        if key in self._kept and self._kept[key] is None:
            return None  # too long
        known = self._kept.pop(key, None)
        if known is not None and known.leads_to(covers, redactions):
            return known
        self.keep(key, RunningLog(covers, redactions))
        return None

    def keep(self, key: object, log: RunningLog) -> None:
        """Keep a log's record; the ones that were asked for longest ago make room for it."""
        self._kept[key] = log if len(log) <= self._most else None
        self._kept.move_to_end(key)
        subjects = sum(map(_size, self._kept.values()))
        while len(self._kept) > 1 and (subjects > self._together or len(self._kept) > _MOST_LOGS):
            subjects -= _size(self._kept.popitem(last=False)[1])


def _size(log: RunningLog | None) -> int:
    return 0 if log is None else len(log)
