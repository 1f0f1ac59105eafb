"""The naive fold's second half: what time and other writers bring. Leases, the cache's last use, holds, refusals.

Worked out anew from the whole log, as in `tests.invariants.reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.invariants.reference import reverted, standing
from timeline.events import (
    CompactionCompleted,
    CompactionReverted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    PolicyChanged,
)
from timeline.events.other_payloads import CompactionFailed, CompactionStarted, PolicyOverridden
from timeline.fold.reported import NO_REPORTS, REPORTING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tests.invariants.reference import LogLine
    from timeline.events import Payload
    from timeline.fold.reported import Reported
    from timeline.usage import Usage

SHORT: Final = 300
"""Seconds that a provider keeps its cache, unless its usage says ..."""
LONG: Final = 3_600
"""... that it was asked for the longer choice."""


def lease(log: Sequence[LogLine]) -> tuple[int, datetime] | None:
    """Return who writes a summary, and until when; None when nobody does, or did not say that it gave up.

    A start while another's lease runs is void; what ends a compaction names its lease; a fork begins without one.
    """
    held: tuple[int, datetime] | None = None
    for version, payload, at in log:
        if isinstance(payload, CompactionStarted):
            if held is None or at >= held[1]:
                held = (version, payload.expires_at)
        elif isinstance(payload, ConversationOpened):
            held = None
        elif held is not None and isinstance(payload, CompactionCompleted | CompactionFailed):
            held = None if payload.lease == held[0] else held
    return held


def touch(log: Sequence[LogLine]) -> tuple[datetime, int, bool] | None:
    """Say when the cache was last used, how long it is kept, and whether a call says so.

    That is the start of the newest model call that did not fail; without any, the newest recorded render.
    """
    calls = [line for line in log if isinstance(line.payload, ModelCalled) and line.payload.finish_reason != "error"]
    renders = [line for line in log if isinstance(line.payload, ContextRendered)]
    if not calls:
        return (renders[-1].at, SHORT, False) if renders else None
    told = [kept for line in calls if isinstance(line.payload, ModelCalled) and (kept := _kept(line.payload.usage))]
    began = [(isinstance(line.payload, ModelCalled) and line.payload.started_at) or line.at for line in calls]
    return max(began), told[-1] if told else SHORT, True


def _kept(usage: Usage) -> int | None:
    if usage.cache_write_5m_tokens:
        return SHORT
    return LONG if usage.cache_write_1h_tokens else None


def reported(log: Sequence[LogLine]) -> Reported:
    """Return what the calls reported, by the events that say anything of it: no other event matters."""
    found = NO_REPORTS
    for version, payload, _ in log:
        if payload.type in REPORTING:
            found = found.after(version, payload)
    return found


def hold(log: Sequence[LogLine]) -> str | None:
    """Return the policy under which a compaction was taken back, unless one was made since, or a policy was changed."""
    gone = reverted(log)
    held: str | None = None
    for version, payload, _ in log:
        if isinstance(payload, CompactionReverted):
            held = payload.policy
        elif _changes(payload) or (isinstance(payload, CompactionCompleted) and version not in gone):
            held = None
    return held


def setback(log: Sequence[LogLine]) -> tuple[str, int, str, int] | None:
    """Return the refusal or failure that counts: reason, size from which another try is due, policy, version."""
    known: tuple[str, int, str, int] | None = None
    for version, payload, _ in standing(log):
        if isinstance(payload, CompactionFailed):
            known = (payload.reason, payload.visible_tokens + payload.retry_after, payload.policy, version)
        elif isinstance(payload, CompactionCompleted | CompactionReverted) or _changes(payload):
            known = None
    return known


def rounds(log: Sequence[LogLine]) -> int:
    """Return the highest number of a compaction that stands."""
    made = [line.payload.round for line in standing(log) if isinstance(line.payload, CompactionCompleted)]
    return max(made, default=0)


def rendered(log: Sequence[LogLine]) -> tuple[int, str, str, tuple[str | None, str | None]] | None:
    """Return the newest recorded context: version, fingerprint, how it was recorded, hashes of prompt and tools."""
    contexts = [(v, p.fingerprint, p.record, (p.system, p.tools)) for v, p, _ in log if isinstance(p, ContextRendered)]
    return contexts[-1] if contexts else None


def policy(log: Sequence[LogLine]) -> str | None:
    """Return the policy that an event named last: the beginning of the conversation or of a fork, or a change."""
    return next((p.policy for _, p, _ in reversed(log) if _names(p)), None)  # type: ignore[attr-defined]


def overrides(log: Sequence[LogLine]) -> list[str]:
    """Return the policies that writers had instead, since the conversation's was set or the fork began."""
    found: list[str] = []
    for _, payload, _ in log:
        if isinstance(payload, PolicyOverridden):
            found.append(payload.policy)
        elif isinstance(payload, ConversationOpened | PolicyChanged):
            found = []
    return found


def _changes(payload: Payload) -> bool:
    return isinstance(payload, PolicyChanged) and not payload.adopted


def _names(payload: Payload) -> bool:
    return isinstance(payload, ConversationOpened | PolicyChanged) and payload.policy is not None
