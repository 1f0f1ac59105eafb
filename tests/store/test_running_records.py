"""What a store keeps of its compactions' records: bounded, and never the same one for two that ask at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.events import Covers
from timeline.store.facts import NUMBERS, FactRow
from timeline.store.running_records import RunningLog, RunningRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

AT = "2026-01-01T00:00:00.000000Z"


def up_to(version: int) -> Covers:
    """Return the versions up to one."""
    return Covers(ranges=((1, version),))


def rows(first: int, last: int) -> Iterator[tuple[FactRow, str, str]]:
    """Yield a command at each version, each another one."""
    for version in range(first, last + 1):
        row = FactRow(
            version, 0, 1, NUMBERS["command"], 0, None, version, version, f"make {version}", "Bash", "", None, 0
        )
        yield row, AT, f"tc:{version}.result"


def compacted(records: RunningRecords, key: int, versions: int) -> RunningLog | None:
    """Compact a log with as many commands; return what it went on from."""
    log = records.take(key, up_to(versions), 0)
    if log is not None:
        log.read([*rows(log.after[0] + 1, versions)])
        assert log.record(up_to(versions), 200).counts == {"command": versions}
        records.keep(key, log)
    return log


def test_the_second_compaction_of_a_log_begins_a_record_and_later_ones_go_on() -> None:
    """A conversation that is compacted once pays for nothing beyond it."""
    records = RunningRecords()
    assert compacted(records, 1, 3) is None
    begun = compacted(records, 1, 5)
    assert begun is not None
    assert compacted(records, 1, 9) is begun


def test_what_a_redaction_or_an_undo_takes_away_is_not_gone_on_from() -> None:
    """Neither leaves versions of which the merged ones are a part."""
    for covers, redactions in ((up_to(9), 1), (up_to(4), 0)):
        records = RunningRecords()
        compacted(records, 1, 3)
        compacted(records, 1, 5)
        assert records.take(1, covers, redactions) is None


def test_two_that_ask_at_a_time_never_go_on_from_the_same_record() -> None:
    """The second one finds none, as if there had been no compaction before."""
    records = RunningRecords()
    compacted(records, 1, 3)
    compacted(records, 1, 5)
    assert records.take(1, up_to(6), 0) is not None
    assert records.take(1, up_to(6), 0) is None


def test_the_records_of_the_logs_that_were_compacted_last_are_kept() -> None:
    """Together they have no more subjects than they may."""
    records = RunningRecords(together=10)
    for key in (1, 2, 3):
        compacted(records, key, 3)
        compacted(records, key, 4)
    assert [compacted(records, key, 5) is not None for key in (3, 2, 1)] == [True, True, False]


def test_the_record_of_one_long_log_is_kept_alone() -> None:
    """It may have more subjects than all may have together; those of other logs make room."""
    records = RunningRecords(together=10)
    for key in (1, 2):
        compacted(records, key, 3)
        compacted(records, key, 4)
    assert compacted(records, 2, 11) is not None
    assert [compacted(records, key, 12) is not None for key in (2, 1)] == [True, False]


def test_a_log_with_more_subjects_than_are_kept_is_merged_each_time() -> None:
    """It would be read from its beginning at every second compaction otherwise."""
    records = RunningRecords(most=10)
    compacted(records, 1, 3)
    assert compacted(records, 1, 11) is not None
    assert [compacted(records, 1, versions) for versions in (12, 13, 14)] == [None, None, None]
