"""This library's own policies: three trade-offs between keeping content in view and paying little for it.

All three hide old content in one batch, once the cache is cold or the context above its line, keep the newest
content of each file longest, and compact into a summary block at a cut point (design: Cut point). They differ in how
long content stays, in how much survives a compaction, in how small a context is compacted when the cache is cold, and
in how much of a wide window they use. System prompt and tools are cached for the provider's long time. The figures were
searched with the lab on one half of the recordings, and hold on the other (docs/lab.md, "Our own policies"; ADR 0046).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from timeline.policy.making import COUNTED, make, preset
from timeline.policy.model import CachePointRule, Hiding, LineNumbers, OverFallingShare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from timeline.policy.fields import PolicyFields
    from timeline.policy.making import Model
    from timeline.policy.model import Policy

_GRACE: Final = 10
"""Recorded five-minute caches answered up to 301 seconds after the last call, and never from 310 seconds on."""
_REPLACEMENT_TOKENS: Final = 40
"""Tokens of a replacement, which has a path and a description; a long context holds hundreds of them."""
_POINTS: Final = CachePointRule(kept_long="fixed_part")
"""The fixed part outlives the pauses in which the messages go cold and are rewritten (ADR 0023)."""
_RECORD: Final = 600
"""Tokens of the record behind a summary: what is far is found by its names (ADR 0046)."""


@preset(release=1)
def none(*, model: Model = None, **changes: Unpack[PolicyFields]) -> Policy:
    """Never compact; a context above the limit is a `ContextOverflow`.

    Args:
        model: whose limits, vocabulary and margin to take.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    return make(none, {"trigger": "never", "steps": ()}, changes, model, COUNTED)


@preset(release=2)
def gentle(*, model: Model = None, keep_recent: float = 0.3, **changes: Unpack[PolicyFields]) -> Policy:
    """Keep most in view: content stays for 16 rounds and files for 30, compacting keeps 0.3.

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    hiding = Hiding(
        intact=16, files=30, old=30, pressure_minimum=0.1, grace=_GRACE, replacement_tokens=_REPLACEMENT_TOKENS
    )
    fields = {"hiding": hiding, "compact_when_cold": 0.65, "target": 0.8}
    return _compacting(gentle, keep_recent, fields, changes, model)


@preset(release=2)
def balanced(*, model: Model = None, keep_recent: float = 0.2, **changes: Unpack[PolicyFields]) -> Policy:
    """Hide in one batch before compacting; compact when the cache is cold, since the prefix is rewritten then anyway.

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.

    Example:
        ```python
        from timeline import policies

        policy = policies.balanced(max_tokens=80_000, keep_recent=0.3)
        assert policy.max_tokens == 80_000
        ```
    """
    hiding = Hiding(
        intact=4, files=8, old=4, pressure_minimum=0.05, grace=_GRACE, replacement_tokens=_REPLACEMENT_TOKENS
    )
    fields = {"hiding": hiding, "compact_when_cold": 0.3, "target": 0.6, "trigger": OverFallingShare()}
    return _compacting(balanced, keep_recent, fields, changes, model)


@preset(release=2)
def economical(*, model: Model = None, keep_recent: float = 0.1, **changes: Unpack[PolicyFields]) -> Policy:
    """Pay least: like `balanced`, but keep less. Compacting keeps 0.1, files stay for 4 rounds, the rest for 2.

    Args:
        model: whose limits, vocabulary and margin to take.
        keep_recent: share of (limit - fixed part) that stays verbatim behind the cut.
        changes: fields of the policy.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    hiding = Hiding(
        intact=2, files=4, old=2, pressure_minimum=0.05, grace=_GRACE, replacement_tokens=_REPLACEMENT_TOKENS
    )
    fields = {"hiding": hiding, "compact_when_cold": 0.2, "target": 0.4, "trigger": OverFallingShare()}
    return _compacting(economical, keep_recent, fields, changes, model)


def _compacting(
    build: Callable[..., Policy], keep_recent: float, fields: dict[str, Any], changes: Mapping[str, Any], model: Model
) -> Policy:
    cut = {"kind": "cut_point", "keep_recent": keep_recent}
    written = {"invented": "repair", "source": "original", "asked": "in_cache", "names": "listed"}
    steps = [{"kind": "summarize", "cut": cut, **written}]
    common = {"steps": steps, "cache_points": _POINTS, "digest_tokens": _RECORD, "counts": "calibrated"}
    return make(build, {**common, "line_numbers": LineNumbers(), **fields}, changes, model, COUNTED)
