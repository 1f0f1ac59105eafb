"""A fact: one thing that was done or named, as an extractor reads it from a log."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.queries import FactKind

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Fact", "FactKind"]


class Fact(NamedTuple):
    """One thing that was done or named.

    Attributes:
        kind: what it is.
        subject: the file, the command, the query, the URL, the identifier, or what a user asked for, word for word; for
            an error, the failed tool.
        path: the block to read: the result; for a file that was written or deleted, the call, whose arguments hold the
            content.
        version: version of the event that appended that block.
        at: time of the work, in UTC: of the result, or of the block that names something.
        tool: name of the tool; for a URL or an identifier, the tool of the call that names it; empty if no call does.
        exit_status: of a command; None where it is unknown.
        failed: whether it failed. A failed write wrote nothing.
        detail: first words of what a failure said; hits of a search, where the output shows their number; ``prompt``,
            for what a user's prompt names; for a request how it asks, see `timeline.facts.requests.Manner`.
    """

    kind: FactKind
    subject: str
    path: str
    version: int
    at: datetime
    tool: str = ""
    exit_status: int | None = None
    failed: bool = False
    detail: str = ""
