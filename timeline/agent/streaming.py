"""Record a model's stream while the caller reads it: each event passes through, the response is stored at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from timeline.errors import TimelineError, UnknownResponse
from timeline.log.uncancelled import run_uncancelled
from timeline.wire.streams import StreamReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
    from types import TracebackType

    from timeline.blocks import Block
    from timeline.log.stopwatch import Stopwatch
    from timeline.wire.responses import ModelResponse


class StreamRecording:
    """A stream that is being recorded: enter it, then iterate over it. `Timeline.recording` makes one.

    The caller keeps and closes the stream itself.

    Attributes:
        blocks: the blocks as they are stored; empty until the stream was recorded, at its end or on leaving.
    """

    def __init__(
        self,
        stream: AsyncIterable[Any],
        *,
        unnamed: str,
        save: Callable[[ModelResponse, float | None], Awaitable[list[Block]]],
        watch: Stopwatch,
    ) -> None:
        self.blocks: list[Block] = []
        self._stream = stream
        self._events: AsyncIterator[Any] | None = None
        self._unnamed = unnamed
        self._save = save
        self._watch = watch
        self._duration: float | None = None
        self._reader = StreamReader()
        self._saved = False

    async def __aenter__(self) -> Self:
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if self._events is None:
            self._events = aiter(self._stream)
        try:
            event = await anext(self._events)
        except StopAsyncIteration:
            await self.save()
            raise
        self.take(event)
        return event

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record the events that arrived, however the stream ended; a cancellation waits for that."""
        if error is None:
            await run_uncancelled(self.save())
        elif self._reader.began:
            try:
                await run_uncancelled(self.save())
            except TimelineError as problem:
                # The caller must see the error that ended the stream, above all a cancellation.
                error.add_note(f"What had arrived of the stream was not recorded: {problem}")

    def take(self, event: Any) -> None:
        """Add an event to the recording, for a caller that iterates over the stream by itself."""
        self._duration = self._watch.duration()
        self._reader.take(event)

    async def save(self) -> None:
        """Record the events that arrived so far; a second call does nothing.

        Raises:
            UnknownResponse: no event of a known dialect arrived.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        if self._saved:
            return
        response = self._reader.response(unnamed=self._unnamed)
        if response is None:
            raise UnknownResponse("a stream without a single event of a model's response")
        self.blocks = await self._save(response, self._duration)
        self._saved = True
