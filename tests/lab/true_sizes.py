"""Play a recording against a provider that counts otherwise: how large is each context that is really sent?

The library counts with its own vocabulary, as in an application. The provider's size of a block is what the recorded
usage says of it; what a policy writes (replacements, summaries) costs the provider as much for each of our tokens as
the conversation does on the whole. Each call reports the size of the very context that it was sent, so that whatever the
library learns from usage, it learns from figures that follow its own decisions.

    python -m tests.lab.true_sizes FILE… [--limit 200000] [--policy balanced] [--model claude-opus-4-6] [--hidden 0]
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio

from timeline import policies
from timeline.errors import BudgetError
from timeline.events import BlockAppended, ModelCalled
from timeline.fold.counts import Recount
from timeline.importers import read_recording
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.lab.replay import fixed_part
from timeline.lab.sizes import measure
from timeline.portable.recordings import drafts_of
from timeline.store import MemoryStore
from timeline.timeline import Timeline
from timeline.tokens import get_counter
from timeline.events import derived_event_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.importers.recording import Recording
    from timeline.lab.sizes import Measured
    from timeline.policy.model import Policy
    from timeline.projection.context import RenderedContext
    from timeline.usage import Usage

LIMITS: Final = (200_000, 100_000, 32_000)
POLICIES: Final = ("balanced", "gentle", "economical", "cut_point")
COUNTER: Final = get_counter("o200k_base")
_WORD: Final = " word"
"""One token of our vocabulary: a system prompt of any size is made of it."""


@dataclass(slots=True)
class Played:
    """What came of a recording under one policy.

    Attributes:
        calls: contexts that were sent.
        above: of these, larger than the limit as the provider counts.
        refused: renders that ended in a budget error.
        largest: the largest share of the limit that the provider counted.
        least: the smallest share of a context's true size that the library's figure was, from the fifth call on.
        most: the largest such share.
        ratio: the provider's tokens for one of ours, over the whole recording.
        measured: the ratio that the library ended with.
    """

    calls: int = 0
    above: int = 0
    refused: int = 0
    largest: float = 0.0
    ratio: float = 1.0
    measured: float = 1.0
    errors: list[float] = field(default_factory=list)


class TrueSizes:
    """The provider's sizes of contexts, made of a recording's measured blocks.

    Args:
        measured: the recording.
        ratio: the provider's tokens for one of ours in texts that no recording has.
        fixed: the provider's tokens of the fixed part.
    """

    def __init__(self, ratio: float, fixed: int) -> None:
        self.ratio, self.fixed = ratio, fixed
        self.of_block: dict[int, int] = {}
        self._recount = Recount(COUNTER)

    def of(self, context: RenderedContext) -> int:
        """Return the tokens of a context."""
        own = self._recount.items(context.window.items)
        sizes = (
            self.of_block[item.version]
            if item.replacement is None and item.version in self.of_block
            else round(item.shown_tokens * self.ratio)
            for item in own
            if not item.unsent
        )
        return self.fixed + sum(sizes)


def overall_ratio(measured: Measured) -> float:
    """Return the provider's tokens for one of ours, over all blocks of a recording."""
    events = [e for e in measured.recording.events if isinstance(e.payload, BlockAppended)]
    own = COUNTER.count_many([e.payload.block.countable() for e in events if isinstance(e.payload, BlockAppended)])
    theirs = [
        tokens
        for event, tokens in zip(measured.recording.events, measured.tokens, strict=True)
        if isinstance(event.payload, BlockAppended)
    ]
    return sum(theirs) / sum(own) if sum(own) else 1.0


async def play(recording: Recording, policy: Policy, *, hidden: int = 0) -> Played:
    """Play a recording.

    Args:
        recording: from an importer.
        policy: what to render under.
        hidden: tokens of the fixed part that only the provider knows.
    """
    measured = measure(recording)
    ratio = overall_ratio(measured)
    fixed = fixed_part(measured.fixed, policy.max_tokens)
    sizes = TrueSizes(ratio, fixed)
    system = _WORD * max(1, round((fixed - hidden) / ratio))
    played = Played(ratio=ratio)
    timeline = await Timeline.open(MemoryStore(), "played", policy=policy, now=recording.events[0].at)
    calls = {call.position: call for call in measured.calls}
    sent: dict[str, tuple[int | None, int]] = {}
    newest: tuple[int | None, int] = (None, 0)
    for position, event in enumerate(recording.events):
        payload = event.payload
        if position in calls:
            newest = (None, 0)
            try:
                context = await timeline.render(system=system, now=event.at)
            except BudgetError:
                played.refused += 1
            else:
                true = sizes.of(context)
                newest = (context.recorded, true)
                played.calls += 1
                played.above += true > policy.max_tokens
                played.largest = max(played.largest, true / policy.max_tokens)
                played.errors.append(context.account.sent / true)
        if isinstance(payload, ImportedCompaction | ImportedHide):
            continue
        if isinstance(payload, ModelCalled):
            answers, true = newest
            usage = rescaled(payload.usage, true) if answers is not None else type(payload.usage)()
            payload = payload.model_copy(update={"answers": answers, "usage": usage})
        [draft] = await drafts_of(timeline, [(event, derived_event_id(event.at, timeline.id, event.key))])
        if isinstance(payload, ModelCalled):
            draft = draft._replace(payload=payload)
        await timeline.extend([draft])
        if isinstance(payload, BlockAppended):
            sizes.of_block[timeline.version] = measured.tokens[position]
    played.measured = (await timeline.calibration()).ratio
    return played


def rescaled(usage: Usage, total: int) -> Usage:
    """Return a usage with the same kinds of input tokens, and ``total`` of them."""
    names = ("input_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")
    before = usage.sent_tokens
    if not before:
        return usage
    shares: dict[str, Any] = {name: getattr(usage, name) * total // before for name in names}
    largest = max(names, key=lambda name: shares[name])
    shares[largest] += total - sum(shares.values())
    return usage.model_copy(update=shares)


async def _table(files: Sequence[str], limits: Sequence[int], names: Sequence[str], model: str, hidden: int) -> None:
    sums: dict[tuple[str, int], Played] = {}
    for file in files:
        recording = read_recording(Path(file))[0]
        for name in names:
            for limit in limits:
                policy = getattr(policies, name)(model=model, max_tokens=limit)
                played = await play(recording, policy, hidden=hidden)
                total = sums.setdefault((name, limit), Played())
                total.calls += played.calls
                total.above += played.above
                total.refused += played.refused
                total.largest = max(total.largest, played.largest)
                late = sorted(played.errors[5:]) or [1.0]
                print(
                    f"{Path(file).stem[:8]} {name:<10} {limit:>7} calls {played.calls:>4} above {played.above:>4}",
                    f"refused {played.refused:>3} largest {played.largest:.3f} ratio {played.ratio:.2f}",
                    f"measured {played.measured:.2f} ours/true {late[0]:.3f} {late[len(late) // 2]:.3f} {late[-1]:.3f}",
                    flush=True,
                )
    for (name, limit), total in sums.items():
        print(
            f"{name:<10} {limit:>7}: {total.above} of {total.calls} calls above, {total.refused} refused,",
            f"largest {total.largest:.3f}",
        )


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("files", nargs="+")
    parser.add_argument("--limit", type=int, action="append")
    parser.add_argument("--policy", action="append")
    parser.add_argument("--model", default="claude-opus-4-6")
    parser.add_argument("--hidden", type=int, default=0)
    given = parser.parse_args()
    anyio.run(_table, given.files, given.limit or LIMITS, given.policy or POLICIES, given.model, given.hidden)
