"""`timeline export --html` and `--format bundle`: write a conversation as one file to be looked at elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.export import sink, sink_bytes
from timeline.cli.output import note, progress, say
from timeline.inspector.bundle import bundle, review_bundle
from timeline.inspector.onefile.page import one_file
from timeline.inspector.saved import plain_name
from timeline.projection.explain import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.cli.export import Target
    from timeline.inspector.cleaning import Cleaner
    from timeline.inspector.onefile.collecting import Wish

_MOST_LISTED: Final = 200


async def export_html(conversation: str | None, db: str, wish: Wish, target: Target, *, yes: bool) -> int:
    """Write the file, named by id and version unless another name is given; say what was taken out and left out.

    Where something is to be taken out, this is a dry run without ``yes``: the whole list is printed, and no file is
    written.

    Raises:
        UsageProblem: no conversation is named, or the file exists already or cannot be written.
    """
    if conversation is None:
        raise UsageProblem("--all writes logs (--format jsonl). An HTML file has one conversation: name it.")
    async with reading(db) as store:
        version = (await store.info(conversation)).version
        if wish.redact and not yes:
            with progress("looking", version) as advance:
                _, carried = await one_file(store, conversation, wish, advance)
            if carried.cleaner is not None:
                _propose(carried.cleaner)
            return Exit.OK
        if target.file is None:
            target = replace(target, file=Path(f"{plain_name(conversation)}-v{version}.html"))
        with sink(target) as write:
            with progress("exporting", version) as advance:
                text, carried = await one_file(store, conversation, wish, advance)
            if carried.cleaner is not None:
                _report(carried.cleaner)
            for line in carried.left_out:
                note(f"not in the file: {line}")
            write(text)
    if str(target.file) != "-":
        note(f"wrote {target.file}, {len(text.encode()):,} bytes: open it in a browser")
    return Exit.OK


async def export_bundle(conversation: str | None, db: str, keep: Sequence[str], target: Target, *, yes: bool) -> int:
    """Write a bug bundle, named by id and version unless another name is given; without ``yes`` list what it lacks.

    Raises:
        UsageProblem: no conversation is named, or the file exists already or cannot be written.
    """
    if conversation is None:
        raise UsageProblem("--all writes logs (--format jsonl). A bundle has one conversation: name it.")
    async with reading(db) as store:
        version = (await store.info(conversation)).version
        if not yes:
            with progress("looking", version) as advance:
                cleaner = await review_bundle(store, conversation, keep, advance)
            _propose(cleaner)
            return Exit.OK
        with progress("exporting", version) as advance:
            made = await bundle(store, conversation, keep, advance)
        if target.file is None:
            named = made.cleaner.clean(conversation, "the conversation")
            target = replace(target, file=Path(f"{plain_name(named)}-v{version}.bundle.zip"))
        with sink_bytes(target) as write:
            _report(made.cleaner)
            write(made.data)
    if str(target.file) != "-":
        note(f"wrote {target.file}, {len(made.data):,} bytes: {', '.join(made.files)}")
    return Exit.OK


def _propose(cleaner: Cleaner) -> None:
    """List everything that would be taken out: the output of a dry run."""
    rows = [(one.name, one.kind, one.times, one.place, one.excerpt) for one in cleaner.taken]
    if not rows:
        say("Nothing was written, and nothing would be taken out. --yes writes the file.")
        return
    output.table(("finding", "kind", "times", "first at", "there"), rows)
    found = counted(len(rows), "finding", "findings")
    say(f"Nothing was written. --yes writes the file without {found}; --keep FINDING leaves one in.")


def _report(cleaner: Cleaner) -> None:
    """List what was taken out, to be looked over again."""
    taken = cleaner.taken
    found = counted(len(taken), "finding", "findings")
    note(f"taken out: {found}. Look over them, and at the file, before you share it" + (":" if taken else ""))
    for one in taken[:_MOST_LISTED]:
        times = f"  {one.times} times" if one.times > 1 else ""
        note(f"  {one.name}  {one.kind}  {one.place}{times}  {one.excerpt}")
    if len(taken) > _MOST_LISTED:
        note(f"  and {len(taken) - _MOST_LISTED:,} findings more")
