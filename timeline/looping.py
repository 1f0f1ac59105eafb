"""`Looping`: what the loop of an agent asks of its timeline besides contexts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.staging import Staging
from timeline.step_hook import StepHook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from timeline.messages import MessageWire


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
