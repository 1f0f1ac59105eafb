"""Check what a repair can hardly give back: settings, texts that are stored by content, ids of erased conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.ports import Finding

from ..codec import has_hash
from ..removal import values_named
from ..settings import PROOF, RETENTION, RETENTIONS, retention_set, wrong_settings
from . import query_statements, statements
from .removing import mark_of, set_retention

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

MOST: Final = 20
"""Differences of one kind that are reported one by one."""


def capped(what: str, problems: Iterator[str], *, derivable: bool) -> list[Finding]:
    """Return a finding for each problem, up to `MOST`, and one that counts the others."""
    found = [Finding(what, problem, derivable) for problem, _ in zip(problems, range(MOST), strict=False)]
    more = sum(1 for _ in problems)
    return [*found, Finding(what, f"and {more} more of this kind", derivable)] if more else found


def erased(connection: sqlite3.Connection) -> list[Finding]:
    """Compare the list of erased conversations with the keys that are no longer there."""
    given, there, listed = connection.execute(statements.ERASED_AND_LISTED).fetchone()
    if given is None or given == there + listed:
        return []
    problem = (
        f"{given!r} conversations were begun, {there} are there, and {listed} are listed as erased. What is missing, a"
        " conversation or the id of an erased one, is in a backup"
    )
    return [Finding("erased", problem, derivable=False)]


def mend_settings(connection: sqlite3.Connection) -> list[Finding]:
    """Check the settings of the store; the retention is known to its value, its proof and the mark in the header.

    What two of them say is made anew. A store whose retention was set by an earlier release has no mark.
    """
    stored = dict(connection.execute("SELECT name, value FROM settings"))
    (mark,) = connection.execute(statements.MARK).fetchone()
    marked = next((value for value in RETENTIONS if mark_of(value) == mark), None)
    agreed = retention_set(stored)
    if not mark or mark == (None if agreed is None else mark_of(agreed)):
        return wrong_settings(stored)
    if agreed or marked:
        stored = {name: value for name, value in stored.items() if name not in {RETENTION, f"{RETENTION}{PROOF}"}}
    return _with_its_mark(connection, agreed, marked) + wrong_settings(stored)


def _with_its_mark(connection: sqlite3.Connection, agreed: str | None, marked: str | None) -> list[Finding]:
    """Set the retention, or its mark, to what the others say."""
    value = agreed or marked
    if value is None:
        connection.execute(statements.SET_MARK.format(0))
        return [Finding("settings", "the mark of the retention is that of none", derivable=True)]
    set_retention(connection, value)
    what = "its mark is another one's" if agreed else "its row, or the proof of it, is gone or was changed"
    return [Finding("settings", f"the retention was set to {value!r}: {what}", derivable=True)]


def texts(connection: sqlite3.Connection) -> list[Finding]:
    """Check the content-addressed texts: each has its hash, and each that a context or an opening names is there."""
    wrong = (
        f"the text {hash_} does not match its hash"
        for hash_, text in connection.execute("SELECT hash, text FROM stored_values")
        if not has_hash(text, hash_)
    )
    return capped("values", wrong, derivable=False) + capped("values", _lost_texts(connection), derivable=False)


def _lost_texts(connection: sqlite3.Connection) -> Iterator[str]:
    if connection.execute(query_statements.REDACTED_SINCE, (0,)).fetchone() is not None:
        return iter(())  # a redaction takes texts away, too
    return missing_texts(connection)


def missing_texts(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield a problem for each text that an event names and that is not there."""
    known: set[str] = set()
    for id_, version, payload in connection.execute(statements.VALUES_NAMED):
        for hash_ in sorted(values_named(payload) - known):
            known.add(hash_)
            if connection.execute("SELECT 1 FROM stored_values WHERE hash = ?", (hash_,)).fetchone() is None:
                yield f"version {version} of {id_!r} names the text {hash_}, which is not in the store"
