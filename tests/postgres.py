"""The fixtures of tests that need PostgreSQL: a schema of its own for each test, on one of this run's servers.

A test, or a class of tests by its attribute ``postgres``, chooses where: on the oldest or the newest version that the
machine has, directly or behind pgbouncer. One that leaves it open gets the system's server, else the wheel's.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import pytest

from tests.postgres_server import (
    DATABASE,
    Pool,
    Server,
    available,
    binaries_of,
    new_folder,
    run,
    shared_pool,
    shared_server,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class Postgres(NamedTuple):
    """Where a test's schema is.

    Attributes:
        version: the oldest or the newest on this machine; None for the one that is found first.
        pooled: whether the test's connections go through pgbouncer.
    """

    version: Literal["oldest", "newest"] | None = None
    pooled: bool = False

    @property
    def major(self) -> int | None:
        """The major version; None for the one that is found first."""
        versions = [binaries.major for binaries in available()]
        match self.version:
            case None:
                return None
            case "oldest":
                return min(versions, default=None)
            case "newest":
                return max(versions, default=None)


PLACES = [
    pytest.param(Postgres("oldest"), id="oldest"),
    pytest.param(Postgres("newest"), id="newest"),
    pytest.param(Postgres("oldest", pooled=True), id="oldest-pgbouncer"),
    pytest.param(Postgres("newest", pooled=True), id="newest-pgbouncer"),
]
"""All of them: ``@pytest.mark.parametrize("postgres_url", PLACES, indirect=True)``."""


def with_query(url: str, **query: str) -> str:
    """Return a URL with more parameters in its query, in the place of those of the same names."""
    parts = urlsplit(url)
    return urlunsplit(
        parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), **query}, safe="/", quote_via=quote))
    )


def without(url: str, *names: str) -> str:
    """Return a URL without some parameters of its query: the driver knows none of the store's own."""
    parts = urlsplit(url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in names]
    return urlunsplit(parts._replace(query=urlencode(kept, safe="/", quote_via=quote)))


def direct_url(place: Postgres = Postgres()) -> str:  # noqa: B008 - a constant tuple
    """Return the URL of a database for its owner, directly.

    Raises:
        NoServer: there is no PostgreSQL on this machine; the error says how to get one.
    """
    given = os.environ.get(DATABASE)
    return given if given and place.version is None else shared_server(place.major).url()


@asynccontextmanager
async def new_schema(place: Postgres = Postgres()) -> AsyncIterator[str]:  # noqa: B008 - a constant tuple
    """Give the URL of a schema that nobody else uses, and drop it afterwards with all that is in it."""
    import asyncpg  # noqa: PLC0415 - most runs of a few tests need no driver

    direct, name = direct_url(place), f"test_{uuid4().hex[:16]}"
    if place.pooled and Pool.program() is None:
        pytest.skip("there is no pgbouncer on this machine; Debian's package is called pgbouncer")
    url = shared_pool(place.major).url() if place.pooled else direct
    try:
        yield with_query(url, schema=name)
    finally:
        connection = await asyncpg.connect(without(direct, "schema"), statement_cache_size=0)
        try:
            await connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
        finally:
            await connection.close()


def schema_of(url: str) -> str:
    """Return the schema that a URL names."""
    return dict(parse_qsl(urlsplit(url).query))["schema"]


async def restored(schema: str, place: Postgres, server: Server) -> str:
    """Bring a test's schema into another server, of no older version, by pg_dump and pg_restore; return its URL."""
    file, programs = server.folder / "schema.dump", server.programs()
    origin = without(direct_url(place), "schema")
    dump = ("--format=custom", f"--schema={schema}", f"--file={file}", f"--dbname={origin}")
    await asyncio.to_thread(run, programs / "pg_dump", *dump)
    await asyncio.to_thread(run, programs / "pg_restore", "--exit-on-error", f"--dbname={server.url()}", file)
    return server.url(schema=schema)


def chosen(request: pytest.FixtureRequest) -> Postgres:
    """Return where a test wants its schema; a machine with one version alone tests the oldest and newest once."""
    place: Postgres = getattr(request, "param", None) or getattr(request.cls, "postgres", None) or Postgres()
    if place.version == "newest" and len(available()) == 1:
        pytest.skip(f"PostgreSQL {available()[0]} is the only version on this machine, and was tested as the oldest")
    return place


@pytest.fixture
async def postgres_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The URL of an empty schema."""
    async with new_schema(chosen(request)) as url:
        yield url


@pytest.fixture
def own_postgres(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server of the test's own, which it may stop, kill and start again."""
    server = Server(new_folder(), binaries_of(chosen(request).major).major)
    try:
        server.make()
        yield server
    finally:
        server.remove()
