"""The row of a conversation as its events give it, with which a store compares its own row."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from timeline.frozen import canonical_json
from timeline.ports import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES: Final = (
    "version",
    "window_start",
    "title",
    "parent",
    "created_at",
    "updated_at",
    "parent_key",
    "base",
    "first_version",
    "head",
)
"""The columns that events give, in the order in which they are reported."""
_CUT: Final = "; its newest events may have been cut off: compare it with a head that was kept elsewhere"


def own_opening(openings: Sequence[tuple[int, str]]) -> tuple[int, str] | None:
    """Return the event that opened a conversation, of its own openings with their payloads, newest first.

    For a fork that keeps a copy of its past, that is the fork's own opening.
    """
    for version, payload in openings[:-1]:
        with suppress(ValueError, TypeError, AttributeError):
            link = json.loads(payload).get("parent") or {}
            if link.get("relation") == "fork" and link.get("version") == version - 1:
                return version, payload
    return openings[-1] if openings else None


def lost_beginning(openings: Sequence[tuple[int, str]], first: int) -> str:
    """Return what is wrong with a conversation that has no own event before a version, if it cannot begin there.

    A fork begins with the event that opens it, behind the past that it shares; any other conversation begins with
    version 1. If the first own event is another one, the events before it are lost: no parent has them, since a
    parent's events of these versions are its own.
    """
    if first == 1 or any(version == first for version, _ in openings):
        return ""
    return f"begins at version {first}, with an event that opens nothing: those before it are missing"


def checked_from(stored: object, first: int) -> int:
    """Return the version from which on no event may be missing, so that a row may be brought up to its newest one."""
    return max(stored, first) if isinstance(stored, int) else first


def lost_between(stored: object, since: int, last: int, there: int) -> str:
    """Return what is wrong where events are missing behind the version of a row: a renumbered event is not a new one.

    Args:
        stored: the version that the row says.
        since: see `checked_from`.
        last: the version of the newest event.
        there: how many events there are from ``since`` on.
    """
    missing = last - since + 1 - there
    if missing <= 0:
        return ""
    return f"is at version {stored} in its row, and has an event of version {last}: {missing} before it are missing"


def opened(openings: Sequence[tuple[int, str]], row: Mapping[str, Any], base: int) -> tuple[dict[str, Any], str | None]:
    """Return what the opening event says, title and parent link, and the id of a parent that shares its past."""
    opening = own_opening(openings)
    if opening is None:
        return {"title": "", "parent": None}, None
    try:
        payload = json.loads(opening[1])
        link = payload.get("parent")
        is_late = opening == openings[-1] and opening[0] != base + 1
        if is_late and (row["title"], row["parent"]) == ("", None):
            return {}, None  # an append that opens nothing
        made: dict[str, Any] = {"title": payload.get("title", ""), "parent": None}
        if link is None:
            return made, None
        parent = {"path": None, "relation": "subagent", "version": None, **link}
        made["parent"] = canonical_json(parent)
        return made, parent["conversation"] if base else None
    except (ValueError, TypeError, AttributeError, KeyError):
        return {name: row[name] for name in ("title", "parent", "parent_key")}, None  # reading it reports the damage


def window_start_of(body: str, stored: int) -> int:
    """Return where the window of a snapshot starts; for a damaged snapshot, the stored value."""
    try:
        return int(json.loads(body)["window_start"])
    except (ValueError, TypeError, KeyError):
        return stored


def first_behind(base: tuple[int, str], stored: int) -> int:
    """Return the version from which on all events are there, given the version and the body of the newest base."""
    version, body = base
    return min(window_start_of(body, stored) - 1, int(version)) + 1


def differences(id_: str, row: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[list[str], list[Finding]]:
    """Return the columns in which a row differs from what its events say, and a finding about each."""
    different = [name for name in NAMES if row[name] != made[name]]
    are_missing = row["version"] > made["version"]  # the row says so, and stays
    found = []
    for name in different:
        more = "; newer ones are missing" if are_missing and name == "version" else _CUT if name == "head" else ""
        problem = f"{id_!r}: its {name} is {_short(row[name])}, and its events say {_short(made[name])}{more}"
        found.append(Finding("conversations", problem, derivable=not are_missing))
    return different, found


def _short(value: object) -> str:
    return value.hex()[:16] + "…" if isinstance(value, bytes) else repr(value)
