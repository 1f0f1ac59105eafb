"""Which half each recording is of. It is data: what was searched once can never again be what nobody looked at.

``split.json`` has a recording by the hash of its bytes, so that no order of file names and no renamed file moves one to
the other half. A recording that it does not have is of neither half until `Split.with_new` places it.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pydantic import BaseModel

from tests.frontier.halves import Halves, halves
from tests.frontier.tables import SEARCHED, UNSEEN, as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Half: TypeAlias = Literal["searched", "unseen"]

STORED: Final = Path(__file__).with_name("split.json")


class Placed(BaseModel, frozen=True, extra="forbid"):
    """A recording and its half.

    Attributes:
        name: for people: the file's name, without its folder where that says nothing.
        lifetime: for how long the provider kept its cache.
        half: whether searches look at it.
        sha256: of its bytes; finds it, whatever its name.
    """

    name: str
    lifetime: str
    half: Half
    sha256: str


class NotThere(ValueError):
    """A recording may not be used so: it is of neither half, or of the half that no search may look at."""


class Split(BaseModel, frozen=True, extra="forbid"):
    """All recordings that were ever placed.

    Attributes:
        made: how.
        recordings: each with its half.
    """

    made: str
    recordings: tuple[Placed, ...]

    def halves(self, files: Sequence[str]) -> Halves:
        """Return recordings by half and lifetime, in the order in which they were placed.

        Raises:
            NotThere: one of them was never placed.
        """
        of = {_hash(file): file for file in files}
        if strange := [of[found] for found in of.keys() - {placed.sha256 for placed in self.recordings}]:
            raise NotThere(
                f"{', '.join(sorted(strange))}: of neither half, by split.json. Place new recordings with --place."
            )
        sides: dict[str, dict[str, list[str]]] = {SEARCHED: defaultdict(list), UNSEEN: defaultdict(list)}
        for placed in self.recordings:
            if placed.sha256 in of:
                sides[placed.half][placed.lifetime].append(of[placed.sha256])
        return Halves(searched={**sides[SEARCHED]}, unseen={**sides[UNSEEN]})

    def searchable(self, files: Sequence[str]) -> dict[str, list[str]]:
        """Return recordings that a search may look at, by lifetime.

        Raises:
            NotThere: one of them is of the other half, or was never placed.
        """
        found = self.halves(files)
        if unseen := [file for alike in found.unseen.values() for file in alike]:
            raise NotThere(f"{', '.join(unseen)}: of the half that no search may look at. Leave them out.")
        return found.searched

    def with_new(self, files: Sequence[str], lifetime: Callable[[str], str]) -> Split:
        """Place recordings that were not placed before: of each lifetime every other one is searched, in their order.

        Args:
            files: recordings, old ones among them.
            lifetime: returns for how long the provider kept a recording's cache.
        """
        known = {placed.sha256 for placed in self.recordings}
        new = halves([file for file in files if _hash(file) not in known], lifetime)
        return self.model_copy(
            update={
                "recordings": (
                    *self.recordings,
                    *(
                        Placed(name=Path(file).stem, lifetime=kept, half=half, sha256=_hash(file))
                        for half, side in _sides(new)
                        for kept, alike in side.items()
                        for file in alike
                    ),
                )
            }
        )

    def store(self, file: Path = STORED) -> None:
        """Write it, a line for each recording."""
        file.write_text(as_json(self.model_dump(mode="json")), encoding="utf-8")


def read_split(file: Path = STORED) -> Split:
    """Return the split that is stored."""
    return Split.model_validate_json(file.read_text(encoding="utf-8"))


def _sides(found: Halves) -> tuple[tuple[Half, dict[str, list[str]]], ...]:
    return (SEARCHED, found.searched), (UNSEEN, found.unseen)


def _hash(file: str) -> str:
    return sha256(Path(file).read_bytes()).hexdigest()
