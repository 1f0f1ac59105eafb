"""`timeline show`: the events of a conversation, turn by turn, with the state of every block."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Final

import typer

from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.output import JsonList, brief, pad, paint, state_colour, write
from timeline.cli.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.cli.rows import Row
    from timeline.fold.window import Window

BOOKKEEPING: Final = frozenset({"conversation.opened", "context.rendered", "model.called"})
"""Events that a person sees with `--all` only."""


async def show(conversation: str, db: str, *, every: bool, as_json: bool) -> None:
    """Print a conversation's events: all of them as JSON, its turns with their blocks for a person.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    async with reading(db) as store:
        with output.progress("reading"):
            window, rows = await read_rows(store, conversation)
    if as_json:
        with JsonList() as rows_written:
            for row in rows:
                rows_written.add(row.dump())
        return
    _head(conversation, window, rows)
    paths = {row.version: row.path for row in rows}
    shown = _with_turns(rows if every else [row for row in rows if row.type not in BOOKKEEPING])
    for turn_id, members in groupby(shown, key=lambda pair: pair[0]):
        turn = [row for _, row in members]
        write()
        if turn_id:
            write(_heading(turn_id, next((row.about for row in turn if row.type == "user.prompt"), "")))
        for by, run in groupby(turn, key=lambda row: None if every else row.covered_by):
            if by is None:
                for row in run:
                    write(_line(row, paths))
            else:
                write(_covered(list(run), paths[by] or ""))


def _with_turns(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Put each event with the turn that it stands in: what is no block belongs to the turn that is going on."""
    turn_id = ""
    placed: list[tuple[str, Row]] = []
    for row in rows:
        turn_id = row.turn_id or turn_id
        placed.append((turn_id, row))
    return placed


def _head(conversation: str, window: Window, rows: Sequence[Row]) -> None:
    states = Counter(row.state or "lost" for row in rows if row.path is not None)
    counts = ", ".join(paint(f"{count} {state}", state_colour(state)) for state, count in states.most_common())
    write(paint(output.plain(conversation), bold=True) + f"  version {window.version}, {sum(states.values())} blocks")
    write(f"{counts or 'no blocks'}; the window holds {window.tokens:,} tokens and starts at {window.window_start}")


def _heading(turn_id: str, prompt: str) -> str:
    return paint(brief(turn_id, 40), bold=True) + "  " + brief(prompt, max(output.width() - 48, 20))


def _covered(run: Sequence[Row], summary: str) -> str:
    """Put a run of covered blocks on one line."""
    tokens = sum(row.tokens or 0 for row in run)
    blocks = "1 block" if len(run) == 1 else f"{len(run)} blocks"
    text = f"{run[0].version:>6}  covered   {tokens:>7,}  {blocks}, by {output.plain(summary)}"
    return paint(text, state_colour("covered"))


def _line(row: Row, paths: dict[int, str | None]) -> str:
    """One event: version, state, tokens, path and what it says; an event without a block says what it is."""
    if row.path is None:
        text = f"{row.version:>6}  {'·':<9} {'':>7}  {row.type}  {row.about}"
        return paint(text[: output.width()], typer.colors.BRIGHT_BLACK)
    state = row.state or "lost"
    by = f" (by {paths[row.covered_by]})" if row.covered_by is not None else ""
    left = f"{row.version:>6}  {paint(pad(state, 9), state_colour(state))} {row.tokens or 0:>7,}  "
    path, room = output.plain(row.path + by), output.width() - 30
    if room < len(path) + 12:
        return left + path
    return left + f"{path}  {paint(brief(row.about, room - len(path)), dim=True)}"
