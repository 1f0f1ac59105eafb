"""The history of a block's form: how the block was shown, and since which version.

The prefix in front of a signature may change and change back: this history shows whether it is the same again. A
fold keeps the history of blocks whose form was decided more than once. Snapshots of earlier releases do not have it.
`changes_in` then makes it from the log's decisions, with the same result as the fold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, CompactionReverted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from timeline.events import Payload

Form: TypeAlias = Literal["whole", "replaced", "omitted", "erased"]
"""How a block is shown: whole, as something else, not at all, or as what a redaction left of it.

Two replacements of a block may differ in their bytes. A block that was omitted when it was erased stays omitted.
"""

DECIDING: Final = ("blocks.hidden", "blocks.revealed", "block.redacted", "compaction.reverted")
"""Types of the events that `changes_in` reads."""


class FormChange(NamedTuple):
    """A decision about a block: the version of its event, and how the block is shown from then on."""

    version: int
    form: Form


Changes: TypeAlias = tuple[FormChange, ...]
"""Decisions about one block, oldest first."""


def changes_in(decisions: Iterable[tuple[int, Payload]]) -> dict[int, Changes]:
    """Return the decisions about each block, by the block's version, as a fold would keep them.

    Args:
        decisions: versions and payloads of all events of a log that are `DECIDING`, up to one version.
    """
    decided = [*decisions]
    undone = {v for _, payload in decided if isinstance(payload, CompactionReverted) for v in payload.versions}
    found: dict[int, Changes] = {}
    erased: set[int] = set()
    for at, payload in decided:
        if isinstance(payload, BlockRedacted):
            erased.add(payload.version)
        for version, form in _forms(at, payload, undone).items():
            if version in erased and isinstance(payload, BlocksHidden):
                continue  # what is erased stays as it is
            before = found.get(version, ())
            is_out = form == "erased" and bool(before) and before[-1].form == "omitted"
            after: Form = "omitted" if is_out else "erased" if version in erased else form
            found[version] = (*before, FormChange(at, after))
    return found


def _forms(at: int, payload: Payload, undone: set[int]) -> Mapping[int, Form]:
    """Return the form that an event gives each block; the previews of a compaction that was undone give none."""
    match payload:
        case BlocksHidden() as hidden if hidden.reason != "spill" or at - 1 not in undone:
            form: Form = "omitted" if hidden.mode == "omit" else "replaced"
            return {replacement.version: form for replacement in hidden.blocks}
        case BlocksRevealed() as shown:
            return dict.fromkeys(shown.versions, "whole")
        case BlockRedacted() as redacted:
            return {redacted.version: "erased"}
        case _:
            return {}
