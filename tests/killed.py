"""What a kill leaves of a store: its files as they are when a statement of its writer begins."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.store.sqlite.store import SQLiteStore


@asynccontextmanager
async def killed(store: SQLiteStore, into: Path, *, every: int) -> AsyncIterator[list[Path]]:
    """Keep a store's files at every n-th statement of its writer; yield the list of the kept databases as it grows.

    They are copied by a process of its own: closing a file here would drop the locks that SQLite has on it. What is
    byte for byte what an earlier kill left is not kept again: most statements read.
    """
    kept: list[Path] = []
    known: set[bytes] = set()
    seen = 0

    def keep(_: str) -> None:
        nonlocal seen
        seen += 1
        if (seen - 1) % every:
            return
        folder = into / f"killed-{seen}"
        folder.mkdir()
        files = [each for each in store.file.parent.glob(f"{store.file.name}*") if each.is_file()]
        subprocess.run(["cp", *map(str, files), str(folder)], check=True)
        if (left := _content(folder)) in known:
            shutil.rmtree(folder)
            return
        known.add(left)
        kept.append(folder / store.file.name)

    await store.database.do(lambda connection: connection.set_trace_callback(keep))
    try:
        yield kept
    finally:
        await store.database.do(lambda connection: connection.set_trace_callback(None))


def _content(folder: Path) -> bytes:
    """Return a hash of what a crash leaves; not of ``-shm``, which the first process that opens the rest makes anew."""
    hashed = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if not file.name.endswith("-shm"):
            hashed.update(f"{file.name} {file.stat().st_size}\n".encode())
            hashed.update(file.read_bytes())
    return hashed.digest()
