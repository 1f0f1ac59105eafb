"""`StepHook`: a timeline behind an agent loop that hands out its message list before each step (seed 001).

Such a loop asks a ``prepare_step`` function for the messages that the model is to see, and tells it when a step is
finished. Some hand over their whole history every time, some the list that they were given last, with what came since;
both are taken, in any mixture with what the application appends or records by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from timeline.agent.deduplication import signature, signatures, unknown
from timeline.agent.messages import read_messages, read_system
from timeline.checks import moment
from timeline.events import appended_block, event_id
from timeline.projection.project import Projector
from timeline.wire import MESSAGES, encoder
from timeline.wire.neutral import NeutralContext

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.agent.messages import MessageWire
    from timeline.blocks import Block
    from timeline.events import Event
    from timeline.fold.window import Window
    from timeline.ports import Clock
    from timeline.projection.context import RenderedContext

    Signatures = list[tuple[str, ...]]


class Stepping(Protocol):
    """What a step needs of its timeline."""

    @property
    def version(self) -> int:
        """Version of the last event that it knows of."""
        ...

    @property
    def window(self) -> Window:
        """What the model could see now."""
        ...

    async def render(
        self, *, system: JsonValue = None, tools: Sequence[JsonValue] = (), now: datetime | None = None
    ) -> RenderedContext:
        """Return what the model should see now."""
        ...

    async def record(self, reply: Any, *, now: datetime | None = None) -> list[Block]:
        """Append a model's reply; return its blocks."""
        ...


class StepHook:
    """Prepares and saves the steps of one agent loop. `Timeline.step_hook` makes one.

    Attributes:
        context: of the step that was prepared last; None before the first.
    """

    def __init__(
        self,
        timeline: Stepping,
        *,
        since: Callable[[int], Awaitable[list[Event]]],
        append: Callable[[Sequence[Sequence[Block]], datetime], Awaitable[list[Block]]],
        clock: Clock,
        wire: MessageWire,
        system: JsonValue,
        tools: Sequence[JsonValue],
    ) -> None:
        self.context: RenderedContext | None = None
        self._timeline = timeline
        self._since = since
        self._append = append
        self._clock = clock
        self._wire = wire
        self._system = system
        self._tools = tools
        self._seen: list[Signatures] = []
        """The list that came last, and the one that was given for it."""
        self._version = 0
        """Of the log when the last step had been prepared."""
        self._began: int | None = None
        """Version of the log before the first step."""

    async def prepare_step(
        self, *, messages: Sequence[Any], now: datetime | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """Append what is new in a loop's messages, compact where that is due, and return what the model is to see.

        What is in the log already is not appended again: neither what an earlier step brought, nor what
        `on_step_finish`, `record` or `append` did. A leading system message of an OpenAI list is taken as the system
        prompt, where the hook has none of its own, and comes back at the head of the list.

        Args:
            messages: the whole history in the hook's wire format; or the list that the last call returned, with what
                came since.
            now: the time of what is appended and decided.

        Returns:
            ``{"messages": […]}``, in the same wire format.

        Raises:
            InvalidBlock: one of them is no message; nothing was written.
            ContextOverflow, BudgetImpossible: as `Timeline.render`.
            StoreError: the store refused.
        """
        at = moment(now, self._clock)
        system, said = read_system(messages)
        read = self._read(said, at)
        came = [tuple(map(signature, blocks)) for blocks in read]
        if self._began is None:
            self._began = self._timeline.version
        await self._append(await self._new(read, came), at)
        self.context = await self._timeline.render(
            system=system if self._system is None else self._system, tools=self._tools, now=at
        )
        prepared: list[dict[str, Any]] = self.context.to_wire(self._wire)[MESSAGES[self._wire]]
        self._version = self._timeline.version
        self._seen = [came, [tuple(map(signature, blocks)) for blocks in self._decoded(prepared)]]
        return {"messages": prepared}

    async def on_step_finish(self, response: Any, *, now: datetime | None = None) -> list[Block]:
        """Save what a step brought; return the blocks that were appended, or of a known reply those that are stored.

        Args:
            response: the model's reply, as for `Timeline.record`; or an object or dict with ``messages``, the list of
                the messages that the loop's steps brought so far.
            now: the time of the blocks.

        Raises:
            UnknownResponse: it is neither; nothing was written.
            StoreError: the store refused; nothing was written.
        """
        messages = response.get("messages") if isinstance(response, dict) else getattr(response, "messages", None)
        if not isinstance(messages, list | tuple):
            return await self._timeline.record(response, now=now)
        at = moment(now, self._clock)
        return await self._append(unknown(self._read(messages, at), await self._appended(self._began or 0)), at)

    async def _new(self, read: Sequence[Sequence[Block]], came: Signatures) -> list[list[Block]]:
        """Return what of a list is not in the log."""
        known = max((seen for seen in self._seen if came[: len(seen)] == seen), key=len, default=None)
        if known is not None:
            return unknown(read[len(known) :], await self._appended(self._version))
        if self._is_ours(read):
            shown = (block for blocks in self._decoded(self._shown()) for block in blocks)
            return unknown(read, map(signature, shown))
        return unknown(read, await self._appended(0))

    async def _appended(self, version: int) -> list[str]:
        """Return the signatures of the blocks that were appended after a version, by whomever."""
        blocks = (appended_block(event.payload) for event in await self._since(version))
        return list(signatures(block for block in blocks if block is not None))

    def _is_ours(self, read: Sequence[Sequence[Block]]) -> bool:
        """Say whether a list was given by this timeline: then a summary stands for what is not in it."""
        summaries = [compaction.block.text for compaction in self._timeline.window.summaries]
        return any(text in block.text for blocks in read[:3] for block in blocks for text in summaries if text)

    def _shown(self) -> list[dict[str, Any]]:
        """Return the messages of the window as it is."""
        entries, _ = Projector().entries(self._timeline.window)
        shown: list[dict[str, Any]] = encoder(self._wire)(NeutralContext(entries=tuple(entries)))[MESSAGES[self._wire]]
        return shown

    def _decoded(self, messages: Sequence[Any]) -> list[list[Block]]:
        _, said = read_system(messages)
        return self._read(said, self._clock.now())

    def _read(self, messages: Sequence[Any], at: datetime) -> list[list[Block]]:
        batch = str(event_id(at))
        names = [f"{batch}_{number}" for number in range(len(messages))]
        return read_messages(messages, wire=self._wire, names=names)
