"""The policy that the options of a command name; without any, that of the conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.audit.replay import recorded_policy
from timeline.events import ContextRendered
from timeline.policy.files import find_policy
from timeline.policy.making import with_limit
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.policy.model import Policy
    from timeline.ports import EventStore, Summarizer

DEFAULT_POLICY: Final = "balanced"
"""The policy of a new conversation unless another one is named."""


@dataclass(frozen=True, slots=True)
class PolicyWish:
    """A policy, or only another limit, as typed."""

    policy: str | None = None
    max_tokens: int | None = None
    model: str | None = None

    @property
    def name(self) -> str:
        """The name of the policy of a new conversation: a preset, a published design or a file."""
        return self.policy or DEFAULT_POLICY

    def make_policy(self) -> Policy:
        """Return the policy of a new conversation, with the limit of `--max-tokens` or `--model` if given."""
        return find_policy(self.name, **self._limit)

    def check(self) -> None:
        """Check what the options name, before a database is opened."""
        if self.policy is not None or self._limit:
            self.make_policy()

    def instead_of(self, own: Policy | None) -> Policy | None:
        """Return the policy to use instead of a conversation's own (None: it has none); None if none is asked for."""
        if self.policy is None and not self._limit:
            return None
        return self.make_policy() if self.policy is not None or own is None else with_limit(own, **self._limit)

    @property
    def _limit(self) -> dict[str, Any]:
        given = {"max_tokens": self.max_tokens, "model": self.model}
        return {name: value for name, value in given.items() if value is not None}


async def opened(
    store: EventStore, conversation: str, wish: PolicyWish | None = None, summarizer: Summarizer | None = None
) -> Timeline:
    """Open a conversation under its own policy, or under the one that the options name."""
    wish = wish or PolicyWish()
    policy = wish.make_policy() if wish.policy is not None else None
    if policy is None:
        timeline = await Timeline.open(store, conversation, summarizer=summarizer, create=False)
        named = timeline.window.policy is not None
        before = None if named else await _used_before(store, timeline)
        policy = wish.instead_of(timeline.policy if named else before) or before
        if policy is None:
            return timeline
    return await Timeline.open(store, conversation, policy=policy, summarizer=summarizer, create=False)


async def _used_before(store: EventStore, timeline: Timeline) -> Policy | None:
    """Return the policy of the newest recorded context, where the log names none: an earlier release wrote it."""
    rendered = timeline.window.rendered
    if rendered is None:
        return None
    [event] = await store.read_versions(timeline.id, [rendered.version])
    return await recorded_policy(store, event.payload.policy if isinstance(event.payload, ContextRendered) else None)


def policy_in_words(timeline: Timeline, used: Policy) -> str:
    """Return the policy that was used in a few words, and the conversation's own where that is another one."""
    own = timeline.window.origin
    if own is None or timeline.window.policy == used.hash():
        return used.origin.in_words()
    return f"{used.origin.in_words()}; the conversation's own is {own.in_words()}"
