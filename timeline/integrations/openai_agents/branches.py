"""Find out from a session's items where an application goes back behind them, and what of them comes again.

Items are compared whole, ids included, and in order; none is known by its words alone. All of this is pure:
`timeline.integrations.openai_agents.going_back` carries it out.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.errors import needs
from timeline.events import ABANDONED
from timeline.integrations.openai_agents.history import POPPED
from timeline.integrations.openai_agents.items import answers, call_of, items_of
from timeline.log.protocol import Departure

with needs("openai-agents"):
    from agents.models.fake_id import FAKE_RESPONSES_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item, Window
    from timeline.integrations.openai_agents.history import Stored

_LEFT: Final = frozenset({ABANDONED, POPPED})
_RUN: Final = 2
"""Items in a row that show where a list ends: a single one may be said twice."""


class Branch(NamedTuple):
    """What an addition does to a log: what of it is shown otherwise, and the items to append, each as its blocks."""

    departure: Departure
    new: list[list[Block]]


def leaving(items: Sequence[Stored]) -> Departure:
    """Return the departure that abandons items."""
    return _changing(items, ())


def _changing(left: Sequence[Stored], again: Sequence[Stored]) -> Departure:
    return Departure(_versions(left), _versions(again))


def _versions(items: Sequence[Stored]) -> tuple[int, ...]:
    return tuple(version for stored in items for version in stored.versions)


# What was left comes again


class _Left(NamedTuple):
    """An item at the end of the log that was left.

    Attributes:
        item: as it was added.
        versions: of its blocks.
        unit: what it is left and shown with: its response, or that of the call it answers, or itself.
    """

    item: dict[str, Any]
    versions: tuple[int, ...]
    unit: object


def left_at_the_end(window: Window) -> list[_Left]:
    """Return the items behind the newest block that is shown, oldest first."""
    left: list[Item] = []
    for item in reversed(window.items):
        if not item.omitted:
            break
        if item.hide is not None and item.hide.reason in _LEFT:
            left.append(item)
    versions = {id(item.block): item.version for item in left}
    found: list[_Left] = []
    callers: dict[str, object] = {}
    for response_item, blocks in items_of([item.block for item in reversed(left)]):
        unit: object = blocks[0].response_id or versions[id(blocks[0])]
        if (call_id := call_of(response_item)) is not None:
            callers[call_id] = unit
        unit = callers.get(answers(response_item) or "", unit)
        found.append(_Left(response_item, tuple(versions[id(block)] for block in blocks), unit))
    return found


def taking_up(window: Window, new: list[list[Block]]) -> Branch:
    """Show again what the items begin with of what was left last; a response as a whole, or it is appended anew."""
    left = left_at_the_end(window)
    places: list[int] = []
    for blocks in new:
        start = places[-1] + 1 if places else 0
        item = items_of(blocks)[0][0]
        place = next((n for n in range(start, len(left)) if left[n].item == item), None)
        if place is None:
            break
        places.append(place)
    while places and {n for n, own in enumerate(left) if own.unit == left[places[-1]].unit} - {*places}:
        places.pop()
    revived = tuple(version for place in places for version in left[place].versions)
    return Branch(Departure(revived=revived), new[len(places) :])


# A call is answered again


def answered_again(window: Window, new: Sequence[Sequence[Block]]) -> list[str]:
    """Return the ids of the calls that items answer although none of the log, or among the items, waits for it."""
    waiting = {item.block.call_id for item in window.unanswered()}
    found: list[str] = []
    for blocks in new:
        item = items_of(blocks)[0][0]
        if (call_id := call_of(item)) is not None:
            waiting.add(call_id)
        elif (call_id := answers(item)) is not None and call_id not in waiting:
            found.append(call_id)
    return found


def answering_again(history: Sequence[Stored], new: list[list[Block]], answered: set[str]) -> Branch:
    """Leave what came of the first answer; of a call that was left, take its branch up again up to the answer.

    Args:
        history: all items of the log.
        new: the items, each as its blocks.
        answered: the ids of the calls that `answered_again` found. The items may bring other calls with their outputs.
    """
    items = [items_of(blocks)[0][0] for blocks in new]
    calls = [n for n, stored in enumerate(history) if call_of(stored.item) in answered]
    shown = [n for n in calls if not history[n].gone]
    if shown:
        return _from_the_first_answer(history, shown[-1], answered, new, items)
    left = [n for n in calls if history[n].gone in _LEFT]
    if left:
        return _in_the_branch_of(history, left[-1], answered, new)
    return Branch(Departure(), new)


def _from_the_first_answer(
    history: Sequence[Stored], call: int, answered: set[str], new: list[list[Block]], items: Sequence[dict[str, Any]]
) -> Branch:
    behind = [stored for stored in history[call:] if not stored.gone]
    first = next((n for n, stored in enumerate(behind) if answers(stored.item) in answered), len(behind))
    if all(answers(stored.item) is not None for stored in behind[first:]):  # nothing came of these answers yet
        again = [stored.item for stored in behind[first:] if stored.item in items]
        kept = [blocks for blocks, item in zip(new, items, strict=True) if item not in again]
        replaced = {answers(item) for item in items if item not in again}
        return Branch(leaving([stored for stored in behind[first:] if answers(stored.item) in replaced]), kept)
    return Branch(leaving(behind[first:]), new)


def _in_the_branch_of(history: Sequence[Stored], call: int, answered: set[str], new: list[list[Block]]) -> Branch:
    own = history[call]
    branch = _left_with(history, own)
    calls = {call_of(s.item) for s in history if s.response == own.response or s is own} - {None}
    end = call
    for n in branch:
        belongs = history[n].response == own.response or answers(history[n].item) in calls - answered
        end = n if n > end and own.response and belongs else end
    revived = [history[n] for n in branch if n <= end and answers(history[n].item) not in answered]
    apart = [stored for stored in history[branch[0] :] if not stored.gone]
    return Branch(_changing(apart, revived), new)


def _left_with(history: Sequence[Stored], own: Stored) -> list[int]:
    """Return the places of what was left together with an item: with nothing appended in between."""
    appended = sorted(version for stored in history for version in stored.versions)
    together = bisect(appended, own.gone_at)
    return [n for n, s in enumerate(history) if s.gone in _LEFT and bisect(appended, s.gone_at) == together]


# A run state is resumed whose next step is a call of the model


def behind_a_list(history: Sequence[Stored], listed: Sequence[tuple[str, Any]], added: int) -> Departure:
    """Return what is behind the end of a resumed run's list; of a branch that was left, also what comes again of it.

    Args:
        history: all items of the log.
        listed: the items of the list, each with its key.
        added: how many items the session got since a model was called: the run's own input is among them.
    """
    shown = [n for n, stored in enumerate(history) if not stored.gone]
    same = 0
    while same < added and listed and shown and _is_input(history[shown[-1]], listed[-1][0]):
        listed, shown, same = listed[:-1], shown[:-1], same + 1
    end = _end_of(listed, [history[n] for n in shown])
    if end is not None:
        return leaving([history[n] for n in shown[end + 1 :]])
    left = [n for n, stored in enumerate(history) if stored.gone in _LEFT]
    end = _end_of(listed, [history[n] for n in left])
    if end is None:
        return Departure()
    branch = _left_with(history, history[left[end]])
    apart = [history[n] for n in shown if n > branch[0]]
    return _changing(apart, [history[n] for n in branch if n <= left[end]])


def _end_of(listed: Sequence[tuple[str, Any]], items: Sequence[Stored]) -> int | None:
    """Return the last place up to which most is as in a list up to its end, at least two items; None for no such."""
    common = [_common(listed, items[: n + 1]) for n in range(len(items))]
    most = max(common, default=0)
    return None if most < min(_RUN, len(listed) or 1) else len(common) - 1 - common[::-1].index(most)


def _common(listed: Sequence[tuple[str, Any]], items: Sequence[Stored]) -> int:
    pairs = zip(reversed(listed), reversed(items), strict=False)
    return next(
        (number for number, ((key, item), own) in enumerate(pairs) if key != own.key or not _may_be(item, own.item)),
        min(len(listed), len(items)),
    )


def _may_be(item: Any, own: Any) -> bool:
    """Return whether two items of one content may be the same: not where both have ids, and other ones."""
    return _name(item) in {_name(own), ""} or not _name(own)


def _is_input(stored: Stored, key: str) -> bool:
    return stored.key == key and stored.item.get("role") == "user"


# A callback gives back an earlier history


def left_behind(history: Sequence[Any], combined: object, new: Sequence[Any]) -> list[int]:
    """Return the places of a history that a callback's list goes back behind; none where it merely trims it.

    It goes back if it has a part of the history without a gap, and nothing of what comes behind that. A list of the
    prompts alone is trimmed: a prompt is not asked right behind another one.

    Args:
        history: what the session gave.
        combined: what the callback returned.
        new: what the run adds.
    """
    if not isinstance(combined, list):
        return []  # the SDK says what is wrong with it
    kept = _kept(history, combined, {id(item) for item in new})
    if not kept or {*kept} != {*range(min(kept), max(kept) + 1)}:
        return []
    last = max(kept)
    while last >= 0 and history[last].get("type") == "reasoning":
        last -= 1  # a thought is nothing without what it led to
    if last < 0 or last + 1 == len(history) or _is_of_prompts(history[last], history[last + 1], new):
        return []
    called = {call_of(item) for item in history[: last + 1]} - {None}
    open_ = called - {answers(item) for item in history[: last + 1]}
    return [n for n, item in enumerate(history) if n > last or call_of(item) in open_]


def _kept(history: Sequence[Any], combined: Sequence[Any], new: set[int]) -> list[int]:
    """Return the places of what a list has of a history: as the very object, behind the one before it, or by its id."""
    objects = {id(item): place for place, item in enumerate(history)}
    names: defaultdict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(history):
        names[_name(item)].append(place)
    kept: list[int] = []
    for item in combined:
        following = kept[-1] + 1 if kept else len(history)
        by_name = names[name] if (name := _name(item)) else []
        places = [objects[id(item)]] if id(item) in objects else [following, *by_name]
        same = [n for n in places if n < len(history) and history[n] == item]
        if same and id(item) not in new:
            kept.append(same[0])
    return kept


def _name(item: Any) -> str:
    """Return the id that an item has for itself; empty for none."""
    own = item.get("id") or item.get("call_id") if isinstance(item, dict) else ""
    return str(own) if own and own != FAKE_RESPONSES_ID else ""


def _is_of_prompts(last: Any, following: Any, new: Sequence[Any]) -> bool:
    """Return whether a new prompt would come right behind the last one that a list kept, without its answer."""
    asks = bool(new) and new[0].get("role") == "user"
    return asks and last.get("role") == "user" and following.get("role") != "user"
