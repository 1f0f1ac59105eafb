"""Errors about what a conversation does not hold, not any more, or not now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.errors.base import TimelineError

if TYPE_CHECKING:
    from collections.abc import Sequence


class BlockNotFound(TimelineError, LookupError):
    """No block of the conversation has this path."""

    def __init__(self, conversation: str, path: str) -> None:
        self.conversation = conversation
        self.path = path
        super().__init__(f"No block {path!r} in conversation {conversation!r}. `timeline show` lists its paths.")


class StageNotFound(TimelineError, LookupError):
    """No stage of this name stands; ``standing`` lists the names of those that do."""

    def __init__(self, conversation: str, stage: str, standing: Sequence[str]) -> None:
        self.conversation = conversation
        self.stage = stage
        self.standing = list(standing)
        there_are = f"; there are {', '.join(self.standing)}" if self.standing else ", and no other does"
        super().__init__(f"No stage {stage!r} stands in conversation {conversation!r}{there_are}. Nothing was written.")


class StageRefused(TimelineError):
    """A stage cannot be entered, approved or gone back to now; ``reason`` says why, and the cure."""

    def __init__(self, conversation: str, stage: str, reason: str) -> None:
        self.conversation = conversation
        self.stage = stage
        self.reason = reason
        named = f", stage {stage!r}" if stage else ""
        super().__init__(f"Conversation {conversation!r}{named}: {reason}. Nothing was written.")


class BlockProtected(TimelineError):
    """A decision about one block does not hold now; ``reason`` says why. Nothing was written."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"Block {path!r} stays as it is: {reason}.")


class HistoryUnavailable(TimelineError, LookupError):
    """The log holds only the versions from ``first_version`` to ``last_version``."""

    def __init__(self, conversation: str, version: int, first_version: int, last_version: int) -> None:
        self.conversation = conversation
        self.version = version
        self.first_version = first_version
        self.last_version = last_version
        super().__init__(
            f"Conversation {conversation!r} cannot be seen at version {version}: it holds the versions "
            f"{first_version} to {last_version}. Name one of these."
        )


class ContextNotFound(TimelineError, LookupError):
    """No recorded context has this name; ``recorded`` lists those that there are as (number, version of the event)."""

    def __init__(self, name: str, recorded: Sequence[tuple[int, int]]) -> None:
        self.name = name
        self.recorded = list(recorded)
        newest = ", ".join(f"#{number} (version {version})" for number, version in self.recorded[-5:])
        there_are = f"There are {len(self.recorded)}, the newest {newest}" if newest else "There is none yet"
        super().__init__(
            f"No recorded context {name!r}. {there_are}. Name one as #number, version, last or last~1; "
            "rendering records one."
        )


class ContextUnavailable(TimelineError):
    """A recorded context cannot be built again.

    ``reason`` is ``projection``, ``unrecorded_prefix``, ``policy``, ``redacted`` or ``mismatch``.
    """

    def __init__(self, version: int, reason: str) -> None:
        self.version = version
        self.reason = reason
        super().__init__(f"The context of version {version} cannot be built again: {_UNAVAILABLE[reason]}.")


_UNAVAILABLE: Final = {
    "projection": "another version of this library recorded it; use that one",
    "unrecorded_prefix": "its system prompt, tools or tail were kept as hashes only; record contexts in full",
    "policy": "its policy is not in the store, or of a later version of this library",
    "redacted": "something that it showed is redacted, and was left out when the log was exported",
    "mismatch": "what is built differs from what was recorded; `timeline verify` says more",
}
