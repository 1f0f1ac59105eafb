"""The URL of a store: what the driver would take for something else is refused, and what is its own reaches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from tests.postgres import with_query
from timeline.errors import StoreError
from timeline.store.addresses import with_setting, without_password
from timeline.store.postgres.address import parse
from timeline.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from pathlib import Path

EVERY_SIGN: Final = "p@ss:w/o?r#d[1]%+ %(x)s &='\"\\;,ä€!"


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
    with pytest.raises(StoreError, match="not a URL that can be used"):
        await PostgresStore.open(url)


async def test_a_port_of_the_environment_that_there_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver reads it, and fails with an error of Python's."""
    monkeypatch.setenv("PGPORT", "99999")
    with pytest.raises(StoreError, match="not a URL that can be used"):
        await PostgresStore.open("postgresql://ann@127.0.0.1/agents")


@pytest.mark.parametrize(
    ("setting", "cure"), [("search_path=agents", "schema=NAME"), ("timeline.tenant=7", "tenant=N")]
)
def test_a_setting_that_the_store_makes_is_refused(setting: str, cure: str) -> None:
    """It would be without effect: the store would be in another schema, or another tenant's, than the URL says."""
    with pytest.raises(StoreError, match=cure):
        parse(f"postgresql://ann@db/agents?{setting}")


def test_a_plus_in_a_setting_is_no_space() -> None:
    """As to libpq: a password of base64 is the same to `psql` and here."""
    address = parse("postgresql://ann@db/agents?password=a+b%20c&application_name=one+two&tenant=7")
    given = parse_qs(urlsplit(address.dsn).query)  # as the driver reads it
    assert given["password"] == ["a+b c"]
    assert given["application_name"] == ["one+two"]
    assert "application_name=one%2Btwo" in without_password("postgresql://ann@db/agents?application_name=one+two")
    assert with_setting("postgresql://ann@db/agents?password=a+b", "tenant", "7").endswith("?password=a%2Bb&tenant=7")


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


@pytest.mark.parametrize(
    "setting",
    [
        "Search_Path=agents",
        "TIMELINE.Tenant=7",
        "options=-c%20search_path%3Dagents",
        "options=-csearch-path%3Dagents",
        "options=-c%20work_mem%3D8MB%20--timeline.tenant%3D7",
    ],
)
def test_a_setting_that_the_store_makes_is_refused_in_whatever_way_it_is_written(setting: str) -> None:
    """The server knows it in other case and among its options; the store's own would go before it without a word."""
    with pytest.raises(StoreError, match="is the store's own"):
        parse(f"postgresql://ann@db/agents?{setting}")


def test_other_options_of_the_session_are_the_servers() -> None:
    """They are handed on as they are."""
    assert "statement_timeout" in parse("postgresql://ann@db/agents?options=-c%20statement_timeout%3D5000").dsn


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("postgresql://ann@db/agents?dbname=other", "another dbname"),
        ("postgresql://ann@db/agents?user=bob", "another user"),
        ("postgresql://ann:secret@db/agents?password=hunter2", "another password"),
        ("postgresql://ann@db/agents?host=other", "another host"),
        ("postgresql://ann@db/agents?port=6432", "the port behind the host"),
    ],
)
def test_a_url_that_names_two_of_a_kind_is_refused(url: str, named: str) -> None:
    """`psql` takes the one behind the question mark and the driver the other: they would be in two databases."""
    with pytest.raises(StoreError, match=named) as refused:
        parse(url)
    assert "secret" not in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_url_that_says_the_same_twice_is_taken() -> None:
    """Both programs are in the same database."""
    assert parse("postgresql://a%20nn@db/agents?user=a%20nn&dbname=agents&host=db").dsn


class TestServices:
    """What the driver takes for no service at all, or fails at with an error of Python's."""

    @pytest.fixture
    def file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The file of the user, which is not there yet; the system has none."""
        file = tmp_path / "services.conf"
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        monkeypatch.delenv("PGSYSCONFDIR", raising=False)
        return file

    def test_a_server_that_a_service_names_is_named_by_it_in_errors(self, file: Path) -> None:
        """The URL names neither host nor database."""
        file.write_text("[agents]\nhost=db\n")
        assert parse("postgresql://?service=agents").where == "postgresql://?service=agents"

    @pytest.mark.parametrize("url", ["postgresql://?service=agent", "postgresql://ann@db/agents?service=agent"])
    def test_a_service_that_no_file_names_is_refused(self, file: Path, url: str) -> None:
        """The driver connected to this machine instead, or without the service's `sslmode`."""
        with pytest.raises(StoreError, match="no service 'agent'"):
            parse(url)
        file.write_text("[agents]\nhost=db\n")
        with pytest.raises(StoreError, match=r"no service 'agent' in .*services\.conf"):
            parse(url)

    @pytest.mark.parametrize("line", ["password hunter2", "hunter2"])
    def test_a_line_that_is_no_setting_is_named_by_its_number(self, file: Path, line: str) -> None:
        """It may hold a password, which the driver's error showed."""
        file.write_text(f"# servers\n[agents]\nhost=db\n{line}\n")
        with pytest.raises(StoreError, match="line 4 of") as refused:
            parse("postgresql://?service=agents")
        assert "hunter2" not in str(refused.value)

    def test_a_file_that_is_no_text_is_named(self, file: Path) -> None:
        """The error said that the URL cannot be used."""
        file.write_bytes(b"[agents]\nhost=\xff\n")
        with pytest.raises(StoreError, match=r"services\.conf cannot be read"):
            parse("postgresql://?service=agents")

    def test_the_url_goes_before_the_service_and_the_first_line_before_later_ones(self, file: Path) -> None:
        """As in libpq; what it alone knows is left out."""
        file.write_text("[other]\nuser=eve\n[agents]\nuser=bob\nuser=eve\nhost = db\nconnect_timeout=3\n")
        dsn = parse("postgresql://?service=agents&host=other").dsn
        assert parse_qs(urlsplit(dsn).query) == {
            "host": ["other"],
            "user": ["bob"],
            "application_name": ["timeline"],
        }

    def test_what_a_service_says_is_checked_as_in_the_url(self, file: Path) -> None:
        """The driver names the words of its code."""
        file.write_text("[agents]\nhost=db\ntarget_session_attrs=primray\n")
        with pytest.raises(StoreError, match="not 'primray'"):
            parse("postgresql://?service=agents")

    def test_the_service_of_the_environment_is_used(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The driver does not look at it."""
        file.write_text("[agents]\nhost=db\n")
        monkeypatch.setenv("PGSERVICE", "agents")
        assert "host=db" in parse("postgresql:///").dsn

    def test_the_systems_file_is_read_behind_the_users(
        self, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The driver does not know it."""
        file.write_text("[other]\nhost=other\n")
        (tmp_path / "pg_service.conf").write_text("[agents]\nhost=db\n")
        monkeypatch.setenv("PGSYSCONFDIR", str(tmp_path))
        assert "host=db" in parse("postgresql://?service=agents").dsn

    async def test_a_password_with_every_sign_opens_the_store(self, postgres_url: str, file: Path) -> None:
        """The driver took its % for a reference, and showed the password in its error."""
        given = dict(parse_qsl(urlsplit(postgres_url).query))
        parts = urlsplit(postgres_url)
        file.write_text(  # noqa: ASYNC240 - some lines
            f"[agents]\nhost={given.get('host', parts.hostname)}\nport={parts.port or 5432}\nuser={parts.username}\n"
            f"dbname={parts.path[1:]}\npassword={parts.password or EVERY_SIGN}\n"
        )
        url = f"postgresql://?service=agents&schema={given['schema']}"
        async with await PostgresStore.open(url) as store:
            assert await store.database.rows("SELECT 1") == [(1,)]
        assert parse_qs(urlsplit(parse(url).dsn).query)["password"] == [parts.password or EVERY_SIGN]


async def test_programs_name_themselves_by_the_url(postgres_url: str) -> None:
    """So a team tells them apart in the server's lists; without a name all of them are called timeline."""
    for url, name in ((postgres_url, "timeline"), (with_query(postgres_url, application_name="agents"), "agents")):
        async with await PostgresStore.open(url) as store:
            assert await store.database.rows("SELECT current_setting('application_name')") == [(name,)]
