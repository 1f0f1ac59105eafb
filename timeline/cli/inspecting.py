"""`timeline inspect`: open a page on a database, on one conversation of it, or on a recording."""

from __future__ import annotations

import webbrowser
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from timeline import open_store
from timeline.cli.database import changing, reading
from timeline.cli.exits import UsageProblem
from timeline.cli.output import note
from timeline.databases import is_database
from timeline.errors import InvalidArgument
from timeline.importers import read_recording
from timeline.portable import LogCopy, import_copy, read_copies
from timeline.portable.recordings import import_recording
from timeline.store.addresses import check_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from timeline.ports import EventStore


class Options(NamedTuple):
    """Where to serve, and who may ask, as typed; see `timeline.inspector.serving.Place`."""

    host: str
    port: int
    token: str | None
    certificate: str | None
    key: str | None
    behind_proxy: bool


async def inspect(named: str | None, db: str, options: Options, *, browser: bool, decisions: bool) -> None:
    """Serve the inspector until the process is stopped, and open a browser on it.

    Raises:
        UsageProblem: the address is in use, or not safe, or there is neither the file nor the database.
    """
    from timeline.inspector import serving  # noqa: PLC0415 - it needs the extra
    from timeline.inspector.asked import DECISIONS  # noqa: PLC0415 - with it

    place = serving.Place(**options._asdict())
    async with _opened(named, db, decisions=decisions) as (store, shown, again):
        page = f"#/c/{quote(shown, safe='')}" if shown else ""

        def started(address: str, once: str) -> None:
            note(f"the inspector is at {address}{page}")
            note("Ctrl-C ends it")
            if browser:
                webbrowser.open(once + page)

        try:
            await serving.serve(store, place, started, allow=DECISIONS if decisions else (), again=again)
        except InvalidArgument as unsafe:
            raise UsageProblem(f"{unsafe.problem}.") from unsafe
        except OSError as error:
            raise UsageProblem(
                f"{options.host}:{options.port}: {error.strerror}. Choose another port, or 0 for a free one."
            ) from error


@asynccontextmanager
async def _opened(
    named: str | None, db: str, *, decisions: bool
) -> AsyncIterator[tuple[EventStore, str, Callable[[], AbstractAsyncContextManager[EventStore]] | None]]:
    """Open what is to be looked at: a recording in memory, or the database; with the conversation to begin with.

    What opens it once more comes with a file, which may be moved or replaced while it is looked at.
    """
    if named is not None and is_database(Path(named)):
        db, named = named, None
    if named is not None and (file := Path(named)).exists():
        async with open_store("memory://") as store:
            yield store, await _imported(store, file), None
        return
    if named is not None and _is_missing(db):
        raise UsageProblem(f"{named}: there is no such file, and no database {db} with a conversation of that id.")
    again = partial(changing if decisions else reading, db)
    async with again() as store:
        if named is not None:
            await store.info(named)
        yield store, named or "", None if "://" in db else again


def _is_missing(db: str) -> bool:
    """Return whether a database is a file that is not there."""
    check_address(db)
    return "://" not in db and not Path(db).exists()


async def _imported(store: EventStore, file: Path) -> str:
    """Import a recording, or a file of `timeline export`; return the id of its first conversation."""
    done = []
    for found in read_copies(file) or read_recording(file):
        into = import_copy(store, found) if isinstance(found, LogCopy) else import_recording(store, found)
        done.append((await into).id)
    return done[0]
