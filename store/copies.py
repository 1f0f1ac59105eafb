"""`backup` and `restore`: copy a store's file while programs use it, and put a copy in its place."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .opening import file_of

if TYPE_CHECKING:
    from os import PathLike

    from .sqlite.backups import Backup, Restored


async def backup(
    database: str | PathLike[str], to: str | PathLike[str] | None = None, *, force: bool = False
) -> Backup:
    """Copy a store into a file while programs go on reading and appending.

    The copy holds everything that was acknowledged before the call. It is one file without a log beside it, and is read
    back to its end before it gets its name. Only its owner may read it.

    Args:
        database: the store's path or URL.
        to: the file to write; by default one beside the database, named by the time.
        force: replace a file that is there.

    Raises:
        StoreCorrupt: the database is damaged; nothing was written.
        StoreError: the store cannot be read, or the file exists or cannot be written.

    Example:
        ```python
        from tempfile import TemporaryDirectory

        from timeline import Timeline, open_store
        from timeline.store import backup

        with TemporaryDirectory() as folder:
            async with open_store(f"{folder}/agent.db") as store:
                await Timeline.open(store, "cards")
                copied = await backup(f"{folder}/agent.db", f"{folder}/monday.db")
        assert list(copied.holds.versions) == ["cards"]
        ```
    """
    from .sqlite.backups import back_up  # noqa: PLC0415 - it imports aiosqlite; `store` itself stays light

    return await back_up(file_of(database), None if to is None else Path(to), force=force)


async def restore(source: str | PathLike[str], database: str | PathLike[str], *, yes: bool = False) -> Restored:
    """Replace a store's file, and whatever a crash left beside it, by a backup.

    Without ``yes`` it is a dry run: it reads the backup to its end, and counts what the database would lose. The
    replaced files are kept beside the new one, under other names. A process that is killed leaves either the old store
    or the new one.

    Args:
        source: the backup: a file of `backup`, or any copy of a store, with the log beside it if it has one.
        database: the path or URL of the store to replace; it may be damaged or missing.
        yes: do it.

    Raises:
        StoreLocked: a program has the database open; nothing was changed.
        StoreCorrupt: the backup is damaged; nothing was changed.
        NotAStore: the backup is not a store, or the database belongs to another program.
        StoreError: the backup cannot be read, or the database cannot be written.

    Example:
        ```python
        from tempfile import TemporaryDirectory

        from timeline import open_store
        from timeline.store import backup, restore

        with TemporaryDirectory() as folder:
            async with open_store(f"{folder}/agent.db"):
                copied = await backup(f"{folder}/agent.db")
            done = await restore(copied.file, f"{folder}/agent.db", yes=True)
        assert done.loses == {}
        ```
    """
    from .sqlite.backups import put_back  # noqa: PLC0415 - as above

    return await put_back(file_of(source), file_of(database), yes=yes)
