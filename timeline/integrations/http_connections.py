"""Bounds of the connections of a server of ours: how many there are, and how slowly a request comes or an answer goes.

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
TAKEN_WITHIN: Final = 300.0
"""Seconds in which a client takes some of what waits for it, which may be megabytes in the memory of this process.

The system's buffer in between takes more only once a third of it is free: on a slow line some minutes pass until then.
"""
LEAST_TAKEN: Final = 16 * 1024
"""Bytes that it takes in that time, and that a byte now and then does not come to."""


class BoundedConnections(H11Protocol):
    """Uvicorn's protocol over h11, which closes a connection whose next request does not come in time.

    So it does with one whose client takes nothing, or a byte a minute, of an answer that is larger than the buffers.

    Where there are as many connections as may be, the one that has waited longest for its request makes room. If all
    are being answered, uvicorn refuses the new one with 503.

    The parser of h11 refuses headers of more than 64 KB. The one that uvicorn takes where httptools is installed keeps
    any amount.
    """

    limit: asyncio.TimerHandle | None = None
    """What closes the connection unless a request comes before; None while one is answered."""
    look: asyncio.TimerHandle | None = None
    """What looks how much the client took; None while the buffers have room."""

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
        self._stop_looking()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Look from now on whether the client takes what is sent."""
        super().pause_writing()
        self._look_later()

    def resume_writing(self) -> None:
        """Look no more: the client took it."""
        self._stop_looking()
        super().resume_writing()

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

    def _look_later(self) -> None:
        self._stop_looking()
        self.look = self.loop.call_later(TAKEN_WITHIN, self._look, self.transport.get_write_buffer_size())

    def _look(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < LEAST_TAKEN:
            self.transport.abort()  # to close it would wait for the client
        else:
            self._look_later()

    def _stop_looking(self) -> None:
        if self.look is not None:
            self.look.cancel()
            self.look = None
