"""The small fields of a window as one value: all that events set besides the live items and the turns.

`FoldState.after` applies an event, `Fold` holds the newest value, `Window` shows it and a snapshot stores it. To add a
field, add it here, as a property of `Window`, and in the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.events import ContextRendered, ConversationOpened, ModelCalled, PolicyChanged
from timeline.events.other_payloads import (
    CompactionFailed,
    CompactionStarted,
    PolicyOverridden,
    StageApproved,
    StageEntered,
    StageRewound,
)
from timeline.fold.reported import NO_REPORTS, Reported
from timeline.fold.stages import advanced
from timeline.usage import CACHE_SECONDS, reported_seconds

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.events import CompactionCompleted, CompactionReverted, Payload, PolicyOrigin
    from timeline.fold.stages import Stage


@dataclass(frozen=True, slots=True)
class Touch:
    """When the provider's prompt cache was last used, as far as the log knows.

    Attributes:
        at: start of the newest successful model call; without any call, the newest recorded render.
        ttl: seconds that the provider keeps what it cached, from the usage that it reported.
        called: whether it is a model call, and not only a recorded render.
    """

    at: datetime
    ttl: int
    called: bool


@dataclass(frozen=True, slots=True)
class Lease:
    """A running compaction: the version of its `CompactionStarted`, and when another process may begin one."""

    version: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Setback:
    """A refused or failed compaction: no new try under the same policy before the visible tokens reach ``retry_at``.

    Above the limit it holds only until an item is added or changed behind the event of ``version``.
    """

    reason: str
    retry_at: int
    policy: str = ""
    version: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded context: its event's version, its fingerprint, and whether its prompt and tools were kept.

    ``prefix`` holds the hashes of system prompt and tools; None in the snapshots of an earlier version.
    """

    version: int
    fingerprint: str
    record: str
    prefix: tuple[str | None, str | None] | None = None


class FoldState(NamedTuple):
    """The small fields of a window.

    It is a tuple, since each model call and each recorded render changes one, and a frozen dataclass takes several
    times as long to change.

    Attributes:
        compactions: how many completed so far.
        setback: the last refusal or failure since the last compaction.
        policy: hash of the policy in force, when an event set one.
        origin: what that policy was made from, where it was recorded.
        overrides: hashes of the policies that writers worked under instead, since the policy in force was set.
        calls: how many model calls were recorded so far, failed ones and retries included.
        reported: how the provider counts, by the usage of these calls.
        rendered: the newest recorded context.
        touch: the last use of the provider's cache; None before the first.
        model: id of the model that was called last; empty where none is recorded.
        lease: the compaction that a process is running, or abandoned without recording it.
        hold: hash of the policy under which a compaction was taken back: no automatic one follows, for any writer.
        stages: the entered stages of the work, oldest first; the last one may be in progress.
    """

    compactions: int = 0
    setback: Setback | None = None
    policy: str | None = None
    rendered: Recorded | None = None
    touch: Touch | None = None
    model: str = ""
    lease: Lease | None = None
    hold: str | None = None
    stages: tuple[Stage, ...] = ()
    origin: PolicyOrigin | None = None
    overrides: tuple[str, ...] = ()
    calls: int = 0
    reported: Reported = NO_REPORTS

    def after(self, version: int, at: datetime, payload: Payload) -> FoldState:
        """Return the state after an event; events that change items or nothing at all leave it as it is."""
        match payload:
            case CompactionStarted():
                # An earlier lease that is still valid wins: of two processes that begin together, one goes on.
                taken = self.lease is not None and at < self.lease.expires_at
                return self if taken else self._replace(lease=Lease(version, payload.expires_at))
            case CompactionFailed():
                retry_at = payload.visible_tokens + payload.retry_after
                setback = Setback(payload.reason, retry_at, payload.policy, version)
                return self.without_lease(payload.lease)._replace(setback=setback)
            case ConversationOpened():
                return self._opened(payload)
            case PolicyChanged():
                chosen = self._replace(policy=payload.policy, origin=payload.origin, overrides=())
                return chosen if payload.adopted else chosen._replace(setback=None, hold=None)
            case PolicyOverridden():
                return self._replace(overrides=(*self.overrides, payload.policy))
            case ContextRendered():
                rendered = Recorded(version, payload.fingerprint, payload.record, (payload.system, payload.tools))
                called = self.touch is not None and self.touch.called
                touch = self.touch if called else Touch(at, CACHE_SECONDS, called=False)
                return self._replace(
                    rendered=rendered, touch=touch, reported=self.reported.after_context(version, payload)
                )
            case ModelCalled():
                touch = self._touched(at, payload)
                return self._replace(
                    model=payload.model or self.model,
                    touch=touch,
                    calls=self.calls + 1,
                    reported=self.reported.after_call(payload),
                )
            case StageEntered() | StageApproved() | StageRewound():
                return self._replace(stages=advanced(self.stages, version, payload))
            case _:
                return self

    def _opened(self, payload: ConversationOpened) -> FoldState:
        """Return the state at the beginning. A fork that names no policy keeps the one of the past that it shares.

        A compaction that runs in the fork's parent, and the overrides of writers there, do not apply to the fork.
        """
        own = self.released()._replace(overrides=())
        return own if payload.policy is None else own._replace(policy=payload.policy, origin=payload.origin)

    def rewritten(self) -> FoldState:
        """Return the state after a decision that changes what is shown of earlier blocks."""
        return self._replace(reported=self.reported.rewritten())

    def compacted(self, payload: CompactionCompleted) -> FoldState:
        """Return the state after a compaction, which ends setback and hold."""
        return self._replace(compactions=max(self.compactions, payload.round), setback=None, hold=None)

    def reverted(self, payload: CompactionReverted) -> FoldState:
        """Return the state after an undo: no automatic compaction follows."""
        return self._replace(hold=payload.policy, setback=None)

    def without_lease(self, version: int | None) -> FoldState:
        """Return the state without the lease of this version; a lease that replaced it meanwhile stays."""
        return self.released() if self.lease is not None and self.lease.version == version else self

    def released(self) -> FoldState:
        """Return the state without any lease."""
        return self._replace(lease=None)

    def _touched(self, at: datetime, call: ModelCalled) -> Touch | None:
        """Return the last use of the cache after a call. A failed call does not use the cache.

        The lifetime is the one that the newest usage reported. The newest start counts, since calls that run side by
        side may be recorded in another order than they began in.
        """
        before = self.touch
        if call.finish_reason == "error":
            return before
        began = call.started_at or at
        newest = max(began, before.at) if before is not None and before.called else began
        ttl = reported_seconds(call.usage) or (CACHE_SECONDS if before is None else before.ttl)
        return Touch(newest, ttl, called=True)


NOTHING_YET: Final = FoldState()
"""The state before the first event."""
