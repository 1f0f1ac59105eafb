"""A second fold, as slow and plain as possible: every answer is worked out anew from the whole log.

Written from the design's words, to be held against the real one. A log is a list of ``(version, payload, at)``; blocks
are known by their versions. Everything is quadratic or worse, and nothing is remembered between two questions.

A compaction that was taken back was never made: every question but that of the lease is asked of `standing` lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.blocks import (
    CONTINUES_KEY,
    IN_TAIL,
    AssistantCompletion,
    Note,
    RangeSummary,
    Reasoning,
    StageDigest,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.events import (
    ABANDONED,
    DISOWNED,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionCompleted,
    CompactionReverted,
    Replacement,
    appended_block,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Payload


class LogLine(NamedTuple):
    """What the fold is given of an event."""

    version: int
    payload: Payload
    at: datetime


def reverted(log: Sequence[LogLine]) -> set[int]:
    """Return the versions of the compactions that were taken back."""
    return {v for line in log if isinstance(line.payload, CompactionReverted) for v in line.payload.versions}


def standing(log: Sequence[LogLine]) -> list[LogLine]:
    """Return the log without the compactions that were taken back in it, and the previews right behind them."""
    gone = reverted(log)
    previews = {v for v, p, _ in log if isinstance(p, BlocksHidden) and p.reason == "spill" and v - 1 in gone}
    return [line for line in log if line.version not in gone | previews]


def blocks_of(log: Sequence[LogLine]) -> dict[int, Block]:
    """Return every block of the log by version, summaries included."""
    return {version: block for version, payload, _ in log if (block := appended_block(payload)) is not None}


def summaries_of(log: Sequence[LogLine]) -> dict[int, CompactionCompleted]:
    """Return every compaction of the log by version, live or superseded."""
    return {version: payload for version, payload, _ in log if isinstance(payload, CompactionCompleted)}


def covered_by(log: Sequence[LogLine]) -> dict[int, int]:
    """Say of each covered block which live summary covers it: the one that took it, or what took that one since."""
    taken_by: dict[int, int] = {}
    seen: list[int] = []
    for version, payload, _ in log:
        if isinstance(payload, CompactionCompleted):
            inside = {v for first, last in payload.covers.ranges for v in range(first, last + 1)}
            inside |= set(payload.covers.summaries)
            for old in seen:
                if old in inside and old not in payload.carried and old not in taken_by:
                    taken_by[old] = version
        if appended_block(payload) is not None:
            seen.append(version)
    live: dict[int, int] = {}
    for version, taker in taken_by.items():
        by = taker
        while by in taken_by:
            by = taken_by[by]
        live[version] = by
    return live


def states(log: Sequence[LogLine]) -> dict[int, str]:
    """Give each block its one state (design, section 2)."""
    covered = covered_by(log)
    result: dict[int, str] = {}
    for version in blocks_of(log):
        if version in covered:
            result[version] = "covered"
        elif _is_redacted(log, version):
            result[version] = "redacted"
        elif (hidden := hidden_as(log, version)) is not None:
            told = "abridged" if hidden.reason in {"repeated", "numbered"} else "hidden"
            result[version] = "omitted" if hidden.mode == "omit" else told
        else:
            result[version] = "carried" if is_carried(log, version) else "visible"
    return result


def _is_redacted(log: Sequence[LogLine], version: int) -> bool:
    return any(isinstance(p, BlockRedacted) and p.version == version < at for at, p, _ in log)


def hidden_as(log: Sequence[LogLine], version: int) -> BlocksHidden | None:
    """Return the event that hides a block now: the newest hide that no reveal and no redaction follows."""
    hide: BlocksHidden | None = None
    for at, payload, _ in log:
        if at <= version:
            continue
        if isinstance(payload, BlocksHidden) and any(r.version == version for r in payload.blocks):
            hide = payload
        elif isinstance(payload, BlocksRevealed) and version in payload.versions:
            hide = None
    return hide


def replacement(log: Sequence[LogLine], version: int) -> Replacement | None:
    """Return what is shown instead of a hidden block, as it was recorded; None when nothing is."""
    hide = hidden_as(log, version)
    if hide is None or hide.mode == "omit" or _is_redacted(log, version):
        return None
    return next(r for r in hide.blocks if r.version == version)


def is_revealed(log: Sequence[LogLine], version: int) -> bool:
    """Say whether somebody asked to see a block again, and no later hide followed.

    What was taken back with a turn, as it was, is not asked for; nor is what refers to something out of sight.
    """
    named = [
        isinstance(payload, BlocksRevealed) and payload.reason == "manual"
        for at, payload, _ in log
        if at > version
        and (
            (isinstance(payload, BlocksRevealed) and version in payload.versions)
            or (isinstance(payload, BlocksHidden) and any(r.version == version for r in payload.blocks))
        )
    ]
    return named[-1] if named else False


def is_carried(log: Sequence[LogLine], version: int) -> bool:
    """Say whether some compaction kept a block verbatim behind its summary."""
    return any(isinstance(p, CompactionCompleted) and version in p.carried for at, p, _ in log if at > version)


def is_pinned(log: Sequence[LogLine], version: int) -> bool:
    """Say whether a block is pinned: by its type, or by the newest event that says something of it.

    A summary is integrated into the next one, pinned or not. Of stage digests only the newest is pinned by its type.
    """
    blocks = blocks_of(log)
    if isinstance(blocks[version], RangeSummary):
        return False
    pinned = False
    for at, payload, _ in log:
        if at > version and isinstance(payload, BlocksPinned | BlocksUnpinned) and version in payload.versions:
            pinned = isinstance(payload, BlocksPinned)
    return pinned or isinstance(blocks[version], Note) or version in _newest_digests(blocks)


def _newest_digests(blocks: Mapping[int, Block]) -> set[int]:
    """Return the stage digests that no newer one replaces: one in the tail, and one at its place behind that."""
    in_tail = {v: IN_TAIL in block.meta for v, block in blocks.items() if isinstance(block, StageDigest)}
    newest = max(in_tail, default=0)
    return {newest, max((v for v, told in in_tail.items() if told), default=0)}


def place_of(log: Sequence[LogLine], version: int) -> int:
    """Say where a block stands: at its own version, or where the first version stood that a summary covers."""
    compaction = summaries_of(log).get(version)
    if compaction is None or not compaction.covers.ranges:
        return version
    return min(first for first, _ in compaction.covers.ranges)


def order(log: Sequence[LogLine]) -> list[int]:
    """List the live blocks in timeline order; a summary goes before the block at its place."""
    now, blocks = states(log), blocks_of(log)
    live = [version for version in blocks if now[version] != "covered"]
    return sorted(live, key=lambda v: (place_of(log, v), not isinstance(blocks[v], RangeSummary)))


def window_start(log: Sequence[LogLine]) -> int:
    """Return the lowest version of a live block that is neither carried nor a summary; else the next version."""
    blocks = blocks_of(log)
    own = [v for v in order(log) if not is_carried(log, v) and not isinstance(blocks[v], RangeSummary)]
    return min(own, default=log[-1][0] + 1 if log else 1)


def abandoned(log: Sequence[LogLine]) -> set[int]:
    """Return the blocks behind which the history went back, and which nothing showed or hid in another way since."""
    hides = {version: hidden_as(log, version) for version in blocks_of(log)}
    return {version for version, hide in hides.items() if hide is not None and hide.reason == ABANDONED}


def _is_omitted(log: Sequence[LogLine], version: int) -> bool:
    """Say whether nothing of a block is shown; no hide changes one that was redacted before."""
    erased = min((at for at, p, _ in log if isinstance(p, BlockRedacted) and p.version == version < at), default=None)
    hide = hidden_as(
        [line for line in log if erased is None or line.version < erased or not isinstance(line.payload, BlocksHidden)],
        version,
    )
    return hide is not None and hide.mode == "omit"


def leaving(log: Sequence[LogLine], version: int | None) -> list[int]:
    """Say which blocks leave where the history goes back behind a block; behind the newest shown prompt if None.

    A part of a response, or a result of one of its calls, stands for the response's beginning, and another block for
    the first part of its message. All that is shown from there on leaves, but for results of a response that stays.
    """
    blocks = blocks_of(log)
    said = {v: block for v, block in blocks.items() if not isinstance(block, RangeSummary)}
    stay = {v for v, block in said.items() if isinstance(block, StageDigest) or _is_redacted(log, v)}
    shown = [v for v in said if v not in stay and not _is_disowned(log, v)]
    if version is None:
        version = max((v for v in shown if isinstance(said[v], UserPrompt)), default=None)
    if version is None:
        return []
    response = _beginnings_of_responses(said)
    whole = (v for v in sorted(blocks, reverse=True) if v <= version and not blocks[v].meta.get(CONTINUES_KEY))
    start = response[version] or next(whole, version)
    return [v for v in shown if v >= start and (response[v] or v) >= start]


def _is_disowned(log: Sequence[LogLine], version: int) -> bool:
    """Say whether a block never happened for the agent: a decision says so, and nothing has shown it again since."""
    told = False
    for at, payload, _ in log:
        if at > version and isinstance(payload, BlocksHidden) and payload.reason in DISOWNED:
            told = told or any(each.version == version for each in payload.blocks)
        elif isinstance(payload, BlocksRevealed) and version in payload.versions:
            told = False
    return told


def _beginnings_of_responses(said: Mapping[int, Block]) -> dict[int, int | None]:
    """Say of each block where the response begins that it is part of, or that made the newest call of its id.

    A response is what has the same id next to each other; a call without an id is one of its own.
    """
    begins: dict[int, int | None] = {}
    calls: dict[str, int] = {}
    newest, id_ = 0, None
    for version, block in said.items():
        if block.response_id is None or block.response_id != id_:
            newest, id_ = version, block.response_id
        if isinstance(block, ToolResult):
            begins[version] = calls.get(block.call_id)
            continue
        begins[version] = newest if isinstance(block, ToolCall) or id_ is not None else None
        if isinstance(block, ToolCall):
            calls[block.call_id] = newest
    return begins


def turns_back(log: Sequence[LogLine]) -> set[int]:
    """Return the decisions by which the history went back, or took up again what it had left."""
    return {line.version for index, line in enumerate(log) if _turns(log[:index], line.payload)}


def _turns(before: Sequence[LogLine], payload: Payload) -> bool:
    if isinstance(payload, BlocksHidden):
        return payload.mode == "omit" and payload.reason == ABANDONED
    if not isinstance(payload, BlocksRevealed) or not (left := abandoned(before).intersection(payload.versions)):
        return False
    return any(_is_omitted(before, v) and states(before)[v] == "omitted" for v in left)


def responses(log: Sequence[LogLine]) -> dict[int, int]:
    """Say of each block that the model said which response it is part of; numbered from 1 on.

    A response goes on while its id is the same; without an id, while nothing comes between. It is over where the
    history goes back.
    """
    numbers: dict[int, int] = {}
    newest, newest_id, unbroken, turns = 0, None, False, turns_back(log)
    for version, payload, _ in log:
        if version in turns:
            newest_id, unbroken = None, False
        block = appended_block(payload)
        if block is None or isinstance(payload, CompactionCompleted):
            continue
        if not isinstance(block, AssistantCompletion | Reasoning | ToolCall):
            unbroken = False
            continue
        goes_on = block.response_id == newest_id and (unbroken or block.response_id is not None)
        if newest == 0 or not goes_on:
            newest, newest_id = newest + 1, block.response_id
        unbroken = True
        numbers[version] = newest
    return numbers


def answers(log: Sequence[LogLine]) -> dict[int, int | None]:
    """Say of each result which call it answers, or None: an orphan, a late one, or one whose call is covered already.

    A result answers the oldest call of its id that waits.
    """
    return _answered_and_waiting(log)[0]


def _answered_and_waiting(log: Sequence[LogLine]) -> tuple[dict[int, int | None], list[int]]:
    """Return what each result answers, and the calls that still wait: of the newest response, or pending."""
    number, turns, blocks = responses(log), turns_back(log), blocks_of(log)
    given: dict[int, int | None] = {}
    waiting: list[int] = []
    for index, (version, _, _) in enumerate(log):
        if version in turns:
            waiting = _waiting_again(log[: index + 1], number, given)
        block = blocks.get(version)
        if number.get(version, 0) > max((n for v, n in number.items() if v < version), default=0):
            waiting = [v for v in waiting if getattr(blocks[v], "pending", False)]
        if isinstance(block, ToolCall):
            waiting.append(version)
        elif isinstance(block, ToolResult):
            call = next((v for v in waiting if blocks[v].call_id == block.call_id), None)
            waiting = [v for v in waiting if v != call]
            given[version] = None if call is None or call in covered_by(log[:index]) else call
    return given, waiting


def _waiting_again(log: Sequence[LogLine], number: Mapping[int, int], given: Mapping[int, int | None]) -> list[int]:
    """List the calls that wait where the history goes back: those of what is shown there."""
    blocks = blocks_of(log)
    shown = [v for v in order(log) if not _is_omitted(log, v)]
    answered = {given.get(v) for v in shown}
    newest = max((number.get(v) or number.get(given.get(v) or 0) or 0 for v in shown), default=0)
    calls = [v for v in shown if isinstance(blocks[v], ToolCall) and v not in answered]
    return [v for v in calls if number[v] == newest or getattr(blocks[v], "pending", False)]


def unanswered(log: Sequence[LogLine]) -> list[int]:
    """List the live calls that no live result answers; one behind which the history went back waits for none."""
    given, blocks, now = answers(log), blocks_of(log), states(log)
    live, left = order(log), abandoned(log)
    answered = {given[v] for v in live if v in given}
    calls = [v for v in live if isinstance(blocks[v], ToolCall) and v not in answered]
    return [v for v in calls if v not in left or now[v] != "omitted"]


def open_calls(log: Sequence[LogLine]) -> list[int]:
    """List the live calls that may still be answered; the other unanswered ones are dead.

    They are of the newest response, of the one to which the history went back, or pending.
    """
    number, blocks = responses(log), blocks_of(log)
    _, waiting = _answered_and_waiting(log)
    newest = max(number.values(), default=0)
    newest = next((number[v] for v in waiting if not getattr(blocks[v], "pending", False)), newest)
    return [v for v in unanswered(log) if number[v] == newest or getattr(blocks[v], "pending", False)]


def groups(log: Sequence[LogLine]) -> list[set[int]]:
    """Part the live blocks into what a cut may never divide: a response with its results, an opening, a single block.

    A turn's opening is its header, prompt and attachments next to each other; a carried one has lost its turn's rest
    and is a block like any other.
    """
    number, given, blocks = responses(log), answers(log), blocks_of(log)
    by_response: dict[int, set[int]] = {}
    parts: list[set[int]] = []
    opening: set[int] | None = None
    for version in order(log):
        block = blocks[version]
        if block.type in {"turn.header", "user.prompt", "user.attachment"} and not is_carried(log, version):
            if opening is None or block.type == "turn.header" or blocks[max(opening)].turn_id != block.turn_id:
                opening = set()
                parts.append(opening)
            opening.add(version)
            continue
        opening = None
        call = given.get(version)
        response = number.get(version) or (number[call] if call is not None else None)
        if response is None:
            parts.append({version})
        elif response in by_response:
            by_response[response].add(version)
        else:
            by_response[response] = {version}
            parts.append(by_response[response])
    return parts
