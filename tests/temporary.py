"""Where the tests put temporary files: a folder that a server can listen in, and that other users can pass through.

The system limits the path of a socket, and root's tests run servers, and themselves, as another user. A folder that
``TMPDIR`` names may be too long for the one and closed to the other.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

_LONGEST_SOCKET: Final = 103
"""Bytes that macOS allows in the path of a socket; Linux allows four more."""
_SOCKET: Final = "timeline-pg-12345678/pool/.s.PGSQL.5432"
"""The longest path of a socket that the tests make in the folder of temporary files."""
_USUAL: Final = Path("/tmp")  # noqa: S108 - nothing is made in it but by `tempfile`
_OTHERS_PASS: Final = 0o001


def keep_within_reach() -> None:
    """Put this process's temporary files, and those of the processes that it starts, where the tests can use them."""
    given = Path(tempfile.gettempdir())
    if not serves(given) and serves(_USUAL):
        os.environ["TMPDIR"] = tempfile.tempdir = str(_USUAL)


def serves(folder: Path) -> bool:
    """Return whether a server can listen in a folder's folders, and everybody whom the tests run as can reach them."""
    if len(os.fsencode(folder / _SOCKET)) > _LONGEST_SOCKET:
        return False
    return os.geteuid() != 0 or all(place.stat().st_mode & _OTHERS_PASS for place in (folder, *folder.parents))
