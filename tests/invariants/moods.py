"""A summarizer that behaves as it is told, and lets others act while it thinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import anyio.lowlevel

from timeline.ports import Summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from timeline.ports import SummaryRequest

Mood: TypeAlias = Literal["well", "raising", "empty", "blank", "long", "slow"]


class MoodySummarizer:
    """Answers well, or fails in one of the ways that summarizers do.

    Attributes:
        mood: how it behaves.
        meanwhile: awaited once, by the next request, before the answer is given.
        asked: how often it was asked.
    """

    def __init__(self, mood: Mood = "well") -> None:
        self.mood: Mood = mood
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self.asked = 0

    @property
    def name(self) -> str:
        """Always ``moody``."""
        return "moody"

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer as the mood is."""
        self.asked += 1
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        match self.mood:
            case "raising":
                raise RuntimeError("the model is down")
            case "empty":
                text = ""
            case "blank":
                text = " \n"
            case "long":
                text = "many words " * request.max_tokens
            case "slow":
                for _ in range(20):
                    await anyio.lowlevel.checkpoint()
                text = "slowly said"
            case "well":
                text = request.counter.truncate(f"{request.kind} of {len(request.blocks)} blocks", request.max_tokens)
        return Summary(text=text, summarizer=self.name)
