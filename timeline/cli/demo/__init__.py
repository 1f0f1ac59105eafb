"""`timeline demo`: play a long conversation under a small limit, show its compactions, and prove that nothing is lost.

A window is drawn as a strip, turn by turn: one mark for about a hundred tokens, by what a compaction does with them.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import typer

from timeline.cli.checking import INVARIANTS, print_report
from timeline.cli.database import adding
from timeline.cli.demo.script import BEGAN, SYSTEM, steps
from timeline.cli.exits import Exit
from timeline.cli.output import paint, progress, say, state_colour, width, write
from timeline.cli.rows import read_rows
from timeline.display.brief import brief
from timeline.importers import FORMATS
from timeline.log.stored import free_id
from timeline.policy.ours import balanced
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from timeline.audit.verify import VerifyReport
    from timeline.cli.rows import Row
    from timeline.fold.window import Item, Window
    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext
    from timeline.projection.reports import TakenDecision


_MARKS: Final = {"covered": "░", "summary": "▓", "carried": "◆", "visible": "█"}
_ASCII: Final = {"covered": ".", "summary": "S", "carried": "P", "visible": "#"}
_COLOURS: Final = {"covered": "covered", "summary": "hidden", "carried": "carried", "visible": "visible"}


def legend(tokens: int) -> str:
    """Return the legend of a strip: the meaning of each mark, and the tokens of one."""
    words = {"covered": "will be covered", "summary": "summary", "carried": "carried prompt", "visible": "kept"}
    signs = "   ".join(f"{_mark(kind)} {word}" for kind, word in words.items())
    return f"{signs}   (a mark is about {tokens} tokens)"


def before(window: Window, after: Window, tokens: int) -> str:
    """Draw a window before a compaction; blocks that the window after it lacks are drawn as covered."""
    kept = {item.version: _kind(item) for item in after.items}
    return _strip(window, tokens, lambda item: kept.get(item.version, "covered"))


def strip(window: Window, tokens: int) -> str:
    """Draw a window."""
    return _strip(window, tokens, _kind)


def _kind(item: Item) -> str:
    if item.is_summary:
        return "summary"
    return "carried" if item.carried else "visible"


def _strip(window: Window, tokens: int, kind_of: Callable[[Item], str]) -> str:
    parts: list[str] = []
    for turn_id, members in groupby(window.items, key=lambda i: "summary" if i.is_summary else i.block.turn_id):
        turn = list(members)
        runs = [(kind, sum(i.shown_tokens for i in run)) for kind, run in groupby(turn, key=kind_of)]
        marks = "".join(_mark(kind) * max(1, round(size / tokens)) for kind, size in runs)
        parts.append(f"{turn_id.replace('_', ' ')} {marks}")
    return "  ".join(parts)


def _mark(kind: str) -> str:
    """Return the sign of a kind in its colour; an ASCII sign if the output is not UTF-8."""
    signs = _MARKS if (sys.stdout.encoding or "").lower().startswith("utf") else _ASCII
    return paint(signs[kind], state_colour(_COLOURS[kind]))


LIMIT: Final = 6_000
"""Context limit of the demo, in tokens: small, so that two compactions come soon."""
_ANSWER: Final = 1_000
"""The most tokens that the demo's requests allow an answer."""
MODEL: Final = "demo-model"
"""The model that the demo's requests name: the script answers in its place."""
_MARK: Final = 100
"""Tokens of one mark in a strip."""
_ASIDE: Final = " " * 37
"""The indentation of the lines that continue a comment in the list of next commands."""


@dataclass(frozen=True, slots=True)
class DemoCompaction:
    """A compaction of the demo: the model call it came before, the window on both sides, and its figures."""

    call: int
    before: Window
    after: Window
    taken: TakenDecision


def _columns() -> int:
    return min(width(), 100)


async def demo(db: str | None) -> int:
    """Run the demo and print what happens; return the exit code of `verify`. Without ``db`` its database is temporary.

    Raises:
        StoreError: the named database cannot be used.
    """
    async with _store(db) as store:
        id_ = await free_id(store, "demo")
        timeline, compactions, context, calls = await _play(store, id_)
        rows = (await read_rows(store, id_)).rows
        _show_beginning(context, rows, calls)
        for number, compaction in enumerate(compactions, start=1):
            _show_compaction(number, compaction)
        say(f"  now     {strip(timeline.window, _MARK)}")
        say(f"  {legend(_MARK)}")
        await _show_summary(timeline, compactions)
        await _show_recall(timeline, rows)
        _show_cache_points(context)
        ok = _show_proof(await timeline.verify())
    _show_next(id_, db)
    return Exit.OK if ok else Exit.NOT_SO


@asynccontextmanager
async def _store(db: str | None) -> AsyncIterator[EventStore]:
    if db is not None:
        async with adding(db) as store:
            yield store
        return
    with TemporaryDirectory(prefix="timeline-demo-") as folder:
        async with adding(str(Path(folder, "demo.db"))) as store:
            yield store


async def _play(store: EventStore, id_: str) -> tuple[Timeline, list[DemoCompaction], RenderedContext, int]:
    """Append the conversation as an agent would, rendering before each model call; return what the demo prints."""
    policy = balanced(max_tokens=LIMIT)
    timeline = await Timeline.open(store, id_, policy=policy, title="A flashcard app", now=BEGAN)
    compactions: list[DemoCompaction] = []
    calls = 0
    script = list(steps())
    with progress("playing a conversation", len(script)) as advance:
        for number, step in enumerate(script):
            if step.is_response:
                calls += 1
                window = timeline.window
                context = await timeline.render(system=SYSTEM, now=step.at)
                compacted = [taken for taken in context.decisions if taken.kind == "compacted"]
                compactions += [DemoCompaction(calls, window, timeline.window, taken) for taken in compacted]
                request = context.request("anthropic", model=MODEL, max_tokens=_ANSWER)
            await timeline.append(*step.blocks, now=step.at)
            if step.is_response:
                response = step.blocks[0].response_id
                await timeline.record_model_call(response_id=response, request=request, now=step.at)
            advance(number + 1)
    context = await timeline.render(system=SYSTEM, now=script[-1].at)
    return timeline, compactions, context, calls


def _show_beginning(context: RenderedContext, rows: Sequence[Row], calls: int) -> None:
    message_rows = [row for row in rows if row.path is not None and row.type != "conv.range.summary"]
    turns, tokens = len({row.turn_id for row in message_rows}), sum(row.tokens or 0 for row in message_rows)
    account = context.account
    say(
        paint("An agent builds a flashcard app", bold=True)
        + f": {turns} turns, {calls} model calls, {tokens:,} tokens."
    )
    say(f"Its model sees at most {account.limit:,} tokens at once, so the timeline renders a context before each")
    say(f"call; above {account.trigger:,} tokens it compacts the older part: a summary replaces it.")
    write()


def _show_compaction(number: int, compaction: DemoCompaction) -> None:
    facts = compaction.taken.facts
    sizes = f"{facts['before_tokens']:,} -> {facts['after_tokens']:,} tokens"
    split = facts.get("split_turn_id")
    what = f"cut inside {split}, whose prompt is carried" if split else "cut between two turns"
    say(paint(f"Compaction {number}", bold=True) + f", before call {compaction.call}: {sizes}, {what}")
    say(f"  before  {before(compaction.before, compaction.after, _MARK)}")
    say(f"  after   {strip(compaction.after, _MARK)}")


async def _show_summary(timeline: Timeline, compactions: Sequence[DemoCompaction]) -> None:
    path = str(compactions[-1].taken.facts["summary_path"])
    block = await timeline.read(path)
    write()
    say(paint("The summary", bold=True) + f" that the model sees now, shortened ({path}):")
    for line in _shortened(block.text):
        write(paint(f"  | {brief(line, _columns() - 6)}", dim=True))


def _shortened(text: str) -> list[str]:
    """Return each section's heading with its first item."""
    kept: list[str] = []
    for section in text.split("\n## ")[1:]:
        heading, *lines = [line.removeprefix("- ") for line in section.splitlines() if line.strip()]
        first = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
        kept.append(f"{heading}: {first}")
    return kept


async def _show_recall(timeline: Timeline, rows: Sequence[Row]) -> None:
    """Read a covered block back: the first failing test of the conversation."""
    row = next(row for row in rows if row.about.startswith("error: "))
    path = str(row.path)
    lines = (await timeline.read(path)).text.splitlines()
    error = next(line for line in lines if line.startswith("E "))
    write()
    say(paint("Nothing is lost.", bold=True) + f" A {row.state} block, read back in full by its path:")
    write(f"  $ timeline read {timeline.id} {path}")
    for line in (lines[0], "…", error, f"… ({len(lines)} lines)"):
        write(paint(f"  | {brief(line, _columns() - 6)}", dim=True))


def _show_cache_points(context: RenderedContext) -> None:
    shown = [entry.path for entry in context.neutral.entries]
    points = [f"{p.kind.replace('_', ' ')} after {shown[p.index]}" for p in context.cache_points]
    write()
    say(paint("Cache points", bold=True) + " of the newest context, so that the provider reuses what did not change:")
    for line in wrap("; ".join(points), _columns() - 4, break_on_hyphens=False):
        write(f"  {line}")


def _show_proof(report: VerifyReport) -> bool:
    write()
    if not report.ok:
        print_report(report)
        return False
    rebuilt = report.renders - sum(report.unverifiable.values())
    proof = paint(f"{rebuilt} contexts rebuilt byte for byte", typer.colors.GREEN)
    say(paint("Verified", bold=True) + f": {proof}, and these hold for every event:")
    say("  " + paint(", ".join(INVARIANTS), typer.colors.GREEN))
    return True


def _show_next(id_: str, db: str | None) -> None:
    write()
    write(paint("Next", bold=True))
    if db is None:
        write("  timeline demo --db demo.db         keep this conversation, then look at it:")
    where = f"timeline show {id_} --db {quote(db or 'demo.db')}"
    say(f"  {where:<33}  also: calls, render, read, digests, search, verify, export")
    write("  timeline simulate FILE             try it on a recorded conversation of your own,")
    write("  timeline lab FILE                  or see what other policies would have cost on it:")
    formats = ", ".join(name.partition(" (")[0] for name in FORMATS)
    for line in wrap(formats, _columns() - len(_ASIDE), break_on_hyphens=False):
        write(_ASIDE + line)
