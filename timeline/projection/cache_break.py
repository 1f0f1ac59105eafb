"""Find the probable cause of a broken prefix: the decision that changed the block at the first difference."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import CompactionCompleted
    from timeline.fold.window import Item, Window
    from timeline.projection.context import RenderedContext

END: Final = "end"
"""Name of the place behind the last piece."""


class Piece(NamedTuple):
    """A piece of a request: its place, its text on one line, and the path of the block that it shows, if known."""

    place: str
    text: str
    path: str | None = None

    @property
    def closed(self) -> str:
        """The text of the piece where it is the last one: Anthropic refuses white space at the end of an answer."""
        value = json.loads(self.text) if self.text.startswith('["assistant",{') else None
        if value is None or not isinstance(text := value[1].get("text"), str):
            return self.text
        return compact_json([value[0], {**value[1], "text": text.rstrip()}])


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of the first difference between two contexts.

    Attributes:
        kind: ``same``, ``appended``, ``tools``, ``system``, ``compaction``, ``undo``, ``hide``, ``reveal``,
            ``redaction``, ``late_result``, ``last_word``, ``shortened``, ``forked`` or ``unknown``.
        text: the cause in words.
        version: of the deciding event, where there is one; of a fork, the last version that both logs share.
    """

    kind: str
    text: str
    version: int | None = None


SAME: Final = Cause("same", "nothing differs")


def cause_of(before: RenderedContext, after: RenderedContext, was: Piece, now: Piece) -> Cause:
    """Return the probable cause of the first difference, which lies in the pieces ``was`` and ``now``."""
    if was.place == END:
        return Cause("appended", "only appended: the prefix is intact")
    for kind, words in (("tool", "the tools changed"), ("system", "the system prompt changed")):
        if was.place.startswith(kind) or now.place.startswith(kind):
            return Cause("tools" if kind == "tool" else "system", words)
    if was.closed == now.closed:
        return Cause("last_word", "an answer that is the last word is sent without the white space at its end")
    return (
        _compaction(before.window, after.window, was)
        or _undo(before.window, after.window)
        or _decision(before, after, was, now)
        or _compaction_in_front(before.window, after.window)
        or Cause("unknown", "no decision explains it: run `timeline verify`")
    )


def _compaction(before: Window, after: Window, was: Piece) -> Cause | None:
    """Return a new compaction as a cause: its summary covers the block at the difference, or is in its place."""
    old = _item(before, was.path)
    return _into(after, [c for c in _new(before, after) if old is None or old.version in c.covers])


def _compaction_in_front(before: Window, after: Window) -> Cause | None:
    """Return the newest compaction since, as the cause of a change in the message at the difference.

    Some wires join neighbouring messages of one role, so a message changes when a compaction takes the part in front of
    a block. This is asked last, since a decision about the block itself is the more likely cause.
    """
    return _into(after, _new(before, after)[::-1])


def _new(before: Window, after: Window) -> list[CompactionCompleted]:
    """Return the compactions that are in force afterwards and were not before, oldest first."""
    known = {compaction.block.path for compaction in before.summaries}
    return [compaction for compaction in after.summaries if compaction.block.path not in known]


def _into(after: Window, compactions: Sequence[CompactionCompleted]) -> Cause | None:
    """Return the first of some compactions as a cause."""
    if not compactions:
        return None
    path = compactions[0].block.path
    version = next(item.version for item in after.items if item.block.path == path)
    return Cause("compaction", f"compaction at version {version}, into {path}", version)


def _undo(before: Window, after: Window) -> Cause | None:
    """Return an undo as a cause: a summary is gone that no later summary covers."""
    live = {item.version for item in after.items}
    gone = [i for i in before.items if i.is_summary and i.version not in live]
    undone = [i for i in gone if not any(i.version in c.covers for c in after.summaries)]
    if not undone:
        return None
    return Cause("undo", f"the compaction of version {undone[-1].version} was taken back", undone[-1].version)


def _decision(before: RenderedContext, after: RenderedContext, was: Piece, now: Piece) -> Cause | None:
    """Return the decision between the contexts that changed how the block of the piece, or one before it, is shown."""
    places = [i for i, item in enumerate(after.window.items) if item.block.path in {was.path, now.path}]
    reach = places[0] if places else len(after.window.items)
    changed = [
        (i, item)
        for i, item in enumerate(after.window.items)
        if item.changed_at > before.version and not item.is_summary and not _is_new(item, before)
    ]
    if changed:
        # Take the last changed item up to the difference; without one, a wire rewrote blocks before the first changed.
        return _change(next((item for i, item in reversed(changed) if i <= reach), changed[0][1]))
    shown = _item(after.window, now.path)
    if shown is not None and shown.version > before.version:
        return Cause(
            "late_result", f"version {shown.version}, a late result, took the place kept for it", shown.version
        )
    if now.place == END:
        return Cause("shortened", "the later context ends here")
    return None


def _is_new(item: Item, before: RenderedContext) -> bool:
    """Return whether a block was abridged before it was first sent: that changes nothing that was sent."""
    return item.state == "abridged" and item.version > before.version


def _change(item: Item) -> Cause:
    at, path = item.changed_at, item.block.path
    if item.redacted:
        return Cause("redaction", f"{path} was redacted at version {at}", at)
    if item.omitted or item.replacement is not None:
        return Cause("hide", f"hide of version {at}: {path} and what went with it", at)
    return Cause("reveal", f"{path} was shown again at version {at}", at)


def _item(window: Window, path: str | None) -> Item | None:
    return next((item for item in window.items if item.block.path == path), None)
