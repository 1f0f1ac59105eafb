"""Serve the inspector by itself, until the process is stopped."""

from __future__ import annotations

import logging
import socket
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from timeline.errors import InvalidArgument, needs
from timeline.inspector.app import inspector
from timeline.inspector.doors import TokenDoor
from timeline.inspector.reopened import Reopened
from timeline.integrations.loopback import is_loopback, loopback_hosts
from timeline.integrations.reopening import Reopening

with needs("inspector"):
    import uvicorn

    from timeline.integrations.http_connections import BACKLOG, MOST_CONNECTIONS, BoundedConnections

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractAsyncContextManager

    from timeline.inspector.asked import Decision
    from timeline.ports import EventStore


@dataclass(frozen=True, slots=True)
class Place:
    """Where to serve, and who may ask.

    Attributes:
        host: the address to bind; a name of this machine's loopback unless others are to reach it.
        port: 0 for a free one.
        token: the token that lets in; a random one unless given.
        certificate: file of the TLS certificate, and ``key`` of its key.
        behind_proxy: a proxy in front ends TLS, and names the host that it is asked under.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False

    @property
    def secure(self) -> bool:
        """Whether what is sent is encrypted on its way."""
        return self.certificate is not None or self.behind_proxy

    def check(self) -> None:
        """Refuse to let others than this machine ask without a token of theirs, or over a line that others read.

        Raises:
            InvalidArgument: the place is not safe.
        """
        if self.key is not None and self.certificate is None:
            raise InvalidArgument("key", "--key is the key of a certificate: name that, too (--certificate)")
        if is_loopback(self.host):
            return
        if self.token is None:
            raise InvalidArgument("host", f"{self.host} can be reached by others: choose a token for them (--token)")
        if not self.secure:
            cure = "serve over TLS (--certificate and --key), or behind a proxy that does (--behind-proxy)"
            raise InvalidArgument(
                "host", f"{self.host} can be reached by others, and anybody in between reads it: {cure}"
            )


async def serve(
    store: EventStore,
    place: Place,
    on_start: Callable[[str, str], None],
    *,
    allow: Collection[Decision] = (),
    again: Callable[[], AbstractAsyncContextManager[EventStore]] | None = None,
) -> None:
    """Serve the inspector of a store until the process is stopped.

    Args:
        store: what is looked at.
        place: where, and for whom.
        allow: decisions that may be taken; the store is then one that can be written to.
        on_start: called once requests are answered, with the address for people, and one that lets in a single browser.
        again: opens the store anew, where its file may be moved or replaced meanwhile.

    Raises:
        InvalidArgument: the place is not safe, or its certificate cannot be used.
        OSError: the address is in use, or not allowed.
    """
    place.check()
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(_listening(place))
        port = listening.getsockname()[1]
        door = TokenDoor(port, place.token, secure=place.secure)
        hosts = loopback_hosts(port) if is_loopback(place.host) and not place.behind_proxy else ()
        app_of = partial(inspector, auth=door, allow=allow, hosts=hosts)
        reopening = await stack.enter_async_context(Reopening(store, again))
        app = app_of(store) if again is None else Reopened(reopening, app_of)
        scheme = "https" if place.certificate else "http"
        name = f"[{place.host}]" if ":" in place.host else place.host
        base = f"{scheme}://{name}:{port}/"
        config = uvicorn.Config(
            app,
            http=BoundedConnections,
            limit_concurrency=MOST_CONNECTIONS,
            backlog=BACKLOG,
            log_level=logging.WARNING,
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=place.behind_proxy,
            ssl_certfile=place.certificate,
            ssl_keyfile=place.key,
            timeout_graceful_shutdown=2,
        )
        _read_certificate(config, place)
        on_start(f"{base}?token={door.token}", f"{base}?token={door.once()}")
        await uvicorn.Server(config).serve(sockets=[listening])


def _read_certificate(config: uvicorn.Config, place: Place) -> None:
    """Read what TLS needs, before an address is printed.

    Raises:
        InvalidArgument: a file is not there, is a pipe or a device, or holds no certificate or no key of it.
    """
    for name, file in (("certificate", place.certificate), ("key", place.key)):
        if file is not None and Path(file).exists() and not (Path(file).is_file() or Path(file).is_dir()):
            raise InvalidArgument(name, f"--{name} {file} cannot be used: it is not a regular file")
    try:
        config.load()
    except OSError as error:
        of = place.certificate if place.key is None else f"{place.certificate} with the key {place.key}"
        raise InvalidArgument("certificate", f"--certificate {of} cannot be used: {error.strerror or error}") from error


@contextmanager
def _listening(place: Place) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    with socket.create_server((place.host, place.port), family=family, backlog=BACKLOG) as listening:
        yield listening
