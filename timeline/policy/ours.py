"""The policies of this library's own: three points between much that stays in view and little that is paid for.

All three hide old content in rounds once the provider's cache is cold, keep the newest content of each file longest,
and fold into a summary block at a cut point (design, section 7). They differ in how much survives a fold, and in
whether they also rewrite the prefix at a moment when the cache has nothing to lose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.policy.making import COUNTED, make
from timeline.policy.model import Hiding

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.policy.making import Model
    from timeline.policy.model import Policy


def none(*, model: Model = None, **changes: Any) -> Policy:
    """Never compact; a context above the limit is a `ContextOverflow`.

    Args:
        model: whose limits, vocabulary and margin to take.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return make(none, {"trigger": "never", "steps": ()}, changes, model, COUNTED)


def gentle(*, model: Model = None, keep_recent: float = 0.3, **changes: Any) -> Policy:
    """Keep most in view: files stay for 80 rounds, a fold keeps 0.3, and nothing is folded before it must.

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _folding(gentle, keep_recent, {"hiding": Hiding(files=80)}, changes, model)


def balanced(*, model: Model = None, keep_recent: float = 0.2, **changes: Any) -> Policy:
    """Fold at 0.9 of the limit, or above 0.35 of it where the cache is cold: the prefix is written anew then anyway.

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return _folding(balanced, keep_recent, {"hiding": Hiding(), "fold_when_cold": 0.35}, changes, model)


def economical(*, model: Model = None, keep_recent: float = 0.1, **changes: Any) -> Policy:
    """Pay least: a fold keeps 0.1, and old content is hidden also while the cache is warm, if that frees 0.15 at once.

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    fields = {"hiding": Hiding(pressure_minimum=0.15), "fold_when_cold": 0.35}
    return _folding(economical, keep_recent, fields, changes, model)


def _folding(
    preset: Callable[..., Policy], keep_recent: float, fields: dict[str, Any], changes: dict[str, Any], model: Model
) -> Policy:
    cut = {"kind": "cut_point", "keep_recent": keep_recent}
    return make(preset, {"steps": [{"kind": "summarize", "cut": cut}], **fields}, changes, model, COUNTED)
