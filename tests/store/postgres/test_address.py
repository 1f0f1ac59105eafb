"""The URL of a store: what the driver would take for something else is refused, and what is its own reaches it."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.postgres import with_query
from timeline.errors import StoreError
from timeline.store.postgres.address import parse
from timeline.store.postgres.store import PostgresStore


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@db/agents#2",
        "postgresql://ann@db/agents#2?sslmode=require",
        "postgresql://ann:se#cret@db/agents",
    ],
)
def test_a_number_sign_that_is_not_encoded_is_refused(url: str) -> None:
    """The driver leaves out what follows: it would open another database, and drop settings such as `sslmode`."""
    with pytest.raises(StoreError, match="as %2F %3F %23") as refused:
        parse(url)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann@db:99999/agents",
        "postgresql://ann@one:5432,two:port/agents",
        "postgresql://ann@/agents?host=127.0.0.1&port=65536",
    ],
)
async def test_a_port_that_there_cannot_be_is_refused(url: str) -> None:
    """Also that of a server which nobody needs yet."""
    with pytest.raises(StoreError, match="no URL that can be used"):
        await PostgresStore.open(url)


async def test_a_port_of_the_environment_that_there_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver reads it, and fails with an error of Python's."""
    monkeypatch.setenv("PGPORT", "99999")
    with pytest.raises(StoreError, match="no URL that can be used"):
        await PostgresStore.open("postgresql://ann@127.0.0.1/agents")


@pytest.mark.parametrize(
    ("setting", "cure"), [("search_path=agents", "schema=NAME"), ("timeline.tenant=7", "tenant=N")]
)
def test_a_setting_that_the_store_makes_is_refused(setting: str, cure: str) -> None:
    """It would be without effect: the store would be in another schema, or another tenant's, than the URL says."""
    with pytest.raises(StoreError, match=cure):
        parse(f"postgresql://ann@db/agents?{setting}")


async def test_the_database_of_the_environment_is_used_where_the_url_names_none(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slash without a name behind it names none."""
    parts = urlsplit(postgres_url)
    monkeypatch.setenv("PGDATABASE", parts.path[1:])
    for path in ("", "/"):
        url = f"postgresql://{parts.netloc}{path}?{parts.query}"
        assert parse(url).dsn.startswith(f"postgresql://{parts.netloc}?")
        async with await PostgresStore.open(url):
            pass


def test_the_authorities_of_the_system_are_a_file_to_the_driver() -> None:
    """Where libpq takes a word for them; the error says which file."""
    with pytest.raises(StoreError, match=r"ca-certificates\.crt"):
        parse("postgresql://ann@db/agents?sslmode=verify-full&sslrootcert=system")


def test_a_server_that_a_service_file_names_is_named_by_it_in_errors() -> None:
    """The URL names neither host nor database."""
    assert parse("postgresql://?service=agents").where == "postgresql://?service=agents"


async def test_programs_name_themselves_by_the_url(postgres_url: str) -> None:
    """So a team tells them apart in the server's lists; without a name all of them are called timeline."""
    for url, name in ((postgres_url, "timeline"), (with_query(postgres_url, application_name="agents"), "agents")):
        async with await PostgresStore.open(url) as store:
            assert await store.database.rows("SELECT current_setting('application_name')") == [(name,)]
