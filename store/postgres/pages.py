"""What an examination finds on a page of a store, and how each of it is cured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from timeline.ports import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence


class Wrong(NamedTuple):
    """What is wrong, and the statements with their parameters that make it right; none where nothing does."""

    finding: Finding
    cure: Sequence[tuple[str, Sequence[Any]]] = ()


class Page(NamedTuple):
    """What was found on a page, and where the next one begins; None behind the last page.

    With ``lacking``, tables are missing: nothing can be compared until they are there again.
    """

    wrong: list[Wrong]
    reached: int | None = None
    lacking: bool = False


def wrong(what: str, problem: str, *cure: tuple[str, Sequence[Any]]) -> Wrong:
    """Return what is wrong, and can be made anew if there is a cure."""
    return Wrong(Finding(what, problem, derivable=bool(cure)), cure)
