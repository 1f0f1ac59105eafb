"""Write a context as the SDK's own items, wherever it shows them unaltered; the rest is written from the log.

An item holds more than a block does: ids, a hosted tool's action, a thought that the provider has stored. A response is
sent as the SDK's items if all of it is shown, with a line for each call that was given up, or else as the wire writes
it, without thoughts that only the provider could look up: what such a thought led to may be gone.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import CustomBlock, ToolCall
from timeline.content.native import NATIVE
from timeline.frozen import compact_json
from timeline.integrations.openai_agents.history import key_of
from timeline.integrations.openai_agents.items import KEY, items_of
from timeline.wire.groups import Call, Response
from timeline.wire.neutral import INTERRUPTED
from timeline.wire.openai_responses import WITH_FORMS
from timeline.wire.openai_responses import items as written_items
from timeline.wire.responses_calls import output_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.projection.context import RenderedContext
    from timeline.wire.groups import Placed
    from timeline.wire.neutral import NeutralContext

_PLAIN: Final = frozenset({None, "message", "function_call", "function_call_output", "reasoning"})
"""Items that every model of the SDK is sent."""
_GIVEN_UP: Final = frozenset({"function_call", "custom_tool_call"})
"""Items of calls whose output may be any text, as that which says that there is none."""
_MOST_UNCOUNTED: Final = 4_000
"""Characters of an item that is sent again although its block is not counted, as a hosted tool's in an older log."""


def as_items(context: RenderedContext, listed: Sequence[tuple[Any, list[Block]]], *, plain: bool) -> list[Any]:
    """Return a context as items of the Responses API.

    Args:
        context: what is shown.
        listed: the SDK's list, each item with its blocks; an item of it goes out as it is there.
        plain: whether the SDK translates items for the model's wire, and only those that every model is sent.
    """
    return _Originals(context, listed, plain=plain).written()


class _Originals:
    """The items that the parts of a context are sent as, in the order of the log."""

    def __init__(self, context: RenderedContext, listed: Sequence[tuple[Any, list[Block]]], *, plain: bool) -> None:
        self._context = context
        self._plain = plain
        self._listed: defaultdict[str, list[Any]] = defaultdict(list)
        for item, blocks in listed:
            self._listed[key_of(blocks)].append(item)
        live = [item for item in context.window.items if not item.is_summary and not item.disowned]
        self._units = _units(live)
        self._unit_of = {item.block.path: unit for unit, members in self._units.items() for item in members}
        self._left = list(self._units)
        # A context is the end of a conversation: of two items that say the same the newer one is the list's newer one.
        self._items = {unit: self._whole(members) for unit, members in reversed(self._units.items())}

    def written(self) -> list[Any]:
        """Return the items of the whole context."""
        neutral = self._context.neutral
        written = written_items(_in_plain_forms(neutral) if self._plain else neutral, self._instead)
        return [*written, *self._beside_until(len(self._left))]

    def _instead(self, part: Placed | Response) -> list[Any] | None:
        """Return the items to send for a part of the context; None where it is written from the log."""
        unit = self._unit_of.get(_path_of(part))
        if unit is None or unit not in self._left:
            return None if unit is None or not self._items[unit] else []
        before = self._beside_until(self._left.index(unit))
        own = self._items[unit]
        del self._left[0]
        return None if own is None else [*before, *own]

    def _beside_until(self, place: int) -> list[Any]:
        """Return the items up to a place that no context shows by itself: those of hosted tools."""
        passed, self._left = self._left[:place], self._left[place:]
        beside = [unit for unit in passed if all(isinstance(item.block, CustomBlock) for item in self._units[unit])]
        return [item for unit in beside for item in self._items[unit] or ()]

    def _whole(self, members: Sequence[Item]) -> list[Any] | None:
        """Return the items of a unit; None where a part of it is shown otherwise, or is no item."""
        if not all(map(_is_shown, members)):
            return None
        answered = {item.answers for item in members}
        open_ = {id(i.block) for i in members if isinstance(i.block, ToolCall) and i.version not in answered}
        found, unanswered, is_given = list[Any](), list[Any](), True
        for item, blocks in reversed(items_of([member.block for member in members])):
            listed = self._listed[key_of(blocks)]
            is_given = is_given and bool(listed)
            sent = listed.pop() if listed else item
            if not isinstance(sent, dict) or (self._plain and sent.get("type") not in _PLAIN):
                return None
            if not open_.isdisjoint(map(id, blocks)):
                unanswered.append(sent)
            is_uncounted = any(isinstance(block, CustomBlock) and block.type != NATIVE for block in blocks)
            if not is_uncounted or len(compact_json(sent)) <= _MOST_UNCOUNTED:
                found.append(sent)
        # The SDK itself sends a call without its output only where the application gave it.
        given_up = [] if is_given else unanswered[::-1]
        if any(call.get("type") not in _GIVEN_UP for call in given_up):
            return None
        return [*found[::-1], *(output_item(call, None, INTERRUPTED) for call in given_up)]


def _in_plain_forms(neutral: NeutralContext) -> NeutralContext:
    """Return a context without what only OpenAI's Responses API has a form for; its calls are function calls."""
    marked = ((entry, entry.data is not None and entry.type in WITH_FORMS) for entry in neutral.entries)
    bare = tuple(entry.model_copy(update={"data": None}) if is_own else entry for entry, is_own in marked)
    return neutral.model_copy(update={"entries": bare})


def _units(live: Sequence[Item]) -> dict[int, list[Item]]:
    """Return what is sent or written as one, each under the version of its first item: responses with their results."""
    numbers = {item.block.response_id: item.response for item in live if item.response and item.block.response_id}
    units: dict[int, list[Item]] = {}
    firsts: dict[int, int] = {}
    newest = 0
    for item in live:
        number = item.response or numbers.get(item.block.response_id or "", 0)
        if number:
            unit = firsts.setdefault(number, item.version)
        elif item.block.meta.get(KEY) == {} and newest:
            unit = newest
        else:
            unit = item.version
        units.setdefault(unit, []).append(item)
        newest = unit
    return units


def _is_shown(item: Item) -> bool:
    return item.state in {"visible", "carried"} and KEY in item.block.meta


def _path_of(spoken: Placed | Response) -> str:
    part = spoken.parts[0] if isinstance(spoken, Response) else spoken
    return part.placed.entry.path if isinstance(part, Call) else part.entry.path
