"""Handle a reply that was cut off for lack of room: the loop compacts and goes on, or ends.

A length stop has two causes. If the context has grown too large, compacting makes room and the model goes on. If not,
the answer itself is longer than the model may write, and asking again would end the same way. The rule is that of the
keep-ratio design (003) [keep_ratio]. Some providers say that the model's own window was full; then the context is too
large for the model, whatever the policy allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.blocks import Block, ToolCall
from timeline.errors import InvalidArgument
from timeline.projection.project import Projector
from timeline.wire.refusals import ContextLimit
from timeline.wire.responses import OUT_OF_ROOM

if TYPE_CHECKING:
    from timeline.events import ModelCalled
    from timeline.fold.window import Window
    from timeline.planning.account import Account
    from timeline.projection.reports import TakenDecision

CUT_OFF: Final = "Your last answer was cut off for want of room. Go on where it ended."
"""The user's message behind half an answer: without it, the next request would end with the answer."""
_WINDOW_FULL: Final = frozenset({"model_context_window_exceeded", "model_length"})
"""Finish reasons of a response that filled the model's window: Anthropic's, Bedrock's and Zhipu's; Mistral's."""


@dataclass(frozen=True, slots=True)
class LengthStop:
    """The outcome of `Timeline.after_length_stop`.

    Attributes:
        exit: None if room was made: render and call again. ``"max_tokens"`` if nothing helps: the loop ends.
        blocks: blocks of the reply, as they are stored.
        discarded: the calls that were cut off, each with ``call_id``, ``name`` and ``arguments``. The log keeps them;
            they are never sent, and must not be run.
        account: account of the context now.
        decisions: the decisions taken: compacted, refused, failed.
    """

    exit: Literal["max_tokens"] | None
    blocks: tuple[Block, ...]
    discarded: tuple[dict[str, Any], ...]
    account: Account
    decisions: tuple[TakenDecision, ...] = ()

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that arrived whole; append their results before the next request."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))


def check_stop(called: ModelCalled) -> None:
    """Check that a response ended for lack of room.

    Raises:
        InvalidArgument: it ended for another reason.
    """
    finish = called.finish_reason
    if finish not in OUT_OF_ROOM:
        raise InvalidArgument("reply", f"ended with {finish!r}, not because it ran out of room; use record(reply)")


def full_window(called: ModelCalled) -> ContextLimit | None:
    """Return the model's own limit if a response filled its window; None if it ended for another reason.

    Request and response filled the window together. A response during which tools of the server ran reports more.
    """
    if called.finish_reason not in _WINDOW_FULL:
        return None
    if called.server_tools or not called.usage.sent_tokens:
        return ContextLimit()
    sent = called.usage.sent_tokens
    return ContextLimit(limit=sent + called.usage.output_tokens, input=sent)


def ends_half_said(window: Window) -> bool:
    """Return whether the next request would end with the assistant's text, which not every model continues."""
    entries, _ = Projector().entries(window)
    return bool(entries) and entries[-1].role == "assistant" and not window.open_calls()
