"""What an export would take out, as a list to look over: printed before a file is written, and when it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline.cli import output
from timeline.cli.output import note, say
from timeline.projection.explain import counted

if TYPE_CHECKING:
    from timeline.inspector.cleaning import Cleaner

_MOST_LISTED: Final = 200


def propose(cleaner: Cleaner) -> None:
    """List everything that would be taken out: the output of a dry run."""
    rows = [(one.name, one.kind, one.times, one.place, one.excerpt) for one in cleaner.taken]
    if not rows:
        say("Nothing was written, and nothing would be taken out. With --yes the file is written.")
        return
    output.table(("finding", "kind", "times", "first at", "there"), rows)
    found = counted(len(rows), "finding", "findings")
    say(f"Nothing was written. With --yes the file is written without {found}; --keep FINDING leaves one where it is.")


def report(cleaner: Cleaner) -> None:
    """List what was taken out, to be looked over again."""
    taken = cleaner.taken
    found = counted(len(taken), "finding", "findings")
    note(f"taken out: {found}. Look over them, and at the file, before you share it" + (":" if taken else ""))
    for one in taken[:_MOST_LISTED]:
        times = f"  {one.times} times" if one.times > 1 else ""
        note(f"  {one.name}  {one.kind}  {one.place}{times}  {one.excerpt}")
    if len(taken) > _MOST_LISTED:
        note(f"  and {len(taken) - _MOST_LISTED:,} findings more")
