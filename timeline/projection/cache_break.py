"""Find the probable cause of a broken prefix: the decision that changed the block at the first difference."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.frozen import compact_json

if TYPE_CHECKING:
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
        """The text that is sent where the piece is the last: Anthropic refuses white space at the end of an answer."""
        value = json.loads(self.text) if self.text.startswith('["assistant",{') else None
        if value is None or not isinstance(said := value[1].get("text"), str):
            return self.text
        return compact_json([value[0], {**value[1], "text": said.rstrip()}])


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of the first difference between two contexts.

    Attributes:
        kind: ``same``, ``appended``, ``tools``, ``system``, ``compaction``, ``undo``, ``hide``, ``reveal``,
            ``redaction``, ``late_result``, ``last_word``, ``shortened`` or ``unknown``.
        text: the cause in words.
        version: of the deciding event, where there is one.
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
        or Cause("unknown", "no decision explains it: run `timeline verify`")
    )


def _compaction(before: Window, after: Window, was: Piece) -> Cause | None:
    """Return a new compaction whose summary covers the block at the difference, or is in its place."""
    known = {compaction.block.path for compaction in before.summaries}
    old = _item(before, was.path)
    versions = {item.block.path: item.version for item in after.items if item.is_summary}
    for compaction in after.summaries:
        path = compaction.block.path
        if path not in known and (old is None or old.version in compaction.covers):
            return Cause("compaction", f"compaction at version {versions[path]}, into {path}", versions[path])
    return None


def _undo(before: Window, after: Window) -> Cause | None:
    """Return an undo: a summary is gone that no later summary covers."""
    live = {item.version for item in after.items}
    gone = [i for i in before.items if i.is_summary and i.version not in live]
    undone = [i for i in gone if not any(i.version in c.covers for c in after.summaries)]
    if not undone:
        return None
    return Cause("undo", f"the compaction of version {undone[-1].version} was taken back", undone[-1].version)


def _decision(before: RenderedContext, after: RenderedContext, was: Piece, now: Piece) -> Cause | None:
    """Return the decision between the contexts that changed how the block there, or one before it, is shown."""
    places = [i for i, item in enumerate(after.window.items) if item.block.path in {was.path, now.path}]
    reach = places[0] if places else len(after.window.items)
    changed = [
        (i, item)
        for i, item in enumerate(after.window.items)
        if item.changed_at > before.version and not item.is_summary
    ]
    if changed:
        # The last changed item up to the difference; if none, a wire wrote blocks before the first changed one anew.
        return _change(next((item for i, item in reversed(changed) if i <= reach), changed[0][1]))
    shown = _item(after.window, now.path)
    if shown is not None and shown.version > before.version:
        return Cause(
            "late_result", f"version {shown.version}, a late result, took the place kept for it", shown.version
        )
    if now.place == END:
        return Cause("shortened", "the later context ends here")
    return None


def _change(item: Item) -> Cause:
    at, path = item.changed_at, item.block.path
    if item.redacted:
        return Cause("redaction", f"{path} was redacted at version {at}", at)
    if item.omitted or item.replacement is not None:
        return Cause("hide", f"hide of version {at}: {path} and what went with it", at)
    return Cause("reveal", f"{path} was shown again at version {at}", at)


def _item(window: Window, path: str | None) -> Item | None:
    return next((item for item in window.items if item.block.path == path), None)
