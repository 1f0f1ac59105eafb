"""The log of a replay: a fold in memory, to which a recording's events and the policy's decisions are appended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.blocks import UserPrompt
from timeline.events import ConversationOpened, block_appended
from timeline.fold.fold import Fold
from timeline.log.dry_run import FoldedLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Payload


class ReplayLog(FoldedLog):
    """The log of a replay: a fold, all its paths, and what was decided since it was last asked."""

    def __init__(self, conversation: str, at: datetime) -> None:
        super().__init__(Fold(conversation))
        self._first_prompt: str | None = None
        self._decided: list[Payload] = []
        self._fold.apply(1, at, ConversationOpened())

    def append(self, block: Block, at: datetime, tokens: int, counter: str) -> Block:
        """Append a block that counts so many tokens; return it with its path."""
        avoid: set[str] = set()
        while True:
            (addressed,) = self._fold.address([(block, at)], avoid=avoid)
            if addressed.path not in self._paths:
                break
            avoid.add(addressed.path)
        self._paths.add(addressed.path)
        if self._first_prompt is None and type(addressed) is UserPrompt and addressed.text.strip():
            self._first_prompt = addressed.text
        self._fold.apply(self._fold.version + 1, at, block_appended(addressed, tokens, counter))
        return addressed

    def note(self, payload: Payload, at: datetime) -> None:
        """Append what is no block and no decision: a model call, a stage."""
        self._fold.apply(self._fold.version + 1, at, payload)

    async def first_prompt(self) -> str | None:
        """Return what the conversation began with."""
        return self._first_prompt

    async def commit(
        self,
        payloads: Sequence[Payload],
        *,
        at: datetime,
        expected: int | None = None,
        values: Mapping[str, str] | None = None,
        snapshot: bool = False,
    ) -> int:
        """Fold what was decided, and remember it."""
        self._decided += payloads
        return await super().commit(payloads, at=at, expected=expected, values=values, snapshot=snapshot)

    def decided(self) -> list[Payload]:
        """Return what was decided since this was last asked."""
        decided, self._decided = self._decided, []
        return decided
