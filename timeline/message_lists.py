"""Plain lists of messages: the same engine for someone who keeps no log.

A list goes in, a list comes out; nothing is stored. What an earlier call put at the head of a list is recognised by its
form, integrated into the next summary, and counted on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from timeline import checks
from timeline.agent.deduplication import Places, signature
from timeline.agent.messages import placed_in_turns, read_messages, read_system, wire_of
from timeline.blocks import RangeSummary, with_media
from timeline.checks import moment
from timeline.earlier import Earlier, earlier_summary
from timeline.engine.equipment import Equipment
from timeline.engine.renderer import Renderer
from timeline.events import BlockAppended, CompactionCompleted, ConversationOpened, Covers, SummaryParts, WrittenBy
from timeline.fold.fold import Fold
from timeline.log.dry_run import FoldedLog
from timeline.paths import stem
from timeline.planning.summary_block import form_meta
from timeline.policy.model import Policy
from timeline.ports import SystemClock
from timeline.wire import MESSAGES, encoder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.agent.messages import MessageWire
    from timeline.blocks import Block
    from timeline.engine.compactor import Compactor
    from timeline.ports import Summarizer, TokenCounter
    from timeline.projection.context import RenderedContext
    from timeline.projection.reports import Taken


@dataclass(frozen=True, slots=True)
class CompactedMessages:
    """What became of a list of messages.

    Attributes:
        messages: the list to send and to go on with; the very one that was given, where nothing was done.
        before_tokens, after_tokens: of the request, system prompt and tools included, by the policy's counter.
        round: how many compactions the list has behind it; 0 for none.
        decisions: what was decided: compacted, cleared, refused, failed.
    """

    messages: list[Any]
    before_tokens: int
    after_tokens: int
    round: int
    decisions: tuple[Taken, ...]

    @property
    def changed(self) -> bool:
        """Whether the list is another one."""
        return any(taken.made_room for taken in self.decisions)


async def compact_messages(
    messages: list[Any],
    policy: Policy,
    *,
    system: JsonValue = None,
    tools: Sequence[JsonValue] = (),
    summarizer: Summarizer | None = None,
    wire: MessageWire | None = None,
    now: datetime | None = None,
) -> CompactedMessages:
    """Compact a list of messages as a policy says, where that is due.

    There is no log, so nothing that is covered can be read back: the list that was given is the only place where it
    stands, and no digest's paths are printed. Nothing is hidden by the cache's clock either.

    Messages that stay are the very objects that were given, save where they had to be joined with what stands before
    them. A summary that an earlier call put at the head of the list is integrated, and its round goes on; where its
    form does not tell the round it counts as the first.

    Args:
        messages: in any form of messages (`timeline.wire.MESSAGES`), leading system messages included.
        policy: when to compact, and how.
        system: the system prompt, where it is sent beside the messages; counted only.
        tools: the tool schemas that are sent with them; counted only.
        summarizer: asked first; the extractive one answers unless given, or where it fails and the policy wants that.
        wire: the form of the messages; told by them unless given.
        now: time of the summary.

    Raises:
        InvalidArgument: the policy is none, or one of the values cannot be sent.
        InvalidBlock: one of the messages is no message.
        ContextOverflow: the list is above the limit and cannot be made smaller.
        BudgetImpossible: system prompt, tools and reserves leave no room at all.
    """
    checks.of_kind("policy", policy, Policy, "is a policy, such as policies.keep_last()")
    at = moment(now, SystemClock())
    prompt, said = read_system(messages)
    form = wire_of(said, wire)
    compactor = Equipment(summarizer).under(_without_log(policy))
    read = read_messages(said, wire=form, names=[f"message_{number}" for number in range(len(said))])
    earlier = earlier_summary(read, policy.form)
    log = _ListLog(_fold(read if earlier is None else earlier.rest, earlier, compactor, at), whole=earlier is None)
    renderer = Renderer()
    system = prompt if system is None else system
    before = renderer.next_account(log.fold.window, compactor, system=system, tools=tools)
    context = await renderer.render(log, compactor, system=system, tools=tools, ephemeral=(), now=at)
    result = CompactedMessages(
        messages, before.sent, context.account.sent, context.window.rounds, decisions=context.decisions
    )
    if not result.changed:
        return result
    leading = len(messages) - len(said)
    kept = _kept(_encoded(context, form), messages[leading:], read, form)
    return replace(result, messages=[*messages[:leading], *kept])


class _ListLog(FoldedLog):
    """What a list of messages is as a log.

    Args:
        fold: of the messages.
        whole: the list has its beginning still: no earlier summary stands for it.
    """

    def __init__(self, fold: Fold, *, whole: bool) -> None:
        super().__init__(fold)
        self._whole = whole

    async def first_prompt(self) -> str | None:
        """Return what the conversation began with, where the list still says it."""
        return await super().first_prompt() if self._whole else None


def _without_log(policy: Policy) -> Policy:
    """Return a policy for a list: no path can be read back, so none is printed, and there is no cache clock."""
    form = policy.form.model_copy(update={"record": False})
    return policy.model_copy(update={"hiding": None, "form": form})


def _fold(read: Sequence[Sequence[Block]], earlier: Earlier | None, compactor: Compactor, at: datetime) -> Fold:
    """Fold the blocks of messages as a log would have them, behind an earlier summary."""
    fold, counter = Fold("messages"), compactor.counter
    fold.apply(1, at, ConversationOpened())
    if earlier is not None:
        fold.apply(2, at, _compaction(earlier, counter, at))
    blocks = placed_in_turns(read, fold.turns)
    sizes = counter.count_many([block.countable() for block in blocks])
    addressed = fold.address((block, at) for block in blocks)
    for block, tokens in zip(addressed, sizes, strict=True):
        counted = BlockAppended(block=block, tokens=with_media(block, tokens), counter=counter.name)
        fold.apply(fold.version + 1, at, counted)
    return fold


def _compaction(earlier: Earlier, counter: TokenCounter, at: datetime) -> CompactionCompleted:
    """Return the compaction whose summary a list begins with; what it covered is not told any more."""
    form = earlier.form
    told = [text for text in (form.question, earlier.text, form.answer) if text]
    turn_id = "turn_0"
    path = stem(RangeSummary(turn_id=turn_id))
    return CompactionCompleted(
        block=RangeSummary(turn_id=turn_id, text=earlier.text, at=at, path=path, meta=form_meta(form)),
        tokens=sum(counter.count_many(told)),
        counter=counter.name,
        covers=Covers(ranges=((1, 1),)),
        parts=SummaryParts(history=earlier.body),
        round=earlier.round,
        reason="imported",
        source="imported",
        written_by=WrittenBy(summarizer="earlier"),
    )


def _encoded(context: RenderedContext, wire: str) -> list[dict[str, Any]]:
    """Return the messages of a context: without the system prompt, which stands elsewhere, and without markers."""
    bare = context.neutral.model_copy(update={"system": None, "tools": (), "cache_points": ()})
    encoded: list[dict[str, Any]] = encoder(wire)(bare)[MESSAGES[wire]]
    return encoded


def _kept(encoded: list[dict[str, Any]], given: Sequence[Any], read: Sequence[Sequence[Block]], wire: str) -> list[Any]:
    """Put the messages that were given in the place of those that say the same: they may hold more than blocks do."""
    names = [f"message_{number}" for number in range(len(encoded))]
    made = read_messages(encoded, wire=wire, names=names)
    places = Places(tuple(map(signature, blocks)) for blocks in read)
    found = [places.next(tuple(map(signature, blocks))) if blocks else None for blocks in made]
    return [message if place is None else given[place] for message, place in zip(encoded, found, strict=True)]
