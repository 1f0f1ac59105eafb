"""Play a recording against a provider that counts otherwise: how large is each context that is really sent?

The library counts with its own vocabulary, as in an application. The provider's size of a block is what the recorded
usage says of it, and each call reports the size of the very context that it was sent (`timeline.lab.true_sizes`). The
fixed part is the recorded client's, as the lab replays it.

    python -m tests.lab.true_sizes FILE… [--limit 200000] [--policy balanced] [--model claude-opus-4-6] [--hidden 0]
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from timeline import policies
from timeline.errors import BudgetError
from timeline.events import BlockAppended, ModelCalled, derived_event_id
from timeline.fold.reported import REWRITES
from timeline.importers import read_recording
from timeline.importers.recording import ImportedCompaction, ImportedHide
from timeline.lab.replay import fixed_part
from timeline.lab.sizes import measure
from timeline.lab.true_sizes import TrueSizes, overall_ratio, rescaled
from timeline.portable.recordings import drafts_of
from timeline.store import MemoryStore
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.importers.recording import Recording
    from timeline.policy.model import Policy

LIMITS: Final = (200_000, 100_000, 32_000)
POLICIES: Final = ("balanced", "gentle", "economical", "cut_point")
_WORD: Final = " word"
"""One token of our vocabulary: a system prompt of any size is made of it."""


@dataclass(slots=True)
class Played:
    """What came of a recording under one policy.

    Attributes:
        calls: contexts that were sent.
        above: of these, larger than the limit as the provider counts.
        refused: renders that ended in a budget error.
        compactions: summaries that took the place of blocks.
        rewrites: events that changed what was shown: hides and compactions.
        largest: the largest share of the limit that the provider counted.
        ratio: the provider's tokens for one of ours, over the whole recording.
        measured: the ratio that the library ended with.
        errors: of each context the library's figure as a share of its true size.
    """

    calls: int = 0
    above: int = 0
    refused: int = 0
    compactions: int = 0
    rewrites: int = 0
    largest: float = 0.0
    ratio: float = 1.0
    measured: float = 1.0
    errors: list[float] = field(default_factory=list)


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
    store = MemoryStore()
    timeline = await Timeline.open(store, "played", policy=policy, now=recording.events[0].at)
    calls = {call.position: call for call in measured.calls}
    newest: tuple[int | None, int] = (None, 0)
    for position, event in enumerate(recording.events):
        payload = event.payload
        if position in calls:
            newest = (None, 0)
            try:
                context = await timeline.render(system=system, now=calls[position].start)
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
    rewrote = [event.type async for event in store.read("played", types=REWRITES)]
    played.compactions, played.rewrites = rewrote.count("compaction.completed"), len(rewrote)
    return played


async def _table(files: Sequence[str], limits: Sequence[int], names: Sequence[str], model: str, hidden: int) -> None:
    sums: dict[tuple[str, int], Played] = {}
    for file in files:
        recording = read_recording(Path(file))[0]
        for name in names:
            for limit in limits:
                policy = getattr(policies, name)(model=model or None, max_tokens=limit)
                played = await play(recording, policy, hidden=hidden)
                total = sums.setdefault((name, limit), Played())
                total.calls += played.calls
                total.above += played.above
                total.refused += played.refused
                total.compactions += played.compactions
                total.rewrites += played.rewrites
                total.largest = max(total.largest, played.largest)
                late = sorted(played.errors[5:]) or [1.0]
                print(
                    f"{Path(file).stem[:8]} {name:<10} {limit:>7} calls {played.calls:>4} above {played.above:>4}",
                    f"refused {played.refused:>3} compactions {played.compactions:>2} largest {played.largest:.3f}",
                    f"ratio {played.ratio:.2f} measured {played.measured:.2f}",
                    f"ours/true {late[0]:.3f} {late[len(late) // 2]:.3f} {late[-1]:.3f}",
                    flush=True,
                )
    for (name, limit), total in sums.items():
        print(
            f"{name:<10} {limit:>7}: {total.above} of {total.calls} calls above, {total.refused} refused,",
            f"{total.compactions} compactions, {total.rewrites} rewrites, largest {total.largest:.3f}",
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
