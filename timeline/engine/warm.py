"""Find whether a summary can be asked for in the context that the provider has in its cache, and why not.

The context is the one that was sent last, as it was sent, without the decisions since. The question comes behind it as
a tail that no log holds. So reading the context costs a cache read, however much the log has changed. What the
application took out of the context since then must not be sent again. So a hide by hand, an omission, a redaction or
any compaction rules the context out. An automatic hide does not, since the model was shown that block a moment ago.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from timeline.planning.originals import is_seen_through
from timeline.usage import asked_seconds
from timeline.wire import SENT
from timeline.wire.follow_up import can_follow, follow_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pydantic import JsonValue

    from timeline.events import CallRequest
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.policy.steps import Summarize
    from timeline.projection.context import RenderedContext
    from timeline.usage import Usage

WhyAlone: TypeAlias = Literal[
    "not_sent",  # no request of this handle is on record, or not since its newest context
    "not_ours",  # a framework wrote the body, so that its bytes are unknown
    "parameters",  # the request demands a call, or an answer of a schema
    "uncached",  # the provider reported no cache for the call
    "cold",  # the provider no longer keeps the context
    "model",  # another model was called since
    "prefix",  # system prompt or tools are different now
    "changed",  # something that was sent was covered since, or taken out by hand
    "pending",  # the context ends in a call without a result, or in the model's own words
    "unsent",  # the range ends behind the context
    "hidden",  # the range has blocks that the context does not show as they were said
]
LEAST_CACHED: Final = 0.5
"""Least share of a call's input that the cache must hold: a context that is read in full costs more than its range."""


@dataclass(frozen=True, slots=True)
class SentContext:
    """The context of the newest model call, a `WarmContext`.

    Attributes:
        context: as it was rendered and recorded.
        request: what was made of it.
        usage: as the provider reported it.
    """

    context: RenderedContext
    request: CallRequest
    usage: Usage

    @property
    def wire(self) -> str:
        """The wire format that it was sent in."""
        return self.request.wire

    @property
    def model(self) -> str:
        """Id of the model that it was sent to."""
        return self.request.model

    @property
    def tokens(self) -> int:
        """Its tokens by the policy's counter."""
        return self.context.account.sent

    def arguments(self, question: str, most_tokens: int) -> dict[str, Any]:
        """Return the arguments for the SDK's method that ask a question behind this context."""
        return follow_up(self.context.neutral, self.request, question, most_tokens)

    def has_prefix(self, system: JsonValue, tools: Sequence[JsonValue]) -> bool:
        """Return whether it was sent with these tools and this system prompt."""
        neutral = self.context.neutral
        return neutral.system == system and list(neutral.tools) == list(tools)


def not_sent() -> WhyAlone:
    """Return why there is no context to ask in, before any request is on record."""
    return "not_sent"


def with_prefix(
    sent: Callable[[], SentContext | WhyAlone], system: JsonValue, tools: Sequence[JsonValue]
) -> SentContext | WhyAlone:
    """Return a sent context; or why none with this system prompt and these tools can be asked in."""
    found = sent()
    return found if isinstance(found, str) or found.has_prefix(system, tools) else "prefix"


def why_alone(
    sent: SentContext, window: Window, covered: Sequence[Item], *, step: Summarize, policy: Policy, now: datetime
) -> WhyAlone | None:
    """Return why the summary of some items cannot be asked for in the sent context; None if it can.

    Args:
        sent: the context of the newest call.
        window: the window as it is now.
        covered: what the summary is to cover.
        step: asks for the summary.
        policy: the policy in force.
        now: when it is asked.
    """
    return _unusable(sent, window, policy, now) or _not_in_it(sent, window, covered, step)


def _unusable(sent: SentContext, window: Window, policy: Policy, now: datetime) -> WhyAlone | None:
    """Return why a sent context cannot be asked about anything."""
    if sent.request.body != "ours" or sent.wire not in SENT:
        return "not_ours"
    if not can_follow(sent.request):
        return "parameters"
    usage, touch = sent.usage, window.touch
    cached = usage.sent_tokens - usage.input_tokens
    if not cached or cached < LEAST_CACHED * usage.sent_tokens:
        return "uncached"
    lives = 0 if touch is None else max(touch.ttl, asked_seconds(policy.cache_points.kept_long))
    if touch is None or not touch.called or not 0 <= (now - touch.at).total_seconds() < lives:
        return "cold"
    return "model" if window.model and window.model != sent.model else None


def _not_in_it(sent: SentContext, window: Window, covered: Sequence[Item], step: Summarize) -> WhyAlone | None:
    """Return why a sent context does not have what is asked about."""
    was = sent.context.window
    if was.speaking or was.open_calls():
        return "pending"
    current = {item.version: item for item in window.items}
    if not all(_is_still_shown(item, current) for item in was.items):
        return "changed"
    before = {item.version: item for item in was.items}
    if any(item.version not in before for item in covered):
        return "unsent"
    return None if all(_is_shown_alike(before[item.version], step) for item in covered) else "hidden"


def _is_still_shown(item: Item, current: Mapping[int, Item]) -> bool:
    """Return whether the form in which a block was sent may be sent again: nobody took it out since."""
    now = current.get(item.version)
    if now is None or now.redacted != item.redacted or now.omitted != item.omitted:
        return False
    if item.is_summary and now.block.text != item.block.text:  # written anew after a redaction
        return False
    return now.replacement == item.replacement or now.replacement is None or is_seen_through(now)


def _is_shown_alike(item: Item, step: Summarize) -> bool:
    """Return whether a context shows a block as the request of a summary would."""
    if item.omitted or item.redacted:
        return False
    in_full = item.replacement is None or item.state == "abridged"  # what it leaves out is in the same context
    return in_full or (step.source == "shown" and is_seen_through(item))
