"""The policy: how large a context may grow, and what happens when it does. A frozen value; hashed, compared, stored.

A trigger decides when a render compacts: it gives a line in tokens of the whole account. Every published design
compares different figures; written as a line for the account's total (system, tools and reserves included) they become
comparable, and the rest of the engine need not know which design a trigger is from.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError, model_validator

from timeline.errors import InvalidArgument
from timeline.events import PolicyOrigin
from timeline.frozen import Frozen, canonical_json, sha256_hex
from timeline.policy.steps import BLOCK_FORM, MemoryDigest, StageData, Step, Summarize, SummaryForm
from timeline.policy.text import invalid_policy, toml_text
from timeline.usage import CacheKind, KeptLong

if TYPE_CHECKING:
    from collections.abc import Mapping


class Reserved(Frozen):
    """The account's tokens besides the messages: all of them, the tools among them, and those kept free."""

    fixed: int = 0
    tools: int = 0
    reserved: int = 0


def _share(share: float, tokens: int) -> int:
    """Return a share of some tokens, rounded down.

    A product that is below a whole number only through binary fractions is that number.
    """
    return math.floor(round(share * tokens, 6))


class OverShare(Frozen):
    """Due when the total is above a share of the limit (cut-point design: 0.9; priority-chain design: 0.85)."""

    kind: Literal["over_share"] = "over_share"
    share: float = Field(default=0.9, gt=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        del held
        return _share(self.share, limit)


class OverFallingShare(Frozen):
    """Due when the total is above a share of the limit that falls as the limit grows (`policies.balanced`).

    Each call reads the whole context again, so what a wide window could hold costs more to carry than to compact:
    beyond the first tokens, a smaller share is used. At the default figures the line is 90,000 of 100,000 tokens,
    120,000 of 200,000 and 360,000 of 1,000,000 (docs/lab.md, "Our own policies").

    Messages may always use the share ``beyond`` of the room that the fixed part leaves, up to ``share`` of the limit.
    Otherwise a fixed part of 110,000 tokens would leave messages a twentieth of a window of 200,000, and one of 120,000
    would leave them nothing.

    Attributes:
        share: share of the first tokens of the limit.
        first: how many tokens count as the first.
        beyond: share of the tokens beyond these.
    """

    kind: Literal["over_falling_share"] = "over_falling_share"
    share: float = Field(default=0.9, gt=0, le=1)
    first: int = Field(default=100_000, ge=0)
    beyond: float = Field(default=0.3, ge=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        falling = _share(self.share, min(limit, self.first)) + _share(self.beyond, max(0, limit - self.first))
        behind_fixed = held.fixed + _share(self.beyond, max(0, limit - held.fixed))
        return max(falling, min(behind_fixed, _share(self.share, limit)))


class OverThreshold(Frozen):
    """Due when messages and system prompt reach a share of the limit without its reserves (keep-last design).

    The design reserves room for system prompt and tools and counts the system prompt among the messages as well, at the
    tokens of a message. Its figure, ``floor((128,000 - 2,000 - 4,000 - 5,000) * 0.80) = 93,600``, is compared with
    ``>=``.

    Attributes:
        share: of what the reserves leave of the limit.
        system_reserve: room for system prompt and tools.
        output_reserve, safety_buffer: room for the answer, and for the counter's error. They make a compaction due
            earlier, but refuse no request; the policy's fields of the same names are held back from each request. Room
            is not counted twice: the larger of both sums counts.
    """

    kind: Literal["over_threshold"] = "over_threshold"
    share: float = Field(default=0.8, gt=0, le=1)
    system_reserve: int = Field(default=2_000, ge=0)
    output_reserve: int = Field(default=0, ge=0)
    safety_buffer: int = Field(default=0, ge=0)

    def threshold(self, limit: int, reserved: int = 0) -> int:
        """Return the design's figure: messages of this many tokens are due."""
        kept_free = max(reserved, self.output_reserve + self.safety_buffer)
        return max(0, _share(self.share, limit - self.system_reserve - kept_free))

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        return max(0, min(limit, self.threshold(limit, held.reserved) - 1 + held.tools + held.reserved))


class OverUtilization(Frozen):
    """Due when the messages take more than a share of the room left for messages (keep-ratio design: 0.8)."""

    kind: Literal["over_utilization"] = "over_utilization"
    share: float = Field(default=0.8, gt=0, le=1)

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        return held.fixed + _share(self.share, max(0, limit - held.fixed))


class Overdrawn(Frozen):
    """Due when no tokens are free: the total, reserves included, is above the limit (prune-then-summarize design)."""

    kind: Literal["overdrawn"] = "overdrawn"

    def line(self, limit: int, held: Reserved) -> int:
        """Return the largest total that is not due."""
        del held
        return limit


class Never(Frozen):
    """Never due; a context that does not fit is refused."""

    kind: Literal["never"] = "never"

    def line(self, limit: int, held: Reserved) -> int:
        """Return the limit: a larger context is refused."""
        del held
        return limit


def _written_short(value: Any) -> Any:
    """Read a bare number as a share of the limit, and a bare name as the trigger of that name."""
    if isinstance(value, float | int) and not isinstance(value, bool):
        return {"kind": "over_share", "share": value}
    return {"kind": value} if isinstance(value, str) else value


Trigger: TypeAlias = Annotated[
    Annotated[
        OverShare | OverFallingShare | OverThreshold | OverUtilization | Overdrawn | Never, Field(discriminator="kind")
    ],
    BeforeValidator(_written_short),
]
"""Any trigger; a bare number is an `OverShare`, a bare name the trigger of that name with its default figures."""


_LONGEST: Final = 60
"""Longest text that an error message repeats, in characters."""
_LEAST_MARGIN: Final = -0.3
"""No tokenizer in use counts less than 0.7 of what our counter does."""
_FIXED_PART: Final[dict[str, KeptLong]] = {"short": "nothing", "long": "fixed_part"}
"""Values of ``fixed_part``, the earlier name of ``kept_long``, as today's values."""
_ADDED_TO_STEPS: Final = (
    ("temperature", None),
    ("answer_room", 2.0),
    ("invented", "accept"),
    ("source", "shown"),
    ("asked", "alone"),
    ("names", "unlisted"),
)
"""Fields that later releases added to steps, and their defaults."""
_ADDED_LITERALS: Final = (("results_counted_as", "text"), ("counts", "counter"), ("abridged_counted_as", "shown"))
"""Fields that later releases added to policies, and their defaults, where these are words."""
_STORED_COLD: Final = "fold_when_cold"
"""How stored policies name ``compact_when_cold``: their hashes are in logs, so the name stays in their text."""


class CachePointRule(Frozen):
    """Where cache points go (cut-point design): the pre-tail point ends round N - ``offset_rounds``.

    ``kept_long`` is the part of a request that the provider is asked to keep for its long time, where it has two times
    (Anthropic: five minutes, an hour): nothing, the fixed part (system prompt and tools), or everything. Writing for
    the long time costs more, and pays back with the first pause that outlives the short one, unless the prefix was
    rewritten before that.
    """

    offset_rounds: int = Field(default=4, ge=1)
    min_rounds: int = Field(default=5, ge=1)
    lookback_blocks: int = Field(default=20, ge=1)
    """A lagging point is added when a point is more blocks than this behind the one before it.

    From a marker, Anthropic walks back 20 content blocks to find a written entry (prompt caching documentation,
    2026-11). The policy is the only place for this figure, since it is recorded with every context.
    """
    kept_long: KeptLong = "nothing"

    @model_validator(mode="before")
    @classmethod
    def _named_before(cls, fields: Any) -> Any:
        """Read logs from when ``fixed_part`` decided whether the fixed part is kept for the long time."""
        former = fields.get("fixed_part") if isinstance(fields, dict) and "kept_long" not in fields else None
        if not isinstance(former, str) or former not in _FIXED_PART:
            return fields
        return {
            **{key: value for key, value in fields.items() if key != "fixed_part"},
            "kept_long": _FIXED_PART[former],
        }


class Hiding(Frozen):
    """When old content gives way to short replacements (cut-point design, TTL pruning; design: Hiding).

    Attributes:
        unit: the unit of all ages: rounds (model responses), or turns.
        intact: how many of the newest rounds (or turns) stay untouched.
        files: for how many rounds (or turns) the newest full content of each file stays.
        old: age from which calls, texts and thoughts are shortened.
        ttl: seconds that the provider keeps its cache; by default derived from the reported usage.
        grace: seconds after the ttl until the cache counts as cold.
        minimum: smallest share of the limit that a batch has to free while the cache is cold.
        pressure_minimum: the same for a context above the trigger while the cache is warm; None never hides then.
        replacement_tokens: the most tokens of a hidden block's replacement.
        payback: hiding while the cache is warm means to send anew what follows the batch. The batch has to save that
            cost within this many calls; otherwise nothing is hidden, and the compaction decides. None asks for no
            saving.
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
    payback: int | None = Field(default=None, ge=0)


class Repeats(Frozen):
    """Which passages of a new result are left out, since an earlier block shows them (ADR 0090).

    Attributes:
        lines: the fewest lines that are left out of a passage.
        characters: the fewest characters that these lines have.
        minimum: fewest tokens by which a result gets shorter.
    """

    lines: int = Field(default=3, ge=1)
    characters: int = Field(default=120, ge=1)
    minimum: int = Field(default=40, ge=1)


class LineNumbers(Frozen):
    """Which line numbers a new result keeps: those at both ends of a run of lines, one in so many, all from 1,000 on.

    Source: ADR 0091.

    Attributes:
        every: a line keeps its number if the number is a multiple of this.
        minimum: fewest tokens by which a result gets shorter.
    """

    every: int = Field(default=10, ge=2)
    minimum: int = Field(default=40, ge=1)


class Policy(Frozen):
    """Budget, compaction, summary and cache points of a conversation. Token figures are in the unit of ``counts``.

    Attributes:
        name: for reports.
        max_tokens: the context limit.
        output_reserve, safety_buffer: tokens kept free for the answer, and for the counter's error.
        counter: ``o200k_base``, ``cl100k_base`` (exact) or ``chars4``.
        counts: the unit of limits, caps and accounts: the counter's tokens, or (``calibrated``) the provider's, by the
            ratio of the usage that the conversation's calls reported.
        margin: share added to every count, for models with another tokenizer; negative if that one counts less. With
            calibrated counts it is used only until the first calls give the ratio.
        message_tokens, response_tokens: tokens added for each message, and for each model response in addition.
        results_counted_as: how calls and results are counted: by their text, or (``json``, keep-last design) a result
            as a JSON string, and a call's name and arguments each rounded up by itself.
        trigger: when a render compacts; a number is a share of the limit, system prompt and tools included.
        target: share of the limit down to which a compaction compacts.
        stop_at: the steps end once the context is at the target, or once the trigger is no longer due.
        steps: the steps of a compaction, in order; each works on the result of the ones before it.
        on_failure: what to do when no summary could be written: continue with the next step, leave the context as it
            is, put a notice in the summary's place, or let the extractive summarizer write it.
        form: how a summary looks to the model.
        boundary: append a ``compaction.boundary`` event after each compaction, for readers of the log (keep-ratio
            design).
        summary_tokens, turn_prefix_tokens, digest_tokens: the most tokens of the summary's parts.
        preview_tokens: the most tokens of the preview of an oversize block.
        carried_share: share of the limit above which carried blocks are shown as previews.
        min_progress, min_progress_tokens: a share and a number of tokens; a compaction has to free at least the larger
            of both, or it is refused.
        attempts: how often one compaction is tried before it is given up.
        hiding: when old content is hidden; None never hides.
        repeats: which passages of a new result are left out because they are in sight already; None leaves out none.
        line_numbers: which lines of a new result keep their number; None keeps them all.
        abridged_counted_as: how to count a result that ``repeats`` or ``line_numbers`` abridged: as it is ``shown``, or
            as if the ``whole`` of it were sent. With ``whole`` the policy decides what it would decide without the two,
            and sends less.
        compact_when_cold: share of the limit above which a render compacts when the cache has gone cold; None waits for
            the trigger.
        memory_digest: the words of the memory digest, the block in view that lists the approved stages' decisions.
        stage_data: how approved stages are shown in the uncached tail; None leaves them out of it.
        cache_points: where cache markers go.
        cache: how the provider caches prompts. This says when the cache is cold and what a changed prefix costs; None
            takes it from the usage that the calls reported.
        system_parts: the most parts of a system prompt that is given as a list; further parts are joined into the last
            one (prune-then-summarize design: two). None sends the list as it is.
    """

    name: str = "cut_point"
    max_tokens: int = Field(default=80_000, ge=1_000)
    output_reserve: int = Field(default=0, ge=0)
    safety_buffer: int = Field(default=0, ge=0)
    counter: Literal["o200k_base", "cl100k_base", "chars4"] = "o200k_base"
    counts: Literal["counter", "calibrated"] = "counter"
    margin: float = Field(default=0.0, ge=_LEAST_MARGIN, le=1)
    message_tokens: int = Field(default=0, ge=0)
    response_tokens: int = Field(default=0, ge=0)
    results_counted_as: Literal["text", "json"] = "text"
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
    repeats: Repeats | None = None
    line_numbers: LineNumbers | None = None
    abridged_counted_as: Literal["shown", "whole"] = "shown"
    compact_when_cold: float | None = Field(default=None, gt=0, le=1)
    memory_digest: MemoryDigest = MemoryDigest()
    stage_data: StageData | None = None
    cache_points: CachePointRule = CachePointRule()
    cache: CacheKind | None = None
    system_parts: int | None = Field(default=None, ge=1)
    _made: tuple[str, PolicyOrigin] | None = PrivateAttr(default=None)
    """What the policy was made from, with the hash that it had then: a changed copy is not the preset's any more."""

    def __eq__(self, other: object) -> bool:
        """Return whether the fields are equal: the same policy may be made in two ways."""
        return isinstance(other, Policy) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Return the hash of the fields."""
        return hash(tuple(self.__dict__.values()))

    @model_validator(mode="before")
    @classmethod
    def _compact_when_cold_named_before(cls, fields: Any) -> Any:
        """Read the name that the stored text of a policy has."""
        if not isinstance(fields, dict) or _STORED_COLD not in fields or "compact_when_cold" in fields:
            return fields
        return {("compact_when_cold" if key == _STORED_COLD else key): value for key, value in fields.items()}

    @property
    def automatic(self) -> bool:
        """Whether renders compact without being asked."""
        return not isinstance(self.trigger, Never)

    @property
    def abridges(self) -> bool:
        """Whether new results may be abridged before they are first sent."""
        return self.repeats is not None or self.line_numbers is not None

    @property
    def origin(self) -> PolicyOrigin:
        """What the policy was made from: its name and, unless it was changed since, the preset that made it."""
        if self._made is not None and self._made[0] == self.hash():
            return self._made[1]
        return PolicyOrigin(name=self.name)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some fields changed. Unlike pydantic's own method, it checks each name and value.

        Raises:
            InvalidPolicy: there is no such field, or a value is not valid.
        """
        if not update:
            return super().model_copy(deep=deep)
        try:
            checked = type(self).model_validate({**self.__dict__, **update})
        except ValidationError as error:
            raise invalid_policy(error, type(self)) from None
        return super().model_copy(update={name: getattr(checked, name) for name in update}, deep=deep)

    def made_from(self, origin: PolicyOrigin) -> Policy:
        """Return this policy with what it was made from; neither text nor hash have it."""
        made = self.model_copy()
        made._made = (self.hash(), origin)  # noqa: SLF001 - a copy of its own class
        return made

    def calibrated(self, ratio: float) -> Policy:
        """Return this policy for a provider that counts ``ratio`` tokens where the policy's counter counts one.

        `Timeline.calibration` measures the ratio. A policy with calibrated counts begins new conversations with it.

        Raises:
            InvalidArgument: ``ratio`` is not a number above 0.
        """
        if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio < math.inf:
            raise InvalidArgument(
                "ratio", f"must be the provider's tokens for one of the counter's, above 0, not {ratio!r}"
            )
        margin = max(_LEAST_MARGIN, min(1.0, ratio - 1))
        return self.model_copy(update={"margin": round(margin, 4)})

    @property
    def first_ratio(self) -> float | None:
        """The ratio of calibrated counts before the provider reported any usage; None for the counter's own counts."""
        return round(1 + self.margin, 4) if self.counts == "calibrated" else None

    def canonical(self) -> str:
        """Return the text that is stored and hashed.

        A field that a later release added is left out at its default, so that the hashes in logs stay what they were.
        """
        fields = self.model_dump(mode="json")
        for name, literal in _ADDED_LITERALS:
            if fields[name] == literal:
                del fields[name]
        for step in fields["steps"]:
            for name, default in _ADDED_TO_STEPS:
                if name in step and step[name] == default:
                    del step[name]
        for name in [name for name in ("cache", "repeats", "line_numbers") if fields[name] is None]:
            del fields[name]
        if fields["hiding"] is not None and fields["hiding"]["payback"] is None:
            del fields["hiding"]["payback"]
        for name in ("output_reserve", "safety_buffer"):
            if fields["trigger"].get(name) == 0:
                del fields["trigger"][name]
        return canonical_json(
            {(_STORED_COLD if key == "compact_when_cold" else key): value for key, value in fields.items()}
        )

    def hash(self) -> str:
        """Return the policy's hash: sha256 of the canonical text."""
        return _hash_of(self)

    def to_toml(self) -> str:
        """Return the policy as TOML text, which `policies.load` reads back as an equal policy."""
        return toml_text(self.model_dump(mode="json"))

    @classmethod
    def parse(cls, text: str) -> Policy:
        """Read a policy's canonical text.

        Raises:
            InvalidPolicy: a field is invalid; the error names the first one.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise invalid_policy(error, cls) from None


def check_policy(argument: str, value: Any) -> None:
    """Check that a value is a policy; a common mistake is to pass a preset's name.

    Raises:
        InvalidArgument: it is not.
    """
    if not isinstance(value, Policy):
        given = repr(value) if isinstance(value, str) and len(value) <= _LONGEST else f"of type {type(value).__name__}"
        raise InvalidArgument(argument, f"must be a policy, such as policies.cut_point(), not {given}")


@lru_cache(maxsize=256)
def _hash_of(policy: Policy) -> str:
    """Return the hash of a policy, which every render asks for: equal policies have one canonical text."""
    return sha256_hex(policy.canonical())
