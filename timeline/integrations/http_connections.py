"""Bounds of the connections of a server of ours: how many there are, and how slowly a request may come.

They come before anything shows who asks, and uvicorn has no bound for them: a client that sends nothing, a header a
second, or the body of a request that was refused long ago keeps its connection for ever. Some hundreds of those take
all descriptors that a process may have, and nobody else is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

MOST_CONNECTIONS: Final = 200
"""Connections at a time, for uvicorn's ``limit_concurrency``: a process may have 256 descriptors on some systems."""
BACKLOG: Final = 128
"""Connections that wait to be accepted. Where descriptors run out all the same, asyncio logs as many errors at once."""
REQUEST_WITHIN: Final = 20.0
"""Seconds that the headers of a request may take, from the connection or from the end of the answer before."""


class BoundedConnections(H11Protocol):
    """Uvicorn's protocol over h11, which closes a connection whose next request does not come in time.

    Where there are as many connections as may be, the one that has waited longest for its request makes room. If all
    are being answered, uvicorn refuses the new one with 503.

    The parser of h11 refuses headers of more than 64 KB. The one that uvicorn takes where httptools is installed keeps
    any amount.
    """

    limit: asyncio.TimerHandle | None = None
    """What closes the connection unless a request comes before; None while one is answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Take a connection, in the place of another one if there are too many."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            others = [one for one in self.connections if isinstance(one, BoundedConnections)]
            waiting = {one: one.limit.when() for one in others if one.limit is not None}
            if waiting:
                min(waiting, key=waiting.__getitem__).give_up()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that is gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what came; with the headers of a request its time is no longer measured here."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request, which may be there already."""
        self._wait()
        super().on_response_complete()

    def _wait(self) -> None:
        self._stop_waiting()
        self.limit = self.loop.call_later(REQUEST_WITHIN, self.give_up)

    def _stop_waiting(self) -> None:
        if self.limit is not None:
            self.limit.cancel()
            self.limit = None

    def give_up(self) -> None:
        """Close the connection, once the client has what was sent to it."""
        self._stop_waiting()
        self.transport.close()
