"""`open_store`: open a store by its path or URL."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from timeline.errors import InvalidArgument, MissingExtra, StoreError
from timeline.home import check_asyncio
from timeline.log.collector import collector_at_rest

from .addresses import check_address, is_server, without_password

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from types import TracebackType

    from .durability import Durability
    from .memory import MemoryStore
    from .postgres.store import PostgresStore
    from .sqlite.store import SQLiteStore

    AnyStore: TypeAlias = SQLiteStore | PostgresStore | MemoryStore


class Opening:
    """A store about to be opened: ``await`` it, or enter it with ``async with``, which also closes it."""

    def __init__(self, opener: Callable[[], Coroutine[Any, Any, AnyStore]]) -> None:
        self._opener = opener
        self._store: AnyStore | None = None

    def __await__(self) -> Generator[Any, None, AnyStore]:
        return self._opener().__await__()

    async def __aenter__(self) -> AnyStore:
        self._store = await self._opener()
        return self._store

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._store is not None:
            await self._store.aclose()


def open_store(url_or_path: str | PathLike[str], *, durability: Durability = "full", readonly: bool = False) -> Opening:
    """Open a store.

    Enter the result (``async with open_store("agent.db") as store``), or await it and close the store yourself.

    Args:
        url_or_path: the path of a SQLite file, ``sqlite:///relative.db``, ``sqlite:////absolute.db`` (also with
            ``sqlite+aiosqlite``), ``postgresql://user:password@host:5432/database`` (extra ``postgres``), or
            ``memory://`` for a store that is gone once it is closed. Settings of a PostgreSQL store come after a
            question mark, such as ``?schema=agents&pgbouncer=true``; docs/postgres/quickstart.md lists them.
        durability: ``full``: acknowledged appends survive a power loss. ``normal``: they survive a killed process.
        readonly: open for reading only; the file or the schema must exist.

    Raises:
        InvalidArgument: it is neither a path nor a URL; raised when a StoreError would be.
        StoreError: the store cannot be opened; raised when the result is awaited or entered. The message says why.
        MissingExtra: a PostgreSQL store needs asyncpg, which is not installed.

    Example:
        ```python
        from timeline import Timeline, open_store

        async with open_store("memory://") as store:  # or open_store("agent.db")
            timeline = await Timeline.open(store, "cards")
            assert [info.id async for info in store.conversations()] == ["cards"]
        ```
    """

    async def opener() -> AnyStore:
        check_asyncio("open_store")
        location = _location(url_or_path)
        check_address(location)
        scheme, separator, rest = location.partition("://")
        if not separator:
            return await _open_file(Path(location), durability, readonly=readonly)
        if scheme == "memory" and not readonly:
            return _open_memory(location, rest)
        if scheme in {"sqlite", "sqlite+aiosqlite"}:
            return await _open_file(_sqlite_path(location, rest), durability, readonly=readonly)
        if is_server(location):
            return await _open_server(location, durability, readonly=readonly)
        raise _unavailable(location, scheme)

    return Opening(opener)


def file_of(url_or_path: str | PathLike[str]) -> Path:
    """Return the database file that a path or URL names.

    Raises:
        StoreError: it names no file.
    """
    location = _location(url_or_path)
    check_address(location)
    scheme, separator, rest = location.partition("://")
    if not separator:
        return Path(location)
    if scheme in {"sqlite", "sqlite+aiosqlite"}:
        return _sqlite_path(location, rest)
    if is_server(location):
        raise StoreError(
            f"{without_password(location)}: a server's store is not a file. Back it up and restore it by pg_dump and "
            "pg_restore; `timeline copy --from URL --to FILE` makes a SQLite file of it."
        )
    raise StoreError(
        f"{without_password(location)}: this store is not a file. Name a SQLite file; `timeline export` copies any "
        "store."
    )


def _location(url_or_path: str | PathLike[str]) -> str:
    """Return a path or URL as a text.

    Raises:
        InvalidArgument: it is neither, such as the None of a variable that is not set.
    """
    if not isinstance(url_or_path, str | PathLike) or not isinstance(location := fspath(url_or_path), str):
        kind = type(url_or_path).__name__
        raise InvalidArgument(
            "url_or_path", f"must be a path or a URL, such as 'agent.db', not an object of type {kind}"
        )
    if "\0" in location:
        raise InvalidArgument("url_or_path", "holds a null character, which no path can have")
    return location


async def _open_file(file: Path, durability: Durability, *, readonly: bool) -> SQLiteStore:
    with collector_at_rest():
        from .sqlite.store import SQLiteStore  # noqa: PLC0415 - it imports aiosqlite; `store` itself stays light

    return await SQLiteStore.open(file, durability=durability, readonly=readonly)


async def _open_server(url: str, durability: Durability, *, readonly: bool) -> PostgresStore:
    try:
        with collector_at_rest():
            from .postgres.store import PostgresStore  # noqa: PLC0415 - it needs an extra; `store` itself stays light
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise MissingExtra("asyncpg", "postgres") from error
    return await PostgresStore.open(url, durability=durability, readonly=readonly)


def _open_memory(location: str, rest: str) -> MemoryStore:
    with collector_at_rest():
        from .memory import MemoryStore  # noqa: PLC0415 - `store` itself stays light

    if rest:
        raise StoreError(f"{without_password(location)}: memory:// takes no name. For a store that lasts, give a file.")
    return MemoryStore()


def _sqlite_path(location: str, rest: str) -> Path:
    host, _, path = rest.partition("/")
    if host or not path or path == ":memory:" or "?" in path:
        raise StoreError(
            f"{without_password(location)}: write sqlite:///folder/agent.db, or memory:// for a store in memory."
        )
    return Path(path)


def _unavailable(location: str, scheme: str) -> StoreError:
    if scheme == "memory":
        return StoreError("memory:// starts empty, so there is nothing to read. Open it without readonly.")
    return StoreError(
        f"{without_password(location)}: no store of the kind {scheme!r}. Use a path, sqlite:///agent.db, "
        "postgresql://user@host/database or memory://."
    )
