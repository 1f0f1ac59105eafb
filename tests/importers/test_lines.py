from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from timeline.importers.lines import read_records
from timeline.importers.recording import MOST_FINDINGS, Report

OPENING = '{"parentUuid":'


def read(data: bytes) -> tuple[list[tuple[int, Any]], Report]:
    """Read bytes, and return the records with their lines, and the report."""
    report = Report()
    return [(r.line, r.value) for r in read_records(data, report, opening=OPENING)], report


def found(report: Report) -> list[tuple[str, int]]:
    """Return the findings: kind and line."""
    return [(f["kind"], f["line"]) for f in report.findings]


values = st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers() | st.lists(st.none()), max_size=3)


@given(st.lists(values), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_whole_records_are_read_in_order(records: list[dict[str, Any]], end: str) -> None:
    """Whatever stands inside strings, U+2028 included, a line is a record."""
    data = "".join(json.dumps(r, ensure_ascii=False) + end for r in records).encode("utf-8", "surrogatepass")
    read_back, report = read(data)
    assert report.records == len(records)
    if "encoding" not in report.counts:
        assert [value for _, value in read_back] == records
        assert not report.findings


@given(st.binary(max_size=200))
def test_any_bytes_at_all_are_read_without_an_error(data: bytes) -> None:
    """What cannot be read is reported."""
    records, report = read(data)
    assert report.records == len(records)


@given(st.lists(values, min_size=1, max_size=4), st.lists(values, max_size=3), st.integers(1, 9))
def test_a_torn_line_costs_no_other_record(before: list[dict[str, Any]], after: list[dict[str, Any]], cut: int) -> None:
    """The lines around a broken one are all read."""
    torn = json.dumps({"parentUuid": "x", "text": "y"})[: -cut - 1]
    lines = [*map(json.dumps, before), torn, *map(json.dumps, after)]
    records, report = read("\n".join(lines).encode() + b"\n")
    assert [value for _, value in records] == [*before, *after]
    assert found(report) == [("quarantined", len(before) + 1)]


def test_glued_records_are_both_read() -> None:
    """Two records on one line are two records, and the line is reported."""
    records, report = read(b'{"a":1}{"b":2}\n{"c":3}\n')
    assert records == [(1, {"a": 1}), (1, {"b": 2}), (2, {"c": 3})]
    assert found(report) == [("glued", 1)]


def test_the_last_line_may_be_torn() -> None:
    """A file that breaks off in mid-record is read up to there."""
    records, report = read(b'{"a":1}\n{"b":')
    assert records == [(1, {"a": 1})]
    assert found(report) == [("torn", 2)]


def test_a_record_behind_one_that_broke_off_in_the_same_line_is_read() -> None:
    """Reading starts anew where a record of the format opens."""
    records, report = read(b'{"parentUuid":null,"message":{"x":"y{"parentUuid":null,"b":1}\n')
    assert records == [(1, {"parentUuid": None, "b": 1})]
    assert found(report) == [("quarantined", 1)]


def test_a_record_with_a_raw_line_break_is_put_together_again() -> None:
    """A line break inside a string that was not escaped is part of the string."""
    records, report = read(b'{"a":"one\ntwo\n{ three"}\n{"b":2}\n')
    assert records == [(1, {"a": "one\ntwo\n{ three"}), (4, {"b": 2})]
    assert found(report) == [("split", 1)]


def test_what_stands_behind_a_torn_record_is_read_alone_when_it_is_no_rest_of_it() -> None:
    """Zeros that a crash left before a record do not cost it."""
    records, report = read(b'{"a":"torn\n\x00\x00\x00{"b":2}\nnoise\n{"c":3}\n')
    assert records == [(2, {"b": 2}), (4, {"c": 3})]
    assert found(report) == [("quarantined", 1), ("quarantined", 2), ("quarantined", 3)]


def test_bytes_that_are_no_utf8_are_replaced_and_reported() -> None:
    """The rest of the line is kept; a byte order mark is no damage."""
    records, report = read(b'\xef\xbb\xbf{"a":"\xff"}\n')
    assert records == [(1, {"a": "\ufffd"})]
    assert found(report) == [("encoding", 1)]


def test_a_line_of_fifty_megabytes_and_a_hostile_one_are_read_once() -> None:
    """Long lines, and lines that begin again and again, take one pass."""
    long = b'{"a":"' + b"x" * 50_000_000 + b'"}\n'
    hostile = OPENING.encode() * 200_000 + b"\n"
    records, report = read(long + hostile + b'{"b":2}\n')
    assert [line for line, _ in records] == [1, 3]
    assert report.counts["quarantined"] == 101


def test_a_report_counts_all_findings_and_keeps_the_first_of_each_kind() -> None:
    """A thousand findings of one kind do not crowd out another."""
    _, report = read(b"noise\n" * 1000 + b'{"a":1}{"b":2}\n')
    assert report.counts == {"quarantined": 1000, "glued": 1}
    assert len(report.dump()["findings"]) == MOST_FINDINGS + 1
