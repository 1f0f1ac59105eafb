"""Unpack archives that a test fetched or made, on the oldest Python that is supported, too."""

from __future__ import annotations

import tarfile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack(archive: IO[bytes], folder: Path) -> None:
    """Unpack a tar archive into a folder; a member that would lie outside is refused.

    The first patches of Python 3.11, such as that of Debian 12, know no filter. Each archive is known by its hash, or
    was made by a test.
    """
    with tarfile.open(fileobj=archive) as opened:
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(folder)  # noqa: S202 - filtered, or known by its hash
