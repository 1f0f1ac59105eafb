"""What `simulate` and `lab` run: recordings in files, logs in files of `export`, and conversations of the database."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from timeline.cli.database import adding, reading
from timeline.errors import ConversationNotFound, ImportFailed, StoreError
from timeline.importers import read_recording
from timeline.portable import import_copy, read_copies
from timeline.portable.copying import copy_conversation
from timeline.portable.stored import exported_conversations, stored_conversation
from timeline.store.addresses import check_address, is_server, without_password

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from timeline.importers import Recording
    from timeline.portable import LogCopy
    from timeline.portable.stored import StoredConversation
    from timeline.ports import EventStore


class Recorded(NamedTuple):
    """The recordings of a file: the main conversation, then its subagents."""

    name: str
    recordings: Sequence[Recording]


class Logged(NamedTuple):
    """A conversation of the database, or of a file that `timeline export` wrote; ``copies`` are those of that file."""

    name: str
    stored: StoredConversation
    copies: Sequence[LogCopy] = ()

    @asynccontextmanager
    async def store(self, db: str, *, keep: bool) -> AsyncIterator[EventStore]:
        """Open a store that holds the conversation: the database, or a copy in memory that ends with the command."""
        async with adding(db if keep else "memory://") as store:
            for copy in self.copies:
                await import_copy(store, copy)
            if not self.copies and not keep:
                async with reading(db) as source:
                    await copy_conversation(source, self.stored.recording.id, store)
            yield store


async def find_sources(named: str, db: str) -> Sequence[Recorded | Logged]:
    """Find what an argument names: a file, or else a conversation of the database.

    Raises:
        ImportFailed: there is neither, or the file cannot be read.
    """
    if (found := _in_file(Path(named))) is not None:
        return found
    check_address(db)
    try:
        async with reading(db) as store:
            return [Logged(named, await stored_conversation(store, named))]
    except (ConversationNotFound, StoreError) as error:
        if is_server(db) and not isinstance(error, ConversationNotFound):
            raise
        shown = without_password(db)
        raise ImportFailed(
            named,
            f"there is no such file, and no conversation of this id in {shown}. Check the path, or `timeline ls`.",
        ) from None


def _in_file(path: Path) -> Sequence[Recorded | Logged] | None:
    """Return what a file holds; None where there is no file."""
    if not path.exists():
        return None
    copies = read_copies(path) if path.is_file() else None
    return [Recorded(str(path), read_recording(path))] if copies is None else _logged(path, copies)


def _logged(path: Path, copies: Sequence[LogCopy]) -> list[Logged]:
    """Return the conversations of a file, without those that are in it for what a fork shares with them only."""
    stored = exported_conversations(path, copies)
    names = [str(path) if len(stored) == 1 else f"{path}:{one.recording.id}" for one in stored]
    return [Logged(name, one, copies) for name, one in zip(names, stored, strict=True)]
