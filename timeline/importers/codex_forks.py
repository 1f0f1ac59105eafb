"""Find the rows of a Codex rollout that are its parent's, as in forks and in subagents that know their parent.

The client copies the parent's rows at once, its header and its token counts with them, in most versions with the time
of the copying. What they cost was paid in the parent's session, so it is no usage of this one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from timeline.importers.builder import parse_time
from timeline.wire.foreign import object_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.importers.lines import Record

_PAUSE: Final = timedelta(seconds=1)
"""Such a pause ends the copied rows: they come milliseconds apart, and no model answers as soon."""


def copied_until(session: str, records: Sequence[Record]) -> int:
    """Return the line of the last row that was copied from the parent's session; 0 where none was.

    Args:
        session: id of the session itself.
        records: all rows of the file, in order.
    """
    last, copied, at = 0, False, None
    for record in records:
        now = parse_time(record.value.get("timestamp"))
        if at is not None and now is not None and now - at >= _PAUSE:
            break
        if record.value.get("type") == "session_meta":
            copied = copied or text_of(object_of(record.value, "payload"), "id") not in {session, ""}
        at = now if at is None or (now is not None and now > at) else at
        last = record.line
    return last if copied else 0
