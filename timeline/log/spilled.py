"""The conversation that keeps the large results of a session whole, where the session itself has previews of them."""

from __future__ import annotations

from typing import Final

_SUFFIX: Final = ".spilled"


def spilled_id(session: str) -> str:
    """Return the id of the conversation with a session's large results."""
    return f"{session}{_SUFFIX}"
