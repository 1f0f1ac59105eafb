"""What redactions wrote, or would write, and the report of it: what was reached, and what stays for which reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from timeline.errors import StoreError
from timeline.forgetting.callers import answers_to_callers
from timeline.forgetting.handed_over import handed_over_from, redactions_of
from timeline.forgetting.named_texts import named_by_others
from timeline.forgetting.spilled import other_halves
from timeline.ports import ErasureReport

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from timeline.events.addresses import Address
    from timeline.ports import EventStore


@dataclass(frozen=True, slots=True)
class Written:
    """What one redaction wrote, or would write.

    Attributes:
        conversations: those that it changed.
        events: the place of each event that was written anew, by ``conversation@version``.
        counts: numbers of everything else that was written anew, by place.
        left: for each place that was not reached, the reason.
        replaced: the hashes of the stored texts that it replaced; a text that others still name is left.
        origins: for each conversation the first redacted version; a summary that reaches it may be handed over.
        removed: the addresses of what is redacted or written anew, with their conversations.
    """

    conversations: tuple[str, ...]
    events: Mapping[str, str]
    counts: Mapping[str, int]
    left: Mapping[str, str]
    replaced: Collection[str]
    origins: Mapping[str, int]
    removed: Collection[Address]


def report_of(written: Sequence[Written]) -> ErasureReport:
    """Return the report of redactions; an event that several of them wrote anew counts once."""
    events = {event: place for one in written for event, place in one.events.items()}
    reached = Counter(events.values())
    for one in written:
        reached.update(one.counts)
    left: dict[str, list[str]] = {}
    for one in written:
        for place, why in one.left.items():
            left.setdefault(place, []).append(why)
    return ErasureReport(
        conversations=tuple(dict.fromkeys(id_ for one in written for id_ in one.conversations)),
        reached={place: number for place, number in reached.items() if number},
        rewritten=tuple(events),
        left={place: "; ".join(dict.fromkeys(whys)) for place, whys in left.items()},
    )


async def _with_copies(store: EventStore, written: Sequence[Written]) -> ErasureReport:
    """Return the report, with the copies of the redacted content that are in other conversations.

    They are the summaries with which some begin, what the callers of a subagent read back, and large results that are
    whole in one conversation and a preview in another.
    """
    report = report_of(written)
    origins: dict[str, int] = {}
    for one in written:
        for id_, first in one.origins.items():
            origins[id_] = min(first, origins.get(id_, first))
    removed = {address for one in written for address in one.removed}
    copies = {
        "handed_over": (
            await handed_over_from(store, origins) if origins else [],
            "conversations that it was handed over to begin with a summary of it, which may say it",
        ),
        "answers": (
            await answers_to_callers(store, removed),
            "agents that called it read it back, and their conversations repeat it",
        ),
        "large_results": (
            await other_halves(store, removed),
            "a large result is whole in one conversation and a preview in another",
        ),
    }
    left = {**report.left}
    for name, (found, why) in copies.items():
        if stay := [place for place in found if str(place) not in report.rewritten]:
            left[name] = f"{why}: {redactions_of(stay)}"
    return replace(report, left=left)


async def rehearsed(store: EventStore, written: Sequence[Written]) -> ErasureReport:
    """Return the report of what redactions would write, with the stored texts that would go, and those that stay."""
    report = await _with_copies(store, written)
    replaced = {hash_ for one in written for hash_ in one.replaced}
    held = await named_by_others(store, replaced, report.conversations)
    reached, left = {**report.reached}, {**report.left}
    if replaced - held:
        reached["values"] = len(replaced - held)
    if held:
        left["values"] = _stay(held)
    return replace(report, reached=reached, left=left)


def _stay(texts: Collection[str]) -> str:
    return f"{len(texts)} stored texts stay, since other conversations name them; redact them there too"


async def scrubbed(store: EventStore, written: Sequence[Written]) -> ErasureReport:
    """Rewrite the store's files without what was overwritten; return the report, which says whether that was possible.

    Which texts stay is asked after all redactions: a text that another conversation names may go with the redaction of
    that conversation.
    """
    report = await _with_copies(store, written)
    if held := await store.values({hash_ for one in written for hash_ in one.replaced}):
        report = replace(report, left={**report.left, "values": _stay(held)})
    try:
        await store.shrink()
    except StoreError as refusal:  # report any refusal, and do not raise it: the log itself is redacted already
        return replace(report, left={**report.left, "files": str(refusal)})
    return replace(report, physical=True)
