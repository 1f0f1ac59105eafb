"""The fields of a policy as keyword arguments, for type checkers and editors: what a preset takes beside its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.policy.model import CachePointRule, Hiding, LineNumbers, Repeats, Trigger
    from timeline.policy.steps import MemoryDigest, StageData, Step, SummaryForm
    from timeline.usage import CacheKind

Table: TypeAlias = dict[str, Any]
"""Single fields of a part, as in a file: the others stay as the preset has them."""


class PolicyFields(TypedDict, total=False):
    """See `timeline.policy.model.Policy`, whose fields these are, by the same names."""

    name: str
    max_tokens: int
    output_reserve: int
    safety_buffer: int
    counter: Literal["o200k_base", "cl100k_base", "chars4"]
    counts: Literal["counter", "calibrated"]
    margin: float
    message_tokens: int
    response_tokens: int
    results_counted_as: Literal["text", "json"]
    abridged_counted_as: Literal["shown", "whole"]
    trigger: Trigger | Table | float | str
    target: float
    stop_at: Literal["target", "trigger"]
    steps: Sequence[Step | Table]
    on_failure: Literal["next_step", "unchanged", "truncate", "fallback"]
    form: SummaryForm | Table
    boundary: bool
    summary_tokens: int
    turn_prefix_tokens: int
    digest_tokens: int
    preview_tokens: int
    carried_share: float
    min_progress: float
    min_progress_tokens: int
    attempts: int
    hiding: Hiding | Table | None
    repeats: Repeats | Table | None
    line_numbers: LineNumbers | Table | None
    compact_when_cold: float | None
    memory_digest: MemoryDigest | Table
    stage_data: StageData | Table | None
    cache_points: CachePointRule | Table
    cache: CacheKind | None
    system_parts: int | None
