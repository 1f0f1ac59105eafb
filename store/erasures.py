"""What every store says of an erasure, and which answers to forks it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from timeline.errors import InvalidArgument
from timeline.ports import ErasureReport, ForksOnErase

from .failures import checked_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Erasing(NamedTuple):
    """What an erasure did: the erased conversations, the forks that keep a copy, and the counts by place."""

    erased: Sequence[str]
    copied: Sequence[str]
    counts: Mapping[str, int]


def check_erasure(conversation: str, forks: str, reason: str) -> None:
    """Check what is to be erased, what is to become of its forks, and the reason.

    Raises:
        ConversationNotFound: no store can hold a conversation of this id.
        InvalidArgument: the choice is none, or the reason cannot be stored.
    """
    checked_id(conversation)
    try:
        reason.encode()
    except UnicodeEncodeError:
        raise InvalidArgument("reason", "holds a lone surrogate, which UTF-8 cannot write") from None
    if forks not in get_args(ForksOnErase):
        raise InvalidArgument("forks", f"must be 'refuse', 'erase' or 'copy', not {forks!r}")


def erasure_report(done: Erasing, *, physical: bool, why_not: str = "", log: str = "") -> ErasureReport:
    """Return the report of an erasure.

    Args:
        done: what it did.
        physical: whether its bytes are gone from the files too.
        why_not: why they are not.
        log: what a server's log still holds.
    """
    left = {place: why for place, why in (("files", why_not), ("log", log)) if why}
    left["ids"] = f"stay in the list of those that are never given again: {', '.join(done.erased)}"
    if done.copied:
        left["forks"] = (
            f"keep what they shared as their own, and name what they were forked from: {', '.join(done.copied)}"
        )
    reached = {place: number for place, number in done.counts.items() if number}
    return ErasureReport(tuple(done.erased), reached, left=left, physical=physical)
