"""Write a summary anew from what is left of the blocks that it covers, by extraction: no model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.events import NOBODY, WRITTEN_ANEW, SummaryParts
from timeline.facts.record_lines import LISTS, RECORD_HEADING, record_in, shown_record
from timeline.facts.said import searchable_line
from timeline.fold.counts import in_unit, parts_of_unit
from timeline.fold.window import TOMBSTONE, unabridged
from timeline.planning.covered_digest import build_digest
from timeline.planning.summary_block import SPLIT_HEADING
from timeline.planning.summary_requests import earlier_parts, joined, shown_block, without_failures
from timeline.policy.steps import BLOCK_FORM
from timeline.ports import SummaryRequest
from timeline.tokens import COUNTER_NAMES, get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import CompactionCompleted
    from timeline.facts.of_items import WindowFacts
    from timeline.fold.window import Item, Window
    from timeline.ports import SummaryKind, TokenCounter

_LEAST_TOKENS: Final = 64
_ABOUT_CONTENT: Final = ("compaction_digest", "parts", "written_by")


def summary_anew(window: Window, old: CompactionCompleted, known: WindowFacts) -> CompactionCompleted:
    """Return a compaction with its summary, record and digest made of what is left.

    Args:
        window: the window that the compaction was made in, redacted blocks as tombstones; empty where its blocks were
            scavenged, so that nothing is left to say but what earlier summaries say.
        old: the compaction. What it covers, carries and counts stays.
        known: the facts of what was covered before.
    """
    counter = _counter(old.counter)
    inside = (i for i in window.items if i.version in old.covers and i.version not in old.carried)
    covered = [unabridged(item) for item in inside if not item.is_summary]  # what one leaves out may be redacted
    parts = _parts(window, old, covered, counter)
    record = _record(window, old, known, parts, counter)
    heading = _heading(old)
    body = joined(parts.history, f"## {SPLIT_HEADING}\n\n{parts.turn_prefix}" if parts.turn_prefix else "")
    body = joined(body or TOMBSTONE, f"## {RECORD_HEADING}\n\n{record}" if record else "")
    text = heading + body if not heading or heading.endswith("\n") else joined(heading, body)
    by = old.written_by
    if by.summarizer != NOBODY:
        gone = {"model": None, "prompt_version": None, "repaired": None, "alone_because": None}
        by = by.model_copy(update={**gone, "summarizer": "extractive", "fallback_reason": WRITTEN_ANEW})
    meta = {key: value for key, value in old.block.meta.items() if key not in _ABOUT_CONTENT}
    origins = {"written_by": by.model_dump(exclude_defaults=True), "parts": parts.model_dump()}
    meta |= {key: value for key, value in origins.items() if key in old.block.meta}
    block = old.block.model_copy(update={"text": text, "data": None, "meta": meta})
    tokens = max(1, old.tokens - counter.count(old.block.text) + counter.count(text))
    changes = {"block": block, "tokens": tokens, "parts": parts, "digest": build_digest(covered), "written_by": by}
    return old.model_copy(update=changes)


def _counter(unit: str) -> TokenCounter:
    """Return the counter of a stored figure; the usual one where an application used a counter of its own."""
    name, ratio = parts_of_unit(unit)
    return in_unit(get_counter(name if name in COUNTER_NAMES else "o200k_base"), ratio)


def _parts(window: Window, old: CompactionCompleted, covered: Sequence[Item], counter: TokenCounter) -> SummaryParts:
    """Return both halves: the earlier summaries that it integrated, with what it covered newly."""
    versions = {item.block.path: item.version for item in window.items if item.is_summary}
    earlier = [c for c in window.summaries if versions.get(c.block.path, 0) in old.covers.summaries]
    useful = without_failures(covered)
    inside = [i for i in useful if i.block.turn_id == old.split_turn_id]
    finished = [i for i in useful if i.block.turn_id != old.split_turn_id]
    said = earlier_parts(earlier, old.split_turn_id)
    # An imported summary has no halves.
    history_text = old.parts.history or ("" if old.parts.turn_prefix else old.block.text)
    return SummaryParts(
        history=_part("history", finished, said.history, history_text, counter),
        turn_prefix=_part("turn_prefix", inside, said.turn_prefix, old.parts.turn_prefix, counter),
    )


def _part(kind: SummaryKind, items: Sequence[Item], previous: str, old: str, counter: TokenCounter) -> str:
    blocks = tuple(block for i in items if not i.redacted and (block := shown_block(i)) is not None)
    if not blocks:
        return previous
    most = max(_LEAST_TOKENS, counter.count(old))
    # No task is given, so that the newest prompt among the blocks is the task.
    request = SummaryRequest(kind, blocks, previous or None, None, most, counter)
    from timeline import summarizers  # noqa: PLC0415 - the lazy re-export: the core does not import the package

    return summarizers.extract(request)


def _record(
    window: Window, old: CompactionCompleted, known: WindowFacts, parts: SummaryParts, counter: TokenCounter
) -> str:
    """Return the record of what was done before the window, where the old summary had one."""
    if not (shown := record_in(old.block.text)):
        return ""
    return shown_record(
        known.record(old.covers, window.items),
        open_calls=(),
        pins=(),
        most_tokens=max(_LEAST_TOKENS, counter.count(shown)),
        counter=counter,
        address=old.block.path,
        summary=searchable_line((parts.history, parts.turn_prefix)),
        lists=LISTS in shown,
    )


def _heading(old: CompactionCompleted) -> str:
    """Return what comes before the words of a summary: its policy's heading."""
    text = old.block.text
    places = [text.find(part) for part in (old.parts.history, old.parts.turn_prefix) if part]
    begin = min((place for place in places if place >= 0), default=-1)
    if begin >= 0:
        return text[:begin].removesuffix(f"## {SPLIT_HEADING}\n\n")
    return BLOCK_FORM.heading if text.startswith(BLOCK_FORM.heading) else ""
