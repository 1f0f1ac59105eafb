"""What `timeline doctor` finds about a database, whichever store it is of."""

from __future__ import annotations

from typing import Literal, NamedTuple


class DoctorFinding(NamedTuple):
    """Something that `doctor` found about a database.

    Attributes:
        code: what it is, in one word for programs.
        level: ``warning`` if it is to be mended, ``note`` if it is good to know.
        text: what was found, and the cure.
    """

    code: str
    level: Literal["warning", "note"]
    text: str
