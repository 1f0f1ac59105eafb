"""Report what an erasure would do, as far as the store can tell, and what of the conversation stays in others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from timeline.errors import ConversationErased, ForksRemain, UnderLegalHold
from timeline.forgetting.handed_over import handed_over_from, redactions_of
from timeline.ports import ErasureReport
from timeline.retention.setting import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.ports import EventStore, ForksOnErase


async def would_erase(store: EventStore, conversation: str, forks: ForksOnErase) -> ErasureReport:
    """Return what `EventStore.erase` would report of a conversation, and write nothing; refuse what it would refuse.

    Rows that are made from the log (snapshots, facts), and texts that no other conversation names, are not counted.

    Args:
        store: holds the conversation.
        conversation: its id.
        forks: what would become of its forks.

    Raises:
        ConversationNotFound, ForksRemain, UnderLegalHold: as for `EventStore.erase`.
    """
    try:
        own = await store.forks(conversation)
    except ConversationErased:  # once more, from the files
        return ErasureReport((conversation,), {}, left=_left([conversation], []))
    if own and forks == "refuse":
        raise ForksRemain(conversation, list(own))
    erased = [conversation]
    if forks == "erase":
        for one in erased:
            erased += await store.forks(one)
    for one in erased:
        if (await kept(store, one)).legal_hold:
            raise UnderLegalHold(one)
    reached: Counter[str] = Counter(conversations=len(erased))
    for one in erased:
        info = await store.info(one)
        reached["payloads"] += info.version - info.base
        async for _ in store.read(one, after=info.base, types=["compaction.completed"]):
            reached["summaries"] += 1
    return ErasureReport(tuple(erased), dict(reached), left=_left(erased, list(own) if forks == "copy" else []))


async def with_what_stays(store: EventStore, report: ErasureReport) -> ErasureReport:
    """Return an erasure's report, with the conversations that stay and may say what the erased ones said.

    They are the subagents of an erased conversation, and those that begin with a summary of one.
    """
    left: dict[str, str] = {}
    summaries = await handed_over_from(store, dict.fromkeys(report.conversations, 1))
    if summaries := [summary for summary in summaries if summary.conversation not in report.conversations]:
        cure = f"{redactions_of(summaries)}, or erase them too"
        left["handed_over"] = f"conversations that it was handed over to stay, and begin with a summary of it: {cure}"
    if subagents := await _subagents_of(store, report.conversations):
        cure = " and ".join(f"`timeline erase {id_}`" for id_ in subagents)
        left["subagents"] = f"conversations of its subagents stay, with what they were asked: {cure}"
    return replace(report, left={**report.left, **left}) if left else report


async def _subagents_of(store: EventStore, conversations: Sequence[str]) -> list[str]:
    """Return the conversations of subagents of these conversations, and of subagents of those."""
    begun: dict[str, list[str]] = {}
    async for info in store.conversations():
        if info.parent is not None and info.parent.relation == "subagent":
            begun.setdefault(info.parent.conversation, []).append(info.id)
    found, known = [*conversations], {*conversations}
    for one in found:
        new = [id_ for id_ in begun.get(one, ()) if id_ not in known]
        found += new
        known.update(new)
    return found[len(conversations) :]


def _left(erased: list[str], copied: list[str]) -> dict[str, str]:
    left = {"ids": f"stay in the list of those that are never given again: {', '.join(erased)}"}
    if copied:
        left["forks"] = f"keep what they shared as their own, and name what they were forked from: {', '.join(copied)}"
    return left
