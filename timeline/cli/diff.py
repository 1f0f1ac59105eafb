"""`timeline diff`: compare two recorded contexts of a conversation, and show what broke the provider's cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import typer

from timeline.audit.differences import diff_sides
from timeline.audit.replay import recorded_contexts
from timeline.audit.summaries import diff_summaries
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.options import known_wire
from timeline.cli.output import pad, paint, say, state_colour, write
from timeline.display.brief import brief
from timeline.events.addresses import Address
from timeline.projection.explain import counted, spaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.audit.differences import Side
    from timeline.audit.replay import RecordedContext
    from timeline.cli.shapes import RecordedRow
    from timeline.projection.diff import BlockRow, ChangedRow, ContextDiff, Prefix
    from timeline.projection.summary_diff import SummaryDiff

_SIGNS: Final = {
    "same": (" ", None),
    "removed": ("-", typer.colors.RED),
    "added": ("+", typer.colors.GREEN),
    "changed": ("~", typer.colors.YELLOW),
    "skipped": ("…", None),
}
"""The sign in front of a line of a text's difference, and its colour, by kind."""
_MOST_ROWS: Final = 12
"""The most blocks of each list without `--all`."""


async def diff_contexts(before: Side, after: Side, db: str, wire: str, *, every: bool, as_json: bool) -> None:
    """Compare two recorded contexts, of one conversation or of two.

    Raises:
        UsageProblem: there is no such wire format.
    """
    named = known_wire(wire)
    async with reading(db) as store:
        with output.working("replaying"):
            found, chosen = await diff_sides(store, before, after, wires=[named])
    if as_json:
        output.write_json(found.dump())
        return
    _print_head(found, chosen)
    _print_rows("left", found.left, every=every)
    _print_rows("entered", found.entered, every=every)
    _print_changed(found.changed, every=every)
    if found.summary is not None:
        _print_summary(found.summary)
    for prefix in found.prefixes:
        _print_prefix(prefix, found.before.tokens)


async def diff_of_summaries(conversation: str, before: str, after: str, db: str, *, as_json: bool) -> None:
    """Compare the summaries of two compactions as text."""
    async with reading(db) as store:
        found = await diff_summaries(store, conversation, before, after)
    if as_json:
        output.write_json(found.dump())
        return
    write(paint(conversation, bold=True))
    _print_summary(found)


def _print_summary(found: SummaryDiff) -> None:
    sides = (f"{side.address} (compaction {side.compaction_number})" for side in (found.before, found.after))
    _heading(f"summary: {' -> '.join(sides)}")
    for line in found.lines:
        sign, colour = _SIGNS[line.kind]
        say(paint(f"{sign} {line.text}".rstrip(), colour, dim=line.kind == "skipped"), hang=2)
    if not found.lines:
        write("  the same text")


async def list_contexts(conversation: str, db: str, *, as_json: bool) -> None:
    """List the recorded contexts of a conversation."""
    async with reading(db) as store:
        rows = [_recorded(context) for context in await recorded_contexts(store, conversation)]
    if as_json:
        with output.JsonList() as written:
            for row in rows:
                written.add(row)
    elif rows:
        output.table(
            ("number", "version", "at", "projected from", "tokens", "fingerprint"),
            [
                (f"#{r['number']}", r["version"], r["at"][:19], r["projected_from"], r["tokens"], r["fingerprint"][:12])
                for r in rows
            ],
        )
    else:
        write("No recorded context yet. Record one: timeline render ID --record")


def _recorded(context: RecordedContext) -> RecordedRow:
    return {
        "number": context.number,
        "version": context.version,
        "at": instant_text(context.at),
        "projected_from": context.rendered.version,
        "tokens": context.rendered.tokens,
        "fingerprint": context.rendered.fingerprint,
    }


def _print_head(found: ContextDiff, chosen: Sequence[RecordedContext]) -> None:
    write(paint(found.conversation, bold=True))
    for side, ref, context in zip(("before", "after"), (found.before, found.after), chosen, strict=True):
        of = "" if found.before.conversation == found.after.conversation else f"  of {ref.conversation}"
        what = f"#{context.number}, version {context.version}, {instant_text(context.at)[:19]}{of}"
        write(f"{side:<7} {ref.tokens:>7,} tokens  {what}")
    other = ", ".join(spaced(name) for name in found.differs)
    same = [name for name in ("system prompt", "tools") if name.split()[0] not in found.differs]
    say(
        f"the same: {' and '.join(same) or 'neither system prompt nor tools'}"
        + (f"; changed: {other}" if other else "")
    )
    write(f"with a warm cache {found.reuse.cached:,} tokens are read from it and {found.reuse.processed:,} processed")


def _print_rows(what: str, rows: Sequence[BlockRow], *, every: bool) -> None:
    if not rows:
        return
    summaries = {row.covered_by for row in rows}
    every_by = f", covered by {Address(rows[0].covered_by)}" if len(summaries) == 1 and rows[0].covered_by else ""
    _heading(
        f"{what}: {counted(len(rows), 'block', 'blocks')}, {sum(row.shown_tokens for row in rows):,} tokens{every_by}"
    )
    for row in rows if every else rows[:_MOST_ROWS]:
        by = f"covered by {Address(row.covered_by)}" if row.covered_by and not every_by else ""
        state = paint(pad(row.state, 8), state_colour(row.state))
        write(f"{Address(row.version)!s:>7}  {state}  {row.shown_tokens:>7,}  {_fitted(row.path, by, 28)}")
    _rest(rows, every=every)


def _print_changed(rows: Sequence[ChangedRow], *, every: bool) -> None:
    if not rows:
        return
    _heading(f"changed: {counted(len(rows), 'block', 'blocks')}")
    for row in rows if every else rows[:_MOST_ROWS]:
        state = row.after if row.before == row.after else f"{row.before} -> {row.after}"
        size = f"{row.after_tokens:,}"
        if row.before_tokens != row.after_tokens:
            size = f"{row.before_tokens:,} -> {size}"
        state = paint(pad(state, 18), state_colour(row.after))
        left = f"{Address(row.version)!s:>7}  {state}  {pad(size, 15, right=True)}  "
        write(left + _fitted(row.path, row.reason, 46))
    _rest(rows, every=every)


def _heading(text: str) -> None:
    write()
    write(paint(text, bold=True))


def _rest(rows: Sequence[object], *, every: bool) -> None:
    if not every and len(rows) > _MOST_ROWS:
        write(f"{'':7}  … and {len(rows) - _MOST_ROWS} more: see --all")


def _fitted(path: str, more: str, used: int) -> str:
    """Return a path, which is never cut, followed by as much of a text as fits on the line."""
    room = output.width() - used - len(path)
    return path + (paint("  " + brief(more, room - 2), dim=True) if more and room > 12 else "")


def _print_prefix(prefix: Prefix, tokens: int) -> None:
    share = f"{prefix.common_bytes:,} of {prefix.before_bytes:,} bytes, {prefix.common_tokens:,} of {tokens:,} tokens"
    _heading(f"{prefix.wire} prefix: the same for {share}")
    colour = typer.colors.GREEN if prefix.intact else typer.colors.RED
    write(paint(f"  {prefix.cause.text}", colour))
    first = prefix.first_difference
    if first is None or prefix.intact:
        return
    room = max(output.width() - 10, 20)
    for side, place, path, text in (
        ("before", first.before_place, first.before_path, first.before),
        ("after", first.after_place, first.after_path, first.after),
    ):
        write(f"  {side:<7} {place}, byte {first.byte:,}" + (f": {path}" if path else ""))
        write(paint(f"          {brief(text, room)}", dim=True))
