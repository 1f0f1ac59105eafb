"""Translate the driver's and the server's errors into `timeline.errors`: one line that names the store and the cure."""

from __future__ import annotations

from ssl import SSLCertVerificationError, SSLEOFError, SSLError, SSLZeroReturnError
from typing import Final

import asyncpg

from timeline.errors import (
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreUnavailable,
)

DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""The driver's exceptions; what `TimeoutError` is, is an `OSError` too."""

_AWAY: Final = (StoreUnavailable, "the server cannot be reached. Nothing that was acknowledged is lost; try again")
_NONE_LEADS: Final = (
    StoreUnavailable,
    (
        "none of the servers that can be reached is what target_session_attrs in the URL asks for, such as the primary."
        " Nothing that was acknowledged is lost; try again when one has taken over"
    ),
)
_UNKNOWN_SETTING: Final = (
    StoreError,
    (
        "the URL has a setting that neither the driver nor the server knows. Take it out of the URL; what libpq alone"
        " knows, such as connect_timeout or channel_binding, is none of the driver's"
    ),
)
_LOCKED: Final = (
    StoreLocked,
    (
        "others keep the rows, or a whole table, locked. Nothing was written; try again. If it stays so, see"
        " pg_stat_activity for a transaction that was forgotten, and end it by pg_terminate_backend"
    ),
)
_RIGHTS: Final = (
    StoreError,
    (
        "the role lacks a right. Have an administrator grant it USAGE on the schema, SELECT, INSERT, UPDATE and DELETE"
        " on its tables, USAGE on its sequences, and EXECUTE on its functions"
    ),
)
_PASSWORD: Final = (
    StoreError,
    "the server refused the role or its password. Check user and password in the URL, or the certificate of sslcert",
)
_NO_DATABASE: Final = (StoreError, "there is no such database. Create it first")
_ENDED: Final = (
    StoreUnavailable,
    (
        "the server ended the statement: its statement_timeout passed, or an administrator cancelled it. Nothing was"
        " written; try again, or have the role's statement_timeout raised"
    ),
)
_IDLE: Final = (
    StoreUnavailable,
    (
        "the server ended a transaction that waited for this program longer than idle_in_transaction_session_timeout."
        " Nothing was written; try again, or have that raised"
    ),
)
_TRANSACTION: Final = (
    StoreUnavailable,
    (
        "the server ended the connection: its transaction_timeout passed before the work was done. Nothing that was"
        " acknowledged is lost; try again, or have the role's transaction_timeout raised"
    ),
)
_IDLE_SESSION: Final = (
    StoreUnavailable,
    (
        "the server ended a connection on which nothing came for longer than idle_session_timeout. Nothing that was"
        " acknowledged is lost; try again, or have the role's idle_session_timeout raised"
    ),
)
_ENDED_CONNECTION: Final = (
    StoreUnavailable,
    (
        "the server ended the connection: it stops, an administrator ended it, or its"
        " idle_in_transaction_session_timeout or idle_session_timeout passed. Nothing that was acknowledged is lost;"
        " try again, or have the timeout raised"
    ),
)
_NO_LOCKS: Final = (
    StoreUnavailable,
    (
        "the server has no room for more locks; a store wants one for each partition of its events, and for each index"
        " of these. Nothing was written; have max_locks_per_transaction raised, or make the store with fewer partitions"
    ),
)
_ROW_SECURITY: Final = (
    StoreError,
    "the role has row_security turned off. Have an administrator run ALTER ROLE ... SET row_security = on",
)
_RULES: Final = (
    StoreError,
    (
        'no rule of the server\'s pg_hba.conf lets this role in from here in this way. Where it says "no encryption",'
        " add ?sslmode=require to the URL; otherwise have an administrator add a rule"
    ),
)
_NO_CERTIFICATE: Final = (
    StoreError,
    "the server wants a client's certificate. Name its file, and that of its key, by sslcert and sslkey in the URL",
)
_NO_TLS: Final = (
    StoreError,
    "the server takes no encrypted connection. Turn on ssl in its settings, or write ?sslmode=prefer in the URL",
)
_UNTRUSTED: Final = (
    StoreError,
    (
        "the server's certificate is not trusted. Give its authority's by sslrootcert=FILE in the URL, and name the"
        " server as the certificate does"
    ),
)
_BAD_TLS: Final = (
    StoreError,
    (
        "no encrypted connection could be made. Check that sslrootcert, sslcert and sslkey in the URL name files of"
        " certificates and a key, and which versions of TLS each side takes"
    ),
)
_READS: Final = (
    "the server or the role may only read. Nothing was written. Of a standby, name its primary: all servers in one URL"
    " with ?target_session_attrs=primary. Otherwise have an administrator turn default_transaction_read_only off for"
    " the role"
)
_DAMAGED: Final = (StoreCorrupt, "the database is damaged. Restore the database with the tools of its server")
_LOST_TABLE: Final = (
    "a table of the store is missing. `timeline repair --yes` makes it anew where the log gives its rows; otherwise"
    " restore the database with the tools of its server"
)
_LOST_PARTITION: Final = (
    "a partition of the events is missing or detached. Nothing was written; `timeline verify --deep` names it, and how"
    " to attach it again"
)
_USE_POOLER: Final = "Behind pgbouncer, add ?pgbouncer=true to the URL"
_POOLER: Final = (
    StoreError,
    f"a connection pooler is in between, and knows no settings and prepared statements of a session. {_USE_POOLER}",
)
_OF_POOLERS: Final = "unsupported startup parameter"
"""What pgbouncer says of the settings that a connection begins with; its state is that of a server that is away."""
_OF_RETRIES: Final = "server_login_retry"
"""What pgbouncer says while the server behind it was away when it last looked."""
_OF_CLIENTS: Final = "no more connections allowed"
"""What pgbouncer says where it has as many clients as it takes."""
_OF_POOL_MODE: Final = "statement pooling mode"
"""What pgbouncer says of a transaction where each statement may have another connection."""
_OF_SETTINGS: Final = frozenset({"find_option", "assignable_custom_variable_name"})
"""The functions of the server, of several versions, that refuse a setting in the URL which the driver passes on to it.
Unlike its words, their names are the same in every language that a server speaks."""
_OF_RULES: Final = "pg_hba.conf"
"""What the server says of a connection that no rule allows; its state is that of a wrong role."""
_OF_LOGIN_RULES: Final = "ClientAuthentication"
"""The function of the server that refuses a connection before it asks who it is: for want of a rule, or of a client's
certificate."""
_OF_LOCKS: Final = "LockAcquireExtended"
"""The function of the server that finds no room for a lock; its state is that of a server without memory."""
_OF_ROW_SECURITY: Final = "check_enable_rls"
"""The function of the server that refuses a role that wants no rows left out; its state is that of a missing right."""
_OF_TLS: Final = "rejected SSL upgrade"
"""What the driver says of a server without TLS; its type is that of a connection that broke."""
_BY_STATE: Final[dict[str, tuple[type[StoreError], str]]] = {
    "53100": (StoreFull, "the server's disk is full. What was stored is intact; free some space and try again"),
    "53200": (StoreUnavailable, "the server is out of memory. Nothing was written; try again"),
    "53300": (
        StoreUnavailable,
        (
            "the server has no connection left for this role. Raise its max_connections, or the CONNECTION LIMIT of the"
            " role or the database, or use pgbouncer"
        ),
    ),
    "53400": (
        StoreError,
        (
            "the work needs more than a limit in the server's settings allows. Have the setting that the server names"
            " raised for the role; for temp_file_limit it helps as well to raise work_mem, so that less goes to files"
        ),
    ),
    "25006": (StoreReadOnly, _READS),
    "42501": _RIGHTS,
    "28P01": _PASSWORD,
    "28000": _PASSWORD,
    "3D000": _NO_DATABASE,
    "42P01": (StoreCorrupt, _LOST_TABLE),
    "23514": (StoreCorrupt, _LOST_PARTITION),
    "42P10": (
        StoreCorrupt,
        "a table of the store has lost its key. Nothing was written; `timeline repair --yes` makes it anew",
    ),
    "42703": (StoreCorrupt, "a column of the store is missing. Restore the database with the tools of its server"),
    "40001": _LOCKED,
    "40P01": _LOCKED,
    "55P03": _LOCKED,
    "57014": _ENDED,
    "25P03": _IDLE,
    "25P04": _TRANSACTION,
    "26000": _POOLER,
    "42P05": _POOLER,
    "XX001": _DAMAGED,
    "XX002": _DAMAGED,
    "22P05": (
        StoreError,
        (
            "the database's encoding cannot hold the text. Nothing was written; make a database by CREATE DATABASE name"
            " ENCODING 'UTF8' TEMPLATE template0, and move the store there with `timeline copy`"
        ),
    ),
    "54000": (StoreError, "a text is longer than PostgreSQL can hold. Nothing was written; split the block"),
}
_OF_LOGINS: Final[tuple[tuple[str, tuple[type[StoreError], str]], ...]] = (
    ("authentication failed", _PASSWORD),
    ("no such user", _PASSWORD),
    ("no such database", _NO_DATABASE),
    ("does not exist", _NO_DATABASE),
)
"""What pgbouncer says of a login that it refuses; its state is that of a server that is away."""
_NONE_BEHIND: Final = (
    StoreUnavailable,
    (
        "the pooler had no connection to the server for too long. See whether the server is there and what keeps its"
        " connections, or raise the pooler's default_pool_size; then try again"
    ),
)
_OF_LIMITS: Final[tuple[tuple[str, tuple[type[StoreError], str]], ...]] = (
    ("query_wait_timeout", _NONE_BEHIND),
    (
        _OF_CLIENTS,
        (StoreUnavailable, "the pooler takes no more clients. Raise its max_client_conn, or try again"),
    ),
    (_OF_POOL_MODE, (StoreError, "a store needs transactions. Set pool_mode = transaction for the pooler")),
    ("due to transaction timeout", _TRANSACTION),
    ("due to idle-in-transaction timeout", _IDLE),
    ("due to idle-session timeout", _IDLE_SESSION),
)
"""What pgbouncer says of itself, and the server where it ended the connection; the state is of one that is away."""
_OF_ENDING: Final = "the underlying connection is closed"
"""What the driver says of a transaction whose connection broke; why is the error before."""
_OUT_OF_STEP: Final = "cannot switch to state"
"""What the driver says where the server ended the connection in the middle of its answer."""
_OF_RELEASED: Final = "released back to the pool"
"""What the driver says of a connection of a pool that broke before, once it has noticed."""
_AWAY_STATES: Final = ("08", "57P")
"""Connection exceptions, and a server that shuts down, starts or recovers."""
AGAIN: Final = frozenset({"40001", "40P01"})
"""A transaction that the server gave up for another one; the same again may go well."""


def is_away(error: BaseException) -> bool:
    """Return whether an error means that the connection broke or could not be made, and may come back."""
    if isinstance(error, asyncpg.PostgresError):
        away = (error.sqlstate or "").startswith(_AWAY_STATES) or error.sqlstate == "53300"
        stays = _OF_POOLERS in str(error) or _OF_POOL_MODE in str(error) or _of_login(error) is not None
        return away and not stays
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):  # an InternalClientError, too
        return True  # of several servers, none leads yet
    if isinstance(error, asyncpg.InternalClientError):
        return _OUT_OF_STEP in str(error)
    if isinstance(error, asyncpg.InterfaceError):
        # the connection is closed, or was closed in the middle of operation
        return "clos" in str(error) or _OF_RELEASED in str(error)
    return isinstance(error, OSError) and _without_tls(error) is None


def has_no_room(error: BaseException) -> bool:
    """Return whether the server, or the pooler, has no connection left: another one has to end first."""
    full = isinstance(error, asyncpg.TooManyConnectionsError)
    return full or (isinstance(error, asyncpg.PostgresError) and _OF_CLIENTS in str(error))


def is_coming(error: BaseException) -> bool:
    """Return whether a server or a pooler answered, and said that it cannot be used yet."""
    starts = isinstance(error, asyncpg.TargetServerAttributeNotMatched | asyncpg.CannotConnectNowError)
    return starts or has_no_room(error) or (is_away(error) and _OF_RETRIES in str(error))


def store_error(error: BaseException, where: str) -> StoreError:
    """Return the store error for an error of the driver."""
    error = _first(error)
    message = f"{type(error).__name__}: {error}" if not isinstance(error, asyncpg.PostgresError) else str(error)
    kind, meaning = _meaning(error, message)
    return kind(f"{where}: {meaning} (PostgreSQL: {message.splitlines()[0] if message else 'no message'}).")


def _first(error: BaseException) -> BaseException:
    """Return why a transaction could not be ended any more, where the driver says no more than that."""
    before = error.__context__
    if isinstance(error, asyncpg.InterfaceError) and _OF_ENDING in str(error) and isinstance(before, DRIVER_ERRORS):
        return before
    return error


def _meaning(error: BaseException, message: str) -> tuple[type[StoreError], str]:
    """Return the kind of error, and what it means and its cure."""
    if isinstance(error, asyncpg.InternalClientError) and (of_driver := _of_driver(error)) is not None:
        return of_driver
    if isinstance(error, asyncpg.PostgresError) and (special := _of_origin(error)) is not None:
        return special
    if isinstance(error, asyncpg.PostgresError) and error.sqlstate in _BY_STATE:
        return _BY_STATE[error.sqlstate]
    if isinstance(error, asyncpg.PostgresError) and (login := _of_login(error)) is not None:
        return login
    if _OF_POOLERS in message:
        return _POOLER
    if isinstance(error, asyncpg.PostgresError) and (limit := _of_limit(error)) is not None:
        return limit
    if isinstance(error, OSError) and (refused := _without_tls(error)) is not None:
        return refused
    return _AWAY if is_away(error) else (StoreError, "the database refused. Nothing was written")


def _of_driver(error: asyncpg.InternalClientError) -> tuple[type[StoreError], str] | None:
    """Return what an error of the driver's own means."""
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return _NONE_LEADS
    return _ENDED_CONNECTION if _OUT_OF_STEP in str(error) else None


def _of_origin(error: asyncpg.PostgresError) -> tuple[type[StoreError], str] | None:
    """Return what it means where that is decided by what raised the error in the server: the state says too little."""
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        if _OF_RULES in str(error):
            return _RULES
        return _NO_CERTIFICATE if _raised_by(error) == _OF_LOGIN_RULES else None
    if isinstance(error, asyncpg.UndefinedObjectError):
        return _UNKNOWN_SETTING if _raised_by(error) in _OF_SETTINGS else None
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return _ROW_SECURITY if _raised_by(error) == _OF_ROW_SECURITY else None
    return _NO_LOCKS if isinstance(error, asyncpg.OutOfMemoryError) and _raised_by(error) == _OF_LOCKS else None


def _raised_by(error: asyncpg.PostgresError) -> str | None:
    """Return the function of the server that raised an error; poolers, and the driver, give none."""
    return getattr(error, "server_source_function", None)


def _of_login(error: asyncpg.PostgresError) -> tuple[type[StoreError], str] | None:
    """Return what it means where a pooler refused a login; trying again changes nothing."""
    if not (error.sqlstate or "").startswith("08"):
        return None
    return next((meaning for words, meaning in _OF_LOGINS if words in str(error)), None)


def _of_limit(error: asyncpg.PostgresError) -> tuple[type[StoreError], str] | None:
    """Return what it means where a limit of the pooler, or of the server, ended the connection."""
    return next((meaning for words, meaning in _OF_LIMITS if words in str(error)), None)


def _without_tls(error: OSError) -> tuple[type[StoreError], str] | None:
    """Return what it means where both sides did not agree on encryption; trying again changes nothing."""
    if isinstance(error, SSLCertVerificationError):
        return _UNTRUSTED
    if isinstance(error, SSLError) and not isinstance(error, SSLEOFError | SSLZeroReturnError):  # these broke off
        return _BAD_TLS
    return _NO_TLS if _OF_TLS in str(error) else None


def pooled(where: str) -> StoreError:
    """Return the error for a session whose settings something between the store and the server left out."""
    return StoreError(f"{where}: {_POOLER[1]}.")


def no_server_behind(where: str, seconds: float) -> StoreUnavailable:
    """Return the error for a pooler that has no server to ask for so long."""
    return StoreUnavailable(f"{where}: {_NONE_BEHIND[1]} (nothing came for {seconds:.0f} seconds).")


def reading_only(where: str) -> StoreReadOnly:
    """Return the error for an append to a store that is open for reading only."""
    return StoreReadOnly(f"{where}: the store is open for reading only. Nothing was written. Open it without readonly.")


def bypasses(where: str, role: str) -> StoreError:
    """Return the error for a role that would see the rows of all tenants."""
    return StoreError(
        f"{where}: the role {role!r} is a superuser or has BYPASSRLS, and would see the rows of all tenants. Connect as"
        " a role without them."
    )
