"""`Looping`: what the loop of an agent asks of its timeline besides contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.agent.length_stop import CUT_OFF, LengthStop, checked_stop, ends_half_said
from timeline.agent.list_follower import ListFollower
from timeline.agent.state import CompactionState, compaction_state, still_used, tools_in_use
from timeline.agent.step_hook import StepHook
from timeline.blocks import Block, CustomBlock
from timeline.checks import moment
from timeline.engine.due_decisions import relieve
from timeline.engine.hiding import Course, hide_by_step
from timeline.engine.renderer import prepared
from timeline.events import event_id
from timeline.lifecycle import INTERVAL, follow
from timeline.policy.steps import ClearToolOutputs
from timeline.run import until_the_end
from timeline.staging import Staging
from timeline.wire.responses import calls_cut_off, read_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.agent.messages import MessageWire
    from timeline.lifecycle.events import LifecycleEvent
    from timeline.planning.budget import Account
    from timeline.projection.context import Taken


class Looping(Staging):
    """A timeline that an agent runs on."""

    def step_hook(self, wire: MessageWire, *, system: JsonValue = None, tools: Sequence[JsonValue] = ()) -> StepHook:
        """Return an adapter for a loop that asks for the messages of each step, and tells when one is finished.

        Args:
            wire: the form of the loop's messages.
            system: the system prompt that the loop sends beside them; counted, and recorded with each context.
            tools: the tool schemas that it sends; the same.
        """
        return StepHook(
            self,
            since=self._log.since,
            append=self._append_read,
            clock=self._clock,
            wire=wire,
            system=system,
            tools=tools,
        )

    def list_follower(self) -> ListFollower:
        """Return what keeps the log in step with a framework's own list of messages, for an adapter of that framework.

        It is of use for as long as the list: it remembers what the log said when it looked last.
        """
        return ListFollower(self, since=self._log.since, append=self._append_read, clock=self._clock)

    async def after_length_stop(
        self,
        reply: Any,
        *,
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        started_at: datetime | None = None,
        now: datetime | None = None,
    ) -> LengthStop:
        """Record a reply that ended for want of room, and make room where the context is the reason.

        Calls that were cut off are set aside, the budget is drawn up anew, and where a compaction is due it is made:
        then the loop goes on with another render. Where none is due, or none helps, the loop ends: the answer alone is
        longer than it may be. Where the next request would end with half an answer, the user asks the model to go on.

        Args:
            reply: the model's, as for `record`; or the blocks of one that is recorded already, a stream's for example.
            system: the system prompt of the next request.
            tools: its tool schemas.
            started_at: when the request was sent.
            now: the time of what is recorded and decided.

        Raises:
            InvalidArgument: the reply ended in another way; nothing was written.
            UnknownResponse: it is no reply; nothing was written.
            StoreError: the store refused.
        """
        at = moment(now, self._clock)
        system, tools, _ = prepared(system, tools, ())
        if reply and isinstance(reply, list | tuple) and all(isinstance(block, Block) for block in reply):
            blocks: Sequence[Block] = reply
        else:
            response = checked_stop(read_response(reply, unnamed=str(event_id(at))))
            blocks = await self._record_response(response, started_at, at)
        await self._catch_up()
        bill = self._next_request(system, tools)
        decisions: list[Taken] = []
        if bill.over_trigger:
            decisions = await relieve(self._compactor, self._log, bill.fixed, at, self._renderer.ledger)
        goes_on = any(taken.made_room for taken in decisions)
        if goes_on and ends_half_said(self.window):
            await self._append_new([CustomBlock(type="injected.go_on", author="user", text=CUT_OFF)], at)
        return LengthStop(
            exit=None if goes_on else "max_tokens",
            blocks=tuple(blocks),
            discarded=tuple(call for block in blocks for call in calls_cut_off(block)),
            account=self._next_request(system, tools),  # stages may be told in short by now
            decisions=tuple(decisions),
        )

    def _next_request(self, system: JsonValue, tools: Sequence[JsonValue]) -> Account:
        """Draw up the account of the next request."""
        return self._renderer.next_account(self.window, self._compactor, system=system, tools=tools)

    def lifecycle(self, *, after: int | None = None, interval: float = INTERVAL) -> AsyncIterator[LifecycleEvent]:
        """Follow what happens to the context: compactions begun, made and failed, overflows, usage (seed 004).

        The stream is told from the log: what other processes do is in it, and reading it again gives the same. It goes
        on until it is closed, or the store is. See `timeline.lifecycle.follow`.

        Args:
            after: begin behind this version; 0 is the beginning. What is appended from now on, unless given.
            interval: seconds between two looks at what other processes appended; what this one appends is told at once.

        Raises:
            InvalidArgument: one of them is no such number.
            StoreError: the store cannot be read.
        """
        return follow(self._store, self.id, after=self.version if after is None else after, interval=interval)

    def run(self) -> AbstractAsyncContextManager[None]:
        """Enter a run of the agent: on leaving it, by whatever way, `end_run` cleans up."""
        return until_the_end(self.end_run)

    async def end_run(self, *, now: datetime | None = None) -> list[Taken]:
        """Clear old tool outputs at the end of a run, where the policy has such a step (seed 004, gap 5).

        That is done below the trigger too, and with a warm cache: the policy's own figures say what stays.

        Args:
            now: its time.

        Returns:
            What was done; nothing where the policy has no such step, or too little would be freed.
        """
        at = moment(now, self._clock)
        await self._catch_up()
        steps = [step for step in self.policy.steps if isinstance(step, ClearToolOutputs)]
        course = Course("run_end", self.policy.max_tokens)
        hides = [await hide_by_step(self._compactor, self._log, at, step, course=course) for step in steps]
        return [taken for hidden in hides for taken in hidden]

    def compaction_state(self, *, now: datetime | None = None) -> CompactionState:
        """Return how often the conversation was compacted, when last, and whether it is being compacted now.

        It is what this timeline knows of the log: a render, or a `compact`, takes in what other writers appended.
        """
        return compaction_state(self.window, moment(now, self._clock))

    def tools_in_use(self) -> tuple[str, ...]:
        """Return the names of the tools that the window still shows a call of."""
        return tools_in_use(self.window)

    def still_used(self, tools: Sequence[Any]) -> list[Any]:
        """Return those of the discovered tools that are still used in what is retained (seed 004, gap 4).

        Args:
            tools: schemas of Anthropic's or OpenAI's, or mere names.
        """
        return still_used(tools, self.window)
