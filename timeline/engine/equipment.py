"""The application's own parts of a timeline: summarizer, hooks, counter and observer, and the compactor made of them.

They stay the same while a conversation goes on; the policy in force may change, and each policy gets its compactor.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from timeline.engine.asked_ahead import AskedAhead
from timeline.engine.compactor import Compactor
from timeline.engine.screening import P, screened_block, screened_json, screened_payload, screened_text
from timeline.errors import InvalidPolicy
from timeline.lifecycle.observer import Observer
from timeline.planning.summary_block import unheaded
from timeline.policy.model import Policy
from timeline.ports import SUMMARY_TIMEOUT, Hooks, SystemClock
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Window
    from timeline.policy.steps import SummaryForm
    from timeline.ports import Clock, EventStore, Summarizer, SummaryRequest, TokenCounter

_LATER: Final = (
    "; so a later version of timeline-engine recorded the policy. Upgrade timeline-engine, or name a policy to open the"
    " conversation with"
)


@dataclass(frozen=True, slots=True)
class Equipment:
    """The application's parts of a timeline.

    Attributes:
        summarizer: asked first; None uses the extractive summarizer alone.
        hooks: called around compactions.
        counter: counts tokens; None uses the policy's counter.
        observer: watches renders and compactions.
        summary_timeout: seconds that a summarizer has for one request.
        clock: measures how long compactions take.
    """

    summarizer: Summarizer | None = None
    hooks: Hooks = field(default_factory=Hooks)
    counter: TokenCounter | None = None
    observer: Observer = field(default_factory=Observer)
    summary_timeout: float = SUMMARY_TIMEOUT
    clock: Clock = field(default_factory=SystemClock)

    def let_in(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return what the application's hook leaves of blocks that are to be stored.

        Raises:
            InvalidBlock: the hook returned something else than a block of the same type.
        """
        hook = self.hooks.on_append
        return blocks if hook is None else [screened_block(hook, block) for block in blocks]

    def screened(self, payload: P) -> P:
        """Return what the application's hook leaves of an event that is to be stored.

        Raises:
            InvalidBlock: as for `let_in`.
        """
        hook = self.hooks.on_append
        return payload if hook is None else screened_payload(hook, payload)

    def screened_text(self, text: str) -> str:
        """Return what the application's hook leaves of a text that is no block's, such as a title.

        Raises:
            InvalidBlock: as for `let_in`.
        """
        hook = self.hooks.on_append
        return text if hook is None else screened_text(hook, text)

    def lets_in_whole(self, values: Sequence[Any]) -> bool:
        """Return whether the application's hook leaves JSON values as they are, such as a system prompt.

        Raises:
            InvalidBlock: as for `let_in`.
        """
        hook = self.hooks.on_append
        return hook is None or all(screened_json(hook, value) == value for value in values)

    def compactor(self, policy: Policy) -> Compactor:
        """Return the compactor for a policy."""
        counter = self.counter or get_counter(policy.counter)
        own = None
        if self.summarizer is not None:
            own = AskedAhead(self.observer.asking(self.summarizer), policy.attempts * max(1, len(policy.steps)))
        chain = cache(partial(self._chain, policy, None if own is None else own.by_renders))
        dry = chain if own is None else cache(partial(self._chain, policy, own.by_dry_runs))
        return Compactor(policy, counter, chain, self.hooks, self.observer, self.clock, dry_chain=dry)

    def _chain(self, policy: Policy, own: Summarizer | None) -> Summarizer:
        """Put the extractive summarizer, which always answers, behind the application's, if the policy says so."""
        from timeline import summarizers  # noqa: PLC0415 - the lazy re-export: the core does not import the package

        extractive = summarizers.ExtractiveSummarizer()
        asked: tuple[Summarizer, ...] = (extractive,)
        if own is not None:
            asked = (own, extractive) if policy.on_failure == "fallback" else (own,)
        return summarizers.FallbackSummarizer(
            *asked, seconds=self.summary_timeout, edit=partial(_unheaded, policy.form)
        )


def _unheaded(form: SummaryForm, request: SummaryRequest, text: str) -> str:
    """Remove the form's heading from a history that begins with it, since it is added later; the rest may be empty."""
    return unheaded(text, form) if request.kind == "history" else text


async def policy_in_force(store: EventStore, window: Window) -> Policy | None:
    """Return the policy in force at a window, with its origin; None where the log names no policy.

    Raises:
        InvalidPolicy: the policy's text is not in the store, or is of a later version of this library.
        StoreError: the store cannot be read.
    """
    hash_ = window.policy
    if hash_ is None:
        return None
    text = (await store.values([hash_])).get(hash_)
    if text is None:
        raise InvalidPolicy("policy", f"the one in force, {hash_[:12]}…, is not in the store; name one to open it with")
    try:
        policy = Policy.parse(text)
    except InvalidPolicy as error:
        raise InvalidPolicy(error.field, f"{error.problem}{_LATER}") from None
    return policy if window.origin is None else policy.made_from(window.origin)
