"""A reply that ended for want of room: what was half said is set aside, and the loop goes on or ends (seed 003).

A length stop has two causes. Where the context has grown too large, compacting makes room and the model goes on; where
it has not, the answer itself is longer than it may be, and asking again would end the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.blocks import Block, ToolCall
from timeline.errors import InvalidArgument
from timeline.projection.project import Projector
from timeline.wire.responses import OUT_OF_ROOM

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.planning.account import Account
    from timeline.projection.reports import Taken
    from timeline.wire.responses import ModelResponse

CUT_OFF: Final = "Your last answer was cut off for want of room. Go on where it ended."
"""What the user says where the request would end with half an answer of the assistant's."""


@dataclass(frozen=True, slots=True)
class LengthStop:
    """What became of a reply that ended for want of room.

    Attributes:
        exit: None where room was made: render and call again; ``"max_tokens"`` where nothing helps: the loop ends.
        blocks: of the reply, as they are stored.
        discarded: the calls that were cut off, each with ``call_id``, ``name`` and ``arguments``. They are kept in the
            log, are never sent, and must not be run.
        account: of the context now.
        decisions: what was decided: compacted, refused, failed.
    """

    exit: Literal["max_tokens"] | None
    blocks: tuple[Block, ...]
    discarded: tuple[dict[str, Any], ...]
    account: Account
    decisions: tuple[Taken, ...] = ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that came whole: they want their results before the next request."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


def checked_stop(response: ModelResponse) -> ModelResponse:
    """Return a response that ended for want of room.

    Raises:
        InvalidArgument: it ended in another way.
    """
    finish = response.called.finish_reason
    if finish not in OUT_OF_ROOM:
        raise InvalidArgument("reply", f"ended with {finish!r}, not for want of room; record(reply) takes it")
    return response


def ends_half_said(window: Window) -> bool:
    """Say whether the next request would end with words of the assistant's, which not every model goes on from."""
    entries, _ = Projector().entries(window)
    return bool(entries) and entries[-1].role == "assistant" and not window.open_calls()
