"""`Staging`: work in stages. The application says when one begins, what it came to, and when it goes back (seed 000).

Each approval and each way back appends, together with its event, the memory digest as it is then. The newest digest is
pinned; earlier ones stay where they are, so that the cached prefix never changes for them, until a compaction covers
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline import checks
from timeline.blocks import StageDigest
from timeline.checks import moment
from timeline.deciding import Deciding
from timeline.errors import StageNotFound, StageRefused
from timeline.events import appended_block
from timeline.events.stage_events import StageApproved, StageEntered, StageRewound
from timeline.fold.fold import Fold
from timeline.fold.stages import advanced, current_stage
from timeline.frozen import repair_text
from timeline.log.stored import addressed_block
from timeline.planning.collapse_stages import approvals, memory_digest
from timeline.planning.messages import messages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from timeline.events import Payload
    from timeline.fold.stages import Stage

DECISION_CHARACTERS: Final = 200
SHORT_CHARACTERS: Final = 280
DETAILED_CHARACTERS: Final = 1_000
"""Characters of what an approval says (seed 000: the memory digest's entries, and both texts of formatStageData)."""


class Staging(Deciding):
    """A timeline whose application works in stages."""

    async def enter_stage(self, stage: str, label: str = "", *, now: datetime | None = None) -> Stage:
        """Begin a stage: what follows belongs to it until it is approved.

        Args:
            stage: its name, unique among the stages that stand.
            label: how it is called to people and models; the name unless given.
            now: its time.

        Raises:
            StageRefused: another stage is going on, or this one is approved already.
            InvalidArgument: the name is blank, or one of both is no text.
            StoreError: the store refused; nothing was written.
        """
        checks.text_of("stage", stage, DECISION_CHARACTERS, least=1)
        checks.text_of("label", label, DECISION_CHARACTERS)
        entered = StageEntered(stage=repair_text(stage), label=repair_text(label or stage))
        at = moment(now, self._clock)

        async def choose() -> list[Payload]:
            self._check_may_enter(entered.stage)
            return [entered]

        return await self._decide_stage(choose, at)

    async def approve_stage(
        self,
        *,
        decision: str,
        short: str = "",
        detailed: str = "",
        references: Sequence[str] = (),
        citations: Sequence[str] = (),
        artifacts: Sequence[str] = (),
        now: datetime | None = None,
    ) -> Stage:
        """Approve the current stage, and put its decision into the memory digest.

        Where its messages stand is recorded with it: the versions of the first and the last, and how many there are.

        Args:
            decision: what was decided, in at most 200 characters; always in view from now on.
            short: what the stage came to, in at most 280 characters; the decision unless given.
            detailed: the same in at most 1,000 characters; the short text unless given.
            references: what the work refers to; how many are told, and of the other two, is the policy's `StageData`.
            citations: what it quotes.
            artifacts: what it produced, as texts.
            now: its time.

        Raises:
            StageRefused: no stage is going on.
            InvalidArgument: a text is too long or missing, or a list is none.
            StoreError: the store refused; nothing was written.
        """
        checks.text_of("decision", decision, DECISION_CHARACTERS, least=1)
        checks.text_of("short", short, SHORT_CHARACTERS)
        checks.text_of("detailed", detailed, DETAILED_CHARACTERS)
        for name, values in (("references", references), ("citations", citations), ("artifacts", artifacts)):
            checks.texts(name, values)
        at = moment(now, self._clock)

        async def choose() -> list[Payload]:
            current = current_stage(self.window.stages)
            if current is None:
                raise StageRefused(self.id, "", "no stage is going on; enter one first")
            first, last, count = await self._boundaries(current)
            approved = StageApproved(
                stage=current.stage,
                label=current.label,
                decision=decision,
                short=short,
                detailed=detailed,
                first=first,
                last=last,
                count=count,
                references=tuple(references),
                citations=tuple(citations),
                artifacts=tuple(artifacts),
            )
            return [approved, await self._memory_digest(approved, at)]

        return await self._decide_stage(choose, at)

    async def rewind_stage(self, stage: str, *, now: datetime | None = None) -> Stage:
        """Go back to an approved stage: it goes on, and its decision and those of all later stages hold no more.

        What was said stays in view. The next approval of the stage speaks for all that was said since it began.

        Raises:
            StageNotFound: no stage of that name stands.
            StageRefused: it is not approved, but going on.
            StoreError: the store refused; nothing was written.
        """
        checks.text("stage", stage)
        rewound = StageRewound(stage=repair_text(stage))
        at = moment(now, self._clock)

        async def choose() -> list[Payload]:
            standing = {known.stage: known for known in self.window.stages}
            known = standing.get(rewound.stage)
            if known is None:
                raise StageNotFound(self.id, rewound.stage, list(standing))
            if known.approval is None:
                raise StageRefused(self.id, known.stage, "it is going on: there is nothing to go back from")
            return [rewound, await self._memory_digest(rewound, at)]

        return await self._decide_stage(choose, at)

    def _check_may_enter(self, stage: str) -> None:
        stages = self.window.stages
        current = current_stage(stages)
        if current is not None:
            cure = "approve it first" if current.stage != stage else "it needs not be entered again"
            raise StageRefused(self.id, stage, f"stage {current.stage!r} is going on; {cure}")
        if any(known.stage == stage for known in stages):
            raise StageRefused(self.id, stage, "it is approved; go back to it with rewind_stage")

    async def _decide_stage(self, choose: Callable[[], Awaitable[Sequence[Payload]]], at: datetime) -> Stage:
        """Append what is chosen on the log as it is then; return the stage that it concerns: the last that stands."""
        await self._log.catch_up()
        await self._log.decide(choose, at=at)
        return self.window.stages[-1]

    async def _memory_digest(self, payload: StageApproved | StageRewound, at: datetime) -> Payload:
        """Return the block that says what holds once an event is in the log."""
        window = self.window
        earlier = any(type(item.block) is StageDigest for item in window.items)
        approved = approvals(advanced(window.stages, window.version + 1, payload))
        digest = StageDigest(text=memory_digest(approved, self.policy.memory_digest, earlier=earlier))
        return await addressed_block(self._log, digest, at, self.counter)

    async def _boundaries(self, stage: Stage) -> tuple[int, int, int]:
        """Return where the messages of a stage stand: the versions of the first and last block, and their number."""
        said = Fold(self.id)
        async for event in self._store.read(self.id, after=stage.entered, until=self.version):
            block = appended_block(event.payload)
            if block is not None and block.type not in _NOT_SAID:
                said.apply(event.version, event.at, event.payload)
        items = said.window.items
        return (items[0].version, items[-1].version, len(messages(items))) if items else (0, 0, 0)


_NOT_SAID: Final = frozenset({"note", "stage.digest", "system.message", "conv.range.summary"})
"""Blocks that are no message of the conversation."""
