"""What automatic hides promise, checked on a log: the clock, what is never touched, what a batch frees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.invariants import reference, reference_time
from tests.invariants.checks import messages
from timeline.blocks import Note, RangeSummary, StageDigest, TurnHeader, UserPrompt, continues
from timeline.events import BlocksHidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.invariants.reference import LogLine
    from timeline.blocks import Block
    from timeline.events import Replacement
    from timeline.policy.model import Hiding, Policy

AUTOMATIC: Final = {"cold", "pressure"}
"""The reasons of hides that a render decides by itself."""
NEVER: Final = (TurnHeader, RangeSummary, Note, StageDigest)


def batches(log: Sequence[LogLine]) -> list[tuple[int, BlocksHidden]]:
    """List the automatic hides of a log, each with its place in it."""
    return [
        (index, line.payload)
        for index, line in enumerate(log)
        if isinstance(line.payload, BlocksHidden) and line.payload.reason in AUTOMATIC
    ]


def check_untouched(log: Sequence[LogLine]) -> None:
    """No automatic hide touches what is never hidden; what was hidden is not hidden again."""
    for index, batch in batches(log):
        before = reference.standing(log[:index])
        states, blocks = reference.states(before), reference.blocks_of(before)
        live = reference.order(before)
        spared = {*_newest_message([blocks[v] for v in live], live), *reference.open_calls(before)}
        assert batch.mode == "replace"
        for replacement in batch.blocks:
            version = replacement.version
            assert states[version] in {"visible", "carried"}, f"version {version} is {states[version]} already"
            assert not isinstance(blocks[version], NEVER)
            assert not reference.is_pinned(before, version), f"version {version} is pinned"
            assert not reference.is_revealed(before, version), f"version {version} was revealed"
            assert version not in spared, f"version {version} is of the newest message, or an open call"


def _newest_message(blocks: Sequence[Block], versions: Sequence[int]) -> Iterator[int]:
    """Yield the versions of the newest message's prompts, the last one first."""
    last = max((n for n, block in enumerate(blocks) if isinstance(block, UserPrompt)), default=-1)
    for n in range(last, -1, -1):
        if isinstance(blocks[n], UserPrompt):
            yield versions[n]
        if not continues(blocks[n], blocks[n - 1] if n else None):
            return


def check_guards(log: Sequence[LogLine], policy: Policy, fixed: int) -> None:
    """No automatic hide comes while the cache may be warm, unless the context is above the trigger."""
    hiding = policy.hiding
    assert hiding is not None or not batches(log), "a policy without hiding hides"
    for index, batch in batches(log):
        assert hiding is not None
        before = log[:index]
        if batch.reason == "cold":
            touch = reference_time.touch(before)
            assert touch is not None, "hidden as cold, and nothing was ever sent"
            asked = 3_600 if policy.cache_points.kept_long == "everything" else 300
            ttl = hiding.ttl or max(touch[1], asked)
            assert (log[index].at - touch[0]).total_seconds() >= ttl + hiding.grace
        else:
            assert hiding.pressure_minimum is not None
            assert messages(before, policy) + fixed > 0.9 * policy.max_tokens


def check_batches(log: Sequence[LogLine], policy: Policy) -> None:
    """Each batch frees its minimum, leaves the newest rounds alone, and says in few tokens what it hid and where."""
    hiding = policy.hiding
    for index, batch in batches(log):
        assert hiding is not None
        before, after = log[:index], log[: index + 1]
        share = hiding.minimum if batch.reason == "cold" else hiding.pressure_minimum or 0
        freed = messages(before, policy) - messages(after, policy)
        assert freed == batch.facts["freed_tokens"]
        assert freed >= int(share * policy.max_tokens)
        assert freed > 0
        live = reference.standing(before)
        for replacement in batch.blocks:
            assert age(live, replacement.version, hiding) >= hiding.intact
            _check_replacement(replacement)


def _check_replacement(replacement: Replacement) -> None:
    """A replacement ends with the address, save that of a thought, which shows nothing."""
    shown = replacement.text if replacement.arguments is None else str(replacement.arguments["_hidden"])
    assert not shown or shown.endswith(f" @{replacement.version}")


def age(log: Sequence[LogLine], version: int, hiding: Hiding) -> int:
    """Count the rounds (or turns) of the window that are newer than a block's own."""
    live, blocks = reference.order(log), reference.blocks_of(log)
    behind = live[live.index(version) + 1 :]
    if hiding.unit == "turns":
        newer = [blocks[v].turn_id for v in behind]
        # A turn is as old as its newest block is.
        own = blocks[version].turn_id
        last = max((i for i, turn in enumerate(newer) if turn == own), default=-1)
        return len({*newer[last + 1 :]})
    number, given = reference.responses(log), reference.answers(log)

    def response(v: int) -> int:
        call = given.get(v)
        return number.get(v) or (number[call] if call is not None else 0)

    own_number = response(version)
    if own_number:
        return len({response(v) for v in live if response(v) > own_number})
    return len({response(v) for v in behind if response(v)})
