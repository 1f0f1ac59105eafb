"""The naive fold's third part: stages, worked out anew from the whole log, and what must be true of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.invariants.reference import blocks_of
from timeline.blocks import StageDigest
from timeline.events import appended_block
from timeline.events.other_payloads import StageApproved, StageEntered, StageRewound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.invariants.reference import LogLine

NOT_SAID: Final = {"note", "stage.digest", "system.message", "conv.range.summary"}


def standing_stages(log: Sequence[LogLine]) -> list[tuple[str, int, int]]:
    """List the stages that stand, oldest first: name, version that it began at, and that approved it (0 for none)."""
    row: list[tuple[str, int, int]] = []
    for version, payload, _ in log:
        if isinstance(payload, StageEntered):
            row.append((payload.stage, version, 0))
        elif isinstance(payload, StageApproved):
            row[-1] = (payload.stage, row[-1][1], version)
        elif isinstance(payload, StageRewound):
            while row[-1][0] != payload.stage:
                row.pop()
            row[-1] = (payload.stage, row[-1][1], 0)
    return row


def check_stages(log: Sequence[LogLine]) -> None:
    """Each approval and each way back brings the whole digest, and an approval says where its messages stand."""
    for index, (version, payload, _) in enumerate(log):
        if not isinstance(payload, StageApproved | StageRewound):
            continue
        stages = standing_stages(log[: index + 1])
        approvals = {v: p for v, p, _ in log[: index + 1] if isinstance(p, StageApproved)}
        digest = appended_block(log[index + 1].payload)
        assert isinstance(digest, StageDigest)
        lines = [line for line in digest.text.splitlines() if line.startswith("- ")]
        told = [approvals[at] for _, _, at in stages if at]
        assert lines == [f"- {each.label}: {each.decision}" for each in told]
        if isinstance(payload, StageApproved):
            began = stages[-1][1]
            said = [v for v, block in blocks_of(log).items() if began < v < version and block.type not in NOT_SAID]
            assert (payload.first, payload.last) == ((min(said), max(said)) if said else (0, 0))
            assert (payload.count > 0) == bool(said)
            assert payload.count <= len(said)
