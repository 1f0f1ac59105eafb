"""Compact a plain list of messages, for an application that keeps no log: `compact_messages`.

A list goes in, a list comes out; nothing is stored. A log records its compactions, but a list shows only their
summaries. So the summary that an earlier call put at the head of the list is recognised by its form and integrated into
the next one. The forms of all presets are recognised, under every policy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from timeline import checks
from timeline.agent.deduplication import Positions, content_key
from timeline.agent.messages import placed_in_turns, read_messages, read_system, wire_of
from timeline.blocks import AssistantCompletion, RangeSummary, SystemMessage, ToolCall, ToolResult, UserPrompt, stem
from timeline.checks import moment
from timeline.content.media_tokens import with_media
from timeline.engine.equipment import Equipment
from timeline.engine.renderer import Renderer
from timeline.events import BlockAppended, CompactionCompleted, ConversationOpened, Covers, SummaryParts, WrittenBy
from timeline.fold.fold import Fold
from timeline.home import check_asyncio
from timeline.log.dry_run import FoldedLog
from timeline.planning.drop_oldest import NOTICE_BEGINNING
from timeline.planning.summary_block import form_meta
from timeline.planning.summary_requests import SESSION_SUMMARY
from timeline.policy.model import Policy
from timeline.policy.presets import PRESETS
from timeline.ports import SystemClock
from timeline.wire import MESSAGES, encoder
from timeline.wire.foreign import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from timeline.agent.messages import MessageWire
    from timeline.blocks import Block
    from timeline.engine.compactor import Compactor
    from timeline.frozen import JsonInput
    from timeline.policy.steps import SummaryForm
    from timeline.ports import Summarizer, TokenCounter
    from timeline.projection.context import RenderedContext
    from timeline.projection.reports import TakenDecision


_LOWERED: Final = "[system message] "
"""Prefix that the wires write before a summary whose author is the system."""


@dataclass(frozen=True, slots=True)
class EarlierSummary:
    """A summary that a list begins with.

    Attributes:
        text: the whole text, heading included.
        body: the text under the heading.
        compaction_number: number of its compaction; 1 if its form does not show the number.
        form: the form that it is written in.
        rest: the blocks of the messages behind it.
    """

    text: str
    body: str
    compaction_number: int
    form: SummaryForm
    rest: tuple[tuple[Block, ...], ...]


def earlier_summary(messages: Sequence[Sequence[Block]], form: SummaryForm) -> EarlierSummary | None:
    """Find the summary that a list begins with.

    Args:
        messages: the blocks of each message, in order.
        form: summary form of the policy in force; tried before the presets' forms.
    """
    flat = [(number, block) for number, blocks in enumerate(messages) for block in blocks]
    for known in (form, *_preset_forms()):
        found = _summary_of(known, [block for _, block in flat[:3]])
        if found is not None:
            text, body, round_, taken = found
            rest = [tuple(b for n, b in flat[taken:] if n == number) for number in range(len(messages))]
            return EarlierSummary(text, body, round_, known, tuple(blocks for blocks in rest if blocks))
    return None


def _summary_of(form: SummaryForm, blocks: Sequence[Block]) -> tuple[str, str, int, int] | None:
    """Read a summary of one form; return its text, its body, its compaction number, and the number of its blocks."""
    at = 0
    if form.question:
        if not blocks or type(blocks[0]) is not UserPrompt or blocks[0].text != form.question:
            return None
        at = 1
    if at >= len(blocks) or type(blocks[at]) not in {UserPrompt, AssistantCompletion, SystemMessage}:
        return None
    text = blocks[at].text.removeprefix(_LOWERED)
    heading = next((match for pattern in _headings(form) if (match := pattern.match(text))), None)
    if heading is None or not (form.heading or form.question):
        return None
    at += 1
    if form.answer and at < len(blocks) and blocks[at].text == form.answer:
        at += 1
    number = int(heading.groupdict().get("round") or 1)
    return text, text[heading.end() :].strip(), number, at


def _headings(form: SummaryForm) -> Iterator[re.Pattern[str]]:
    yield re.compile(re.escape(form.heading).replace(re.escape("{round}"), r"(?P<round>\d+)"))
    if "Session Summary" in form.heading:
        yield SESSION_SUMMARY
    yield re.compile(rf"(?={re.escape(NOTICE_BEGINNING)}\d)")  # a notice of dropped messages, which has no heading


@cache
def _preset_forms() -> tuple[SummaryForm, ...]:
    return tuple(dict.fromkeys(preset().form for preset in PRESETS.values()))


@dataclass(frozen=True, slots=True)
class CompactedMessages:
    """The result of `compact_messages`.

    Attributes:
        messages: the list to send, and to append to from now on; the very object that was passed in if nothing changed.
        before_tokens, after_tokens: tokens of the request, system prompt and tools included, by the policy's counter.
        compaction_number: how often the list was compacted so far; 0 for never.
        decisions: the decisions taken: compacted, cleared, refused, failed.
    """

    messages: list[Any]
    before_tokens: int
    after_tokens: int
    compaction_number: int
    decisions: tuple[TakenDecision, ...]

    @property
    def changed(self) -> bool:
        """Whether ``messages`` differ from the list that was passed in."""
        return any(taken.made_room for taken in self.decisions)


async def compact_messages(
    messages: list[Any],
    policy: Policy,
    *,
    system: JsonInput = None,
    tools: Sequence[JsonInput] = (),
    summarizer: Summarizer | None = None,
    wire: MessageWire | None = None,
    now: datetime | None = None,
) -> CompactedMessages:
    """Compact a list of messages if the policy calls for it; return the list to send.

    Use it where no log is kept. Covered messages cannot be read back, so keep the list that you pass in if you need
    them. For the same reason the result prints no paths, and nothing is hidden when the cache goes cold.

    Messages that stay are the same objects as before, with two exceptions: a message that had to be joined with the one
    before it, and an OpenAI item with an id, by which OpenAI would look for a thought that may be gone. Calls at the
    end of the list stay open: append their results to the list that comes back. If the list begins with the summary of
    an earlier call, that summary is integrated, and the compaction number goes on from it; a form that does not show
    the number counts as the first.

    Args:
        messages: in any form of messages (`timeline.wire.MESSAGES`), leading system messages included.
        policy: when to compact, and how.
        system: the system prompt, if it is sent beside the messages; only counted.
        tools: the tool schemas that are sent with the messages; only counted.
        summarizer: writes the summary. By default, and after a failure if the policy allows that, the extractive
            summarizer writes it.
        wire: form of the messages; by default recognised from their content.
        now: time of the summary.

    Raises:
        InvalidArgument: ``policy`` is not a policy, ``messages`` is not a list, or a value cannot be sent.
        InvalidBlock: a message is not valid.
        ContextOverflow: the list is above the limit and cannot be made smaller.
        BudgetImpossible: system prompt, tools and reserves leave no room at all.
        StoreError: no event loop of asyncio runs, such as under trio.

    Example:
        ```python
        from timeline import compact_messages, policies

        history = [{"role": "user", "content": f"Write card {number}. " * 200} for number in range(40)]
        result = await compact_messages(history, policies.cut_point(max_tokens=16_000))
        assert result.changed
        assert len(result.messages) < 40
        ```
    """
    check_asyncio("compact_messages")
    checks.of_kind("policy", policy, Policy, "must be a policy, such as policies.keep_last()")
    checks.of_kind("messages", messages, list, "must be a list of messages")
    checks.parts(None, summarizer)
    at = moment(now, SystemClock())
    prompt, conversation = read_system(messages)
    form = wire_of(conversation, wire)
    compactor = Equipment(summarizer).compactor(_without_log(policy))
    read = read_messages(conversation, wire=form, names=[f"message_{number}" for number in range(len(conversation))])
    earlier = earlier_summary(read, policy.form)
    log = _ListLog(_fold(read if earlier is None else earlier.rest, earlier, compactor, at), at, whole=earlier is None)
    renderer = Renderer()
    system = prompt if system is None else system
    before = renderer.next_account(log, compactor, system=system, tools=tools)
    context = await renderer.render(log, compactor, system=system, tools=tools, ephemeral=(), now=at, at=at)
    result = CompactedMessages(
        messages, before.sent, context.account.sent, context.window.compactions, decisions=context.decisions
    )
    if not result.changed:
        return result
    leading = len(messages) - len(conversation)
    kept = _kept(_encoded(context, form), messages[leading:], read, form)
    return replace(result, messages=[*messages[:leading], *kept])


class _ListLog(FoldedLog):
    """A list of messages as a log.

    Args:
        fold: fold of the messages.
        now: time of the decisions.
        whole: the list still has its beginning: no earlier summary replaces it.
    """

    def __init__(self, fold: Fold, now: datetime, *, whole: bool) -> None:
        super().__init__(fold, now)
        self._whole = whole

    async def first_prompt(self) -> str | None:
        """Return the conversation's first prompt, if the list still has it."""
        return await super().first_prompt() if self._whole else None


def _without_log(policy: Policy) -> Policy:
    """Return the policy for a list: it prints no paths, since none can be read back, and has no cache clock."""
    form = policy.form.model_copy(update={"record": False})
    return policy.model_copy(update={"hiding": None, "form": form})


def _fold(read: Sequence[Sequence[Block]], earlier: EarlierSummary | None, compactor: Compactor, at: datetime) -> Fold:
    """Fold the blocks of messages as a log would have them, behind an earlier summary."""
    fold, counter = Fold("messages", readable=False), compactor.counter
    fold.apply(1, at, ConversationOpened())
    if earlier is not None:
        fold.apply(2, at, _compaction(earlier, counter, at))
    blocks = placed_in_turns(read, fold.turns)
    sizes = counter.count_many([block.countable() for block in blocks])
    addressed = fold.address((block, at) for block in blocks)
    for block, tokens in zip(addressed, sizes, strict=True):
        counted = BlockAppended(block=block, tokens=with_media(block, tokens), counter=counter.name)
        fold.apply(fold.version + 1, at, counted)
    fold.count_by(counter, compactor.policy.first_ratio)
    return fold


def _compaction(earlier: EarlierSummary, counter: TokenCounter, at: datetime) -> CompactionCompleted:
    """Return the compaction whose summary a list begins with; the blocks that it covered are unknown."""
    form = earlier.form
    texts = [text for text in (form.question, earlier.text, form.answer) if text]
    turn_id = "turn_0"
    path = stem(RangeSummary(turn_id=turn_id))
    return CompactionCompleted(
        block=RangeSummary(turn_id=turn_id, text=earlier.text, at=at, path=path, meta=form_meta(form)),
        tokens=sum(counter.count_many(texts)),
        counter=counter.name,
        covers=Covers(ranges=((1, 1),)),
        parts=SummaryParts(history=earlier.body),
        round=earlier.compaction_number,
        reason="imported",
        source="imported",
        written_by=WrittenBy(summarizer="earlier"),
    )


def _encoded(context: RenderedContext, wire: str) -> list[dict[str, Any]]:
    """Return the messages of a context without its system prompt, which is sent separately, and without markers."""
    if not context.neutral.entries:
        return []
    bare = context.neutral.model_copy(update={"system": None, "tools": (), "cache_points": ()})
    encoded: list[dict[str, Any]] = encoder(wire)(bare)[MESSAGES[wire]]
    return encoded


def _kept(encoded: list[dict[str, Any]], given: Sequence[Any], read: Sequence[Sequence[Block]], wire: str) -> list[Any]:
    """Replace encoded messages by the given ones of the same content: these may hold more than blocks do.

    OpenAI's API looks for the thought that an item with an id belongs to. That may be gone: such an item is encoded.
    Calls that a list ends with are still to be answered by the application, and get no results here.
    """
    names = [f"message_{number}" for number in range(len(encoded))]
    made = read_messages(encoded, wire=wire, names=names)
    places = Positions(tuple(map(content_key, blocks)) for blocks in read)
    found = [places.next(tuple(map(content_key, blocks))) if blocks else None for blocks in made]
    kept = [
        message if place is None or _names_a_thought(given[place], wire) else given[place]
        for message, place in zip(encoded, found, strict=True)
    ]
    waiting = _waiting_calls(made), _waiting_calls(read)
    if waiting[0] is None or waiting[1] is None or _answers(made, waiting[0]) != _answers(read, waiting[1]):
        return kept
    last, own = waiting[0], given[waiting[1]]
    return [*kept[:last], kept[last] if _names_a_thought(own, wire) else own, *given[waiting[1] + 1 :]]


def _waiting_calls(messages: Sequence[Sequence[Block]]) -> int | None:
    """Return the number of the message with the last calls, where nothing but results follows and one is missing.

    The AI SDK's word on whether a tool may run comes among the results.
    """
    place = max((n for n, blocks in enumerate(messages) if any(isinstance(b, ToolCall) for b in blocks)), default=None)
    if place is None or not all(block.author == "tool" for blocks in messages[place + 1 :] for block in blocks):
        return None
    answered = {block.call_id for blocks in messages for block in blocks if isinstance(block, ToolResult)}
    called = {block.call_id for blocks in messages for block in blocks if isinstance(block, ToolCall)}
    return place if called - answered else None


def _answers(messages: Sequence[Sequence[Block]], place: int) -> list[str]:
    """Return the content keys of the last calls and of the results behind them."""
    blocks = (block for blocks in messages[place:] for block in blocks)
    return [content_key(block) for block in blocks if isinstance(block, ToolCall | ToolResult)]


def _names_a_thought(item: Any, wire: str) -> bool:
    """Return whether an item has an id by which OpenAI's API finds the thought that led to it."""
    fields = plain(item) if wire == "openai_responses" else {}
    return bool(fields.get("id")) and fields.get("type") != "reasoning"
