"""The conversations of a store as rows, and one of them with what a person looks at first."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from heapq import nlargest
from typing import TYPE_CHECKING, Final, TypeAlias

from timeline.answers.calls import call_row
from timeline.answers.listed import PolicyRow
from timeline.audit.calls import decisions_before
from timeline.audit.recorded_calls import recorded_calls
from timeline.audit.replay import recorded_policy
from timeline.blocks import instant_text, parse_instant
from timeline.errors import InvalidFilter, StoreCorrupt
from timeline.inspector.compactions import newest_compaction
from timeline.inspector.shapes import CompactionRow, Conversation, ConversationRow, Conversations, Remark
from timeline.inspector.tally import Tally, cost_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.inspector.asked import AskedConversation, AskedConversations
    from timeline.inspector.reader import Reader
    from timeline.ports import ConversationInfo

_FULL: Final = 0.95
"""The share of the limit from which on a context is called full; the usage bar is red above it."""
_Place: TypeAlias = tuple[datetime, str]
"""When a conversation changed, and its id."""
_BETWEEN: Final = " "
"""Between the time and the id of a place in the list: no time has one."""


async def list_conversations(reader: Reader, asked: AskedConversations) -> Conversations:
    """List conversations, the one that changed last first."""
    after, words = _parsed(asked.cursor) if asked.cursor else None, asked.query.casefold()
    behind, total = await (_with(words, reader, after, asked.limit) if words else _all(reader, after, asked.limit))
    page = behind[: asked.limit]
    rows = [await listed_row(reader, info) for info in page]
    more = len(behind) > len(page)
    return Conversations(conversations=tuple(rows), total=total, next_cursor=_written(page[-1]) if more else None)


async def _all(reader: Reader, after: _Place | None, most: int) -> tuple[list[ConversationInfo], int]:
    """Return the conversations behind a place, up to one more than is wanted, and how many there are."""
    found: list[ConversationInfo] = []
    async for info in reader.store.recent_conversations(before=after, page=most + 1):
        found.append(info)
        if len(found) > most:
            break
    return found, await reader.store.conversation_count()


async def _with(words: str, reader: Reader, after: _Place | None, most: int) -> tuple[list[ConversationInfo], int]:
    """Return the same of the conversations whose id or title has some words; they are looked for in all."""
    every = reader.store.conversations()
    found = [info async for info in every if words in f"{info.id}\n{info.title}".casefold()]
    behind = (info for info in found if after is None or _place(info) < after)
    return nlargest(most + 1, behind, key=_place), len(found)


async def listed_row(reader: Reader, info: ConversationInfo) -> ConversationRow:
    """Return the row of a conversation; one whose log is damaged does not keep the others from being listed."""
    try:
        return conversation_row(info, await reader.tallies.of(info))
    except StoreCorrupt as damage:
        return conversation_row(info, Tally()).model_copy(update={"problem": str(damage), "cost": None})


def _place(info: ConversationInfo) -> _Place:
    return info.updated_at, info.id


def _written(info: ConversationInfo) -> str:
    return _BETWEEN.join((instant_text(info.updated_at), info.id))


def _parsed(cursor: str) -> _Place:
    at, between, id_ = cursor.partition(_BETWEEN)
    with suppress(ValueError):
        if between:
            return parse_instant(at), id_
    raise InvalidFilter("cursor", f"{cursor!r} is not a place in the list. Pass the `next_cursor` of the answer before")


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
    newest = await newest_compaction(reader, asked.id, max(tally.in_force)) if tally.in_force else None
    return Conversation(
        conversation=row,
        policy=None if policy is None else policy.model_dump(mode="json"),
        model=tally.model,
        remarks=tuple(_remarks(info, row, tally, newest)),
        newest_call=call_row(calls[-1], len(decided[-1])) if calls else None,
        newest_call_cost=cost_of(calls[-1].called.model, calls[-1].called.usage, reader.prices) if calls else None,
        newest_compaction=newest,
    )


def _remarks(
    info: ConversationInfo, row: ConversationRow, tally: Tally, newest: CompactionRow | None
) -> Iterator[Remark]:
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
    if newest is not None and newest.fallback_reason:
        text = f"The newest summary was written by {newest.summarizer}: {newest.fallback_reason}"
        yield Remark(code="fallback", level="note", text=text, version=newest.version)
    if tally.held is not None:
        text = "A compaction was undone: renders do not compact until one is asked for."
        yield Remark(code="held", level="note", text=text, version=tally.held)
    if info.first_version > 1:
        text = f"Events before version {info.first_version} were removed by a scavenge."
        yield Remark(code="scavenged", level="note", text=text)
