"""Put a recording in timeline order: a response's blocks, the model call, its results, then what came in between.

Recorded rows interleave (a call may be answered while its response still streams), so a response is collected until the
next one begins. The builder assigns turns, keys and times, and matches results with calls; each format's module decides
what a row means. A conversation that is still being written is taken from it bit by bit, in nearly the same order. Two
helpers that all formats share are here, too: reading a time, and the block of a client's message.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import CustomBlock, ToolCall, ToolResult, UserPrompt, stem
from timeline.events import BlockAppended
from timeline.importers.recording import RecordedEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.events import ModelCalled
    from timeline.importers.recording import ImportedCompaction, ImportedHide, Report

UNKNOWN_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The first time of a recording that has no times."""
SECONDS: Final = 1
MILLISECONDS: Final = 1_000
"""How many of what a stamp counts are a second."""
_MOST_SECONDS: Final = 1e11
"""A larger stamp counts milliseconds."""
CLIENT_MESSAGE: Final = "client.message"
"""The type of a client's message in the user's role: the model sees it, but it is no prompt."""


def client_message(text: str, **meta: JsonValue) -> CustomBlock:
    """Return the block of a client's message in the user's role; it opens no turn."""
    return CustomBlock(type=CLIENT_MESSAGE, author="client", text=text, meta=meta)


def parse_time(value: Any) -> datetime | None:
    """Parse a recorded time, in UTC if it has no zone; return None if it is no time."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def time_of_stamp(stamp: Any, *, per_second: int) -> datetime | None:
    """Return the time, in UTC, of a number counted since 1970, `MILLISECONDS` say; None if it is no time."""
    if not isinstance(stamp, int | float) or isinstance(stamp, bool) or stamp <= 0:
        return None
    try:
        return datetime.fromtimestamp(stamp / per_second, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def time_of_any_stamp(stamp: Any) -> datetime | None:
    """Return the time of a number that counts seconds or milliseconds, which its size shows; None if it is no time."""
    is_large = isinstance(stamp, int | float) and stamp > _MOST_SECONDS
    return time_of_stamp(stamp, per_second=MILLISECONDS if is_large else SECONDS)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a block was read: its stable key, its line, and its time, or None if the record has none."""

    key: str
    line: int
    at: datetime | None


@dataclass(slots=True)
class _Slot:
    """A place in the recording: a single event, or a response with its model call and its results."""

    turn: int
    number: int = 0
    events: list[RecordedEvent] = field(default_factory=list)
    call: RecordedEvent | None = None
    called_at: datetime | None = None
    """The time of the call's first report, which is known whenever the call is taken."""
    results: list[RecordedEvent] = field(default_factory=list)
    taken: list[int] = field(default_factory=lambda: [0, 0, 0])
    """How many events, calls and results `RecordingBuilder.take` has returned."""

    def take(self, *, is_last: bool) -> list[RecordedEvent]:
        """Return what is new; the call, and the results behind it, only once the response ended."""
        ready = [self.events, [], []]
        if self.call is not None and (not is_last or self.results or self._has_ended(self.call.payload)):
            ready[1] = [replace(self.call, at=self.called_at or self.call.at)]
        if self.call is None or ready[1]:
            ready[2] = self.results
        new = [event for part, seen in zip(ready, self.taken, strict=True) for event in part[seen:]]
        self.taken = [max(len(part), seen) for part, seen in zip(ready, self.taken, strict=True)]
        return new

    def _has_ended(self, call: Any) -> bool:
        """Return whether the provider said that the response is over, and nothing that it announced is missing."""
        asks = call.finish_reason == "tool_use"
        return call.finish_reason is not None and (not asks or any(_is_call(event) for event in self.events))

    def in_order(self) -> list[RecordedEvent]:
        return [*self.events, *([self.call] if self.call else []), *self.results]


@dataclass(slots=True)
class _Call:
    """A call: the slot of its result, and whether it is answered."""

    slot: _Slot
    name: str
    line: int
    answered: bool = False


class RecordingBuilder:
    """Collects one conversation. Add blocks in file order; `finish` returns the events in timeline order.

    Attributes:
        first_prompt: the first prompt of `add_said` with a text, for a title; empty until there is one.
    """

    def __init__(self, report: Report, *, first_time: datetime | None = None) -> None:
        self.first_prompt: str = ""
        self._report = report
        self._time = first_time or UNKNOWN_TIME
        self._slots: list[_Slot] = []
        self._untaken = 0
        self._responses: dict[str, _Slot] = {}
        self._newest: _Slot | None = None
        self._calls: dict[str, _Call] = {}
        self._paths: dict[str, str] = {}
        self._early: list[tuple[_Slot, ToolResult, int]] = []
        self._keys: Counter[str] = Counter()
        self._turn = 1
        self._turn_is_open = False

    def path_of_call(self, call_id: str) -> str | None:
        """Return the path that the first call of this id will have in the log."""
        return self._paths.get(call_id)

    def open_turn(self) -> None:
        """Begin a new turn, unless the present one has no prompt and no response yet."""
        if self._turn_is_open:
            self._turn += 1
        self._turn_is_open = True

    def add_said(self, message: Iterable[tuple[Block, Origin]]) -> None:
        """Append one message to the model, part by part; the user's first part opens a turn."""
        opens = True
        for block, origin in message:
            if isinstance(block, ToolResult):
                self.add_result(block, origin)
                continue
            if opens and block.author == "user":
                self.open_turn()
                opens = False
            if isinstance(block, UserPrompt):
                self.first_prompt = self.first_prompt or block.text
            self.add(block, origin)

    def add(self, block: Block, origin: Origin) -> None:
        """Append a block that does not belong to a response."""
        slot = self._slot()
        slot.events.append(self._event(block, origin, self._turn))

    def add_event(self, payload: ImportedCompaction | ImportedHide, origin: Origin) -> None:
        """Append a decision of the recorded client; later results stay behind it."""
        self._slot().events.append(RecordedEvent(payload, self._at(origin), self._key(origin.key)))
        self._newest = None

    def add_to_response(self, response_id: str, block: Block, origin: Origin) -> None:
        """Append a block to a response, which begins with its first block."""
        slot = self._response(response_id)
        slot.events.append(self._event(block, origin, slot.turn))
        if isinstance(block, ToolCall):
            self._paths.setdefault(block.call_id, stem(block.model_copy(update={"turn_id": f"turn_{slot.turn}"})))
            if block.call_id in self._calls:
                self._report.note("duplicate_call", origin.line, block.call_id)
            self._calls[block.call_id] = _Call(slot, block.name, origin.line)

    def set_model_call(self, response_id: str, payload: ModelCalled, origin: Origin) -> None:
        """Set the model call of a response; of several reports the last one counts."""
        slot = self._response(response_id)
        key = slot.call.key if slot.call else self._key(f"{response_id}.called")
        # A call may be set late, at the time of its response: where no figures of it came, say. No clock went back.
        at = origin.at if origin.at is not None and origin.at < self._time else self._at(origin)
        slot.call = RecordedEvent(payload, at, key)
        slot.called_at = slot.called_at or slot.call.at

    def add_result(self, block: ToolResult, origin: Origin) -> None:
        """Append a result behind its response, or in file order if another response has begun since."""
        call = self._calls.get(block.call_id)
        if call is None:
            slot = self._slot()
            slot.events.append(self._event(block, origin, self._turn))
            self._early.append((slot, block, origin.line))
            return
        self._answer(call, block, origin.line)
        named = block if block.name else block.model_copy(update={"name": call.name})
        if call.slot is self._newest:
            call.slot.results.append(self._event(named, origin, call.slot.turn))
        else:
            self._slot().events.append(self._event(named, origin, self._turn))

    def finish(self) -> tuple[RecordedEvent, ...]:
        """Return the events, and report calls without results and results without calls."""
        for slot, block, line in self._early:
            self._place_early_result(slot, block, line)
        for call_id, call in self._calls.items():
            if not call.answered:
                self._report.note("unanswered_call", call.line, call_id)
        return tuple(event for slot in self._slots for event in slot.in_order())

    def take(self) -> list[RecordedEvent]:
        """Return the events that no earlier call returned: for a log that grows with the recorded conversation.

        A part of a response that comes after its end was taken is behind it, and a result whose call is missing stays
        where it was read. Keys and times are those of `finish`, but for the time of a model call: it is that of the
        first report, so that it does not depend on how often the events are taken.
        """
        start, self._untaken = self._untaken, max(0, len(self._slots) - 1)
        if self._newest is not None:  # it may go on yet
            self._untaken = min(self._untaken, self._newest.number)
        last = len(self._slots) - 1
        return [event for slot in self._slots[start:] for event in slot.take(is_last=slot.number == last)]

    def _place_early_result(self, slot: _Slot, block: ToolResult, line: int) -> None:
        call = self._calls.get(block.call_id)
        if call is None:
            self._report.note("orphan_result", line, block.call_id)
            return
        self._answer(call, block, line)
        event = slot.events.pop()
        turn_id = f"turn_{call.slot.turn}"
        named = block.model_copy(update={"name": block.name or call.name, "turn_id": turn_id, "at": event.at})
        call.slot.results.append(replace(event, payload=_appended(named)))

    def _answer(self, call: _Call, block: ToolResult, line: int) -> None:
        if call.answered:
            self._report.note("duplicate_call", line, f"a second result for {block.call_id}")
        call.answered = True

    def _slot(self) -> _Slot:
        slot = _Slot(self._turn, len(self._slots))
        self._slots.append(slot)
        return slot

    def _response(self, response_id: str) -> _Slot:
        slot = self._responses.get(response_id)
        if slot is None:
            slot = self._responses[response_id] = self._newest = self._slot()
            self._turn_is_open = True
        self._untaken = min(self._untaken, slot.number)
        return slot

    def _event(self, block: Block, origin: Origin, turn: int) -> RecordedEvent:
        at = self._at(origin)
        placed = block.model_copy(update={"turn_id": f"turn_{turn}", "at": at})
        return RecordedEvent(_appended(placed), at, self._key(origin.key))

    def _at(self, origin: Origin) -> datetime:
        if origin.at is None:
            self._report.note("missing_time", origin.line)
            return self._time
        if origin.at < self._time:
            self._report.note("clock_back", origin.line, f"by {self._time - origin.at}")
        self._time = origin.at
        return origin.at

    def _key(self, key: str) -> str:
        unique = key
        while unique in self._keys:
            self._keys[key] += 1
            unique = f"{key}~{self._keys[key]}"
        self._keys[unique] += 1
        return unique


def _is_call(event: RecordedEvent) -> bool:
    return isinstance(event.payload, BlockAppended) and isinstance(event.payload.block, ToolCall)


def _appended(block: Block) -> BlockAppended:
    return BlockAppended(block=block, tokens=0, counter="")
