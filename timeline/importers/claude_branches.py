"""Which rows of a Claude Code session are in the client's context: a session may be resumed at any earlier row of it.

The client then writes on behind that row, into the same file. What it had written behind it stays there, and is in its
context no more, unless the session is resumed at a row of that branch again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.wire.anthropic import parts_of
from timeline.wire.foreign import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable

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


class _Said(NamedTuple):
    """A row of the conversation: the responses that it is part of or answers, and who says it."""

    uuid: str
    responses: frozenset[str]
    is_result: bool
    is_meta: bool


class _Branch(NamedTuple):
    """A part of the session that goes on from an earlier place.

    Attributes:
        start: number of its first row.
        place: number of the row that it goes on from; -1 for the beginning.
        beside: rows behind that place that it has as well: the other results of a response.
    """

    start: int
    place: int
    beside: frozenset[int]


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
        self._branches = [_Branch(0, -1, frozenset())]
        self._gone: set[int] = set()

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
        while place in self._gone:  # it was left when this row was given to the client, which has what came before it
            place -= 1
        self._places[uuid] = self._written[uuid] = place

    def turned_by(self, row: dict[str, Any]) -> Turned:
        """Return what a row changes about those before it; nothing for most."""
        if not is_prompt(row) or text_of(row, "uuid") in self._parents:
            return _STRAIGHT_ON
        named = text_of(row, "parentUuid")
        reached, between = self._behind(named)
        if not reached:
            return _STRAIGHT_ON
        place = self._places[reached]
        kept = self._said[place].responses if place >= 0 else frozenset()
        beside = {n for n in self._after(place) if n <= self._written[named] and self._said[n].responses & kept}
        left = [n for n in self._after(place) if n not in beside and n not in between]
        if not left or self._is_fork(reached, left):
            return _STRAIGHT_ON
        return self._turn(place, frozenset(beside), between, left)

    def _after(self, place: int) -> range:
        return range(place + 1, len(self._said))

    def _behind(self, uuid: str) -> tuple[str, frozenset[int]]:
        """Return the row that a link leads to, and the client's own messages that are on the way to it."""
        walked: set[str] = set()
        between: set[int] = set()
        while uuid and uuid not in walked:
            if uuid in self._places:
                place = self._places[uuid]
                if not (self._is_row(uuid) and self._said[place].is_meta):
                    return uuid, frozenset(between)
                between.add(place)
            walked.add(uuid)
            uuid = self._parents.get(uuid, "")
        return "", frozenset(between)

    def _is_row(self, uuid: str) -> bool:
        """Return whether a row with a place is one of the conversation, and none that stands in for others."""
        place = self._places[uuid]
        return place >= 0 and self._said[place].uuid == uuid

    def _is_fork(self, reached: str, left: Iterable[int]) -> bool:
        """Return whether a prompt names one of several results that came at a time, and nothing came behind them."""
        if not self._is_row(reached):
            return False
        result = self._said[self._places[reached]]
        return result.is_result and all(
            self._said[n].is_result and self._said[n].responses & result.responses for n in left
        )

    def _turn(self, place: int, beside: frozenset[int], between: frozenset[int], left: Iterable[int]) -> Turned:
        wanted = {*self._view(place), *beside, *between}
        again = wanted & self._gone
        # What was left before and is in front of the place stays as it is: its owner may have taken it back since.
        gone = {*left} | {n for n in range(len(self._said)) if n not in wanted and n not in self._gone}
        self._branches.append(_Branch(min(between, default=len(self._said)), place, beside))
        self._gone = (self._gone | gone) - again
        return Turned(self._uuids(gone), self._uuids(again))

    def _view(self, place: int) -> set[int]:
        """Return the numbers of the rows that were in the context when the row of a place was the newest one."""
        seen: set[int] = set()
        while place >= 0:
            branch = next(one for one in reversed(self._branches) if one.start <= place)
            seen.update(range(branch.start, place + 1), branch.beside)
            place = branch.place
        return seen

    def _uuids(self, numbers: Iterable[int]) -> frozenset[str]:
        return frozenset(self._said[n].uuid for n in numbers)

    def _responses_of(self, row: dict[str, Any]) -> frozenset[str]:
        message = row["message"]
        if row.get("type") == "assistant":
            response = text_of(message, "id")
            uses = (part for part in parts_of(message.get("content")) if part.get("type") == "tool_use")
            self._responses.update((text_of(part, "id"), response) for part in uses)
            return frozenset({response})
        return frozenset(self._responses[call] for call in _results(row) if self._responses.get(call))


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
