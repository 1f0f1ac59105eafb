"""Which rows of a Claude Code session are in the client's context: a session may be resumed at any earlier row of it.

The client then writes on behind that row, into the same file. What it had written behind it stays there, and is in its
context no more, unless the session is resumed at a row of that branch again.

Sets of rows are whole numbers, with the bit of each row: a session may be resumed at thousands of places, and each time
all of its rows are looked at.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.wire.anthropic import parts_of
from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CONVERSATION: Final = frozenset({"user", "assistant"})
"""The types of the rows that are part of the conversation."""


class Turned(NamedTuple):
    """What a prompt changes about the rows before it, by their uuids.

    Attributes:
        left: rows that it goes back behind.
        again: rows that were left before, and that it goes on from.
    """

    left: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()


_STRAIGHT_ON: Final = Turned()


class Change(NamedTuple):
    """The same by the numbers of the rows, as bits.

    Attributes:
        behind: rows behind the one that it goes on from, also those that were left before.
        left: rows that it leaves.
        again: rows that were left before, and that it goes on from.
    """

    behind: int
    left: int
    again: int


class _Said(NamedTuple):
    """A row of the conversation: the responses that it is part of or answers, and who says it."""

    uuid: str
    responses: frozenset[str]
    is_result: bool
    is_meta: bool


class _Branch(NamedTuple):
    """A part of the session that goes on from an earlier place: its first row, and the rows before it that it has."""

    start: int
    view: int


class Branches:
    """Follows the links of a session, row by row.

    Links fork at parallel calls, too: each result names its call. So only prompts are looked at, whose link names the
    newest row of the client's context.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._said: list[_Said] = []
        self._places: dict[str, int] = {}
        """By row of the conversation, its number; by one that stands in for rows, the number of the last of them."""
        self._written: dict[str, int] = {}
        """By row, the number of the newest row of the conversation when it was written."""
        self._responses: dict[str, str] = {}
        """By call, the response that it is in."""
        self._rows_of: dict[str, list[int]] = {}
        """By response, the rows that are part of it or answer it."""
        self._branches = [_Branch(0, 0)]
        """Each begins behind the one before it."""
        self._gone = 0

    @property
    def newest(self) -> str:
        """The uuid of the newest row of the conversation; empty where there is none."""
        return self._said[-1].uuid if self._said else ""

    def add(self, row: dict[str, Any]) -> None:
        """Read the links of a row, after `turned_by` was asked about it."""
        uuid = text_of(row, "uuid")
        if not uuid or uuid in self._parents:
            return
        self._parents[uuid] = text_of(row, "parentUuid")
        if _is_said(row):
            self._places[uuid] = len(self._said)
            responses, is_result = self._responses_of(row), bool(_results(row))
            for response in responses:
                self._rows_of.setdefault(response, []).append(len(self._said))
            self._said.append(_Said(uuid, responses, is_result, row.get("isMeta") is True))
        self._written[uuid] = len(self._said) - 1

    def add_stand_in(self, row: dict[str, Any], through: str | None) -> None:
        """Note a row that was given to the client in the place of the rows that were in its context.

        Args:
            row: says what those rows say, up to one; nothing of it is a row of the conversation.
            through: uuid of that one; empty for the beginning, None where it is not known.
        """
        uuid = text_of(row, "uuid")
        if not uuid or uuid in self._parents:
            return
        self._parents[uuid] = text_of(row, "parentUuid")
        newest = len(self._said) - 1
        place = newest if through is None else self._places.get(through, -1 if not through else newest)
        while place >= 0 and self._gone >> place & 1:
            place -= 1  # it was left when this row was given to the client, which has what came before it
        self._places[uuid] = self._written[uuid] = place

    def uuid_of(self, number: int) -> str:
        """Return the uuid of a row of the conversation."""
        return self._said[number].uuid

    def has_left(self, uuid: str) -> bool:
        """Return whether a row of the conversation is in its context no more."""
        place = self._places.get(uuid, -1)
        return place >= 0 and self._said[place].uuid == uuid and bool(self._gone >> place & 1)

    def turned_by(self, row: dict[str, Any]) -> Turned:
        """Return what a row changes about those before it; nothing for most."""
        change = self.change_by(row)
        if change is None:
            return _STRAIGHT_ON
        return Turned(self._uuids(change.behind | change.left), self._uuids(change.again))

    def change_by(self, row: dict[str, Any]) -> Change | None:
        """Return the same by numbers; None for most rows."""
        if not is_prompt(row) or text_of(row, "uuid") in self._parents:
            return None
        named = text_of(row, "parentUuid")
        reached, own = self._behind(named)
        if not reached or (place := self._places[reached]) == len(self._said) - 1:
            return None
        beside, between = self._beside(place, self._written[named]), _bits(own)
        behind = _range(place + 1, len(self._said)) & ~beside & ~between
        if not behind or self._is_fork(reached, behind):
            return None
        wanted = self._view(place) & ~behind | beside | between
        start = min(own, default=len(self._said))
        while self._branches[1:] and self._branches[-1].start >= start:
            self._branches.pop()
        self._branches.append(_Branch(start, wanted & ~between))
        # What was left before and is in front of the place stays as it is: its owner may have taken it back since.
        before, self._gone = self._gone, _range(0, len(self._said)) & ~wanted
        return Change(behind, self._gone & ~before, wanted & before)

    def _beside(self, place: int, until: int) -> int:
        """Return the rows behind a place, up to another one, that are part of its response or answer it."""
        found = 0
        for response in self._said[place].responses if place >= 0 else ():
            rows = self._rows_of[response]
            found |= _bits(rows[bisect_right(rows, place) : bisect_right(rows, until)])
        return found

    def _behind(self, uuid: str) -> tuple[str, frozenset[int]]:
        """Return the row that a link leads to, and the client's own messages that are on the way to it.

        The way through rows beside the conversation is shortened, so that the next walk is quick.
        """
        walked: set[str] = set()
        between: set[int] = set()
        beside: list[str] = []
        while uuid and uuid not in walked:
            if uuid in self._places:
                self._parents.update(dict.fromkeys(beside, uuid))
                beside = []
                place = self._places[uuid]
                if not (self._is_row(uuid) and self._said[place].is_meta):
                    return uuid, frozenset(between)
                between.add(place)
            else:
                beside.append(uuid)
            walked.add(uuid)
            uuid = self._parents.get(uuid, "")
        return "", frozenset(between)

    def _is_row(self, uuid: str) -> bool:
        """Return whether a row with a place is one of the conversation, and none that stands in for others."""
        place = self._places[uuid]
        return place >= 0 and self._said[place].uuid == uuid

    def _is_fork(self, reached: str, behind: int) -> bool:
        """Return whether a prompt names one of several results that came at a time, and nothing came behind them."""
        if not self._is_row(reached):
            return False
        result = self._said[self._places[reached]]
        return result.is_result and all(
            self._said[n].is_result and self._said[n].responses & result.responses for n in numbers_in(behind)
        )

    def _view(self, place: int) -> int:
        """Return the rows that were in the context when the row of a place was the newest one."""
        if place < 0:
            return 0
        branch = self._branches[bisect_left(self._branches, place + 1, key=lambda one: one.start) - 1]
        return branch.view | _range(branch.start, place + 1)

    def _uuids(self, rows: int) -> frozenset[str]:
        return frozenset(self._said[n].uuid for n in numbers_in(rows))

    def _responses_of(self, row: dict[str, Any]) -> frozenset[str]:
        message = row["message"]
        if row.get("type") == "assistant":
            response = text_of(message, "id")
            uses = (part for part in parts_of(message.get("content")) if part.get("type") == "tool_use")
            self._responses.update((text_of(part, "id"), response) for part in uses)
            return frozenset({response})
        return frozenset(self._responses[call] for call in _results(row) if self._responses.get(call))


def numbers_in(rows: int) -> Iterator[int]:
    """Yield the numbers of rows that are given as bits, in order."""
    while rows:
        lowest = rows & -rows
        yield lowest.bit_length() - 1
        rows ^= lowest


def _bits(numbers: Iterable[int]) -> int:
    rows = 0
    for number in numbers:
        rows |= 1 << number
    return rows


def _range(start: int, end: int) -> int:
    """Return the rows from one up to another, which is not among them."""
    return (1 << end) - (1 << start) if start < end else 0


def is_prompt(row: dict[str, Any]) -> bool:
    """Return whether a row is what a user says, or the client in the user's name; no summary and no result."""
    if not _is_said(row) or row.get("type") != "user":
        return False
    return row.get("isMeta") is not True and row.get("isCompactSummary") is not True and not _results(row)


def _is_said(row: dict[str, Any]) -> bool:
    return text_of(row, "type") in CONVERSATION and isinstance(row.get("message"), dict)


def _results(row: dict[str, Any]) -> list[str]:
    """Return the ids of the calls that a row answers."""
    parts = parts_of(row["message"].get("content")) if row.get("type") == "user" else []
    return [text_of(part, "tool_use_id") for part in parts if part.get("type") == "tool_result"]
