"""`timeline find-subject`, `redact` and `erase`: find what is to be forgotten, and erase it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from timeline.cli import output
from timeline.cli.database import changing, db_option, reading
from timeline.cli.exits import Exit, UsageProblem, exit_code, one_line
from timeline.cli.output import note, say, write
from timeline.databases import IsDatabase, read_text
from timeline.forgetting import find_subject
from timeline.forgetting.erasing import with_what_stays, would_erase
from timeline.forgetting.redacting import redact_several
from timeline.ports import ErasureReport, ForksOnErase
from timeline.projection.explain import counted
from timeline.store.addresses import is_server, without_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from timeline.cli.shapes import ErasureRow, PlaceRow
    from timeline.errors import TimelineError
    from timeline.forgetting import FoundPlace

_FORKS: Final[tuple[str, ...]] = get_args(ForksOnErase)
_FOR_EVER: Final = {"path", "conversation"}
"""Kinds of places that cannot be rewritten."""


class Wish(NamedTuple):
    """What `redact` is asked for: a conversation and its places, or a file of them; why, and which words."""

    conversation: str | None
    places: tuple[str, ...]
    found: str | None
    reason: str
    text: str


async def find(text: str, ids: list[str], db: str, *, as_json: bool) -> None:
    """Print every place at which a text is said."""
    async with reading(db) as store:
        with output.working("reading"):
            found = [place async for place in find_subject(store, text, ids or None)]
    if as_json:
        output.write_json({"text": text, "places": [_place_row(place) for place in found]})
        return
    if not found:
        say(f"{without_password(db)} does not contain it anywhere.")
        return
    rows = [
        (p.conversation, p.place, p.kind, p.times, "" if p.exact else "in other case or form", p.path) for p in found
    ]
    output.table(("conversation", "place", "kind", "times", "", "path"), rows)
    fixed = sum(place.kind in _FOR_EVER for place in found)
    if fixed:
        kinds = counted(fixed, "place is a name", "places are names")
        say(f"{kinds} that cannot be rewritten: erase the conversation.")


def _place_row(place: FoundPlace) -> PlaceRow:
    return {
        "conversation": place.conversation,
        "place": place.place,
        "kind": place.kind,
        "path": place.path or None,
        "exact": place.exact,
        "times": place.times,
    }


async def redact(wish: Wish, db: str, *, yes: bool, as_json: bool) -> int:
    """Print what is erased or would be; with ``yes``, erase it.

    A conversation of a list that refuses is named, and the others are redacted; the exit code is then that of the
    refusal.

    Raises:
        UsageProblem: no place is named, or the file with places cannot be used.
    """
    wanted, text = _wanted(wish)
    refused: list[TimelineError] = []
    async with changing(db) if yes else reading(db) as store:
        with output.working("redacting"):
            report = await redact_several(
                store, wanted, wish.reason, text=text, on_refusal=refused.append, dry_run=not yes
            )
    if wish.found is None and refused:
        raise refused[0]
    for why in dict.fromkeys(map(one_line, refused)):
        note(why)
    if as_json or report.conversations or not refused:
        _print(report, db, "redact", yes=yes, as_json=as_json)
    return max([*map(exit_code, refused), _code(report, yes=yes)])


def _wanted(wish: Wish) -> tuple[dict[str, list[str]], str]:
    if wish.found is None:
        if wish.conversation is None or not wish.places:
            raise UsageProblem("Name a conversation and what to redact in it: timeline redact ID PATH_OR_ADDRESS")
        return {wish.conversation: list(wish.places)}, wish.text
    if wish.places:
        raise UsageProblem("Give places, or a file of them with --from, not both.")
    try:
        subject: Any = json.loads(sys.stdin.buffer.read() if wish.found == "-" else read_text(wish.found))
        rows = [row for row in subject["places"] if row["kind"] not in _FOR_EVER]
        text = wish.text or str(subject["text"])
        wanted: dict[str, list[str]] = {}
        for row in rows:
            if wish.conversation in {None, row["conversation"]}:
                wanted.setdefault(row["conversation"], []).append(row["place"])
    except (IsDatabase, ValueError, KeyError, TypeError, RecursionError):
        raise UsageProblem(f"{wish.found} is not what `timeline find-subject --json` prints.") from None
    return wanted, text


async def erase(id_: str, db: str, *, forks: str, reason: str, yes: bool, as_json: bool) -> int:
    """Print what is erased or would be; with ``yes``, erase it.

    Raises:
        UsageProblem: ``forks`` is none of the choices.
    """
    choice: ForksOnErase | None = next((c for c in get_args(ForksOnErase) if c == forks), None)
    if choice is None:
        raise UsageProblem(f"--forks must be {', '.join(_FORKS[:-1])} or {_FORKS[-1]}, not {forks!r}.")
    if yes:
        async with changing(db) as store:
            with output.working("erasing"):
                report = await with_what_stays(store, await store.erase(id_, forks=choice, reason=reason))
    else:
        async with reading(db) as store:
            report = await with_what_stays(store, await would_erase(store, id_, choice))
    _print(report, db, "erase", yes=yes, as_json=as_json)
    return _code(report, yes=yes)


def _code(report: ErasureReport, *, yes: bool) -> Exit:
    """Return the exit code of what was done: a script that forgets must not take bytes that remain for gone."""
    return Exit.NOT_SO if yes and not report.physical else Exit.OK


def _print(report: ErasureReport, db: str, command: str, *, yes: bool, as_json: bool) -> None:
    if not is_server(db):
        report = replace(report, not_reached={at: why for at, why in report.not_reached.items() if at != "server"})
    if as_json:
        output.write_json(_row(report, dry_run=not yes))
        return
    output.table(("place", "erased or written anew" if yes else "would go"), sorted(report.reached.items()))
    write()
    say(f"{'erased in' if yes else 'in'}: {', '.join(report.conversations) or 'no conversation'}")
    _list("not reached", report.left.items())
    if _code(report, yes=yes) is not Exit.OK:
        where = "the files of its tables: see `files` above, then" if is_server(db) else "free pages or in its log:"
        say(f"No query finds it, but the bytes are still in {where} run it again.")
    _list("beyond this database", report.not_reached.items())
    if not yes:
        say(f"This was a dry run. To do it, which cannot be undone: timeline {command} … --yes{db_option(db)}")


def _list(label: str, entries: Iterable[tuple[str, str]]) -> None:
    for place, why in entries:
        say(f"{label}: {place}: {why}")


def _row(report: ErasureReport, *, dry_run: bool) -> ErasureRow:
    left: Mapping[str, str] = report.left
    return {
        "dry_run": dry_run,
        "conversations": list(report.conversations),
        "reached": dict(report.reached),
        "rewritten": list(report.rewritten),
        "left": dict(left),
        "physical": report.physical,
        "not_reached": dict(report.not_reached),
    }
