"""A policy: how large a context may grow and what happens when it does. A frozen value; hashed, compared, stored."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from timeline.frozen import Frozen, canonical_json, sha256_hex
from timeline.policy.problems import invalid_policy
from timeline.policy.stages import MemoryDigest, StageData
from timeline.policy.steps import BLOCK_FORM, Step, Summarize, SummaryForm
from timeline.policy.toml import toml_text
from timeline.policy.triggers import Never, OverShare, Trigger
from timeline.usage import KeptLong

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
