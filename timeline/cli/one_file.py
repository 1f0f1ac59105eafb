"""`timeline export --html` and `--format bundle`: write a conversation as one file to be looked at elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from timeline.cli.database import reading
from timeline.cli.exits import Exit, UsageProblem
from timeline.cli.export import sink, sink_bytes
from timeline.cli.output import note, progress
from timeline.cli.reviewing import propose, report
from timeline.inspector.bundle import bundle, review_bundle
from timeline.inspector.onefile.page import one_file
from timeline.inspector.saved import plain_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.cli.export import Target
    from timeline.inspector.onefile.collecting import Wish


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
                propose(carried.cleaner)
            return Exit.OK
        if target.file is None:
            target = replace(target, file=Path(f"{plain_name(conversation)}-v{version}.html"))
        with sink(target) as write:
            with progress("exporting", version) as advance:
                text, carried = await one_file(store, conversation, wish, advance)
            if carried.cleaner is not None:
                report(carried.cleaner)
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
            propose(cleaner)
            return Exit.OK
        with progress("exporting", version) as advance:
            made = await bundle(store, conversation, keep, advance)
        if target.file is None:
            named = made.cleaner.clean(conversation, "the conversation")
            target = replace(target, file=Path(f"{plain_name(named)}-v{version}.bundle.zip"))
        with sink_bytes(target) as write:
            report(made.cleaner)
            write(made.data)
    if str(target.file) != "-":
        note(f"wrote {target.file}, {len(made.data):,} bytes: {', '.join(made.files)}")
    return Exit.OK
