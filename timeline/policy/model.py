"""A policy: how large a context may grow, and what happens when it does. A frozen value; hashed, compared, stored.

A trigger says when a render compacts: it names a line in tokens of the whole account. Every published design compares
something else with something else; written as a line for the account's total (system, tools and reserves included) they
become comparable, and the rest of the engine needs to know none of them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from timeline.frozen import Frozen, canonical_json, sha256_hex
from timeline.policy.steps import BLOCK_FORM, MemoryDigest, StageData, Step, Summarize, SummaryForm
from timeline.policy.text import invalid_policy, toml_text
from timeline.usage import KeptLong


class Reserved(Frozen):
    """What the account holds besides the messages: all of it, and of that the tools and what is kept free."""

    fixed: int = 0
    tools: int = 0
    reserved: int = 0


def _share(share: float, tokens: int) -> int:
    """Return a share of some tokens, rounded down; a product that only binary fractions keep below a whole is whole."""
    return math.floor(round(share * tokens, 6))


class OverShare(Frozen):
    """The total is above a share of the limit (seed 002: 0.9; seed 000: 0.85)."""

    kind: Literal["over_share"] = "over_share"
    share: float = Field(default=0.9, gt=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        del held
        return _share(self.share, limit)


class OverThreshold(Frozen):
    """Messages and system prompt reach a share of what the reserves leave of the limit (seed 001).

    The seed reserves room for system prompt and tools and counts the system prompt among the messages as well; its
    figure, ``floor((128,000 - 2,000 - 4,000 - 5,000) * 0.80) = 93,600``, is compared with ``>=``.
    """

    kind: Literal["over_threshold"] = "over_threshold"
    share: float = Field(default=0.8, gt=0, le=1)
    system_reserve: int = Field(default=2_000, ge=0)

    def threshold(self, limit: int, reserved: int) -> int:
        """Return the seed's figure: messages of so many tokens are due."""
        return max(0, _share(self.share, limit - self.system_reserve - reserved))

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        return min(limit, self.threshold(limit, held.reserved) - 1 + held.tools + held.reserved)


class OverUtilization(Frozen):
    """The messages take more than a share of the room that is left for messages (seed 003: 0.8)."""

    kind: Literal["over_utilization"] = "over_utilization"
    share: float = Field(default=0.8, gt=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        return held.fixed + _share(self.share, max(0, limit - held.fixed))


class Overdrawn(Frozen):
    """Nothing is available any more: the total, reserves included, is above the limit (seed 004)."""

    kind: Literal["overdrawn"] = "overdrawn"

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        del held
        return limit


class Never(Frozen):
    """Nothing is ever due; what does not fit is reported."""

    kind: Literal["never"] = "never"

    def line(self, limit: int, held: Reserved) -> int:
        """Return the limit: above it the context is refused."""
        del held
        return limit


def _written_short(value: Any) -> Any:
    """Take a bare number as a share of the limit, and a bare name as the trigger of that name."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return {"kind": "over_share", "share": value}
    return {"kind": value} if isinstance(value, str) else value


Trigger: TypeAlias = Annotated[
    Annotated[OverShare | OverThreshold | OverUtilization | Overdrawn | Never, Field(discriminator="kind")],
    BeforeValidator(_written_short),
]
"""Any trigger; a bare number is `OverShare`, a bare name the trigger of that name with its own figures."""


_LEAST_MARGIN: Final = -0.3
"""No tokenizer in use counts less than 0.7 of the one that we count with."""
_FIXED_PART: Final[dict[str, KeptLong]] = {"short": "nothing", "long": "fixed_part"}
"""How the field ``fixed_part`` said it that stood for ``kept_long``."""


class CachePointRule(Frozen):
    """Where cache points go (seed 002): the pre-tail point ends round N - ``offset_rounds``.

    ``kept_long`` says what the provider is asked to keep for its long time, where it has two (Anthropic: five minutes,
    an hour): nothing, the fixed part (system prompt and tools), or everything. Writing for the long time costs more,
    and is paid back by the first pause that outlives the short one, unless it was rewritten before that.
    """

    offset_rounds: int = Field(default=4, ge=1)
    min_rounds: int = Field(default=5, ge=1)
    lookback_blocks: int = Field(default=20, ge=1)
    """A lagging point is added when a point stands more blocks than this behind the one before it.

    20 is how many content blocks Anthropic walks back from a marker to find an entry that was written (prompt caching
    documentation, 2026-11); the policy is the one place that says so, since it is recorded with every context.
    """
    kept_long: KeptLong = "nothing"

    @model_validator(mode="before")
    @classmethod
    def _named_before(cls, fields: Any) -> Any:
        """Read what logs say that were written when the long time was the fixed part's alone."""
        said = fields.get("fixed_part") if isinstance(fields, dict) and "kept_long" not in fields else None
        if not isinstance(said, str) or said not in _FIXED_PART:
            return fields
        return {**{key: value for key, value in fields.items() if key != "fixed_part"}, "kept_long": _FIXED_PART[said]}


class Hiding(Frozen):
    """When old content gives way to short replacements (seed 002, TTL pruning; design, section 6).

    Attributes:
        unit: what ages are counted in: rounds (model responses), or turns.
        intact: the newest so many stay untouched.
        files: the newest full content of each file stays for so many.
        old: calls, texts and thoughts are shortened from this age on.
        ttl: seconds that the provider keeps its cache; what its usage reports unless given.
        grace: seconds on top of the ttl before the cache counts as cold.
        minimum: share of the limit that a batch frees at the least while the cache is cold.
        pressure_minimum: the same above the trigger with a warm cache; None never hides while it is warm.
        replacement_tokens: cap of what stands for a hidden block.
    """

    unit: Literal["rounds", "turns"] = "rounds"
    intact: int = Field(default=8, ge=1)
    files: int = Field(default=40, ge=1)
    old: int = Field(default=24, ge=1)
    ttl: int | None = Field(default=None, ge=1)
    grace: int = 60
    minimum: float = Field(default=0.01, ge=0, le=1)
    pressure_minimum: float | None = Field(default=None, ge=0, le=1)
    replacement_tokens: int = Field(default=60, ge=20)


class Policy(Frozen):
    """Budget, compaction, summary and cache points of a conversation. Token figures are in the counter's tokens.

    Attributes:
        name: for reports.
        max_tokens: the context limit.
        output_reserve, safety_buffer: tokens kept free for the answer, and for what the counter misses.
        counter: ``o200k_base``, ``cl100k_base`` (exact) or ``chars4``.
        margin: share added to every count, for models with another tokenizer; negative where theirs counts less.
        message_tokens, response_tokens: added for each message, and for each response of the model besides.
        trigger: when a render compacts; a number is a share of the limit, system prompt and tools included.
        target: share of the limit that a compaction folds down to.
        stop_at: the steps end at the target, or as soon as the trigger does not say any more that it is due.
        steps: of a compaction, in order; each looks at what the ones before it left.
        on_failure: when no summary could be written: the next step goes on, the context stays as it is, a notice takes
            the summary's place, or the extractive summarizer writes it.
        form: how a summary looks to the model.
        boundary: a ``compaction.boundary`` event follows each compaction, for whoever watches the log (seed 003).
        summary_tokens, turn_prefix_tokens, digest_tokens: caps of the summary's parts.
        preview_tokens: cap of what stands for a spilled block.
        carried_share: share of the limit beyond which carried blocks spill to previews.
        min_progress, min_progress_tokens: a compaction frees at least the larger of both, or is refused.
        attempts: tries at one compaction before it is given up.
        hiding: when old content is hidden; None never hides.
        fold_when_cold: share of the limit above which a render compacts once the cache is cold; None waits for the
            trigger.
        memory_digest: how the decisions of approved stages are told, in the block that stays in view.
        stage_data: what is told of approved stages in the uncached tail besides; None tells nothing.
        cache_points: where cache markers go.
        system_parts: most parts of a system prompt that is given as a list: what stands behind them is joined into the
            last one (seed 004: two); None sends it as it is.
    """

    name: str = "cut_point"
    max_tokens: int = Field(default=80_000, ge=1_000)
    output_reserve: int = Field(default=0, ge=0)
    safety_buffer: int = Field(default=0, ge=0)
    counter: Literal["o200k_base", "cl100k_base", "chars4"] = "o200k_base"
    margin: float = Field(default=0.0, ge=_LEAST_MARGIN, le=1)
    message_tokens: int = Field(default=0, ge=0)
    response_tokens: int = Field(default=0, ge=0)
    trigger: Trigger = OverShare()
    target: float = Field(default=0.7, gt=0, le=1)
    stop_at: Literal["target", "trigger"] = "target"
    steps: tuple[Step, ...] = (Summarize(),)
    on_failure: Literal["next_step", "unchanged", "truncate", "fallback"] = "fallback"
    form: SummaryForm = BLOCK_FORM
    boundary: bool = False
    summary_tokens: int = Field(default=800, ge=50)
    turn_prefix_tokens: int = Field(default=400, ge=50)
    digest_tokens: int = Field(default=300, ge=0)
    preview_tokens: int = Field(default=400, ge=50)
    carried_share: float = Field(default=0.15, gt=0, le=1)
    min_progress: float = Field(default=0.1, ge=0, lt=1)
    min_progress_tokens: int = Field(default=256, ge=0)
    attempts: int = Field(default=3, ge=1, le=10)
    hiding: Hiding | None = None
    fold_when_cold: float | None = Field(default=None, gt=0, le=1)
    memory_digest: MemoryDigest = MemoryDigest()
    stage_data: StageData | None = None
    cache_points: CachePointRule = CachePointRule()
    system_parts: int | None = Field(default=None, ge=1)

    @property
    def automatic(self) -> bool:
        """Whether a render ever compacts by itself."""
        return not isinstance(self.trigger, Never)

    def calibrated(self, ratio: float) -> Policy:
        """Return this policy for a provider that counts ``ratio`` tokens where this policy counts one.

        `Timeline.calibration` measures the ratio.
        """
        margin = max(_LEAST_MARGIN, min(1.0, (1 + self.margin) * ratio - 1))
        return self.model_copy(update={"margin": round(margin, 4)})

    def canonical(self) -> str:
        """Return the text that is stored and hashed."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Return the sha256 of the canonical text."""
        return sha256_hex(self.canonical())

    def to_toml(self) -> str:
        """Return the policy as the text of a TOML file, which `policies.load` reads back as an equal policy."""
        return toml_text(self.model_dump(mode="json"))

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read a policy's canonical text.

        Raises:
            InvalidPolicy: naming the first field that does not hold.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise invalid_policy(error, cls) from None
