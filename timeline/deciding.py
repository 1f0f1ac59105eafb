"""`Deciding`: what the application decides by itself: compact, undo, hide, reveal, pin, unpin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline import checks
from timeline.checks import moment
from timeline.embedding import Embedding
from timeline.engine.equipment import policy_in_force
from timeline.engine.policy_steps import run_steps
from timeline.errors import BlockNotFound, BlockProtected, HistoryUnavailable, UndoUnavailable
from timeline.events import PolicyChanged
from timeline.log.undo import standing_compactions, versions_to_revert
from timeline.planning.budget import FixedPart
from timeline.planning.manual import HideMode, hide, pin, reveal, unpin
from timeline.policy.model import Hiding, Policy

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from timeline.engine.equipment import Equipment
    from timeline.events import Payload
    from timeline.fold.window import Item, Window
    from timeline.log.stored import StoredLog
    from timeline.ports import Clock, EventStore
    from timeline.projection.context import Taken


class Deciding(Embedding):
    """A timeline whose application takes decisions of its own."""

    def __init__(self, log: StoredLog, store: EventStore, clock: Clock, equipment: Equipment, policy: Policy) -> None:
        super().__init__(log, store, equipment.under(policy), clock)
        self._equipment = equipment
        self._known_policy = log.fold.window.policy

    async def use_policy(self, policy: Policy, *, now: datetime | None = None) -> None:
        """Put a policy in force from now on: here, and wherever the conversation is opened without naming one.

        It is recorded with its whole text. What an undo holds back, and what was refused, is tried again under it.

        Args:
            policy: the new one; what is in force already is not recorded again.
            now: its time.

        Raises:
            InvalidArgument: it is no policy.
            StoreError: the store refused; the policy is what it was.
        """
        checks.of_kind("policy", policy, Policy, "is a policy, such as policies.cut_point()")
        at = moment(now, self._clock)
        await self._catch_up()
        hash_ = policy.digest()
        if self._known_policy != hash_:
            await self._log.commit([PolicyChanged(policy=hash_)], at=at, values={hash_: policy.canonical()})
        self._known_policy = hash_
        self._compactor = self._equipment.under(policy)

    async def catch_up(self) -> None:
        """Take in what other writers appended; renders and decisions do so by themselves.

        Raises:
            StoreError: the store cannot be read.
        """
        await self._catch_up()

    async def _catch_up(self) -> None:
        """Take in what other writers appended; where one put another policy in force, follow."""
        await self._log.catch_up()
        known = self.window.policy
        if known != self._known_policy:
            policy = await policy_in_force(self._store, known)
            self._known_policy = known
            self._compactor = self._compactor if policy is None else self._equipment.under(policy)

    async def compact(self, *, instructions: str = "", wait: bool = True, now: datetime | None = None) -> list[Taken]:
        """Compact now, whatever the size of the context; return what was done.

        Args:
            instructions: what the summary should attend to.
            wait: for a compaction that somebody else is writing; at the latest until its lease expires.
            now: its time.

        Raises:
            CompactionInProgress: somebody else is writing one, and ``wait`` is False.
            CompactionRefused: nothing would be gained; ``reason`` says why.
            CompactionSuperseded: other writers changed the range each time.
            SummarizerFailed: no summarizer gave a usable answer.
            InvalidArgument: the instructions are no text.
        """
        checks.text("instructions", instructions)
        await self._catch_up()
        now = moment(now, self._clock)
        fixed = FixedPart(reserved=self._reserved)
        done = await run_steps(
            self._compactor, self._log, fixed, now, reason="forced", instructions=instructions, wait=wait
        )
        if done.failure is not None and not done.done:
            raise done.failure
        return done.taken

    async def undo_compaction(
        self, version: int | None = None, *, cascade: bool = False, now: datetime | None = None
    ) -> list[int]:
        """Take a compaction back: what it covered is shown again as it was; return the versions taken back.

        No automatic compaction follows under this policy until one is forced (`compact`); renders report what is over
        the budget meanwhile. The previews that it brought go with it; other hides are decisions of their own and stay.
        The cost is that of reading the whole log.

        Args:
            version: of the compaction (its event); the newest one that stands unless given.
            cascade: take back the later ones that cover it too, in one append.
            now: its time.

        Raises:
            UndoUnavailable: no such compaction stands, or its originals are gone.
            CompactionCovered: a later one covers it, and ``cascade`` is False.
            InvalidArgument: ``version`` is no version.
        """
        if version is not None:
            checks.version_number("version", version)
        at = moment(now, self._clock)
        await self._catch_up()

        async def choose() -> list[int]:
            standing = await standing_compactions(self._store, self.id)
            return versions_to_revert(self.id, standing, version, cascade=cascade)

        try:
            return await self._log.revert(choose, at=at, policy=self.policy.digest())
        except HistoryUnavailable as gone:
            left = f"the log holds the versions {gone.first_version} to {gone.last_version} only"
            raise UndoUnavailable(self.id, f"its originals are gone: {left}") from gone

    async def hide(
        self, path: str, *, mode: HideMode = "replace", text: str | None = None, now: datetime | None = None
    ) -> None:
        """Hide a block of the window, until `reveal`.

        Args:
            path: of the block.
            mode: show a short replacement, or nothing; what shows nothing goes with its group (calls and results).
            text: the replacement; the default says what the block was, and ends with its path.
            now: its time.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: it is pinned, a summary, redacted, an open call, or covered by a summary.
            InvalidArgument: there is no such mode, or a text is given for what is to show nothing.
        """
        checks.choice("mode", mode, ("replace", "omit"))
        if text is not None:
            checks.text("text", text)
        most = (self.policy.hiding or Hiding()).replacement_tokens
        await self._decide_about(
            path, now, lambda window, item: hide(window, item, mode=mode, text=text, most=most, counter=self.counter)
        )

    async def reveal(self, path: str, *, now: datetime | None = None) -> None:
        """Show a hidden block again; nothing hides it by itself any more.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: it is not hidden, or a summary covers it.
        """
        await self._decide_about(path, now, reveal)

    async def pin(self, path: str, *, now: datetime | None = None) -> None:
        """Pin a block of the window with its group: no compaction covers it, and nothing hides it by itself.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: it is a summary, or a summary covers it.
        """
        await self._decide_about(path, now, pin)

    async def unpin(self, path: str, *, now: datetime | None = None) -> None:
        """Take the pin off a block and its group.

        Raises:
            BlockNotFound: the conversation has no such block.
            BlockProtected: no decision pinned it, or a summary covers it.
        """
        await self._decide_about(path, now, unpin)

    async def _decide_about(self, path: str, now: datetime | None, decide: Callable[[Window, Item], Payload]) -> None:
        """Append what a pure function decides about a live block, on the log as it is then."""

        async def choose() -> list[Payload]:
            window = self.window
            item = next((item for item in window.items if item.block.path == path), None)
            if item is None and await self._store.find(self.id, path) is not None:
                raise BlockProtected(path, "a summary covers it, so that it is not shown; undo its compaction first")
            if item is None:
                raise BlockNotFound(self.id, path)
            return [decide(window, item)]

        await self._catch_up()
        await self._log.decide(choose, at=moment(now, self._clock))
