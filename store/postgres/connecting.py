"""Connect to a server of a store: to each that its URL names in turn, and to none that is gone without a word.

The driver waits for the first of several servers as long as for all together: one whose machine is gone, so that
nothing answers, would keep it from those that are there. So each has a share of the time, and the one that answered
last is asked first.
"""

from __future__ import annotations

import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from ..addresses import query_of, settings_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Answering: TypeAlias = Callable[[], AbstractContextManager[None]]

CONNECT: Final = 10.0
"""Seconds that connecting may take."""
_LEAST_SHARE: Final = 2.0
"""Seconds of them that each server has at least."""
_IDLE, _BETWEEN, _UNANSWERED = 10, 5, 3
_SILENT: Final = 25_000
"""Milliseconds after which a connection breaks whose other side does not confirm what is sent: as long as the probes
of one on which nothing is sent take. The system's own times are minutes and hours."""
_KEPT_ALIVE: Final = (
    ("TCP_KEEPIDLE", _IDLE),
    ("TCP_KEEPINTVL", _BETWEEN),
    ("TCP_KEEPCNT", _UNANSWERED),
    ("TCP_USER_TIMEOUT", _SILENT),
)
_NEXT: Final = (OSError, asyncpg.TargetServerAttributeNotMatched, asyncpg.CannotConnectNowError)
"""Why another server is tried: this one cannot be reached, is not of the kind that the URL wants, or starts."""


class Watched(asyncpg.Connection):
    """A connection that breaks half a minute after its server's machine went away without a word.

    Attributes:
        answering: makes what is entered around each statement, so that the time is watched for which the server is
            waited for, and none between two statements of a transaction.
    """

    def __init__(self, protocol: Any, transport: Any, *of_the_driver: Any) -> None:
        super().__init__(protocol, transport, *of_the_driver)
        self.answering: Answering = nullcontext
        _watch(transport.get_extra_info("socket"))

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        """Do as the driver's, watched; a transaction begins and ends by it, too."""
        with self.answering():
            return await super().execute(*arguments, **options)

    async def executemany(self, *arguments: Any, **options: Any) -> Any:
        """Do as the driver's, watched."""
        with self.answering():
            return await super().executemany(*arguments, **options)

    async def fetch(self, *arguments: Any, **options: Any) -> Any:
        """Do as the driver's, watched."""
        with self.answering():
            return await super().fetch(*arguments, **options)

    async def fetchrow(self, *arguments: Any, **options: Any) -> Any:
        """Do as the driver's, watched."""
        with self.answering():
            return await super().fetchrow(*arguments, **options)

    async def fetchval(self, *arguments: Any, **options: Any) -> Any:
        """Do as the driver's, watched."""
        with self.answering():
            return await super().fetchval(*arguments, **options)


def _watch(of: socket.socket) -> None:
    if of.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    of.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEPT_ALIVE:
        option = getattr(socket, name, None)  # not every system has each
        if option is not None:
            of.setsockopt(socket.IPPROTO_TCP, option, value)


class Servers:
    """The servers that a URL names, one as a rule.

    Args:
        dsn: the URL, as the driver takes it.
    """

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._answered = 0

    async def connect(
        self,
        dsn: str | None = None,
        *,
        timeout: float = CONNECT,  # noqa: ASYNC109 - the driver's parameter
        answering: Answering = nullcontext,
        **options: Any,
    ) -> Watched:
        """Connect to the first server that is there and is of the wanted kind; takes the driver's parameters.

        ``answering`` watches the statements of the connection, see `Watched`.

        Raises:
            ValueError: it is no URL.
            asyncpg.PostgresError, asyncpg.InterfaceError, OSError: the driver's error, of the last server tried, or of
                the last one that answered, which may be about to lead.
        """
        servers = servers_of(dsn or self._dsn)
        share = max(timeout / len(servers), _LEAST_SHARE) if len(servers) > 1 else timeout
        options["connection_class"] = Watched
        failed: BaseException | None = None
        for wanted in _wanted(servers[0]) if len(servers) > 1 else ({},):
            for turn in range(len(servers)):
                number = (self._answered + turn) % len(servers)
                try:
                    found = await asyncpg.connect(servers[number], timeout=share, **wanted, **options)
                except _NEXT as error:
                    if failed is None or isinstance(failed, OSError) or not isinstance(error, OSError):
                        failed = error
                else:
                    self._answered = number
                    found.answering = answering
                    return found  # type: ignore[no-any-return] # its class is among the options
        assert failed is not None  # noqa: S101 - there is a server at least
        raise failed


def servers_of(dsn: str) -> list[str]:
    """Return a URL for each server that a URL names.

    Raises:
        ValueError: it is no URL, or a port is none, also that of a server which nobody needs yet.
    """
    servers = _each(dsn)
    for server in servers:
        _ = urlsplit(server).port
    return servers


def _each(dsn: str) -> list[str]:
    parts = urlsplit(dsn)
    user, at, place = parts.netloc.rpartition("@")
    if "," in place:
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in place.split(",")]
    given = dict(settings_in(parts.query))
    hosts, ports = given.get("host", "").split(","), given.get("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    if place or len(hosts) == 1 or len(ports) != len(hosts):  # the driver says what is wrong with the last
        return [dsn]
    return [_with(dsn, host, port) for host, port in zip(hosts, ports, strict=True)]


def _with(dsn: str, host: str, port: str) -> str:
    parts = urlsplit(dsn)
    given = dict(settings_in(parts.query)) | {"host": host, "port": port}
    return urlunsplit(parts._replace(query=query_of({name: value for name, value in given.items() if value})))


def _wanted(dsn: str) -> Iterator[dict[str, Any]]:
    """Yield what is asked of the servers: of all of them first what is preferred, then what will do as well."""
    if dict(settings_in(urlsplit(dsn).query)).get("target_session_attrs") != "prefer-standby":
        yield {}
        return
    yield {"target_session_attrs": "standby"}
    yield {"target_session_attrs": "any"}
