"""The settings of a store: their names, the form of their values, and the lease of a scavenge."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text, parse_instant
from timeline.errors import InvalidArgument
from timeline.frozen import sha256_hex
from timeline.ports import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from timeline.events.other_payloads import Retention

RETENTION: Final = "retention"
RETENTIONS: Final = ("keep", "window")
PROOF: Final = ".proof"
"""Suffix of the name under which the hash of a setting's value is kept: only the hash reveals a changed value."""
TURN: Final = "turn"
DUE: Final = "shrink"


def in_the_way(stored: str | None, runner: str, now: datetime) -> datetime | None:
    """Return the end of another runner's lease that is still running; None where the lease may be taken."""
    if stored is None:
        return None
    holder, ends = json.loads(stored)
    end = parse_instant(ends)
    return end if holder != runner and end > now else None


def lease(runner: str, until: datetime) -> str:
    """Return the value of the setting for a runner's lease."""
    return json.dumps([runner, instant_text(until)])


def checked_retention(value: Retention) -> Retention:
    """Check that a value is a retention and return it: a mistyped one would be kept, and removed by nothing.

    Raises:
        InvalidArgument: it is none.
    """
    if value not in RETENTIONS:
        raise InvalidArgument("retention", f"must be {' or '.join(map(repr, RETENTIONS))}, not {value!r}")
    return value


def retention_set(stored: Mapping[str, str]) -> str | None:
    """Return the retention that its proof vouches for; None where there is none."""
    kept, proof = stored.get(RETENTION), stored.get(f"{RETENTION}{PROOF}")
    return kept if kept is not None and proof == sha256_hex(kept) else None


def wrong_settings(stored: Mapping[str, str]) -> list[Finding]:
    """Check the settings of a store. Their values are their only record, so that none can be made anew."""
    problems = [
        f"the setting {name!r} has the value {value!r}" for name, value in stored.items() if not _valid(name, value)
    ]
    if f"{RETENTION}{PROOF}" in stored and retention_set(stored) is None:
        problems.append(f"the retention {stored.get(RETENTION)!r} is not the one that was set")
    return [Finding("settings", problem, derivable=False) for problem in problems]


def _valid(name: str, value: str) -> bool:
    match name:
        case "retention":
            return value in RETENTIONS
        case "retention.proof":
            return value in {sha256_hex(each) for each in RETENTIONS}
        case "shrink":
            return value.isdigit()
        case "turn" | "chained" | "files":
            with suppress(ValueError):
                return isinstance(json.loads(value), list)
            return False
    return False
