"""Errors of the driver and the server: what each means, whether it is waited for, and its cure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg
import pytest

from timeline.errors import StoreError, StoreLocked, StoreUnavailable
from timeline.store.postgres.failures import is_away, is_coming, store_error
from timeline.store.postgres.store import PostgresStore

if TYPE_CHECKING:
    from timeline.store.postgres.connections import Connection

POOLER = asyncpg.ProtocolViolationError
"""What a pooler's own errors are, whatever they say."""
CLOSED = "connection was closed in the middle of operation"
"""What the driver says before the server's last words."""


def said(state: str, words: str, function: str) -> asyncpg.PostgresError:
    """Return an error of a server that speaks German; the function that raised it is named in every language."""
    return asyncpg.PostgresError.new({"C": state, "M": words, "R": function})


@pytest.mark.parametrize(
    ("error", "kind", "cure"),
    [
        (POOLER("SASL authentication failed"), StoreError, "Check user and password"),
        (POOLER("password authentication failed"), StoreError, "Check user and password"),
        (POOLER("no such user: nobody"), StoreError, "Check user and password"),
        (POOLER("transaction blocks not allowed in statement pooling mode"), StoreError, "pool_mode = transaction"),
        (POOLER('no such database: "none"'), StoreError, "Create it first"),
        (POOLER('database "none" does not exist'), StoreError, "Create it first"),
        (
            said("42501", "Policy für Sicherheit auf Zeilenebene würde Auswirkung haben", "check_enable_rls"),
            StoreError,
            "SET row_security = on",
        ),
        (asyncpg.InsufficientPrivilegeError("permission denied for table events"), StoreError, "grant it USAGE"),
        (
            said("42704", "unbekannter Konfigurationsparameter »connect_timeout«", "find_option"),
            StoreError,
            "Take it out of the URL",
        ),
        (asyncpg.QueryCanceledError("canceling statement due to statement timeout"), StoreUnavailable, "raised"),
        (asyncpg.IdleInTransactionSessionTimeoutError("terminating connection"), StoreUnavailable, "have that raised"),
        (
            asyncpg.ConfigurationLimitExceededError("temporary file size exceeds temp_file_limit (64kB)"),
            StoreError,
            "raise work_mem",
        ),
        (asyncpg.LockNotAvailableError("canceling statement due to lock timeout"), StoreLocked, "try again"),
    ],
)
def test_what_the_server_refuses_is_not_waited_for(
    error: asyncpg.PostgresError, kind: type[StoreError], cure: str
) -> None:
    """A pooler's refusal of a login looks like a server that is away: it is known by its words."""
    assert not is_away(error)
    told = store_error(error, "the store")
    assert type(told) is kind
    assert cure in str(told)


@pytest.mark.parametrize(
    "error",
    [
        POOLER("server conn crashed?"),
        asyncpg.CannotConnectNowError("the database system is starting up"),
        asyncpg.TargetServerAttributeNotMatched("None of the hosts match the target attribute requirement"),
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
        asyncpg.InterfaceError("connection is closed"),
        ConnectionResetError(),
        TimeoutError(),
    ],
)
def test_what_a_restart_makes_of_a_connection_is_waited_for(error: BaseException) -> None:
    """Also where the driver lost track of what the server says."""
    assert is_away(error)
    assert type(store_error(error, "the store")) is StoreUnavailable


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        (POOLER("query_wait_timeout"), "default_pool_size"),
        (POOLER("no more connections allowed (max_client_conn)"), "max_client_conn"),
        (asyncpg.TooManyConnectionsError('too many connections for role "app"'), "CONNECTION LIMIT"),
        (
            asyncpg.ConnectionDoesNotExistError("terminating connection due to transaction timeout"),
            "transaction_timeout raised",
        ),
        (
            asyncpg.ConnectionDoesNotExistError(f"{CLOSED}: terminating connection due to idle-in-transaction timeout"),
            "idle_in_transaction_session_timeout",
        ),
        (
            asyncpg.ConnectionDoesNotExistError(f"{CLOSED}: terminating connection due to idle-session timeout"),
            "idle_session_timeout raised",
        ),
        (
            asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress"),
            "idle_in_transaction_session_timeout or idle_session_timeout",
        ),
    ],
)
def test_what_ends_at_a_limit_of_the_server_is_waited_for_and_named(error: Exception, cure: str) -> None:
    """It is no server that cannot be reached: something is to be raised."""
    assert is_away(error)
    told = store_error(error, "the store")
    assert type(told) is StoreUnavailable
    assert cure in str(told)


@pytest.mark.parametrize(
    ("error", "coming"),
    [
        (asyncpg.CannotConnectNowError("the database system is starting up"), True),
        (asyncpg.TargetServerAttributeNotMatched("None of the hosts match"), True),
        (POOLER("server login has been failing, try again later (server_login_retry)"), True),
        (asyncpg.TooManyConnectionsError("sorry, too many clients already"), True),
        (POOLER("server conn crashed?"), False),
        (ConnectionRefusedError(), False),
    ],
)
def test_opening_waits_for_a_server_that_said_that_it_is_not_ready(error: BaseException, *, coming: bool) -> None:
    """One that does not answer may be mistyped: that is said at once."""
    assert is_coming(error) is coming


async def test_why_a_connection_broke_in_a_transaction_is_said(postgres_url: str) -> None:
    """The driver's own error says only that the transaction cannot be ended any more."""

    async def work(connection: Connection) -> None:
        await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    async with await PostgresStore.open(postgres_url) as store:
        with pytest.raises(StoreUnavailable, match="terminating connection due to administrator command"):
            await store.database.do(work)
