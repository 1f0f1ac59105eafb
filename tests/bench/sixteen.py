"""Sixteen conversations on one core: the full steps a second here, against those of the revision that the bar names."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from tests.bench.against import ROOT, Answering, checkout
from tests.bench.rows import against

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.rows import Row

REVISION: Final = "d518f55"
BAR: Final = 2


def rows() -> Iterator[Row]:
    """Measure one row; each side has a process of its own, and answers with its CPU time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        earlier = checkout(REVISION, folder / "earlier")
        ours = stack.enter_context(Answering("agents.py", ROOT, folder / "ours"))
        theirs = stack.enter_context(Answering("agents.py", earlier, folder / "theirs"))
        what = "full steps a second of 16 conversations on one core"
        yield against("A step", what, f"`{REVISION}`", (ours.seconds, theirs.seconds), BAR, least=True)
