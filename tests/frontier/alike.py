"""Settings that are a published default with its cache used better: `Alike` compacts as it does, `Spared` hides so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from timeline import policies
from timeline.policy.files import find_policy
from timeline.policy.model import Policy
from timeline.policy.steps import Summarize

if TYPE_CHECKING:
    from timeline.usage import KeptLong

FIXED_PART: Final = "fixed_part"
EVERYTHING: Final = "everything"


class Words(NamedTuple):
    """What stands for the blocks before a cut, in tokens at most: the record of all that was done, and the summary."""

    record: int
    summary: int

    @property
    def name(self) -> str:
        """Both."""
        return f"{self.record}+{self.summary}"


WORDY: Final = Words(record=1_500, summary=2_000)
"""Where a compaction is rare."""


class Alike(NamedTuple):
    """A published design's own line and cut, with all of ours that takes nothing out of sight.

    Its summary is asked for in the cached context, by one question also where the cut divides a turn; what the design
    clears is cleared, and nothing is hidden. So it shows about what the design shows, on any conversation; what differs
    is the length of summaries.

    Attributes:
        design: name of the published default.
        keep: kept behind the cut instead of what the design keeps: a share, or tokens.
        trigger: share of the limit above which it compacts, instead of the design's line.
        words: what is written at most; the summary is never longer than the design's.
        kept_long: what is kept for an hour.
    """

    design: str
    keep: float | None = None
    trigger: float | None = None
    words: Words = WORDY
    kept_long: KeptLong = EVERYTHING

    @property
    def name(self) -> str:
        """The design, and what is different in it."""
        line = "" if self.trigger is None else f" above {self.trigger:g}"
        keep = "" if self.keep is None else f" keep {self.keep:,g}"
        words = "" if self.words == WORDY else f" in {self.words.name}"
        hour = " for an hour" if self.kept_long == EVERYTHING else ""
        return f"as {self.design}{line}{keep}{words}{hour}"

    def policy(self, limit: int) -> Policy:
        """Return the policy at a limit."""
        design = find_policy(self.design, max_tokens=limit)
        return policies.balanced(
            max_tokens=limit,
            output_reserve=design.output_reserve,
            trigger=design.trigger if self.trigger is None else self.trigger,
            target=0.9,
            steps=[self._summarized(step) if isinstance(step, Summarize) else step for step in design.steps],
            hiding=None,
            compact_when_cold=None,
            cache_points={"kept_long": self.kept_long},
            summary_tokens=min(design.summary_tokens, self.words.summary),
            digest_tokens=self.words.record,
        )

    def _summarized(self, step: Summarize) -> dict[str, object]:
        cut = step.cut.model_dump()
        if cut["kind"] == "cut_point":
            together = {"on_split": "together"} if cut["on_split"] == "split" else {}
            cut |= {"halvings": 4, **together, **self._kept()}
        return {"kind": "summarize", "cut": cut, "invented": "repair", "source": "original", "asked": "in_cache"}

    def _kept(self) -> dict[str, float | None]:
        if self.keep is None:
            return {}
        share = self.keep < 1
        return {"keep_recent_tokens": None, "keep_recent": self.keep} if share else {"keep_recent_tokens": self.keep}


class Spared(NamedTuple):
    """A published design that hides, as it is but for its cache: larger batches, and some of it kept for an hour.

    Each batch has what stands behind it written anew. It shows what the design shows, and what waits for a batch. In
    the design's own batches only the cache is another one.

    Attributes:
        design: name of the published default.
        batch: least share of the limit that a batch frees; None for the design's.
        kept_long: what is kept for an hour.
        trigger: share of the limit above which it hides, instead of the design's line.
    """

    design: str
    batch: float | None
    kept_long: KeptLong
    trigger: float | None = None

    @property
    def name(self) -> str:
        """The design, and what is different in it."""
        line = "" if self.trigger is None else f" above {self.trigger:g}"
        hour = " for an hour" if self.kept_long == EVERYTHING else ""
        batches = "its own batches" if self.batch is None else f"batches of {self.batch:g}"
        return f"{self.design}{line} in {batches}{hour}"

    def policy(self, limit: int) -> Policy:
        """Return the policy at a limit."""
        design = find_policy(self.design, max_tokens=limit).model_dump()
        hiding = design["hiding"]
        least = "minimum" if hiding["pressure_minimum"] is None else "pressure_minimum"
        if self.batch is not None:
            design |= {"hiding": hiding | {least: self.batch}}
        design |= {"cache_points": design["cache_points"] | {"kept_long": self.kept_long}}
        if self.trigger is not None:
            design["trigger"] = self.trigger
        return Policy.model_validate(design)


FEW: Final = Words(record=600, summary=400)
SOME: Final = Words(record=600, summary=800)
"""Where a compaction comes every few minutes: each is written, and then read by every call."""
ALIKE: Final = [
    Alike("anthropic-compact", keep=6_000, trigger=0.7),
    Alike("claude-code", keep=10_000, trigger=0.8),
    Alike("cline", keep=39_000, trigger=0.805),
    Alike("crush", keep=6_000, trigger=0.78),
    Alike("deepagents", keep=0.17, trigger=0.8),
    Alike("keep_last", trigger=0.73),
    Alike("keep_ratio"),
    Alike("langchain", trigger=0.79),
    Alike("opencode", keep=14_000, trigger=0.945),
    Alike("pi", keep=22_000, trigger=0.935),
    Alike("seed-002-first"),
    Alike("strands", trigger=0.82),
    Alike("anthropic-compact", keep=5_500, words=SOME, kept_long=FIXED_PART),
    Alike("claude-code", keep=5_500, words=FEW, kept_long=FIXED_PART),
    Alike("cline", keep=22_500, words=SOME, kept_long=FIXED_PART),
    Alike("crush", keep=2_500, trigger=0.83, words=SOME, kept_long=FIXED_PART),
    Alike("deepagents", keep=0.175, words=FEW, kept_long=FIXED_PART),
    Alike("opencode", keep=3_500, words=FEW, kept_long=FIXED_PART),
    Alike("pi", keep=18_000, words=SOME, kept_long=FIXED_PART),
    Alike("anthropic-compact", keep=5_000, words=SOME, kept_long=FIXED_PART),
    Alike("claude-code", keep=7_000, words=SOME, kept_long=FIXED_PART),
    Alike("cline", keep=0.45, words=SOME, kept_long=FIXED_PART),
    Alike("crush", keep=4_000, words=FEW, kept_long=FIXED_PART),
    Alike("deepagents", keep=0.15, words=FEW, kept_long=FIXED_PART),
]
"""Lines and cuts of published defaults, so that no less is in sight on the average where passages are shown once, see
`tests.frontier.settings.Once`: for 200,000 tokens first, then for 100,000 and for 32,000."""
SPARED: Final = [Spared("clear-tool-uses", 0.12, FIXED_PART, 0.49), Spared("seed-002-first", None, FIXED_PART)]
"""What answers the defaults that hide, at 200,000 tokens, and at 100,000."""
