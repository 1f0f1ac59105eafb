"""What is searched: settings of `policies.balanced`, and the published defaults that they are held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline import policies
from timeline.lab.library import lab_policy, peers
from timeline.policy.presets import SEEDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.policy.model import Policy


class Setting(NamedTuple):
    """One point of the search; shares are of the limit.

    Attributes:
        keep: share of the room that stays verbatim behind a cut.
        cold: share above which a render compacts once the cache is cold; None waits for the trigger.
        intact, files, old: see `Hiding`; in rounds.
        pressure: least share that is hidden at once above the trigger; None hides nothing while the cache is warm.
        trigger: share above which a render compacts.
        target: share that a compaction folds down to.
        ttl: seconds after which the cache counts as cold, instead of its own lifetime.
    """

    keep: float
    cold: float | None
    intact: int
    files: int
    old: int
    pressure: float | None
    trigger: float
    target: float = 0.8
    ttl: int | None = None

    @property
    def name(self) -> str:
        """What is different about it, in short."""
        cold = "-" if self.cold is None else f"{self.cold:g}"
        warm = "" if self.pressure is None else f" warm {self.pressure:g}"
        own = "" if self.ttl is None else f" ttl {self.ttl}"
        rounds = f"{self.intact}/{self.files}/{self.old}"
        return f"{self.trigger:g}>{self.target:g} keep {self.keep:g} cold {cold} {rounds}{warm}{own}"

    def policy(self, limit: int) -> Policy:
        """Return the policy at a limit."""
        hiding = policies.balanced().model_dump()["hiding"] | {
            "intact": self.intact,
            "files": self.files,
            "old": self.old,
            "pressure_minimum": self.pressure,
            "ttl": self.ttl,
        }
        return policies.balanced(
            max_tokens=limit,
            keep_recent=self.keep,
            fold_when_cold=self.cold,
            trigger=self.trigger,
            target=self.target,
            hiding=hiding,
        )


_SEARCHED: Final = (
    Setting(0.05, 0.05, 1, 5, 2, 0.05, 0.7, 0.3),
    Setting(0.1, 0.1, 4, 4, 4, 0.05, 0.96),
    Setting(0.2, 0.1, 4, 30, 6, 0.05, 0.95),
    Setting(0.2, 0.1, 8, 8, 8, 0.05, 0.96),
    Setting(0.3, 0.2, 6, 20, 6, 0.05, 0.96),
    Setting(0.3, 0.2, 8, 8, 8, 0.05, 0.98),
    Setting(0.3, 0.2, 12, 40, 12, 0.05, 0.96),
    Setting(0.3, 0.35, 16, 60, 16, 0.05, 0.96),
    Setting(0.3, 0.35, 16, 120, 16, 0.05, 0.96, 0.5),
    Setting(0.3, 0.35, 16, 240, 16, 0.05, 0.9, 0.6),
    Setting(0.4, 0.2, 16, 40, 16, 0.05, 0.96),
    Setting(0.4, 0.35, 16, 40, 16, 0.05, 0.96),
    Setting(0.4, 0.35, 6, 8, 400, 0.05, 0.96),
    Setting(0.45, 0.4, 16, 40, 16, 0.05, 0.96),
    Setting(0.4, 0.5, 8, 120, 48, None, 0.95),
    Setting(0.4, 0.5, 12, 240, 24, 0.05, 0.95),
    Setting(0.4, 0.5, 24, 240, 96, 0.05, 0.95, 0.6),
    Setting(0.5, 0.35, 8, 12, 96, 0.05, 0.95),
    Setting(0.5, 0.3, 16, 16, 400, 0.05, 0.98),
    Setting(0.5, 0.3, 20, 20, 400, 0.05, 0.98),
    Setting(0.5, 0.5, 8, 30, 8, 0.05, 0.9, 0.6),
    Setting(0.5, 0.5, 24, 120, 24, 0.05, 0.96),
    Setting(0.5, 0.65, 8, 240, 48, None, 0.95, 0.7),
    Setting(0.5, 0.65, 8, 400, 48, None, 0.95),
    Setting(0.6, 0.4, 6, 10, 400, 0.05, 0.96),
    Setting(0.6, 0.05, 8, 120, 8, 0.05, 0.96),
    Setting(0.6, 0.65, 16, 120, 96, None, 0.95, 0.7),
    Setting(0.6, 0.8, 8, 120, 48, None, 0.95, 0.7),
    Setting(0.75, 0.7, 20, 200, 96, None, 0.97),
    Setting(0.8, 0.75, 24, 240, 128, None, 0.98),
    Setting(0.8, 0.8, 40, 400, 400, None, 0.98),
    Setting(0.9, None, 32, 400, 128, None, 0.98),
    Setting(0.9, 0.9, 54, 400, 400, None, 0.98),
    Setting(0.9, 0.9, 64, 400, 400, None, 0.99),
    Setting(0.9, None, 80, 240, 400, 0.05, 0.98, ttl=20_000),
    Setting(0.9, None, 80, 240, 400, 0.05, 0.99, 0.95, ttl=20_000),
)


def named(name: str) -> Callable[[int], Policy]:
    """Return what makes a preset, or a published default, for a limit."""
    return lambda limit: lab_policy(name, max_tokens=limit)


SETTINGS: Final[dict[str, Callable[[int], Policy]]] = {
    **{name: named(name) for name in ("balanced", "gentle", "economical")},
    **{setting.name: setting.policy for setting in _SEARCHED},
}
"""Ours: the presets, and settings along the frontier; what was tried besides is of no use any more."""
PUBLISHED: Final = (*(name for name in SEEDS if name != "cut_point"), *peers())
"""The five designs, 002 as it was first shipped, and what agents and frameworks publish as their defaults."""
