"""The named policies, and functions to load, compare and outline policies: `from timeline import policies`.

``policies.cut_point(max_tokens=80_000)``, ``policies.keep_last(model="gpt-4o")``, ``policies.load("mine.toml")``,
``policies.outline(policy)``, ``policies.diff_policies(a, b)``, ``policies.limits_of("claude-opus-5")``,
``policies.lean(policy)``.
"""

from __future__ import annotations

from timeline.planning.outline import Outline, outline
from timeline.policy.compare import FieldDiff, diff_policies
from timeline.policy.files import by_name
from timeline.policy.files import load_policy as load
from timeline.policy.lean import lean
from timeline.policy.limits import ModelLimits, limits_of
from timeline.policy.ours import balanced, economical, gentle, none
from timeline.policy.published import cut_point, keep_last, keep_ratio, priority_chain, prune_then_summarize

__all__ = [
    "FieldDiff",
    "ModelLimits",
    "Outline",
    "balanced",
    "by_name",
    "cut_point",
    "diff_policies",
    "economical",
    "gentle",
    "keep_last",
    "keep_ratio",
    "lean",
    "limits_of",
    "load",
    "none",
    "outline",
    "priority_chain",
    "prune_then_summarize",
]
