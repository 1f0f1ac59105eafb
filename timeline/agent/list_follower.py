"""`ListFollower`: keep the log in step with the list of messages that a framework holds.

Frameworks own mutable lists, and the log only grows. Before each call of the model an adapter passes the framework's
list as blocks, and the follower appends each block once that the log does not hold yet. The timeline's own texts
(summaries, replacements of hidden content, the filled-in result of a call without one) are not appended when they come
back in a list.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import anyio

from timeline.agent.deduplication import from_where_a_log_begins, nameless_key, places_in_runs
from timeline.agent.divergence import Given, divergence
from timeline.agent.log_blocks import LogBlocks
from timeline.agent.messages import placed_in_turns, read_messages, read_system
from timeline.agent.recording import append_in_turns
from timeline.blocks import ToolCall, ToolResult
from timeline.checks import given
from timeline.errors import InvalidArgument
from timeline.events import appended_block
from timeline.fold.window import FRAMEWORK_ID
from timeline.home import Home
from timeline.log.in_turns import in_turns
from timeline.log.off_loop import off_loop
from timeline.log.protocol import Departure
from timeline.wire.call_ids import CallIds
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from datetime import datetime

    from timeline.agent.messages import MessageWire
    from timeline.blocks import Block
    from timeline.engine.conversation import Conversation
    from timeline.fold.turns import Turns
    from timeline.fold.window import Window
    from timeline.log.protocol import Draft
    from timeline.wire.call_ids import OpenCalls


class ListFollower:
    """Appends the new messages of a framework's list. `Timeline.list_follower` makes one for each list."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._log = LogBlocks()
        self._version = 0
        self._is_whole = True
        """Whether the log is read from its first event on; False where the beginning was scavenged."""
        self._said: dict[int, _Said] = {}
        """The content of the log's blocks by version, for lists whose calls have no ids."""
        self._said_version = 0
        self._home = Home(f"the list follower of conversation {conversation.id!r}")
        self._lock = anyio.Lock()

    async def take(
        self,
        messages: Sequence[Sequence[Block]],
        *,
        ids: Sequence[str] | None = None,
        whole: bool = False,
        now: datetime | None = None,
    ) -> list[Block]:
        """Append the blocks of a list that the log does not hold; return them.

        The list is the framework's whole history or any later part of it, in order. A block is known by the id of its
        message, or else by its content (`timeline.agent.deduplication.content_key`) and its place, also if
        `Timeline.record` or another process appended it.

        A list that leaves the log (a question was edited, an answer is written again) has the log's tail omitted with
        the reason ``abandoned``, in the same append; a compaction that covers any of that tail is undone. `reveal` of
        one abandoned block takes it back. So is all from the place on where the list has a message rewritten, added in
        front of known ones, or by its id elsewhere: what it says from there on is appended again.

        Args:
            messages: the blocks of each message, in order.
            ids: the framework's id of each message; empty for one that has none.
            whole: the list is known to be the whole history, also if it shares nothing with the log.
            now: time of the appended blocks.

        Raises:
            InvalidArgument: there is not one id for each message.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        self._home.check()
        _check_ids(ids, messages)
        async with self._lock:  # two calls of the model at a time must not both append what they share
            await self._learn()
            return await self._take(messages, ids, whole=whole, at=given(now))

    async def take_messages(
        self,
        messages: Sequence[Any],
        *,
        wire: MessageWire | None = None,
        ids: Sequence[str] | None = None,
        whole: bool = False,
        now: datetime | None = None,
    ) -> list[Block]:
        """Append the messages of a list that the log does not hold, as `take` does; return their blocks.

        Leading system messages are not appended: they are the ``system`` of a render. A call without an id has that of
        the log's call that says the same in the same place.

        Args:
            messages: a provider's messages, as for `Timeline.append_messages`.
            wire: their form; recognised by their content by default.
            ids: the framework's id of each message; empty for one that has none.
            whole: the list is known to be the whole history, also if it shares nothing with the log.
            now: time of the appended blocks.

        Raises:
            InvalidBlock: a message is not valid; nothing was written.
            InvalidArgument: there is no such form, or there is not one id for each message.
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            follower = timeline.list_follower()
            await follower.take_messages([{"role": "user", "content": "Build it."}])
            edited = [{"role": "user", "content": "Build a flashcard app."}]
            await follower.take_messages(edited, whole=True)
            assert (await timeline.render()).to_openai_chat()["messages"] == edited
            ```
        """
        self._home.check()
        _check_ids(ids, messages)
        at = given(now)
        _, rest = read_system(messages)
        async with self._lock:
            await self._learn()
            names = None if ids is None else ids[len(messages) - len(rest) :]
            read = await self._read(rest, wire, names, whole=whole, at=at)
            return await self._take(read, names, whole=whole, at=at)

    async def _read(
        self,
        messages: Sequence[Any],
        wire: MessageWire | None,
        ids: Sequence[str] | None,
        *,
        whole: bool,
        at: datetime | None,
    ) -> list[list[Block]]:
        """Read messages. Calls without an id get the ids of the log's calls, except of calls that the list left."""
        names = self._conversation.new_names(len(messages), at)
        call_ids = CallIds()
        read = read_messages(messages, wire=wire, names=names, ids=call_ids)
        if not call_ids.made:
            return read
        said = await self._shown_blocks()
        read = read_messages(messages, wire=wire, names=names, **self._meant(read, said))
        left = {*(await self._compared(self._let_in(read), ids, whole=whole)).departure.abandoned}
        if not left & said.keys():
            return read
        stayed = {version: block for version, block in said.items() if version not in left}
        return read_messages(messages, wire=wire, names=names, **self._meant(read, stayed))

    async def _shown_blocks(self) -> dict[int, _Said]:
        """Return the content of the log's blocks that are not abandoned, by version."""
        events = await self._conversation.log.since(self._said_version)
        self._said_version = events[-1].version if events else self._said_version
        blocks = ((event.version, appended_block(event.payload)) for event in events)
        self._said |= {version: _said(block) for version, block in blocks if block is not None}
        shown = {known.version for known in self._log.known() if known.shown}
        return {version: said for version, said in self._said.items() if version in shown}

    def _meant(self, read: Sequence[Sequence[Block]], said: dict[int, _Said]) -> _Meant:
        """Return the calls of the log that a list has, found by the blocks around them: it may be trimmed anywhere.

        A list that was trimmed up to a result begins with that result, and lacks the call that it answers.
        """
        blocks = [block for own in self._let_in(read) for block in own]
        logged = [*said.values()]
        places = places_in_runs([nameless_key(block) for block in blocks], [block.key for block in logged])
        found = [logged[place] for _, place in sorted(places.items())]
        first = next((n for n, block in enumerate(blocks) if isinstance(block, ToolCall)), len(blocks))
        results = [n for n in range(first) if isinstance(blocks[n], ToolResult)]
        calls = {block.call.call_id: block.call for block in logged if block.call is not None}
        answered = [calls.get(logged[places[n]].answers) for n in results if n in places]
        earlier = [call for call in answered if call is not None]
        return {
            "ids": CallIds(block.call for block in found if block.call is not None),
            "earlier": lambda: earlier if len(earlier) == len(results) else (),
        }

    def _let_in(self, messages: Sequence[Sequence[Block]]) -> list[Sequence[Block]]:
        """Return blocks as the log has them."""
        return [self._conversation.equipment.let_in(own) for own in messages]

    async def _take(
        self, messages: Sequence[Sequence[Block]], ids: Sequence[str] | None, *, whole: bool, at: datetime | None
    ) -> list[Block]:
        messages = self._let_in(messages)
        found = await self._compared(messages, ids, whole=whole)
        if not (found.departure.abandoned or found.departure.revived):
            return await append_in_turns(self._conversation, found.new, at)
        return await self._gone_back(found, lambda: self._compared(messages, ids, whole=whole), at)

    async def _gone_back(
        self, found: _Compared, compare: Callable[[], Awaitable[_Compared]], at: datetime | None
    ) -> list[Block]:
        async def choose() -> Departure:
            nonlocal found
            await self._learn()
            found = await compare()
            return found.departure

        async def place(turns: Turns) -> Sequence[Draft]:
            blocks = placed_in_turns(found.new, turns)
            return await self._conversation.drafts(blocks, self._conversation.new_ids(len(blocks), at), at)

        return await self._conversation.log.go_back(choose, place, at=at, counter=self._conversation.counter.name)

    async def leave(
        self, versions: Collection[int], *, again: Collection[int] = (), now: datetime | None = None
    ) -> None:
        """Omit blocks as abandoned, for a framework that says by itself what its history left.

        A compaction that covers any of them is undone in the same append. What was abandoned before stays as it is.

        Args:
            versions: of the events that appended the blocks.
            again: versions of blocks that were left before and are in the history again; they are shown.
            now: time of the events.

        Raises:
            StoreError: the store refused; nothing was written.
        """
        self._home.check()
        left, back = set(versions), set(again)

        conversation = self._conversation
        first = min(left | back, default=conversation.version + 1)

        async def choose() -> Departure:
            log = LogBlocks()  # a decision about a block is behind it, so no earlier event says more
            async for event in in_turns(conversation.store.read(conversation.id, after=first - 1)):
                log.add([event])
            known = log.known()
            return Departure(
                tuple(block.version for block in known if block.version in left and block.shown),
                tuple(block.version for block in known if block.version in back and not block.shown),
            )

        async def place(turns: Turns) -> Sequence[Draft]:
            del turns
            return []

        async with self._lock:
            await conversation.log.go_back(choose, place, at=given(now), counter=conversation.counter.name)

    async def _learn(self) -> None:
        """Read the events since the last time."""
        if not self._version:
            first = (await self._conversation.store.info(self._conversation.id)).first_version
            self._version, self._is_whole = first - 1, first == 1
            self._said_version = self._version
        conversation = self._conversation
        async for event in in_turns(conversation.store.read(conversation.id, after=self._version)):
            self._log.add([event])
            self._version = event.version

    async def _compared(
        self, messages: Sequence[Sequence[Block]], ids: Sequence[str] | None, *, whole: bool
    ) -> _Compared:
        """Compare a list with the log, off the loop where they are long; again where others appended meanwhile."""
        while True:
            version, items = self._version, len(self._log) + sum(map(len, messages))
            own_texts = own_words(self._conversation.window)
            found = await off_loop(items, partial(self._compare, messages, ids, own_texts, whole=whole))
            if self._conversation.version > version:
                await self._learn()
            if self._version == version:
                return found

    def _compare(
        self, messages: Sequence[Sequence[Block]], ids: Sequence[str] | None, own_texts: set[str], *, whole: bool
    ) -> _Compared:
        """Compare a list with the log; the blocks to append know the ids of their messages."""
        news = [[block for block in own if block.text not in own_texts] for own in messages]
        known = self._log.known()
        if not self._is_whole:
            news = from_where_a_log_begins(news, [block.key for block in known])
        names = ids if ids is not None else [""] * len(messages)
        keys = iter(self._log.keys_of((b, id_) for own, id_ in zip(news, names, strict=True) for b in own))
        given_ = [Given(next(keys), id_) for own, id_ in zip(news, names, strict=True) for _ in own]
        found = divergence(given_, known, whole=whole)
        wanted = set(found.new)
        numbers = iter(range(len(given_)))
        new = [[_named(b, id_) for b in own if next(numbers) in wanted] for own, id_ in zip(news, names, strict=True)]
        return _Compared([own for own in new if own], Departure(found.abandoned, found.revived))

    async def append(self, messages: Sequence[Sequence[Block]], *, now: datetime | None = None) -> list[Block]:
        """Append messages that the framework knows to be new, without comparing their content; return the blocks.

        Args:
            messages: the blocks of each message, in order.
            now: time of the appended blocks.

        Raises:
            StoreError: the store refused; nothing was written, unless it is `AppendUncertain`.
        """
        return await append_in_turns(self._conversation, messages, given(now))


class _Said(NamedTuple):
    """The content of a block of the log, without the id of a call; the call, if it is one; the id that it answers."""

    key: str
    call: ToolCall | None
    answers: str


def _said(block: Block) -> _Said:
    call = block if isinstance(block, ToolCall) else None
    answers = block.call_id if isinstance(block, ToolResult) else ""
    return _Said(nameless_key(block), call, answers)


class _Meant(TypedDict):
    """The arguments of `read_messages` about the log's calls."""

    ids: CallIds
    earlier: OpenCalls


class _Compared(NamedTuple):
    """The blocks of a list that the log does not have, by message, and what the list left of the log."""

    new: list[list[Block]]
    departure: Departure


def _check_ids(ids: Sequence[str] | None, messages: Sequence[Any]) -> None:
    if ids is not None and len(ids) != len(messages):
        raise InvalidArgument("ids", f"there are {len(ids)} for {len(messages)} messages")


def _named(block: Block, id_: str) -> Block:
    return block.model_copy(update={"meta": {**block.meta, FRAMEWORK_ID: id_}})


def own_words(window: Window) -> set[str]:
    """Return this library's own texts that a context of the window may hold, which must not be appended again."""
    shown = {item.replacement.text for item in window.items if item.replacement is not None}
    return {INTERRUPTED, *shown, *(item.block.text for item in window.items if item.is_summary)} - {""}
