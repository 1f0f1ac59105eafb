"""What differs between two contexts that were sent, or between two summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.audit.differences import Side, diff_sides
from timeline.audit.summaries import diff_summaries
from timeline.errors import InvalidFilter
from timeline.inspector.shapes import Difference
from timeline.wire import SENT

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedDifference
    from timeline.inspector.reader import Reader

_MOST: Final = 2_000
"""Rows of each list of blocks."""
_LISTS: Final = ("entered", "left", "changed")


async def show_difference(reader: Reader, asked: AskedDifference) -> Difference:
    """Compare two recorded contexts: which blocks entered, left or changed, and what broke the cache; or two summaries.

    The second context may be of another conversation: two forks are compared by what each was sent.

    Raises:
        InvalidFilter: there is no such wire format.
    """
    if "@" in asked.a + asked.b and asked.other is None:
        summaries = await diff_summaries(reader.store, asked.id, asked.a, asked.b)
        return Difference(conversation=asked.id, kind="summaries", difference=summaries.dump(), left_out={})
    wire = asked.wire.replace("-", "_")
    if wire not in SENT:
        raise InvalidFilter("wire", f"no request has the form {asked.wire!r}; there are {', '.join(SENT)}")
    sides = Side(asked.id, asked.a), Side(asked.other or asked.id, asked.b)
    found, _ = await diff_sides(reader.store, *sides, wires=[wire])
    return Difference(conversation=asked.id, kind="contexts", **_cut(found.dump()))


def _cut(dumped: dict[str, Any]) -> dict[str, Any]:
    left_out = {name: len(dumped[name]) - _MOST for name in _LISTS if len(dumped[name]) > _MOST}
    return {"difference": {**dumped, **{name: dumped[name][:_MOST] for name in left_out}}, "left_out": left_out}
