"""What an agent runtime does with a conversation besides appending to it and rendering it: recording and reading back.

Each method of `Embedding` is thin: what a provider's reply or a recall answer looks like is told by modules of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from timeline.blocks import with_media
from timeline.events import ModelCalled
from timeline.view import TimelineView, moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Usage
    from timeline.log import StoredLog

_THREAD_CHARACTERS: Final = 1_000_000
"""Counting more text than this (a tenth of a second) leaves the event loop for a thread, where it is slower."""


class Embedding(TimelineView):
    """The half of `timeline.Timeline` that decides nothing: an agent loop records its replies here."""

    _log: StoredLog

    async def count(self, blocks: Sequence[Block]) -> list[int]:
        """Count blocks with the policy's counter; much text is counted off the event loop."""
        texts = [block.countable() for block in blocks]
        if sum(map(len, texts)) > _THREAD_CHARACTERS:
            counts = await anyio.to_thread.run_sync(self.counter.count_many, texts)
        else:
            counts = self.counter.count_many(texts)
        return [with_media(b, n) for n, b in zip(counts, blocks, strict=True)]

    async def record_model_call(
        self,
        usage: Usage | None = None,
        *,
        model: str = "",
        response_id: str | None = None,
        finish_reason: str | None = None,
        started_at: datetime | None = None,
        now: datetime | None = None,
    ) -> None:
        """Record a model call: what it used, how it ended, and (by version) the render it answers: the newest one."""
        fields: dict[str, Any] = {} if usage is None else {"usage": usage}
        called = ModelCalled(model=model, response_id=response_id, finish_reason=finish_reason, **fields)
        await self._log.commit([self._answering(called, started_at)], at=moment(now, self._clock))

    def _answering(self, called: ModelCalled, started_at: datetime | None) -> ModelCalled:
        """Say when a model call began, and which render it answers."""
        rendered = self.window.rendered
        return called.model_copy(
            update={
                "started_at": None if started_at is None else moment(started_at, self._clock),
                "answers": None if rendered is None else rendered.version,
            }
        )
