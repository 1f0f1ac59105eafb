"""Find the conversations that begin with a summary of another one: it may say what is forgotten in the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import HANDED_OVER_KEY, AssistantCompletion
from timeline.events import appended_block
from timeline.events.addresses import Address, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.ports import ConversationInfo, EventStore

_BEGINNING: Final = 8
"""The summary is among so many first versions: behind the opening, the policy and the question."""


async def handed_over_from(store: EventStore, origins: Mapping[str, int]) -> list[Address]:
    """Return the summaries with which other conversations begin, if they reach a version of one of these conversations.

    A conversation that begins with a summary may itself be handed over; such summaries are included.

    Args:
        store: holds all of them.
        origins: for each conversation, the version that a summary of it must reach.
    """
    children: dict[str, list[ConversationInfo]] = {}
    async for info in store.conversations():
        if info.parent is not None and info.parent.relation == "fork" and not info.base:
            children.setdefault(info.parent.conversation, []).append(info)
    found: dict[str, Address] = {}
    waiting = list(origins.items())
    for origin, first in waiting:
        for info in children.get(origin, ()):
            version = None if info.id in found else await _summary(store, info, origin, first)
            if version is not None:
                found[info.id] = Address(version, info.id)
                waiting.append((info.id, version))
    return list(found.values())


def redactions_of(places: Sequence[Address]) -> str:
    """Return the commands that redact places, for a message to the user."""
    return " and ".join(f"`timeline redact {place.conversation} {place.bare}`" for place in places)


async def _summary(store: EventStore, info: ConversationInfo, origin: str, first: int) -> int | None:
    """Return the version of the summary with which a conversation begins; None if it does not reach ``first``."""
    found = None
    async for event in store.read(info.id, until=min(info.version, _BEGINNING)):
        block = appended_block(event.payload)
        if not isinstance(block, AssistantCompletion):
            continue
        reaches = parse_address(str(block.meta.get(HANDED_OVER_KEY, "")))  # a summary that was redacted has none
        if reaches is not None and reaches.conversation == origin and reaches.version >= first:
            found = event.version
    return found
