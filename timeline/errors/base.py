"""The root of the error tree, and how an error of other people's code is put into words."""

from __future__ import annotations

from typing import Final

from timeline.frozen import repair_text

_MOST: Final = 2_000
"""Characters that are kept of an error's words: an SDK's may hold a whole response."""


class TimelineError(Exception):
    """Root of everything that this library raises on purpose."""


def described(error: BaseException) -> str:
    """Return an error's type and words as a text that can always be stored: valid UTF-8, of bounded length."""
    try:
        said = str(error)
    except Exception as broken:  # noqa: BLE001 - the class is an application's; its own failure must not hide the first
        said = f"its message cannot be read ({type(broken).__name__})"
    return brief(f"{type(error).__name__}: {said}")


def brief(text: str) -> str:
    """Return a text of other people's code as it can be stored: without lone surrogates, cut at 2,000 characters."""
    repaired = repair_text(text)
    return repaired if len(repaired) <= _MOST else f"{repaired[:_MOST]}… ({len(repaired):,} characters)"
