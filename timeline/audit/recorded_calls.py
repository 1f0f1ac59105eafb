"""Find the recorded model calls of a log by their numbers, which never change, and the contexts of calls.

Nothing is built again here: `timeline.audit.calls` does that.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.audit.redacting import erased_events
from timeline.audit.replay import RecordedContext, find_context, recorded_contexts
from timeline.errors import CallNotFound, CallUnavailable
from timeline.events import ModelCalled
from timeline.log.history import CALLED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from timeline.ports import EventStore


_NAMED: Final = re.compile(r"call:(\d{1,9})")
_NEAR: Final = 2
"""How many existing numbers an error names on either side of a missing one."""


class RecordedCall(NamedTuple):
    """A recorded call: its number in the conversation (from 1), and its event's version, time and payload."""

    number: int
    version: int
    at: datetime
    called: ModelCalled


async def recorded_calls(store: EventStore, conversation: str) -> list[RecordedCall]:
    """List the model calls of a conversation that were not scavenged, oldest first, each with its lasting number.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    first, gone = 1, 0
    if removed := (await store.scavenged(conversation)).get(CALLED, 0):
        # A scavenge removes one run of versions: the numbers of the calls behind it are higher by the removed calls.
        first, gone = (await store.info(conversation)).first_version, removed
    found: list[RecordedCall] = []
    async for event in store.read(conversation, types=[CALLED]):
        if isinstance(event.payload, ModelCalled):
            number = len(found) + 1 + (gone if event.version >= first else 0)
            found.append(RecordedCall(number, event.version, event.at, event.payload))
    return found


def find_call(conversation: str, calls: Sequence[RecordedCall], number: int) -> int:
    """Return the place of the call with a number.

    Raises:
        CallNotFound: there is none, or it was scavenged; the error names the nearest ones.
    """
    numbers = [call.number for call in calls]
    if number in numbers:
        return numbers.index(number)
    nearest = sorted(sorted(numbers, key=lambda there: abs(there - number))[: 2 * _NEAR])
    raise CallNotFound(conversation, number, nearest, max(numbers, default=0))


async def find_contexts(store: EventStore, conversation: str, names: Iterable[str]) -> list[RecordedContext]:
    """Find recorded contexts by name: as `find_context` does, or ``call:84`` for the one that call 84 was made from.

    Raises:
        ConversationNotFound: there is no such conversation.
        ContextNotFound: no recorded context has one of the names.
        CallNotFound: no call has one of the numbers.
        CallUnavailable: the context of one of the calls was not recorded, or is not there any more.
    """
    recorded = await recorded_contexts(store, conversation, await erased_events(store, conversation))
    calls: list[RecordedCall] = []
    found: list[RecordedContext] = []
    for name in names:
        if (match := _NAMED.fullmatch(name)) is None:
            found.append(find_context(recorded, name))
            continue
        calls = calls or await recorded_calls(store, conversation)
        call = calls[find_call(conversation, calls, int(match[1]))]
        context = next((one for one in recorded if one.version == call.called.answers), None)
        if context is None:
            raise CallUnavailable(call.number, "unrecorded" if call.called.answers is None else "retention")
        found.append(context)
    return found
