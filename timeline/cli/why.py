"""`timeline why`: print why a block is shown as it is, or is not there."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Final

import typer

from timeline.audit.retold import worst
from timeline.audit.why import why
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import db_option, reading
from timeline.cli.exits import UsageProblem
from timeline.cli.output import paint, say, state_colour, write
from timeline.display.brief import brief
from timeline.projection.explain import RULES, counted, spaced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.audit.retold import Retold
    from timeline.audit.why import Why

_MOST: Final = 300
"""Columns of the text that is shown in a block's place; `timeline read` has all of it."""


async def why_block(conversation: str, name: str, db: str, *, at: int | None, call: int | None, as_json: bool) -> None:
    """Print why a block is shown as it is, at a version or in the context of a call.

    Raises:
        UsageProblem: both a version and a call are named.
    """
    if at is not None and call is not None:
        raise UsageProblem("--call names a version by itself. Leave out one of --at and --call.")
    async with reading(db) as store:
        because = await why(store, conversation, name, at=at, call=call)
    if as_json:
        output.write_json(because.dump())
        return
    _print(because, db)


def _print(because: Why, db: str) -> None:
    named = f"{because.address}  {because.path}".rstrip()
    say(paint(because.conversation, bold=True) + f"  {named}" + (f"  ({because.type})" if because.type else ""))
    asked = (
        f"call {because.call}, version {because.at_version}"
        if because.call is not None
        else f"version {because.at_version}"
    )
    since = ""
    if because.since_version is not None and because.since_at is not None:
        since = f", since version {because.since_version}, {instant_text(because.since_at)[:19]}"
    state = because.state.replace("_", " ")
    write(f"{paint(state, state_colour(because.state))} at {asked}{since}")
    say(f"because   {because.in_words}", hang=10)
    for line in _shown(because):
        say(line, hang=10)
    _print_retold(because.retold)
    commands = list(_commands(because))
    if commands:
        write()
    for number, command in enumerate(commands):
        write((" " * 5 if number else paint("Next:", bold=True)) + f"  {command}{db_option(db)}")


def _shown(because: Why) -> Iterator[str]:
    """Yield what is shown in the block's place."""
    shown = because.shown_as
    if shown is None:
        if because.state != "not_yet":
            yield "shown as  nothing"
        return
    if shown.kind == "itself":
        yield "shown as  itself, in full"
        return
    match shown.kind:
        case "summary":
            where = f"{shown.address} {shown.path}"
        case "abridged":
            where = "itself, abridged"
        case _:
            where = f"its {shown.kind}"
    yield f"shown as  {where}: {brief(shown.text or '', _MOST)}"


def _print_retold(summaries: Sequence[Retold]) -> None:
    """Print what each summary has of the block's words, and what went with it."""
    if not summaries:
        return
    write()
    write(f"Of its {counted(summaries[0].of, 'word', 'words')}, each counted once, its summaries have:")
    for made, later in _with_unchanged(summaries):
        reason = RULES.get(made.reason, spaced(made.reason))
        when = f"compaction {made.compaction_number} ({reason}), {instant_text(made.at)[:19]}"
        figures = f"{made.before_tokens:,} -> {made.after_tokens:,} tokens, by {made.summarizer}"
        kept = paint(f"{made.words:>6,}", typer.colors.YELLOW if made.lost else None)
        say(f"{kept}  {made.address}  {when}: {figures}", hang=8)
        if made.lost:
            say(f"        lost: {brief(made.lost, _MOST)}", hang=14)
        if later:
            say(f"        and so have {', '.join(one.address for one in later)}", hang=8)


def _with_unchanged(summaries: Sequence[Retold]) -> list[tuple[Retold, list[Retold]]]:
    """Return the summaries, each with those right behind it that have as many words and lost none."""
    found: list[tuple[Retold, list[Retold]]] = []
    for made in summaries:
        if found and not made.lost and made.words == found[-1][0].words:
            found[-1][1].append(made)
        else:
            found.append((made, []))
    return found


def _commands(because: Why) -> Iterator[str]:
    """Yield the commands that show the block again, and how its summary changed where it lost most of it."""
    id_ = quote(because.conversation)
    for way in because.ways_back:
        match way.kind:
            case "read" | "reveal":
                yield f"timeline {way.kind} {id_} {way.address}"
            case "undo":
                more = " --cascade" if len(way.compactions) > 1 else ""
                yield f"timeline undo {id_} --version {way.address.removeprefix('@')}{more}"
    if len(because.summaries) > 1:
        place = worst(because.retold)
        before, after = (0, -1) if place is None else (place - 1, place)
        yield f"timeline diff {id_} {because.summaries[before]} {because.summaries[after]}"
