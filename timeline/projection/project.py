"""Projection: a window in, the neutral context out. Pure: no clock, no randomness, no I/O (design, invariant 4).

The covered range is gone from the window already, so slicing is nothing to do here; hidden blocks are shown as their
recorded replacements, then the cache points are placed on what is left (seed 002, render pipeline order).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.blocks import ToolCall, ToolResult
from timeline.frozen import begins_with
from timeline.projection.cache_points import Shown, cache_points
from timeline.projection.forms import entries_of
from timeline.projection.signatures import Signatures
from timeline.wire.neutral import Entry, NeutralContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from timeline.fold.window import Item, Window
    from timeline.policy.model import CachePointRule

PROJECTION: Final = 3
"""Number of the projection's format. Another number, another fingerprint; golden files hold each number's bytes."""


class _Made(NamedTuple):
    """Entries, and all that they were made of: their item, and whether it is loose, rewritten, in a loop."""

    item: Item
    form: tuple[bool, bool, bool]
    entries: tuple[Entry, ...]


class _Whole:
    """The last projection as a whole: a window that only goes on behind it is projected from there.

    What is appended changes no entry before it, so that such a window costs what is new in it; unless it was omitted
    meanwhile, and takes the call that it answers with it.
    """

    def __init__(self) -> None:
        self.signatures = Signatures(())
        self.items: tuple[Item, ...] = ()
        self.gone: set[int | None] = set()
        self.calls: set[int] = set()
        self.entries: list[Entry] = []
        self.shown = Shown()

    def is_continued_by(self, items: Sequence[Item]) -> bool:
        """Say whether a window begins with the very items of this one, and nothing behind them is omitted."""
        return begins_with(items, self.items) and not any(item.omitted for item in items[len(self.items) :])

    def shows_call(self, version: int | None) -> bool:
        """Say whether a call of a version is shown; None is no call."""
        return version in self.calls and version not in self.gone


class Projector:
    """Projects the windows of one conversation.

    It remembers the entries that it has made, so that an unchanged block costs next to nothing in the next context; the
    result is a pure function of the arguments all the same.
    """

    def __init__(self) -> None:
        self._made: dict[int, _Made] = {}
        self._whole = _Whole()

    def project(
        self,
        window: Window,
        rule: CachePointRule,
        *,
        policy: str = "",
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        ephemeral: Sequence[str] = (),
    ) -> NeutralContext:
        """Project a window.

        Args:
            window: what the model could see.
            rule: where cache points go.
            policy: hash of the policy that the rule is from.
            system: the system prompt, as the provider takes it.
            tools: tool schemas, as the provider takes them.
            ephemeral: texts for the uncached tail, said as the user and kept nowhere.
        """
        whole = self._of(window)
        beside = NeutralContext(
            system=system,
            tools=tuple(tools),
            cache_points=cache_points(whole.shown, rule),
            ephemeral=tuple(
                Entry(path="", type="ephemeral", role="user", text=text) for text in ephemeral if text.strip()
            ),
            policy=policy,
            model=window.model,
            kept_long=rule.kept_long,
        )
        return beside.model_copy(update={"entries": tuple(whole.entries)})  # checked when they were made, once each

    def entries(self, window: Window) -> tuple[list[Entry], list[Item]]:
        """Return the entries of a window, and for each the item that it shows."""
        whole = self._of(window)
        return [*whole.entries], [*whole.shown.items]

    def _of(self, window: Window) -> _Whole:
        """Project all of a window, from the last one on where it goes on behind it."""
        whole = self._whole
        if not whole.is_continued_by(window.items):
            whole = _Whole()
        new = window.items[len(whole.items) :]
        # A call whose result is omitted goes with it: without its result it would be told as interrupted.
        whole.gone.update(i.answers for i in new if i.omitted)
        whole.calls.update(i.version for i in new if isinstance(i.block, ToolCall) and not i.omitted)
        signatures = whole.signatures = whole.signatures.over(window.items)
        made: dict[int, _Made] = {}
        for item in new:
            loose = isinstance(item.block, ToolResult) and not whole.shows_call(item.answers)
            rewritten_at = signatures.rewritten_at(item)
            in_loop = rewritten_at > 0 and signatures.in_loop(item, rewritten_at)
            form = (loose, rewritten_at > 0, in_loop)
            if item.version in whole.gone:
                continue
            one = self._made.get(item.version)
            if one is None or one.item is not item or one.form != form:
                said = entries_of(item, loose=loose, rewritten=rewritten_at > 0, in_loop=in_loop)
                one = _Made(item, form, said)
            made[item.version] = one
            whole.entries += one.entries
            for _ in one.entries:
                whole.shown.add(item)
        if whole.items:
            self._made |= made
        else:
            self._made = made
        whole.items, self._whole = window.items, whole
        return whole
