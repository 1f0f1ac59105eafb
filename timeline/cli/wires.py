"""Wire formats as the command line names them: the table of `timeline.wire`, hyphens as good as underscores."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import typer

from timeline.cli.exits import UsageProblem
from timeline.wire import WIRES

_NAMES: Final = ", ".join(WIRES)

RequestBody: TypeAlias = Annotated[
    str | None, typer.Option("--wire", metavar="W", help=f"Print the request body: {_NAMES}.")
]
ComparedBytes: TypeAlias = Annotated[
    str, typer.Option("--wire", metavar="W", help=f"Whose bytes to compare: {_NAMES}.")
]


def known_wire(word: str) -> str:
    """Return the name of a wire format out of a word of the command line.

    Raises:
        UsageProblem: there is no such wire format.
    """
    name = word.replace("-", "_")
    if name not in WIRES:
        raise UsageProblem(f"There is no wire format {word!r}. Use one of: {_NAMES}.")
    return name
