"""The conversations of a store as rows, and one of them with what a person looks at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.answers.calls import call_row
from timeline.answers.listed import PolicyRow
from timeline.audit.calls import decisions_before
from timeline.audit.recorded_calls import recorded_calls
from timeline.audit.replay import recorded_policy
from timeline.blocks import instant_text
from timeline.errors import InvalidFilter, StoreCorrupt
from timeline.inspector.compactions import newest_compaction
from timeline.inspector.shapes import Conversation, ConversationRow, Conversations, Remark
from timeline.inspector.tally import Tally, cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.inspector.asked import AskedConversation, AskedConversations
    from timeline.inspector.reader import Reader
    from timeline.ports import ConversationInfo

_FULL: Final = 0.95
"""The share of the limit from which on a context is called full; the usage bar is red above it."""
_BETWEEN: Final = " "
"""Between the time and the id of a place in the list: no time has one."""


async def list_conversations(reader: Reader, asked: AskedConversations) -> Conversations:
    """List conversations, the one that changed last first."""
    words = asked.query.casefold()
    found = [info async for info in reader.store.conversations() if words in f"{info.id}\n{info.title}".casefold()]
    found.sort(key=_place, reverse=True)
    behind = [info for info in found if _place(info) < _parsed(asked.after)] if asked.after else found
    page = behind[: asked.limit]
    rows = [await _row(reader, info) for info in page]
    more = len(behind) > len(page)
    return Conversations(
        conversations=tuple(rows), total=len(found), next=_BETWEEN.join(_place(page[-1])) if more else None
    )


async def _row(reader: Reader, info: ConversationInfo) -> ConversationRow:
    """Return the row of a conversation; one whose log is damaged does not keep the others from being listed."""
    try:
        return conversation_row(info, await reader.tallies.of(info))
    except StoreCorrupt as damage:
        return conversation_row(info, Tally()).model_copy(update={"problem": str(damage), "cost": None})


def _place(info: ConversationInfo) -> tuple[str, str]:
    return instant_text(info.updated_at), info.id


def _parsed(after: str) -> tuple[str, str]:
    at, between, id_ = after.partition(_BETWEEN)
    if not between:
        raise InvalidFilter("after", f"{after!r} is no place in the list. Pass the `next` of the answer before")
    return at, id_


def conversation_row(info: ConversationInfo, tally: Tally) -> ConversationRow:
    """Return the row of a conversation, with the figures of its log."""
    origin = tally.origin
    policy = (
        None
        if tally.policy is None
        else PolicyRow(
            name="" if origin is None else origin.name,
            release=0 if origin is None else origin.release,
            hash=tally.policy,
        )
    )
    tokens, limit = tally.tokens, tally.limit
    return ConversationRow(
        id=info.id,
        title=info.title,
        parent=None if info.parent is None else info.parent.model_dump(mode="json"),
        base=info.base,
        version=info.version,
        first_version=info.first_version,
        window_start=info.window_start,
        created_at=instant_text(info.created_at),
        updated_at=instant_text(info.updated_at),
        policy=policy,
        turns=tally.turns,
        calls=tally.calls,
        tokens=tokens,
        limit=limit,
        fill=None if tokens is None or not limit else round(tokens / limit, 4),
        compactions=info.compactions,
        last_compaction_at=None if info.last_compaction_at is None else instant_text(info.last_compaction_at),
        cost=None if tally.unpriced else round(tally.cost, 6),
    )


async def show_conversation(reader: Reader, asked: AskedConversation) -> Conversation:
    """Return one conversation: how full its context is, what was compacted, what the last call cost, what is wrong."""
    store = reader.store
    info = await store.info(asked.id)
    tally = await reader.tallies.of(info)
    row = conversation_row(info, tally)
    policy = await recorded_policy(store, tally.policy)
    calls = await recorded_calls(store, asked.id) if tally.newest_call is not None else []
    decided = await decisions_before(store, asked.id, calls[-2:]) if calls else []
    newest = await newest_compaction(reader, asked.id, tally.in_force[-1]) if tally.in_force else None
    return Conversation(
        conversation=row,
        policy=None if policy is None else policy.model_dump(mode="json"),
        model=tally.model,
        warnings=tuple(_warnings(info, row, tally)),
        newest_call=call_row(calls[-1], len(decided[-1])) if calls else None,
        newest_call_cost=cost_of(calls[-1].called.model, calls[-1].called.usage, reader.prices) if calls else None,
        newest_compaction=newest,
    )


def _warnings(info: ConversationInfo, row: ConversationRow, tally: Tally) -> Iterator[Remark]:
    """Yield what is wrong or unusual, the worst first."""
    if tally.failed is not None:
        version, error = tally.failed
        yield Remark(
            code="call_failed", level="warning", text=f"The newest model call failed: {error}", version=version
        )
    if tally.setback is not None:
        version, reason, detail = tally.setback
        text = f"{reason}: {detail}" if detail else reason
        yield Remark(
            code="compaction_failed",
            level="warning",
            text=f"The newest compaction did not succeed: {text}",
            version=version,
        )
    if row.fill is not None and row.fill > _FULL:
        yield Remark(code="nearly_full", level="warning", text=f"The context is {row.fill:.0%} full.")
    if tally.held is not None:
        text = "A compaction was undone: renders do not compact until one is asked for."
        yield Remark(code="held", level="note", text=text, version=tally.held)
    if info.first_version > 1:
        text = f"Events before version {info.first_version} were removed by a scavenge."
        yield Remark(code="scavenged", level="note", text=text)
