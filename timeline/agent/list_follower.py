"""`ListFollower`: keep the log in step with the list of messages that a framework holds.

Frameworks own mutable lists, which the log never is. Before each call of the model an adapter passes the framework's
list as blocks, and the follower appends each block that the log does not hold yet, once. Texts of the timeline's own
(summaries, replacements of hidden content, the filled-in result of a call without one) are not appended when they come
back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from timeline.agent.deduplication import content_keys, from_where_a_log_begins, new_messages
from timeline.agent.recording import append_in_turns
from timeline.checks import given
from timeline.events import appended_block
from timeline.ports import Home
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation
    from timeline.fold.window import Window


class ListFollower:
    """Appends the new messages of a framework's list. `Timeline.list_follower` makes one for each list."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._blocks: list[Block] = []
        self._version = 0
        self._is_whole = True
        """Whether the log is read from its first event on; False where the beginning was scavenged."""
        self._home = Home(f"the list follower of conversation {conversation.id!r}")
        self._lock = anyio.Lock()

    async def take(self, messages: Sequence[Sequence[Block]], *, now: datetime | None = None) -> list[Block]:
        """Append the blocks of a list that the log does not hold; return them.

        The list is the framework's whole history or any later part of it, in order. A block is known by its content
        (`timeline.agent.deduplication.content_key`), also if `Timeline.record` or another process appended it.

        Args:
            messages: the blocks of each message, in order.
            now: time of the appended blocks.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        self._home.check()
        at = given(now)
        async with self._lock:  # two calls of the model at a time must not both append what they share
            if not self._version:
                first = (await self._conversation.store.info(self._conversation.id)).first_version
                self._version, self._is_whole = first - 1, first == 1
            for event in await self._conversation.log.since(self._version):
                self._version = event.version
                block = appended_block(event.payload)
                if block is not None:
                    self._blocks.append(block)
            said = own_words(self._conversation.window)
            news = [[block for block in blocks if block.text not in said] for blocks in messages]
            known = list(content_keys(self._blocks))
            new = new_messages(news if self._is_whole else from_where_a_log_begins(news, known), known)
            return await append_in_turns(self._conversation, new, at)

    async def append(self, messages: Sequence[Sequence[Block]], *, now: datetime | None = None) -> list[Block]:
        """Append messages that the framework knows to be new, without comparing their content; return the blocks.

        Args:
            messages: the blocks of each message, in order.
            now: time of the appended blocks.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        return await append_in_turns(self._conversation, messages, given(now))


def own_words(window: Window) -> set[str]:
    """Return this library's own texts that a context of the window may hold, which must not be appended again."""
    shown = {item.replacement.text for item in window.items if item.replacement is not None}
    return {INTERRUPTED, *shown, *(item.block.text for item in window.items if item.is_summary)} - {""}
