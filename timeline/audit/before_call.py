"""Find where a model call begins: the version of the log that has all that the call answers, and nothing of the call.

The policy's decisions for the call come behind that version, so that another policy can decide in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.audit.recorded_calls import find_call, recorded_calls
from timeline.errors import HistoryUnavailable, InvalidArgument
from timeline.events import BlockAppended, ContextRendered, ConversationOpened, ModelCalled
from timeline.events.other_payloads import StageApproved, StageEntered, StageRewound
from timeline.fold.turns import RESPONSE_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.events import Event, Payload
    from timeline.ports import EventStore

HAPPENED: Final = (ModelCalled, StageEntered, StageApproved, StageRewound)
"""What happens to a conversation besides its blocks, whichever policy decides."""


async def last_shared(store: EventStore, conversation: str, *, at: int | None, call: int | None) -> int | None:
    """Return the last version that a fork shares: a given one, or the one before a call; None where neither is given.

    Raises:
        InvalidArgument: both are given.
        CallNotFound, HistoryUnavailable: as for `version_before_call`.
    """
    if call is None:
        return at
    if at is not None:
        raise InvalidArgument("call", "names the last shared version, as `at` does; give one of them")
    return await version_before_call(store, conversation, call)


async def version_before_call(store: EventStore, conversation: str, number: int) -> int:
    """Return the version right before a model call.

    Raises:
        ConversationNotFound: there is no such conversation.
        CallNotFound: it has no model call of this number.
        HistoryUnavailable: `timeline scavenge` removed what lies right before the call.
    """
    calls = await recorded_calls(store, conversation)
    place = find_call(conversation, calls, number)
    call = calls[place]
    answers = call.called.answers
    contexts = await store.read_versions(conversation, [answers] if answers else [])
    asked = what_was_asked(call.called, call.version, [known.called for known in calls[:place]], contexts)
    for before in reversed([1, *(known.version for known in calls[:place])]):  # a retry begins where its call began
        events = [event async for event in store.read(conversation, after=before - 1, until=asked.until)]
        if (version := asked.newest(events)) is not None:
            break
    else:
        version, events = 1, []
    info = await store.info(conversation)
    there = sum(event.version > version for event in events)
    if version < info.first_version and there < asked.until - version:
        gone = min(asked.until, info.first_version - 1)
        raise HistoryUnavailable(conversation, gone, info.first_version, info.version, scavenged=True)
    return version


class SentLog(NamedTuple):
    """The part of a log that a model call was sent.

    Attributes:
        until: the last version that it may have been sent.
        is_context: whether ``until`` is the version of its recorded context, so that it was sent all blocks up to it.
        response: id of its response.
        earlier: ids of the responses of the calls before it.
    """

    until: int
    is_context: bool
    response: str | None
    earlier: frozenset[str]

    def newest(self, events: Iterable[Event]) -> int | None:
        """Return the version of the newest event that the call may directly follow; None without any."""
        return max((e.version for e in events if e.version <= self.until and self._precedes(e.payload)), default=None)

    def _precedes(self, payload: Payload) -> bool:
        """Return whether the call may directly follow an event: it is no part of the response, nor decided for it."""
        if not isinstance(payload, BlockAppended):
            return isinstance(payload, (*HAPPENED, ConversationOpened))
        if type(payload.block) not in RESPONSE_BLOCKS:
            return True
        response = payload.block.response_id
        if response is not None and response == self.response:
            return False
        # A framework appends a reply behind its call, so a reply may be the last event before the next call.
        return self.is_context or response in self.earlier


def what_was_asked(
    called: ModelCalled, version: int, earlier: Iterable[ModelCalled], contexts: Iterable[Event]
) -> SentLog:
    """Return the part of a log that a call was sent, without what was said while the model was answering.

    Args:
        called: the call.
        version: its version.
        earlier: the calls before it.
        contexts: events among which is the context that it answers, if it was recorded.
    """
    known = next((event.payload for event in contexts if event.version == called.answers), None)
    responses = frozenset(one.response_id for one in earlier if one.response_id is not None)
    if isinstance(known, ContextRendered) and known.version < version:
        return SentLog(known.version, is_context=True, response=called.response_id, earlier=responses)
    return SentLog(version - 1, is_context=False, response=called.response_id, earlier=responses)
