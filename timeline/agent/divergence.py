"""Find where a framework's list of messages leaves the log: what is new, what was abandoned, what is taken up again.

A user who edits a question, or has an answer written again, goes back to an earlier place of the framework's history,
and on from there. The log is append-only, so the tail that was left stays in it, and has to be omitted from contexts.
A list that merely lacks something leaves no tail: an application that trims its history to the newest messages, or to
the first and the newest, still ends where the log does.

A message is known by the id that its framework gave it, if that id is in the log. If it has another content there, it
was rewritten: it is appended again, with all that the list has behind it. A message without a known id is known by its
whole content and its place, right behind the message before it. The words alone are not enough: a question that is
asked again at an earlier place is not the later one.

All of this is a pure function of the two sequences; `ListFollower` carries its result out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUN: Final = 2
"""Fewest messages in a row that show where a trimmed list lies in the log: a single one may occur twice."""


class LoggedBlock(NamedTuple):
    """A block of the log.

    Attributes:
        version: of its event.
        key: content key.
        id: the framework's id of its message; empty where it has none that lasts.
        owned: whether a framework's list brought it. No list has what others appended, so that is never abandoned,
            except for a response behind something abandoned.
        shown: whether it is not abandoned.
        group: number of the response that it is part of or answers; 0 for none. A response is abandoned as a whole.
    """

    version: int
    key: str
    id: str = ""
    owned: bool = True
    shown: bool = True
    group: int = 0


class Given(NamedTuple):
    """A block of the framework's list: its content key, and the framework's id of its message, which may be empty."""

    key: str
    id: str = ""


class Divergence(NamedTuple):
    """Where a list leaves the log.

    Attributes:
        new: positions in the list of the blocks to append.
        abandoned: versions of the blocks that the list went back behind, rising.
        revived: versions of abandoned blocks that the list has again, rising.
    """

    new: tuple[int, ...]
    abandoned: tuple[int, ...] = ()
    revived: tuple[int, ...] = ()


def divergence(given: Sequence[Given], known: Sequence[LoggedBlock], *, whole: bool = False) -> Divergence:
    """Compare a framework's list with the log.

    Args:
        given: the blocks of the list, in order: all of the framework's history, or a part of it.
        known: the blocks of the log, in order.
        whole: whether the list is known to be the whole history. Then a list that shares nothing with the log left all
            of it; otherwise such a list counts as new messages without their history.
    """
    return _Comparison(given, known, whole=whole).divergence()


class _Comparison:
    def __init__(self, given: Sequence[Given], known: Sequence[LoggedBlock], *, whole: bool) -> None:
        self._given = given
        self._known = known
        self._whole = whole
        self._matched: dict[int, int] = {}
        """By position in the list: the position in the log."""
        self._ids_last = False
        """Whether the log has any id of the list. If it has none, the framework may have given old messages new ids."""

    def divergence(self) -> Divergence:
        self._match_ids()
        self._match_between()
        rewritten = self._first_rewritten()
        if rewritten is not None:
            self._matched = {number: place for number, place in self._matched.items() if place < rewritten}
            shown = [place for place, known in enumerate(self._known) if known.shown]
            return self._with_whole_responses(self._owned_behind({0: rewritten - 1}, shown))
        last = max(self._matched, default=-1)
        behind = self._matched.get(last, -1)
        left = [n for n in range(behind + 1, len(self._known)) if self._known[n].shown]
        tail = self._match_rest(last + 1, left, is_placed=behind >= 0)
        return self._with_whole_responses([*tail, *self._left_for_another_branch()])

    def _match_ids(self) -> None:
        """Match blocks whose id the log has with the same content; a shown block comes before an abandoned one."""
        places: defaultdict[Given, list[int]] = defaultdict(list)
        for place, known in enumerate(self._known):
            if known.id:
                places[_given(known)].append(place)
        behind = -1
        for number, block in enumerate(self._given):
            own = places.get(block, [])
            ahead = own[bisect_right(own, behind) :]
            if ahead:
                behind = next((own_place for own_place in ahead if self._known[own_place].shown), ahead[0])
                self._matched[number] = behind
        self._ids_last = bool(self._matched)

    def _first_rewritten(self) -> int | None:
        """Return the place of the first block that the list has otherwise or elsewhere; None where it only adds blocks.

        A list is read in order, and a log only grows. So all blocks of the list behind that place are appended again.
        """
        places = [self._first_said_otherwise(), self._first_moved()]
        return min((place for place in places if place is not None), default=None)

    def _first_moved(self) -> int | None:
        """Return the place of the first message, by id, that the list has behind one which follows it in the log."""
        elsewhere, matched = self._elsewhere(), {*self._matched.values()}
        places = (n for n, block in enumerate(self._known) if block.shown and n not in matched)
        return next((n for n in places if _given(self._known[n]) in elsewhere), None)

    def _elsewhere(self) -> set[Given]:
        """Return the blocks that list and log both have, by id, but the list in another place."""
        logged = {_given(block) for block in self._known if block.id and block.shown}
        return {b for n, b in enumerate(self._given) if b.id and n not in self._matched and b in logged}

    def _first_said_otherwise(self) -> int | None:
        """Return the place of the first block that the list has otherwise in front of a known block."""
        behind = -1
        gap: list[int] = []
        for number in range(max(self._matched, default=-1) + 1):
            if number not in self._matched:
                gap.append(number)
                continue
            place = self._matched[number]
            if gap:
                between = range(behind + 1, place)
                return next((n for n in between if self._known[n].shown and self._known[n].owned), place)
            behind = place
        return None

    def _match_between(self) -> None:
        """Match the rest in front of the last known message by content and order, each gap by itself.

        A message that the list has elsewhere, by its id, does not match one with the same words here.
        """
        start, behind, elsewhere = 0, -1, self._elsewhere()
        left = [block.shown and _given(block) not in elsewhere for block in self._known]
        for number, place in sorted(self._matched.items()):
            gap = [n for n in range(behind + 1, place) if left[n]]
            between = [n for n in range(start, number) if self._given[n] not in elsewhere]
            self._matched |= self._in_order(between, gap)
            start, behind = number + 1, place

    def _in_order(self, numbers: Sequence[int], places: Sequence[int]) -> dict[int, int]:
        """Match each block with the next place of its content."""
        by_key: defaultdict[str, list[int]] = defaultdict(list)
        for place in places:
            by_key[self._known[place].key].append(place)
        found: dict[int, int] = {}
        behind = -1
        for number in numbers:
            own = by_key.get(self._given[number].key, [])
            at = bisect_right(own, behind)
            if at < len(own):
                behind = found[number] = own[at]
        return found

    def _match_rest(self, start: int, left: list[int], *, is_placed: bool) -> list[int]:
        """Match the list from ``start`` on with the remaining places; return the places that it went back behind.

        Args:
            start: position in the list behind the last match.
            left: places of the log behind the last match.
            is_placed: whether there is a last match.
        """
        follows = self._right_behind(start, left)
        tail = self._owned_behind(follows, left)
        if tail:
            ending = self._up_to_the_end(start, left)
            if len(ending) > len(follows):
                follows, tail = ending, []
            elif not follows and not is_placed:
                follows, tail = self._placed_elsewhere(start, left, tail)
        self._matched |= follows
        behind = max(follows.values(), default=-1)
        others = [place for place in left if place > behind and not self._known[place].owned]
        self._matched |= self._in_order(range(start + len(follows), len(self._given)), others)
        return tail

    def _right_behind(self, start: int, left: Sequence[int]) -> dict[int, int]:
        """Match the blocks from ``start`` on one by one; only blocks that no list brought may lie in between."""
        found: dict[int, int] = {}
        at = 0
        for number in range(start, len(self._given)):
            place = at
            while place < len(left) and not self._is(left[place], number) and not self._known[left[place]].owned:
                place += 1
            if place == len(left) or not self._is(left[place], number):
                break
            found[number] = left[place]
            at = place + 1
        return found

    def _up_to_the_end(self, start: int, left: Sequence[int]) -> dict[int, int]:
        """Match the longest beginning that ends where the log does: the blocks in between were trimmed, not left."""
        end = self._newest_owned(left)
        for stop in range(len(self._given), start, -1):
            if self._may_be(left[end], stop - 1) and (found := self._backwards(start, stop, left[: end + 1])):
                return found
        return {}

    def _backwards(self, start: int, stop: int, places: Sequence[int]) -> dict[int, int]:
        """Match blocks from the last to the first, each with the newest remaining place; either all match, or none."""
        found: dict[int, int] = {}
        at = len(places)
        for number in reversed(range(start, stop)):
            at = next((n for n in reversed(range(at)) if self._may_be(places[n], number)), -1)
            if at < 0:
                return {}
            found[number] = places[at]
        return found

    def _placed_elsewhere(self, start: int, left: list[int], tail: list[int]) -> tuple[dict[int, int], list[int]]:
        """Place a list that neither begins where the log does nor reaches the log's end."""
        edited = self._first_edited(start)
        if edited is not None:
            return {}, [place for place in tail if place >= edited]
        runs = (self._right_behind(start, left[n:]) for n, place in enumerate(left) if self._is(place, start))
        longest = max(runs, key=len, default={}) if start < len(self._given) else {}
        if len(longest) >= _RUN:
            return longest, self._owned_behind(longest, left)
        return {}, tail if self._whole or self._ends_like_the_log(start, left) else []

    def _newest_owned(self, places: Sequence[int]) -> int:
        """Return the index of the newest of some places whose block a list brought."""
        return max(n for n, place in enumerate(places) if self._known[place].owned)

    def _ends_like_the_log(self, start: int, left: list[int]) -> bool:
        """Return whether the list ends with the log's last messages behind another beginning: one was rewritten."""
        end = self._newest_owned(left)
        for stop in range(start + _RUN, len(self._given) + 1):
            ending = range(stop - _RUN, stop)
            if self._may_be(left[end], stop - 1) and self._backwards(ending.start, ending.stop, left[: end + 1]):
                return True
        return False

    def _first_edited(self, start: int) -> int | None:
        """Return the place of the first shown block whose id the list has with another content."""
        ids = {block.id for block in self._given[start:] if block.id}
        return next((n for n, block in enumerate(self._known) if block.shown and block.id in ids), None)

    def _left_for_another_branch(self) -> list[int]:
        """Return the places of the branch that was shown, if the list takes up an abandoned branch.

        These places may lie in front of the branch that is taken up. In any other list they would merely be trimmed.
        """
        again = next((n for n, place in sorted(self._matched.items()) if not self._known[place].shown), None)
        if again is None:
            return []
        common = max((place for number, place in self._matched.items() if number < again), default=-1)
        matched = set(self._matched.values())
        return [n for n, b in enumerate(self._known) if n > common and b.shown and b.owned and n not in matched]

    def _owned_behind(self, found: dict[int, int], left: Sequence[int]) -> list[int]:
        behind = max(found.values(), default=-1)
        return [place for place in left if place > behind and self._known[place].owned]

    def _is(self, place: int, number: int) -> bool:
        return self._known[place].key == self._given[number].key

    def _may_be(self, place: int, number: int) -> bool:
        """Return whether two blocks may be the same although others lie in between; different lasting ids say no."""
        one, other = self._known[place].id, self._given[number].id
        return self._is(place, number) and (not self._ids_last or not one or not other or one == other)

    def _with_whole_responses(self, tail: Sequence[int]) -> Divergence:
        """Abandon responses as a whole; blocks of them that the list still has are appended anew, to be answered anew.

        A response that somebody else recorded, and that no list ever had, answers what was said before it. So behind
        something abandoned it is abandoned, too.
        """
        gone = set(tail)
        behind, again = min(gone, default=len(self._known)), set(self._matched.values())
        gone.update(n for n, b in enumerate(self._known) if n > behind and b.shown and b.group and n not in again)
        groups = {self._known[place].group for place in gone} - {0}
        gone.update(n for n, block in enumerate(self._known) if block.shown and block.group in groups)
        matched = {number: place for number, place in self._matched.items() if place not in gone}
        revived = {self._known[place].version for place in matched.values() if not self._known[place].shown}
        return Divergence(
            new=tuple(number for number in range(len(self._given)) if number not in matched),
            abandoned=tuple(sorted({self._known[place].version for place in gone} - revived)),
            revived=tuple(sorted(revived)),
        )


def _given(block: LoggedBlock) -> Given:
    """Return a block of the log as a framework's list has it."""
    return Given(block.key, block.id)
