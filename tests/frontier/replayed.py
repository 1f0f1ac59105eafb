"""Where replays are kept: apart for each state of the code, so that no table mixes figures of two of them."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from tests.project.sources import PACKAGES, ROOT
from timeline.lab.cache_files import OutcomeFolder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_DIGITS: Final = 12
"""Of the hash that names a folder."""


def kept_of(folder: Path) -> OutcomeFolder:
    """Return the replays in a folder that this very code made.

    The lab uses a result again within a version of the library. Between two versions a figure changes with many a
    commit, so the whole of the sources is what counts here.
    """
    return OutcomeFolder(folder / hash_of(ROOT / package for package in PACKAGES)[:_DIGITS])


def hash_of(packages: Iterable[Path]) -> str:
    """Return a hash of all sources and packaged data of some packages; what Python compiled of them is left out."""
    hashed = sha256()
    for package in packages:
        for file in sorted(package.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                content = sha256(file.read_bytes()).hexdigest()
                hashed.update(f"{package.name}/{file.relative_to(package)} {content}\n".encode())
    return hashed.hexdigest()
