"""Group a context's entries into rounds, each response with its calls and their results, and the entries between them.

Every wire uses this. Entries are in timeline order, where a prompt may come between a call and its result; a request
needs each result right behind its call's message. A response keeps the place of its first entry, so that entries that
are appended later move nothing before them: a late result only fills the place that was kept for it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from timeline.frozen import sha256_hex

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from timeline.wire.neutral import Entry

OPENING_LINE: Final = "[The conversation goes on from here.]"
"""The fixed user line in front of an assistant's message that would be the first one, or where there is no message."""


class Placed(NamedTuple):
    """An entry with its number in the context, counted from 0."""

    number: int
    entry: Entry

    @property
    def first(self) -> int:
        """The number of its entry."""
        return self.number


@dataclass(slots=True, eq=False)
class Call:
    """A call of a response, with its result; ``item`` is the position of its response among the items."""

    placed: Placed
    item: int
    result: Placed | None = None


@dataclass(slots=True)
class Response:
    """One model response: `parts` in order, its calls among them; ``item`` is its position among the items."""

    response_id: str | None
    item: int
    parts: list[Placed | Call] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        """The calls, in order."""
        return [p for p in self.parts if isinstance(p, Call)]

    @property
    def first(self) -> int:
        """The number of its first entry."""
        part = self.parts[0]
        return part.placed.number if isinstance(part, Call) else part.number


Item: TypeAlias = Placed | Response
"""An entry addressed to the model, or a model response."""


def is_call(entry: Entry) -> bool:
    """Return whether an entry is sent as a tool call."""
    is_of_call = entry.type == "react.tool.call" or entry.arguments is not None
    return entry.role == "assistant" and entry.call_id is not None and is_of_call


def is_result(entry: Entry) -> bool:
    """Return whether an entry answers a call of this context."""
    return entry.role == "tool" and entry.call_id is not None and not entry.loose


def gather(entries: Iterable[Entry], *, first_number: int = 0) -> list[Item]:
    """Gather a context's entries into responses and the entries between them.

    A response continues while its id is the same, or, without an id, while no other entry comes between. A result joins
    the oldest unanswered call of its id and group, or else the newest of its id; a result without a call stays alone,
    and the wire sends it as text.
    """
    gatherer = Gatherer()
    for number, entry in enumerate(entries, start=first_number):
        gatherer.take(Placed(number, entry))
    return gatherer.items


class GatherMark(NamedTuple):
    """A state of a gatherer in which no call waited for its result.

    Attributes:
        items: how many items there were.
        newest: the newest response; None before the first.
        parts: how many parts the newest response had.
        unbroken: whether the newest response was still going on.
    """

    items: int
    newest: Response | None
    parts: int
    unbroken: bool


@dataclass(slots=True)
class Gatherer:
    """Gathers entries one by one, as `gather` does.

    Attributes:
        items: what was gathered so far. A later entry may still become part of a response.
        waiting: how many calls have no result yet.
    """

    items: list[Item] = field(default_factory=list)
    waiting: int = 0
    newest: Response | None = None
    unbroken: bool = False
    by_group: dict[tuple[str, int], deque[Call]] = field(default_factory=lambda: defaultdict(deque))
    by_id: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))

    def mark(self) -> GatherMark | None:
        """Return what was gathered so far, for `back_to`; None while a call waits: its result would join an item."""
        if self.waiting:
            return None
        return GatherMark(
            len(self.items), self.newest, 0 if self.newest is None else len(self.newest.parts), self.unbroken
        )

    def back_to(self, mark: GatherMark) -> int:
        """Forget the entries and marks since a mark; return the first item that may have changed."""
        del self.items[mark.items :]
        self.newest, self.unbroken, self.waiting = mark.newest, mark.unbroken, 0
        self.by_group.clear()  # all calls before the mark are answered
        self.by_id.clear()
        if mark.newest is None:
            return mark.items
        del mark.newest.parts[mark.parts :]
        return mark.newest.item

    def take(self, placed: Placed) -> int:
        """Take the next entry; return the position of the item that it is, or is part of."""
        entry = placed.entry
        if entry.role == "assistant":
            return self._say(placed)
        call = self._waiting(str(entry.call_id), entry.group) if is_result(entry) else None
        self.unbroken = False
        if call is not None:
            call.result = placed
            self.waiting -= 1
            return call.item
        self.items.append(placed)
        return len(self.items) - 1

    def _say(self, placed: Placed) -> int:
        entry = placed.entry
        newest = self.newest
        same = newest is not None and newest.response_id == entry.response_id
        if newest is None or not same or (entry.response_id is None and not self.unbroken):
            newest = self.newest = Response(entry.response_id, len(self.items))
            self.items.append(newest)
        self.unbroken = True
        if not is_call(entry):
            newest.parts.append(placed)
            return newest.item
        call = Call(placed, newest.item)
        newest.parts.append(call)
        self.waiting += 1
        self.by_group[str(entry.call_id), entry.group].append(call)
        self.by_id[str(entry.call_id)].append(call)
        return newest.item

    def _waiting(self, call_id: str, group: int) -> Call | None:
        """Find the oldest unanswered call of the group, else the newest of the id; answered calls are forgotten."""
        of_group = self.by_group[call_id, group]
        while of_group and of_group[0].result is not None:
            of_group.popleft()
        if of_group:
            return of_group[0]
        of_id = self.by_id[call_id]
        while of_id and of_id[-1].result is not None:
            of_id.pop()
        return of_id[-1] if of_id else None


@dataclass(slots=True)
class Ids:
    """Makes call ids fit a provider, each different from all before it; the same context gives the same ids."""

    pattern: re.Pattern[str]
    length: int
    taken: set[str] = field(default_factory=set)
    repeats: dict[str, int] = field(default_factory=dict)
    earlier: Ids | None = None
    given: list[str] = field(default_factory=list)
    repeated: list[tuple[str, int]] = field(default_factory=list)

    def mark(self) -> tuple[int, int]:
        """Return the state so far, for `cut`."""
        return len(self.given), len(self.repeated)

    def cut(self, mark: tuple[int, int]) -> Ids:
        """Return ids that go on from a mark; these do not change."""
        given, repeated = self.given[: mark[0]], self.repeated[: mark[1]]
        return Ids(self.pattern, self.length, {*given}, dict(repeated), self.earlier, given, repeated)

    def branch(self) -> Ids:
        """Return ids that go on from here; these do not change."""
        return Ids(self.pattern, self.length, earlier=self)

    def is_taken(self, given: str) -> bool:
        """Return whether an id was given to an earlier call."""
        return given in self.taken or (self.earlier is not None and self.earlier.is_taken(given))

    def times(self, base: str) -> int:
        """Return how often an id was made fit: 1 where it was given as it is."""
        return self.repeats.get(base) or (1 if self.earlier is None else self.earlier.times(base))

    def give(self, call_id: str) -> str:
        """Return the id to send for a call: its own, where the provider's rules and the earlier ids allow."""
        base = fit(call_id, self.pattern, self.length)
        given = base
        while self.is_taken(given):
            self.repeats[base] = number = self.times(base) + 1
            self.repeated.append((base, number))
            given = fit(f"{base}_{number}", self.pattern, self.length)
        self.taken.add(given)
        self.given.append(given)
        return given


def fit(word: str, pattern: re.Pattern[str], length: int) -> str:
    """Make a word fit a provider's pattern: a fitting word stays, any other keeps what fits and gets a hash.

    Where the pattern leaves no room for that, the word becomes a hash alone.
    """
    if len(word) <= length and pattern.fullmatch(word):
        return word
    kept = "_".join(pattern.findall(word))
    made = f"{kept[: length - 9]}_{sha256_hex(word)[:8]}" if kept else f"x_{sha256_hex(word)[:8]}"
    return made if pattern.fullmatch(made) else sha256_hex(word)[:length]


def said_to_model(entry: Entry) -> str:
    """Return the text of an entry that is sent under the user's role, labelled where it is not the user's own.

    No text of a conversation ever becomes a system message: a log may come from anywhere.
    """
    match entry.role:
        case "system":
            return f"[system message] {entry.text}" if entry.text.strip() else ""
        case "tool":
            return f"[result of {entry.name or entry.call_id or 'a tool'}, {entry.path}]\n{entry.text}"
        case _:
            return entry.text
