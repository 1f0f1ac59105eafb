"""Make the summary requests of a plan: the blocks that the summarizer is shown, and the text that it is asked for.

History and turn prefix are two requests that may run at the same time. When the same turn is split again, the history
stays verbatim, and one request integrates the old prefix with the new rounds. Once the turn is over, both are history.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.content.server_words import as_tool_block
from timeline.events import SummaryParts
from timeline.fold.window import unsent_calls
from timeline.planning.hide import is_notice
from timeline.planning.originals import CutBlocks, fitted, is_seen_through, room_for
from timeline.planning.strip_chitchat import is_stripped
from timeline.ports import ABRIDGED_KEY, HIDDEN_KEY, SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from timeline.blocks import Block
    from timeline.events import CompactionCompleted
    from timeline.fold.window import Item, Window
    from timeline.planning.plans import Plan
    from timeline.ports import PromptName, SummaryKind, TokenCounter, WarmContext

FAILED_KEYS: Final = ("interrupted", "error")
"""Keys of a block's ``meta`` that mark a response of the model as broken off, or as failed."""
SESSION_SUMMARY: Final = re.compile(r"\s*#{1,6} Session Summary\b(?:[^\n]*?\bRound (?P<round>\d+))?[^\n]*\s*")
"""The heading of [keep_last], which marks an earlier summary among plain messages."""
_BEGINNING: Final = 2
"""An earlier summary is among so many first messages; in [keep_last] it is the one behind the system prompt."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wishes for a summary that do not depend on the covered blocks.

    Attributes:
        prompt: name of the prompt, which decides the summary's shape.
        language: language of the summary.
        original_task: the first prompt of the log.
        instructions: further instructions of the caller.
        temperature: for the model that writes it; None where the policy names none.
        answer_room: a model is stopped at this multiple of the cap.
        too_long: what is done with an answer above its cap.
        invented: what is done with names that no covered block has.
        source: what the summarizer is given of blocks that an automatic decision hid.
        window: tokens that the summarizer reads and writes at once; originals are cut to it.
    """

    prompt: PromptName = "generic"
    language: str = ""
    original_task: str | None = None
    instructions: str = ""
    temperature: float | None = None
    answer_room: float = 2.0
    too_long: Literal["refuse", "cut"] = "refuse"
    invented: Literal["accept", "repair"] = "accept"
    source: Literal["shown", "original"] = "shown"
    window: int = 0


ANYTHING: Final = Wanted()


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of a compaction, and the texts that need none.

    A part without a request keeps its text in ``kept``. ``compaction_number`` counts from 1.
    """

    history: SummaryRequest | None
    turn_prefix: SummaryRequest | None
    kept: SummaryParts
    compaction_number: int = 1

    def asked_in(self, warm: WarmContext) -> Requests:
        """Return these requests with the cached context that a model may be asked in."""
        history = None if self.history is None else replace(self.history, warm=warm)
        prefix = None if self.turn_prefix is None else replace(self.turn_prefix, warm=warm)
        return replace(self, history=history, turn_prefix=prefix)


def summary_requests(
    window: Window, plan: Plan, counter: TokenCounter, wanted: Wanted = ANYTHING, cut: CutBlocks | None = None
) -> Requests:
    """Return the requests of a plan; a part of the summary without new blocks has no request.

    Args:
        window: the blocks.
        plan: what is covered.
        counter: counts what is cut.
        wanted: the wishes for the summary.
        cut: keeps what was cut for earlier requests, so that it is not cut again.
    """
    earlier = superseded(window, plan)
    prefix_of = plan.prefix_turn_id
    useful = without_failures(plan.covered)
    inside = [i for i in useful if i.block.turn_id == prefix_of]
    finished = [i for i in useful if i.block.turn_id != prefix_of]
    said = earlier_parts(earlier, prefix_of)
    found = None if said.history or wanted.prompt != "sections" else _leading_summary(finished)
    number = max(window.compactions, 0 if found is None else _round_of(found.block.text)) + 1
    before = SESSION_SUMMARY.sub("", found.block.text, count=1) if found is not None else said.history
    asking = _Asking(counter, wanted, number, cut)
    about = [item for item in finished if item is not found]
    return Requests(
        history=asking.request("history", about, before, _task(window, finished), plan.caps.history),
        turn_prefix=asking.request(
            "turn_prefix", inside, said.turn_prefix, _prompt_of(window, prefix_of), plan.caps.turn_prefix
        ),
        kept=SummaryParts(history=before, turn_prefix=said.turn_prefix),
        compaction_number=number,
    )


def summary_due(covered: Sequence[Item]) -> bool:
    """Return whether covered items need a summary: the model was shown at least one that is not a summary itself.

    Failed responses, omitted blocks, superseded stage digests and empty blocks need none by themselves. Neither does a
    call whose result is omitted, which is not sent: a redacted one stays when its turn is taken back. Nor does the
    summary with which a conversation of plain messages begins: its text is kept.
    """
    useful = without_failures(covered)
    earlier, unsent = _leading_summary(useful), unsent_calls(useful)
    sent = (item for item in useful if item is not earlier and item.version not in unsent)
    return any(item.shown_tokens and _asked_about(item) is not None for item in sent)


def superseded(window: Window, plan: Plan) -> list[CompactionCompleted]:
    """Return the compactions whose summaries a plan integrates, oldest first."""
    return [compaction for compaction in window.summaries if compaction.block.path in plan.supersedes]


def earlier_parts(earlier: Sequence[CompactionCompleted], split_turn_id: str | None) -> SummaryParts:
    """Return what earlier summaries say to the one that integrates them, and that splits this turn, if any.

    If the newest of them split the same turn, its turn prefix goes on; otherwise all that they say is history.
    """
    if earlier and split_turn_id is not None and earlier[-1].split_turn_id == split_turn_id:
        newest = earlier[-1].parts
        return SummaryParts(history=joined(*(c.parts.history for c in earlier)), turn_prefix=newest.turn_prefix)
    return SummaryParts(history=joined(*(text for c in earlier for text in (c.parts.history, c.parts.turn_prefix))))


def joined(*texts: str) -> str:
    """Join texts with an empty line between them; empty texts are left out."""
    return "\n\n".join(text for text in texts if text)


def without_failures(items: Sequence[Item]) -> list[Item]:
    """Return the items without responses that failed before any text or call, as in [prune_then_summarize].

    An interrupted response stays with the text that it had. Both are marked in ``meta``, see `FAILED_KEYS`.
    """
    failed = {_response(item) for item in items if any(item.block.meta.get(key) for key in FAILED_KEYS)}
    speaking = {_response(item) for item in items if _says(item.block)}
    return [item for item in items if _response(item) not in failed - speaking]


def _response(item: Item) -> tuple[str, int]:
    """Return the key of the response that an item is part of; any other block has a key of its own."""
    return ("response", item.response) if item.response else ("block", item.version)


def _says(block: Block) -> bool:
    """Return whether a block of a response is content: text or a call, not reasoning alone."""
    return type(block) is ToolCall or (type(block) is AssistantCompletion and bool(block.text.strip()))


@dataclass(frozen=True, slots=True)
class _Asking:
    """The fields that all requests of one compaction share."""

    counter: TokenCounter
    wanted: Wanted
    compaction_number: int
    cut: CutBlocks | None

    def request(
        self, kind: SummaryKind, items: Sequence[Item], previous: str, task: str | None, max_tokens: int
    ) -> SummaryRequest | None:
        """Return a request about items; None where the model was shown none of them, or only empty ones.

        The part of a turn before its cut may consist of the provider's own tool items alone, which no request sends.
        """
        if not max_tokens or not any(_asked_about(item) is not None for item in items):
            return None
        return SummaryRequest(
            kind=kind,
            blocks=self._blocks(items, previous, max_tokens),
            previous=previous or None,
            task=task,
            max_tokens=max_tokens,
            counter=self.counter,
            instructions=self.wanted.instructions,
            prompt=self.wanted.prompt,
            language=self.wanted.language,
            compaction_number=self.compaction_number,
            original_task=self.wanted.original_task,
            temperature=self.wanted.temperature,
            answer_room=self.wanted.answer_room,
            too_long=self.wanted.too_long,
            invented=self.wanted.invented,
        )

    def _blocks(self, items: Sequence[Item], previous: str, max_tokens: int) -> tuple[Block, ...]:
        """Return the blocks of a request; originals are cut to the room that `room_for` gives."""
        given = [(item, block) for item in items if (block := _as_requested(item)) is not None]
        if self.wanted.source == "shown" or not any(is_seen_through(item) for item, _ in given):
            return tuple(block for _, block in given)
        blocks = [
            (as_tool_block(item.block), item.tokens) if is_seen_through(item) else (block, _tokens(item))
            for item, block in given
        ]
        shown = sum(_tokens(item) for item, _ in given)
        answer = int(self.wanted.answer_room * max_tokens)
        room = room_for(shown, self.wanted.window, self.counter.count(previous), answer)
        return tuple(fitted(blocks, room, self.counter, self.cut))


def _asked_about(item: Item) -> Block | None:
    """Return a block as the model saw it; None for a superseded stage digest, which the newest one replaces."""
    return None if item.superseded else shown_block(item)


def _as_requested(item: Item) -> Block | None:
    """Return a block as a request shows it; stripped chitchat is shown, too, since the model once answered it."""
    return item.block if is_stripped(item) else _asked_about(item)


def _tokens(item: Item) -> int:
    """Return the tokens of a block as a request shows it by default."""
    return item.tokens if is_stripped(item) else item.shown_tokens


def shown_block(item: Item) -> Block | None:
    """Return a block as the model saw it: with its replacement where it is hidden, None where it was not shown.

    A result without text was shown, since it answers its call. What a provider's server did becomes a call or a result,
    since only that provider reads its parts. The runtime's notice that content is hidden is left out, since nobody in
    the conversation said it.
    """
    block = item.block
    if item.omitted or is_notice(block):
        return None
    if item.replacement is not None:
        why = item.hide.reason if item.hide is not None else HIDDEN_KEY
        changes: dict[str, Any] = {
            "text": item.replacement.text,
            "data": None,
            "meta": {**block.meta, ABRIDGED_KEY if item.state == "abridged" else HIDDEN_KEY: why},
        }
        if isinstance(block, ToolCall):
            changes["arguments"] = item.replacement.arguments or {}
        return block.model_copy(update=changes)
    has_content = bool(block.countable()) or block.data is not None
    return as_tool_block(block) if has_content or type(block) is ToolResult else None


def _leading_summary(items: Sequence[Item]) -> Item | None:
    """Return the summary with which a conversation of plain messages begins, as in [keep_last]; None without one."""
    return next((item for item in items[:_BEGINNING] if is_message_summary(item)), None)


def is_message_summary(item: Item) -> bool:
    """Return whether a response of the model reads as a summary of [keep_last]."""
    return _says(item.block) and SESSION_SUMMARY.match(item.block.text) is not None


def _round_of(text: str) -> int:
    found = SESSION_SUMMARY.match(text)
    return int(found["round"] or 1) if found else 0


def _task(window: Window, items: Sequence[Item]) -> str | None:
    """Return the prompt that asked for the work in items: the newest among them, else the newest live one before them.

    A prompt behind them stays in sight, and a summary that named it would speak of what it does not cover.
    """
    end = items[-1].order if items else (0, 0)
    for asked in (messages_of(items), messages_of(item for item in window.items if item.order <= end)):
        if asked:
            return asked[-1]
    return None


def _prompt_of(window: Window, turn_id: str | None) -> str | None:
    return next(iter(messages_of(item for item in window.items if item.block.turn_id == turn_id)), None)


def messages_of(items: Iterable[Item]) -> list[str]:
    """Return the text of each of the user's messages, with all parts; disowned messages are left out."""
    said: list[str] = []
    before: Item | None = None
    for item in items:
        if not isinstance(item.block, UserPrompt) or item.disowned:
            continue
        if item.continues(before):
            said[-1] = joined(said[-1], item.block.text)
        else:
            said.append(item.block.text)
        before = item
    return said
