"""What a conversation used, and each of its subagents: the tokens that the providers reported."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from timeline.events import CompactionCompleted, ModelCalled
from timeline.frozen import Frozen
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from timeline.ports import ConversationInfo, EventStore

    Prices: TypeAlias = Callable[[str, Usage], float | None]

_TYPES: Final = ("model.called", "compaction.completed")


class ConversationUsage(Frozen):
    """What one conversation used by itself.

    ``subagent_of`` is the conversation that began it; None of the one that was asked for. ``calls`` are its model calls
    and ``unreported`` those of them without usage; ``usage`` is of its calls, ``summary_usage`` of the models that
    wrote its summaries. ``cost`` is the price of both in US dollars, without that of calls of models that have none, of
    which there are ``unpriced``.
    """

    conversation: str
    title: str
    subagent_of: str | None
    calls: int
    unreported: int
    usage: Usage
    summary_usage: Usage
    cost: float
    unpriced: int
    models: tuple[str, ...]


class TotalUsage(Frozen):
    """What a conversation used with its subagents: a row each, parents before their subagents, and the sum.

    The past that a fork shares is its parent's. Forks are conversations of their own: neither is in the sum.
    """

    conversations: tuple[ConversationUsage, ...]
    calls: int
    unreported: int
    usage: Usage
    summary_usage: Usage
    cost: float
    unpriced: int


async def usage_of(store: EventStore, conversation: str, prices: Prices) -> TotalUsage:
    """Add up what a conversation and its subagents used.

    Args:
        store: has them.
        conversation: its id.
        prices: return the price of a model's call in US dollars; None of a model that has none.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    own = await store.info(conversation)
    subagents: dict[str, list[ConversationInfo]] = {}
    async for info in store.conversations():
        if info.parent is not None and info.parent.relation == "subagent":
            subagents.setdefault(info.parent.conversation, []).append(info)
    rows: dict[str, ConversationUsage] = {}
    waiting: list[tuple[ConversationInfo, str | None]] = [(own, None)]
    while waiting:
        info, parent = waiting.pop()
        if info.id not in rows:
            rows[info.id] = await _row(store, info, parent, prices)
            begun = sorted(subagents.get(info.id, ()), key=lambda child: (child.created_at, child.id), reverse=True)
            waiting += [(child, info.id) for child in begun]
    found = (*rows.values(),)
    return TotalUsage(
        conversations=found,
        calls=sum(row.calls for row in found),
        unreported=sum(row.unreported for row in found),
        usage=reduce(Usage.plus, (row.usage for row in found)),
        summary_usage=reduce(Usage.plus, (row.summary_usage for row in found)),
        cost=sum(row.cost for row in found),
        unpriced=sum(row.unpriced for row in found),
    )


async def _row(store: EventStore, info: ConversationInfo, parent: str | None, prices: Prices) -> ConversationUsage:
    calls, unreported, used, summaries, models = 0, 0, Usage(), Usage(), dict[str, None]()
    paid: list[float | None] = []
    async for event in store.read(info.id, after=info.base, types=_TYPES):
        if isinstance(called := event.payload, ModelCalled):
            calls += 1
            unreported += called.usage == Usage()
            used = used.plus(called.usage)
            paid += [prices(called.model, called.usage)] if called.usage != Usage() else []
            models |= {called.model: None} if called.model else {}
        elif isinstance(event.payload, CompactionCompleted) and (by := event.payload.written_by).usage is not None:
            summaries = summaries.plus(by.usage)
            paid.append(prices(by.model or "", by.usage))
    return ConversationUsage(
        conversation=info.id,
        title=info.title,
        subagent_of=parent,
        calls=calls,
        unreported=unreported,
        usage=used,
        summary_usage=summaries,
        cost=sum(price for price in paid if price is not None),
        unpriced=paid.count(None),
        models=(*models,),
    )
