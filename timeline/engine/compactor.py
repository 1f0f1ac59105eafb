"""A policy with everything that carries it out: counter, summarizers, hooks, observer, clock, logger."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from timeline.display.logs import logger_of
from timeline.lifecycle.observer import Observer
from timeline.ports import Hooks, SystemClock

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from timeline.fold.fold import Fold
    from timeline.policy.model import Policy
    from timeline.ports import Clock, Summarizer, TokenCounter


_LOGGER: Final = logger_of("timeline")
_DRY_RUN_LOGGER: Final = logger_of("timeline.dry_run")


@dataclass(frozen=True, slots=True)
class Compactor:
    """A policy and everything that carries it out.

    ``chain`` makes the summarizer once the first compaction needs it, since its imports take time. ``dry_chain`` makes
    the summarizer of dry runs; None where both are the same. ``logger`` gets a line for each compaction and each
    failure; ``clock`` measures how long compactions take.
    """

    policy: Policy
    counter: TokenCounter
    chain: Callable[[], Summarizer]
    hooks: Hooks
    observer: Observer = field(default_factory=Observer)
    clock: Clock = field(default_factory=SystemClock)
    logger: logging.Logger = _LOGGER
    dry_chain: Callable[[], Summarizer] | None = None

    @property
    def summarizer(self) -> Summarizer:
        """The summarizers, as one that asks them in order; the same object each time."""
        return self.chain()

    def at(self, fold: Fold) -> Compactor:
        """Return a compactor that counts as the fold's window does, so that all decisions of a pass are in one unit."""
        return self if fold.counter is None else replace(self, counter=fold.counter)

    def dry_run(self) -> Compactor:
        """Return a compactor for dry runs: no hooks, no observer, and a logger of its own, ``timeline.dry_run``."""
        chain = self.dry_chain or self.chain
        return replace(self, chain=chain, hooks=Hooks(), observer=Observer(), logger=_DRY_RUN_LOGGER)
