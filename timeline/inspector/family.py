"""The forks and subagents around a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.blocks import instant_text
from timeline.inspector.shapes import Family, Relative
from timeline.inspector.stretches import stretches_of

if TYPE_CHECKING:
    from timeline.inspector.asked import AskedConversation
    from timeline.inspector.reader import Reader
    from timeline.ports import ConversationInfo

_MOST: Final = 1_000


async def show_family(reader: Reader, asked: AskedConversation) -> Family:
    """Return a conversation's parents, and all forks and subagents that come from the first of them."""
    own = await reader.store.info(asked.id)
    every = {info.id: info async for info in reader.store.conversations()}
    every[own.id] = own
    first, seen = own, {own.id}
    while (parent := _parent(first)) in every and parent not in seen:
        first = every[parent]
        seen.add(parent)
    children: dict[str, list[ConversationInfo]] = {}
    for info in every.values():
        children.setdefault(_parent(info), []).append(info)
    found: dict[str, ConversationInfo] = {}
    waiting = [first]
    while waiting:
        info = waiting.pop()
        if info.id not in found:
            found[info.id] = info
            waiting += sorted(children.get(info.id, ()), key=lambda child: child.created_at, reverse=True)
    rows = [_relative(info) for info in found.values()]
    stretches = await stretches_of(reader.store, asked.id)
    return Family(
        conversation=asked.id,
        family=tuple(rows[:_MOST]),
        left_out=max(0, len(rows) - _MOST),
        stretches=tuple(stretches[-_MOST:]),
    )


def _parent(info: ConversationInfo) -> str:
    return "" if info.parent is None else info.parent.conversation


def _relative(info: ConversationInfo) -> Relative:
    return Relative(
        id=info.id,
        title=info.title,
        parent=None if info.parent is None else info.parent.model_dump(mode="json"),
        base=info.base,
        version=info.version,
        created_at=instant_text(info.created_at),
        updated_at=instant_text(info.updated_at),
    )
