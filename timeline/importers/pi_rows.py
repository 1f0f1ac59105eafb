"""Read a row of a pi session of version 4 as the entry that earlier versions write.

There each row names its kind: an entry of the tree, a fact about the session, or a record of what the client did. Times
are milliseconds since 1970, and become the texts of earlier versions, so that a session that pi brought into the new
form keeps its keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.importers.builder import MILLISECONDS, time_of_stamp
from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from datetime import datetime


def as_entry(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as an entry; one of another version as it is."""
    match row.get("kind"):
        case "header":
            return {"type": "session", **row, "timestamp": _text(row.get("createdAt"))}
        case "entry":
            return {**row, "timestamp": _text(row.get("timestamp"))}
        case "fact" if row.get("fact") == "name":
            return {"type": "session_info", "name": text_of(row, "name")}
        case "fact" | "record" | "lane":
            return {"type": "custom"}
        case _:
            return row


def clock(milliseconds: Any) -> datetime | None:
    """Return a time from milliseconds since 1970; None if it is no time."""
    return time_of_stamp(milliseconds, per_second=MILLISECONDS)


def _text(milliseconds: Any) -> Any:
    at = clock(milliseconds)
    return milliseconds if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
