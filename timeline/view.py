"""`TimelineView`: a conversation at one version, read-only; the base of the live `Timeline` too.

Rendering here is a dry run: it takes the same decisions as a recorded render, and appends nothing.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from timeline import checks
from timeline.blocks import Block, RangeSummary
from timeline.checks import block_name, moment
from timeline.engine.renderer import Renderer
from timeline.errors import BlockNotFound
from timeline.events import BlockRedacted, CompactionCompleted
from timeline.facts.full_record import MOST, read_back
from timeline.facts.name_list import asked_list
from timeline.fold.window import tombstone
from timeline.log.backwards import blocks_backwards
from timeline.log.blocks_by_name import find_block
from timeline.log.dry_run import DryRunLog
from timeline.log.history import record_within
from timeline.log.name_lists import read_list
from timeline.projection.notebook import notebook_html

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence
    from datetime import datetime

    from timeline.engine.compactor import Compactor
    from timeline.engine.conversation import ConversationView
    from timeline.events.addresses import Address
    from timeline.fold.states import BlockState
    from timeline.fold.window import Window
    from timeline.frozen import JsonInput
    from timeline.log.blocks_by_name import FoundBlock
    from timeline.policy.model import Policy
    from timeline.ports import TokenCounter
    from timeline.projection.context import RenderedContext


class TimelineView:
    """A conversation at one version, read-only: it renders, reads and explains. `Timeline.at` makes one.

    Attributes:
        id: the conversation's id.
    """

    def __init__(self, conversation: ConversationView) -> None:
        self.id: str = conversation.id
        self._conversation = conversation
        self._log = conversation.log
        self._store = conversation.store
        self._clock = conversation.clock
        self._renderer = Renderer()

    def __repr__(self) -> str:
        window = self.window
        held = f"{len(window.items)} blocks, {window.tokens:,} tokens"
        return f"<{type(self).__name__} {self.id!r}: version {window.version}, {held}, policy {self.policy.name!r}>"

    def _repr_html_(self) -> str:
        window = self.window
        facts = (f"{len(window.items):,} blocks", f"{window.tokens:,} tokens", f"policy {self.policy.name}")
        return notebook_html(type(self).__name__, window, facts, limit=self.policy.max_tokens)

    @property
    def _compactor(self) -> Compactor:
        return self._conversation.compactor

    @property
    def policy(self) -> Policy:
        """The policy in force for renders and compactions."""
        return self._compactor.policy

    @property
    def counter(self) -> TokenCounter:
        """The policy's token counter."""
        return self._compactor.counter

    @property
    def version(self) -> int:
        """Version of the last event that this timeline has read."""
        return self._log.fold.version

    @property
    def window(self) -> Window:
        """The live blocks: what the model could see now."""
        return self._log.fold.window

    async def render(
        self,
        *,
        system: JsonInput = None,
        tools: Sequence[JsonInput] = (),
        ephemeral: Sequence[str] = (),
        now: datetime | None = None,
    ) -> RenderedContext:
        """Dry run of a render: return the context that the model would see at this version. See `Timeline.render`.

        If it compacts, it asks the summarizer. `Timeline.call` returns a context that was sent, and asks no summarizer.

        Raises:
            ContextOverflow: the context is above the limit and cannot be made smaller.
            BudgetImpossible: system prompt, tools and reserves leave no room at all.
        """
        at = moment(now, self._clock)
        return await self._renderer.render(
            DryRunLog(self._store, self._log.fold.copy(), at, self._conversation.equipment.screened),
            self._compactor.dry_run(),
            system=system,
            tools=tools,
            ephemeral=ephemeral,
            now=at,
            at=at,
        )

    async def read(self, path: str) -> Block:
        """Return a block in full, even if it is hidden or covered; of a redacted block, its tombstone.

        For a summary, ``meta["compaction_digest"]`` is the digest of the blocks that it newly covered, and
        ``meta["full_record"]`` has a line for each thing done in all that it covers. The summary's path with ``.paths``
        at its end reads the list of all file paths before the summary; with ``.names``, the list of all other exact
        names.

        Args:
            path: the block's path or its address: ``@152``, or ``cards@152`` of this conversation, of one that it was
                forked from, or of a subagent that it called.

        Raises:
            BlockNotFound: the conversation has no such block.
            HistoryUnavailable: `timeline scavenge` removed the block.
            InvalidArgument: ``path`` is not a text.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            block = await timeline.read("ar:turn_1.user.prompt")
            assert block.text == "Build a flashcard app."
            assert await timeline.read("@2") == block
            ```
        """
        block_name("path", path)
        _, block = await self._addressed(path)
        return block

    async def history(
        self, *, types: Collection[str] | None = None, before: int | None = None, page: int = 500
    ) -> AsyncIterator[BlockState]:
        """Iterate over all blocks of the conversation with their states, the newest first: covered and abandoned too.

        From this list a user chooses where to go back to, with `Timeline.go_back`, or to fork. It reads ``page`` events
        at a time, so that the newest part of a long log costs what that part costs. What is appended meanwhile is not
        in it.

        Args:
            types: the types of blocks to return, such as ``["user.prompt"]``; all of them unless given.
            before: version of the block before which to begin; by default at the newest. This also reads the decisions
                behind that version.
            page: number of events to read at a time.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            prompts = [{"type": "user.prompt", "text": text} for text in ("Build a flashcard app.", "Delete it.")]
            await timeline.append(*prompts)
            await timeline.go_back()
            rows = [(row.address, row.abandoned) async for row in timeline.history(types=["user.prompt"])]
            assert rows == [("@3", True), ("@2", False)]
            ```
        """
        if types is not None:
            checks.texts("types", types)
        if before is not None:
            checks.version_number("before", before)
        checks.positive("page", page)
        await self._come_up_to_date()
        rows = blocks_backwards(self._store, self.window, types=types, before=before, page=page)
        async with aclosing(rows):
            async for row in rows:
                yield row

    async def _come_up_to_date(self) -> None:
        """Read what is to be in view besides: of the past, nothing."""

    async def _addressed(self, name: str) -> tuple[Address, Block]:
        """Return the block of a path or address in full, and its address as this conversation prints it."""
        try:
            found = await self._find(name)
        except BlockNotFound:
            listed = await self._list(name)
            if listed is None:
                raise
            return listed
        address, event, block = found.address_in(self.id), found.event, found.block
        async for erased in self._store.read(found.conversation, after=event.version, types=["block.redacted"]):
            if isinstance(erased.payload, BlockRedacted) and erased.payload.version == event.version:
                return address, tombstone(block, erased.payload.reason)
        if isinstance(block, RangeSummary) and isinstance(event.payload, CompactionCompleted):
            covers = event.payload.covers
            record = await record_within(self._store, found.conversation, covers, most=MOST)
            return address, read_back(block, event.payload.digest, record)
        return address, block

    async def _list(self, name: str) -> tuple[Address, Block] | None:
        """Return the list of names at a summary's address; None where the address is none of a list."""
        asked = asked_list(name)
        if asked is None:
            return None
        try:
            found = await self._find(asked[0])
        except BlockNotFound:
            return None
        done = found.event.payload
        address, summary = await self._addressed(asked[0])
        if not isinstance(done, CompactionCompleted) or "redacted" in summary.meta:
            return None
        return address, await read_list(self._store, found.conversation, summary, done.covers, asked[1])

    async def _find(self, name: str) -> FoundBlock:
        """Find a block in view by its path or address."""
        return await find_block(self._store, self.id, name, until=self.version)

    @property
    def _reserved(self) -> int:
        return self.policy.output_reserve + self.policy.safety_buffer
