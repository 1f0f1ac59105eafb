"""How the provider counts: what its reported usage says about a conversation, call by call (design: Budget).

Each recorded context has our count, each call the provider's. Two figures bring them together:

- The ratio: the provider's tokens for one of ours. Two calls with nothing rewritten between them differ only by what
  was appended, so their differences are compared. Text that only the provider knows is in both, and cancels out.
- The offset: what the provider counts besides, such as its own prompt for tools; negative where it counts fewer tokens
  of system prompt and tools than we do. With it, the account of the newest call's context is the reported figure.

An event costs the same however long the conversation is. Only events decide, so every reader of the log, now or later,
counts alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from timeline.events import ABRIDGED, BlocksHidden, ContextRendered, ModelCalled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Payload

LOWEST: Final = 0.7
HIGHEST: Final = 2.0
"""The ratio is limited to this range: a value outside of it does not come from a tokenizer."""
LEAST_COUNTED: Final = 1_000
"""Fewest compared tokens for a ratio."""
_STEP: Final = 0.02
"""Least difference at which a new measurement replaces the ratio in force, since each change recounts the window."""
_KEPT: Final = 4
"""How many of the newest contexts are remembered: calls that run side by side answer different ones."""
_SLACK: Final = 2_000
"""Tokens by which a reported difference may miss the one that our counts suggest, besides a share of the context."""
_SLACK_SHARE: Final = 0.05
_LEAST_GROWTH: Final = 0.3
_MOST_GROWTH: Final = 3.5
"""Limits of the provider's plausible growth for each of our tokens. Outside them, it counted unrecorded content."""
_NOISE: Final = 300
"""Tokens that a call may add or lose besides what was appended, such as a reminder that a client slips in."""

REWRITES: Final = (
    "compaction.completed",
    "compaction.reverted",
    "blocks.hidden",
    "blocks.revealed",
    "block.redacted",
)
"""Types of the events that rewrite what is shown."""
REPORTING: Final = ("model.called", "context.rendered", *REWRITES)
"""Types of the events that `Reported.after` takes in."""

Prefix: TypeAlias = tuple[str | None, str | None]
"""The hashes of a context's system prompt and tools."""


class CountedContext(NamedTuple):
    """A recorded context: its event's version, our counts of its text and of its media, and its prefix.

    ``rewrites`` is how many rewriting decisions the log had when it was recorded.
    """

    version: int
    counted: int
    media: int
    prefix: Prefix
    rewrites: int


class Reported(NamedTuple):
    """What the calls of the newest model reported, compared with our counts.

    Attributes:
        model: the model; everything below is of its calls alone.
        calls: how many of its calls answered a counted context and reported usage.
        rewrites: how many decisions of the log rewrote what is shown, so far.
        contexts: the newest counted contexts, oldest first.
        newest: the context of the newest such call.
        newest_input: its input tokens, as reported.
        first_counted, first_input: our count and the provider's of the first call with the newest system prompt and
            tools.
        anchor_counted, anchor_input: the same of the newest call, without the differences that do not follow ours.
        counted, input: the compared text in our tokens and in the provider's.
        ratio: in force; 0 until enough was compared.
        followed: the newest call's figure follows our count from the call before it.
    """

    model: str = ""
    calls: int = 0
    rewrites: int = 0
    contexts: tuple[CountedContext, ...] = ()
    newest: CountedContext | None = None
    newest_input: int = 0
    first_counted: int = 0
    first_input: int = 0
    anchor_counted: int = 0
    anchor_input: int = 0
    counted: int = 0
    input: int = 0
    ratio: float = 0.0
    followed: bool = True

    def ratio_from(self, start: float | None) -> float:
        """Return the ratio in force: the measured one, or ``start`` as long as there is none.

        Under a policy that counts by its counter alone there is no start, and the ratio is always 1.
        """
        return 1.0 if start is None else self.ratio or start

    def offset(self, ratio: float) -> int:
        """Return the tokens that the provider counts besides ours at a ratio; 0 before the first call.

        With it, the account of the newest call's context is the reported figure. There are two corrections:

        - Where differences were left out, the offset is at most what the newest call alone, or the first call, gives.
        - Where something was rewritten since the newest call, text that counted below the ratio may have left the
          context. Then the offset is raised to that of the first call, whose context was hardly more than system
          prompt and tools. But the newest call contains the offset, too. So it is raised at most to what the newest
          figure leaves where the text of that call counts at the lowest ratio.
        """
        if self.newest is None:
            return 0
        text, counted = self.newest_input - self.newest.media, self.newest.counted
        first = self.first_input - ratio * self.first_counted
        offset = min(self.anchor_input - ratio * self.anchor_counted, max(first, text - ratio * counted))
        if self.newest.rewrites == self.rewrites:
            return round(offset)
        return round(max(offset, min(first, text - LOWEST * counted) if self.followed else first))

    def after(self, version: int, payload: Payload) -> Reported:
        """Return the state after an event of one of the types `REPORTING`; any other changes nothing."""
        match payload:
            case ContextRendered():
                return self.after_context(version, payload)
            case ModelCalled():
                return self.after_call(payload)
            case BlocksHidden() if payload.reason in ABRIDGED:
                return self  # what is shown shorter was never sent otherwise
            case _:
                return self.rewritten() if payload.type in REWRITES else self

    def rewritten(self) -> Reported:
        """Return the state after a decision that changed what is shown of earlier blocks."""
        return self._replace(rewrites=self.rewrites + 1)

    def after_context(self, version: int, rendered: ContextRendered) -> Reported:
        """Return the state after a recorded context; one of an earlier release has no count, and changes nothing."""
        if not rendered.counted:
            return self
        prefix = (rendered.system, rendered.tools)
        sent = CountedContext(version, rendered.counted, rendered.media, prefix, self.rewrites)
        return self._replace(contexts=(*self.contexts, sent)[-_KEPT:])

    def after_call(self, called: ModelCalled) -> Reported:
        """Return the state after a call; a failed one, or one without usage or a known context, changes nothing.

        Nor does a call in which the provider's server ran tools: its figure is of several contexts, not only of ours.
        """
        input_ = called.usage.sent_tokens
        sent = next((sent for sent in self.contexts if sent.version == called.answers), None)
        if not input_ or sent is None or called.server_tools:
            return self
        if called.model != self.model:
            fresh = Reported(called.model, rewrites=self.rewrites, contexts=self.contexts)
            return fresh._compared(sent, input_)
        return self._compared(sent, input_)

    def _compared(self, sent: CountedContext, input_: int) -> Reported:
        before, text = self.newest, input_ - sent.media
        now = self._replace(calls=self.calls + 1, newest=sent, newest_input=input_, followed=True)
        if before is None or before.prefix != sent.prefix:
            now = now._replace(first_counted=sent.counted, first_input=text)
            return now._replace(anchor_counted=sent.counted, anchor_input=text)
        ours = sent.counted - before.counted
        theirs = text - (self.newest_input - before.media)
        rewritten = before.rewrites != sent.rewrites
        if not _follows(ours, theirs, self.newest_input, rewritten=rewritten):
            return now._replace(followed=False)
        now = now._replace(anchor_counted=self.anchor_counted + ours, anchor_input=self.anchor_input + theirs)
        if rewritten or before.media != sent.media or not _is_growth(ours, theirs):
            return now
        counted, compared = self.counted + ours, self.input + theirs
        return now._replace(counted=counted, input=compared, ratio=_settled(self.ratio, compared, counted))

    def dump(self) -> list[Any]:
        """Return the JSON form that a snapshot keeps."""
        newest = None if self.newest is None else _dumped(self.newest)
        first = [self.newest_input, self.first_counted, self.first_input]
        rest = [*first, self.anchor_counted, self.anchor_input, self.counted, self.input, self.ratio, self.followed]
        return [self.model, self.calls, self.rewrites, [_dumped(sent) for sent in self.contexts], newest, *rest]

    @classmethod
    def parse(cls, fields: Sequence[Any]) -> Reported:
        """Read the JSON form."""
        model, calls, rewrites, contexts, newest, *rest = fields
        known = None if newest is None else _parsed(newest)
        return cls(model, calls, rewrites, tuple(map(_parsed, contexts)), known, *rest)


NO_REPORTS: Final = Reported()


def _settled(in_force: float, reported: int, counted: int) -> float:
    """Return the ratio from now on: the measured one where enough was compared and it differs enough, else the old."""
    if counted < LEAST_COUNTED:
        return in_force
    measured = min(HIGHEST, max(LOWEST, reported / counted))
    return in_force if abs(measured - in_force) < _STEP else round(measured, 2)


def _follows(ours: int, theirs: int, input_: int, *, rewritten: bool) -> bool:
    """Return whether the provider's figure follows ours from one call to the next.

    Where it does not, the client sent something other than our context: it compacted its messages by itself, or went on
    with all of them after we rewrote ours. Then the difference does not show how the provider counts.
    """
    if not rewritten:
        return theirs > -input_ // 2
    slack = _SLACK + _SLACK_SHARE * input_
    low, high = sorted((_LEAST_GROWTH * ours, _MOST_GROWTH * ours))
    return low - slack <= theirs <= high + slack


def _is_growth(ours: int, theirs: int) -> bool:
    """Return whether a difference comes from appended text; only such differences give a ratio."""
    return ours > 0 and _LEAST_GROWTH * ours - _NOISE <= theirs <= _MOST_GROWTH * ours + _NOISE


def _dumped(sent: CountedContext) -> list[Any]:
    return [sent.version, sent.counted, sent.media, *sent.prefix, sent.rewrites]


def _parsed(fields: Sequence[Any]) -> CountedContext:
    version, counted, media, system, tools, rewrites = fields
    return CountedContext(version, counted, media, (system, tools), rewrites)
