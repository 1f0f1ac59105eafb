"""Read the URL of a PostgreSQL store: the server's part goes to the driver, the rest is the store's own settings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from timeline.errors import StoreError

from ..addresses import EXAMPLE, WRITE_IT, check_address, is_server, query_of, settings_in, without_password
from .service_file import read_service

SCHEMA: Final = "timeline"
"""The schema of a store whose URL names none: one of its own, so that it shares a database with an application."""
MOST_PARTITIONS: Final = 1_024
_MOST_TENANT: Final = 2**31 - 1
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_YES: Final = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_SERVERS: Final = ("any", "primary", "standby", "read-write", "read-only", "prefer-standby")
"""Which of several servers the driver may choose."""
_PLACES: Final = ("host", "port", "service")
"""Settings that say which server it is; a service is a name for one in a file of the client's."""
_OF_SYSTEM: Final = "libpq alone knows that word; name the file of them, such as /etc/ssl/certs/ca-certificates.crt."
"""What is said of libpq's word for the authorities that the system trusts."""
_FILES: Final = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_OURS: Final = {"search_path": "schema=NAME", "timeline.tenant": "tenant=N"}
"""Settings of the session that the store makes, each with the one of the URL that says what it is to be."""
_OPTION: Final = re.compile(r"(?:-c\s*|--)([\w.-]+)\s*=")
"""How a setting of the session is written in ``options``."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The parts of a store's URL.

    Attributes:
        dsn: what the driver connects to; it may hold a password.
        where: the same for people, without the password; it names the store in errors.
        schema: the schema that holds the store's tables.
        tenant: the rows that are seen and written; None where the URL names no tenant, which is tenant 0.
        pgbouncer: the server is reached through pgbouncer, which gives each transaction another connection.
        migrate: opening the store for writing brings its schema up to date.
        partitions: the number of hash partitions of the events in a new store; 0 for a plain table.
        listen_url: a URL of the same database that leads to the server itself, for wake-ups; None for ``dsn``.
    """

    dsn: str = field(repr=False)
    where: str
    schema: str = SCHEMA
    tenant: int | None = None
    pgbouncer: bool = False
    migrate: bool = True
    partitions: int = 0
    listen_url: str | None = field(default=None, repr=False)

    @property
    def quoted_schema(self) -> str:
        """The schema's name as SQL has it."""
        return f'"{self.schema}"'


def parse(url: str) -> ServerAddress:
    """Read a store's URL.

    Raises:
        StoreError: it is no URL of a server, or one of the store's own settings cannot be used.
    """
    check_address(url)
    _, _, rest = url.partition("://")
    if not is_server(url) or not rest:
        raise StoreError(f"This names no PostgreSQL server. Write {EXAMPLE}.")
    place, _, query = rest.partition("?")
    where = without_password(f"postgresql://{rest}").partition("?")[0]
    given = dict(settings_in(query))
    _check_place(where, place)
    _check_named_once(where, place, given)
    _check_settings(where, given)
    options = {name: given[name] for name in _PLACES if given.get(name)}
    if service := given.pop("service", "") or os.environ.get("PGSERVICE"):
        given = read_service(where, service) | given
    schema = given.pop("schema", SCHEMA)
    if not _NAME.fullmatch(schema):
        raise StoreError(f"{where}: {schema!r} cannot be the name of a schema here: letters, digits and _, at most 63.")
    given.pop("client_encoding", None)  # the driver would write and read in it what is UTF-8
    tenant = given.pop("tenant", None)
    partitions = given.pop("partitions", "0")
    listen_url = given.pop("listen_url", None)
    if listen_url is not None and not listen_url.startswith(("postgresql://", "postgres://")):
        raise StoreError(f"{where}: listen_url is a URL of the server itself, such as {EXAMPLE}, in %-encoding.")
    if listen_url is not None:
        listen_url = parse(listen_url).dsn  # the store's own settings may be copied with it; the server knows none
    _check_servers(where, given.get("target_session_attrs", "any"))
    _check_files(where, given)
    given.setdefault("application_name", "timeline")
    pgbouncer, migrate = _yes(where, given, "pgbouncer", "false"), _yes(where, given, "migrate", "true")
    if place.endswith("/") and place.count("/") == 1:
        place = place[:-1]  # no database is named: the driver takes one without a name for that, and not PGDATABASE
    dsn = f"postgresql://{place}" + (f"?{query_of(given)}" if given else "")
    options |= {} if schema == SCHEMA else {"schema": schema}
    return ServerAddress(
        dsn,
        where + (f"?{query_of(options, safe='/,:')}" if options else ""),
        schema,
        None if tenant is None else _number(where, "tenant", tenant, _MOST_TENANT),
        pgbouncer,
        migrate,
        _number(where, "partitions", partitions, MOST_PARTITIONS),
        listen_url,
    )


def _check_place(where: str, place: str) -> None:
    """Check the part before the settings, as far as the driver would take it for something else."""
    # An @ in the password: a server whose name begins within it. A # : what follows would be left out, settings too.
    if place.partition("/")[0].count("@") > 1 or "#" in place:
        raise StoreError(f"{where}: this is not a URL that can be used. {WRITE_IT}")


def _check_named_once(where: str, place: str, given: dict[str, str]) -> None:
    """Refuse a URL that names two of a kind: libpq takes the one behind the question mark, the driver the other."""
    account, _, server = place.rpartition("@")
    user, _, password = account.partition(":")
    host, _, database = server.partition("/")
    before = {"user": user, "password": password, "host": host, "dbname": database, "database": database}
    for name, value in before.items():
        if value and given.get(name, unquote(value)) != unquote(value):
            raise StoreError(f"{where}: another {name} stands before the question mark than behind it. Name one alone.")
    if host and given.get("port"):
        raise StoreError(f"{where}: write the port behind the host, before the question mark.")


def _check_settings(where: str, given: dict[str, str]) -> None:
    """Refuse what the store sets for each session: it would be another schema, or tenant, than the URL seems to say."""
    for name in (*given, *_OPTION.findall(given.get("options", ""))):
        if ours := _OURS.get(name.replace("-", "_").casefold()):
            raise StoreError(f"{where}: {name} is the store's own. Write {ours} in the URL instead.")


def _check_servers(where: str, wanted: str) -> None:
    if wanted not in _SERVERS:
        raise StoreError(f"{where}: target_session_attrs must be one of {', '.join(_SERVERS)}, not {wanted!r}.")


def _check_files(where: str, given: dict[str, str]) -> None:
    """Check that the files for TLS are there: the driver's error for one that is not is that of a server away."""
    for name in _FILES:
        if (file := given.get(name)) and not Path(file).is_file():
            cure = _OF_SYSTEM if file == "system" else "Check the path in the URL."
            raise StoreError(f"{where}: {name} names {file!r}, and there is no such file. {cure}")


def _yes(where: str, given: dict[str, str], name: str, default: str) -> bool:
    value = given.pop(name, default)
    if value.lower() not in _YES:
        raise StoreError(f"{where}: {name} must be 'true' or 'false', not {value!r}.")
    return _YES[value.lower()]


def _number(where: str, name: str, value: str, most: int) -> int:
    if not value.isascii() or not value.isdigit() or int(value) > most:
        raise StoreError(f"{where}: {name} must be a number from 0 to {most}, not {value!r}.")
    return int(value)
