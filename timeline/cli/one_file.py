"""`timeline export --html`: write a conversation as one HTML file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.export import sink
from timeline.cli.output import note, progress, say
from timeline.inspector.onefile.page import one_file
from timeline.projection.explain import counted

if TYPE_CHECKING:
    from timeline.cli.export import Target
    from timeline.inspector.onefile.collecting import Carried, Wish

_MOST_LISTED = 200


async def export_html(conversation: str | None, db: str, wish: Wish, target: Target, *, yes: bool) -> int:
    """Write the file, named by id and version unless another name is given; say what was taken out and left out.

    Where something is to be taken out, this is a dry run without ``yes``: the whole list is printed, and no file is
    written.

    Raises:
        ConversationNotFound: there is no such conversation.
        InvalidArgument: the file would be larger than a browser opens well.
        StoreError: the database cannot be read.
        UsageProblem: no conversation is named, or the file exists already or cannot be written.
    """
    if conversation is None:
        raise UsageProblem("--all writes logs (--format jsonl). An HTML file has one conversation: name it.")
    async with reading(db) as store:
        version = (await store.info(conversation)).version
        if wish.redact and not yes:
            with progress("looking", version) as advance:
                _, carried = await one_file(store, conversation, wish, advance)
            _propose(carried)
            return Exit.OK
        if target.file is None:
            target = replace(target, file=Path(_name(conversation, version)))
        with sink(target) as write:
            with progress("exporting", version) as advance:
                text, carried = await one_file(store, conversation, wish, advance)
            _report(carried)
            write(text)
    if str(target.file) != "-":
        note(f"wrote {target.file}, {len(text.encode()):,} bytes: open it in a browser")
    return Exit.OK


def _name(conversation: str, version: int) -> str:
    """Return a file name: the id without what file systems refuse, and the version."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', conversation).strip('.-')[:100] or 'conversation'}-v{version}.html"


def _propose(carried: Carried) -> None:
    """List every place at which something would be taken out: the output of a dry run."""
    taken = [] if carried.cleaner is None else carried.cleaner.taken
    if taken:
        output.table(("place", "kind", "begins", "times"), taken)
    found = counted(len(taken), "finding", "findings")
    say(f"Nothing was written. {found} would be taken out; with --yes the file is written without them.")


def _report(carried: Carried) -> None:
    """List what was taken out, to be looked over, and what else is not in the file."""
    if carried.cleaner is not None:
        taken = carried.cleaner.taken
        note(f"taken out at {len(taken)} places. Look over them, and at the file, before you share it:")
        for one in taken[:_MOST_LISTED]:
            note(f"  {one.place}  {one.kind}  {one.beginning}" + (f"  {one.times} times" if one.times > 1 else ""))
        if len(taken) > _MOST_LISTED:
            note(f"  and {len(taken) - _MOST_LISTED:,} places more")
    for line in carried.left_out:
        note(f"not in the file: {line}")
