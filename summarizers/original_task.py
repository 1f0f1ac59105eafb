"""Find the original task, with which a conversation began, even where its beginning is gone (keep-last design, ruling).

A log keeps the first prompt for ever. A plain list of messages does not: after a summary, its first message is only the
oldest one left. There only the summary itself knows the task.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .layouts import SECTIONS, UNKNOWN_TASK

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest

_OTHERS: Final = "|".join(
    re.escape(part.heading.splitlines()[0].lstrip("# ")) for part in SECTIONS.parts if part.empty != UNKNOWN_TASK
)
_TOLD: Final = re.compile(
    rf"^#+ Original Task[ \t]*\n(?P<task>.*?)(?=^#+ (?:{_OTHERS})[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)


def original_task(request: SummaryRequest) -> str | None:
    """Return the task with which a request's conversation began; None where neither log nor earlier summary has it."""
    if request.original_task:
        return request.original_task
    if not request.previous:
        return request.task
    found = _TOLD.search(request.previous)
    task = found["task"].strip() if found else ""
    return task if task and task != UNKNOWN_TASK else None
