"""The uncached tail of a context: the memory digest, stage data, then the texts of the caller.

Each approval and each rewind changes what holds of the stages. The texts come behind the last message, so that no
change of theirs changes a prefix that the provider keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.planning.account import Tail
from timeline.planning.collapse_stages import digest_in_view, stage_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Window
    from timeline.policy.model import Policy


def tail_of(window: Window, policy: Policy, callers: Sequence[str] = ()) -> Tail:
    """Return the tail of a window's next context."""
    return Tail(digest_in_view(window, policy.memory_digest), stage_data(window, policy.stage_data), tuple(callers))


def shows_stages(text: str, policy: Policy) -> bool:
    """Return whether a text is a memory digest or stage data, by the heading that the policy gives it."""
    headings = [policy.memory_digest.heading, *([policy.stage_data.heading] if policy.stage_data else [])]
    return any(text.startswith(f"{heading}\n") for heading in headings)


def tail_from(window: Window, policy: Policy, texts: Sequence[str]) -> Tail:
    """Return a tail of which the texts are known, as its parts."""
    own = tail_of(window, policy)
    if list(texts[: len(own.texts)]) != own.texts:
        return Tail("", "", tuple(texts))  # recorded by a version that wrote other texts
    return own._replace(callers=tuple(texts[len(own.texts) :]))
