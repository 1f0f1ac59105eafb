"""Where an application goes back behind items of a session, and on from there.

It pops items, clears the session and puts a part of them back, has a callback give back an earlier history, or resumes
an earlier `RunState` again. What is left of the log then is abandoned; what comes again as it was is shown again
instead of being stored twice. Each is found out from the items, whole and in order, and carried out in one append.
"""

from __future__ import annotations

from bisect import bisect
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.agent.messages import placed_in_turns
from timeline.events import ABANDONED
from timeline.integrations.openai_agents.history import POPPED, stored_items, whole_history
from timeline.integrations.openai_agents.items import answers, call_of, items_of
from timeline.log.protocol import Departure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline.blocks import Block
    from timeline.fold.turns import Turns
    from timeline.fold.window import Window
    from timeline.integrations.openai_agents.history import Stored
    from timeline.log.protocol import Draft
    from timeline.ports import EventStore
    from timeline.timeline import Timeline

_LEFT: Final = frozenset({ABANDONED, POPPED})


class Branch(NamedTuple):
    """What an addition does to a log: what of it is shown otherwise, and the items to append, each as its blocks."""

    departure: Departure
    new: list[list[Block]]


async def leave_newest(timeline: Timeline, store: EventStore) -> Stored | None:
    """Abandon the newest item of a session and return it; None where it has none."""
    found: list[Stored] = []

    async def choose() -> Branch:
        found[:] = await stored_items(store, timeline.id, newest=1)
        return Branch(_leaving(found), [])

    await _carry_out(timeline, choose)
    return found[0] if found else None


async def leave_all(timeline: Timeline, store: EventStore) -> None:
    """Abandon all items of a session."""

    async def choose() -> Branch:
        return Branch(_leaving(await stored_items(store, timeline.id)), [])

    await _carry_out(timeline, choose)


async def leave(timeline: Timeline, items: Sequence[Stored]) -> None:
    """Abandon items of a session."""

    async def choose() -> Branch:
        return Branch(_leaving(items), [])

    await _carry_out(timeline, choose)


async def went_on_elsewhere(timeline: Timeline, store: EventStore, new: list[list[Block]]) -> bool:
    """Append items that take up again what was left, or that answer calls anew; return whether these are such.

    Nothing is appended where they are not: `ListFollower.append` takes them.
    """
    await timeline.catch_up()
    window = timeline.window
    if not _left_at_the_end(window) and not _answered(window, new):
        return False

    async def choose() -> Branch:
        if _answered(timeline.window, new):
            return _answering_again(await whole_history(store, timeline.id), new)
        return _taking_up(timeline.window, new)

    await _carry_out(timeline, choose)
    return True


async def _carry_out(timeline: Timeline, choose: Callable[[], Awaitable[Branch]]) -> None:
    conversation = timeline._conversation  # noqa: SLF001 - of this library
    new: list[list[Block]] = []

    async def depart() -> Departure:
        branch = await choose()
        new[:] = branch.new
        return branch.departure

    async def place(turns: Turns) -> Sequence[Draft]:
        blocks = placed_in_turns(new, turns)
        return await conversation.drafts(blocks, conversation.new_ids(len(blocks), None), None)

    await conversation.log.go_back(depart, place, at=None, counter=conversation.counter.name)


def _leaving(items: Sequence[Stored]) -> Departure:
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


def _left_at_the_end(window: Window) -> list[_Left]:
    """Return the items behind the newest block that is shown, oldest first."""
    left = []
    for item in reversed(window.items):
        if not item.omitted:
            break
        if item.hide is not None and item.hide.reason in _LEFT:
            left.append(item)
    versions = {id(item.block): item.version for item in left}
    found: list[_Left] = []
    callers: dict[str, object] = {}
    for item, blocks in items_of([item.block for item in reversed(left)]):
        unit: object = blocks[0].response_id or versions[id(blocks[0])]
        if (call_id := call_of(item)) is not None:
            callers[call_id] = unit
        unit = callers.get(answers(item) or "", unit)
        found.append(_Left(item, tuple(versions[id(block)] for block in blocks), unit))
    return found


def _taking_up(window: Window, new: list[list[Block]]) -> Branch:
    """Show again what the items begin with of what was left last; a response as a whole, or it is appended anew."""
    left = _left_at_the_end(window)
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


def _answered(window: Window, new: Sequence[Sequence[Block]]) -> list[str]:
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


def _answering_again(history: Sequence[Stored], new: list[list[Block]]) -> Branch:
    """Leave what came of the first answer; of a call that was left, take its branch up again up to the answer."""
    said = [items_of(blocks)[0][0] for blocks in new]
    answered = {call_id for item in said if (call_id := answers(item)) is not None}
    calls = [n for n, stored in enumerate(history) if call_of(stored.item) in answered]
    shown = [n for n in calls if not history[n].gone]
    if shown:
        return _from_the_first_answer(history, shown[0], answered, new, said)
    left = [n for n in calls if history[n].gone in _LEFT]
    if left:
        return _in_the_branch_of(history, left[-1], answered, new)
    return Branch(Departure(), new)


def _from_the_first_answer(
    history: Sequence[Stored], call: int, answered: set[str], new: list[list[Block]], said: Sequence[dict[str, Any]]
) -> Branch:
    behind = [stored for stored in history[call:] if not stored.gone]
    first = next((n for n, stored in enumerate(behind) if answers(stored.item) in answered), len(behind))
    if all(answers(stored.item) is not None for stored in behind[first:]):  # nothing came of these answers yet
        again = [stored.item for stored in behind[first:] if stored.item in said]
        kept = [blocks for blocks, item in zip(new, said, strict=True) if item not in again]
        replaced = {answers(item) for item in said if item not in again}
        return Branch(_leaving([stored for stored in behind[first:] if answers(stored.item) in replaced]), kept)
    return Branch(_leaving(behind[first:]), new)


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


async def go_back_to(timeline: Timeline, store: EventStore, listed: Sequence[str], added: int) -> None:
    """Leave what the log has behind the end of a resumed run's list; take up the branch that the list is in.

    Args:
        timeline: the session's conversation.
        store: where it lives.
        listed: the keys of the run's items.
        added: how many items the session got since a model was called: the run's own input is among them.
    """

    async def choose() -> Branch:
        return Branch(_behind(await whole_history(store, timeline.id), listed, added), [])

    await _carry_out(timeline, choose)


def _behind(history: Sequence[Stored], listed: Sequence[str], added: int) -> Departure:
    shown = [n for n, stored in enumerate(history) if not stored.gone]
    same = 0
    while same < added and listed and shown and _is_input(history[shown[-1]], listed[-1]):
        listed, shown, same = listed[:-1], shown[:-1], same + 1
    end = _end_of(listed, [history[n].key for n in shown])
    if end is not None:
        return _leaving([history[n] for n in shown[end + 1 :]])
    left = [n for n, stored in enumerate(history) if stored.gone in _LEFT]
    end = _end_of(listed, [history[n].key for n in left])
    if end is None:
        return Departure()
    branch = _left_with(history, history[left[end]])
    apart = [history[n] for n in shown if n > branch[0]]
    return _changing(apart, [history[n] for n in branch if n <= left[end]])


def _end_of(listed: Sequence[str], keys: Sequence[str]) -> int | None:
    """Return the last place where items end as a list does, by the last two; None where there is none."""
    last = [*listed[-2:]]
    ends = (n for n in reversed(range(len(keys))) if [*keys[max(0, n + 1 - len(last)) : n + 1]] == last)
    return next(ends, None) if last else None


def _is_input(stored: Stored, key: str) -> bool:
    return stored.key == key and stored.item.get("role") == "user"


# A callback gives back an earlier history


def left_behind(history: Sequence[Any], combined: Sequence[Any], new: Sequence[Any]) -> list[int]:
    """Return the places of a history that a callback's list goes back behind; none where it merely trims it.

    It goes back if it has a part of the history without a gap, and nothing of what comes behind that. A list of the
    prompts alone is trimmed: a prompt is not asked right behind another one.

    Args:
        history: what the session gave.
        combined: what the callback returned.
        new: what the run adds.
    """
    given = {id(item) for item in new}
    kept: list[int] = []
    for item in combined:
        place = None if id(item) in given else _place_in(history, item, kept)
        if place is not None:
            kept.append(place)
    last = max(kept, default=len(history))
    is_part = {*kept} == {*range(min(kept, default=0), last + 1)}
    while 0 <= last < len(history) and history[last].get("type") == "reasoning":
        last -= 1  # a thought is nothing without what it led to
    if not is_part or last + 1 >= len(history) or _is_of_prompts(history[last : last + 2], new):
        return []
    called = {call_of(item) for item in history[: last + 1]} - {None}
    answered = {answers(item) for item in history[: last + 1]}
    open_ = called - answered
    return [n for n, item in enumerate(history) if n > last or call_of(item) in open_]


def _place_in(history: Sequence[Any], item: Any, kept: Sequence[int]) -> int | None:
    """Return the place of an item: the very object, or one with an id, or what follows the one before it."""
    following = kept[-1] + 1 if kept else len(history)
    for place, own in enumerate(history):
        is_known = "id" in own or "call_id" in own or place == following
        if own is item or (is_known and own == item):
            return place
    return None


def _is_of_prompts(around: Sequence[Any], new: Sequence[Any]) -> bool:
    """Return whether a new prompt would come right behind the last one that a list kept, without its answer."""
    roles = [item.get("role") for item in around]
    return bool(new) and new[0].get("role") == "user" and roles[0] == "user" and roles[1] != "user"
