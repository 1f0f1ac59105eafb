"""Group a context's entries into rounds, each response with its calls and their results, and the entries between them.

Every wire uses this. Entries are in timeline order, where a prompt may come between a call and its result; a
request wants each result right behind its call's message. A response keeps the place of its first entry, so that
entries that are appended later move nothing before them: a late result only fills the place that was kept for it.
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
"""The fixed user line before an assistant's message that would otherwise be the first one."""


class Placed(NamedTuple):
    """An entry with its number in the context, counted from 0."""

    number: int
    entry: Entry


@dataclass(slots=True, eq=False)
class Call:
    """A call of a response, with its result."""

    placed: Placed
    result: Placed | None = None


@dataclass(slots=True)
class Response:
    """One model response: `parts` in order, its calls among them."""

    response_id: str | None
    parts: list[Placed | Call] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        """The calls, in order."""
        return [p for p in self.parts if isinstance(p, Call)]


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
    gatherer = _Gatherer()
    for number, entry in enumerate(entries, start=first_number):
        gatherer.take(Placed(number, entry))
    return gatherer.items


@dataclass(slots=True)
class _Gatherer:
    items: list[Item] = field(default_factory=list)
    newest: Response | None = None
    unbroken: bool = False
    by_group: dict[tuple[str, int], deque[Call]] = field(default_factory=lambda: defaultdict(deque))
    by_id: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))

    def take(self, placed: Placed) -> None:
        entry = placed.entry
        if entry.role == "assistant":
            self._say(placed)
        elif not (is_result(entry) and self._answer(placed)):
            self.items.append(placed)
            self.unbroken = False

    def _say(self, placed: Placed) -> None:
        entry = placed.entry
        newest = self.newest
        same = newest is not None and newest.response_id == entry.response_id
        if newest is None or not same or (entry.response_id is None and not self.unbroken):
            newest = self.newest = Response(entry.response_id)
            self.items.append(newest)
        self.unbroken = True
        if not is_call(entry):
            newest.parts.append(placed)
            return
        call = Call(placed)
        newest.parts.append(call)
        self.by_group[str(entry.call_id), entry.group].append(call)
        self.by_id[str(entry.call_id)].append(call)

    def _answer(self, placed: Placed) -> bool:
        call = self._waiting(str(placed.entry.call_id), placed.entry.group)
        if call is None:
            return False
        call.result = placed
        self.unbroken = False
        return True

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

    def give(self, call_id: str) -> str:
        """Return the id to send for a call: its own, where the provider's rules and the earlier ids allow."""
        base = fit(call_id, self.pattern, self.length)
        given = base
        while given in self.taken:
            self.repeats[base] = number = self.repeats.get(base, 1) + 1
            given = fit(f"{base}_{number}", self.pattern, self.length)
        self.taken.add(given)
        return given


def fit(word: str, pattern: re.Pattern[str], length: int) -> str:
    """Make a word fit a provider's pattern: a fitting word stays, any other keeps what fits and gets a hash."""
    if len(word) <= length and pattern.fullmatch(word):
        return word
    kept = "_".join(pattern.findall(word))
    return f"{kept[: length - 9]}_{sha256_hex(word)[:8]}" if kept else f"x_{sha256_hex(word)[:8]}"


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
