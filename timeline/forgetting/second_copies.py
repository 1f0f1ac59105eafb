"""Take out the second copy of a tool's result that Claude Code keeps beside the message, in the tool's own form.

No search for a quote finds that copy, since its form differs: a file without the numbers of its lines, two outputs
apart from each other, or a whole file where an edit shows a part.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from timeline.fold.window import TOMBSTONE
from timeline.frozen import strings_in

if TYPE_CHECKING:
    from collections.abc import Collection

    from timeline.events.other_payloads import FrameworkEntry

_COPY: Final = "toolUseResult"
_KEPT: Final = frozenset({"type", "agentId"})
"""Fields of the copy by which the client, and an import, find what belongs together."""


def without_second_copy(entry: FrameworkEntry, answered: Collection[str]) -> FrameworkEntry:
    """Return a framework's entry without its second copy of a redacted result.

    Args:
        entry: one line of Claude Code's, or any other entry, which stays as it is.
        answered: ids of the calls whose results are redacted.
    """
    row: Any = json.loads(entry.data) if isinstance(entry.data, str) and _COPY in entry.data else entry.data
    if not isinstance(row, dict) or _COPY not in row or not any(s in answered for s in strings_in(row.get("message"))):
        return entry
    left = {**row, _COPY: _emptied(row[_COPY])}
    return entry.model_copy(update={"data": json.dumps(left) if isinstance(entry.data, str) else left})


def _emptied(value: Any) -> Any:
    if isinstance(value, list):
        return [_emptied(item) for item in value]
    if isinstance(value, dict):
        return {key: item if key in _KEPT else _emptied(item) for key, item in value.items()}
    return TOMBSTONE if isinstance(value, str) and value else value
