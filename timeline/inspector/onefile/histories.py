"""How the state of each block changed, so that a file shows the log as it was at any version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, CompactionCompleted
from timeline.inspector.decided import TYPES

if TYPE_CHECKING:
    from timeline.events import Payload
    from timeline.inspector.reader import Reader


async def histories(reader: Reader, conversation: str, rows: list[dict[str, Any]]) -> dict[int, list[tuple[Any, ...]]]:
    """Return the changes of the blocks that changed, each with version, state, covering summary and tokens sent.

    Of a log whose past was scavenged there are none: decisions are gone with it.
    """
    info = await reader.store.info(conversation)
    if info.first_version > 1:
        return {}
    blocks = {row["version"]: row for row in rows if row["address"]}
    changes: dict[int, list[tuple[Any, ...]]] = {}
    known: dict[int, tuple[Any, ...]] = {}
    async for event in reader.store.read(conversation, types=TYPES):
        states = await reader.decisions.at(info, event.version)
        for version in _touched(event.payload, blocks):
            row = blocks[version]
            if version > event.version:
                continue
            state, covered_by = states.of(version)
            now = (state, covered_by)
            if known.get(version, ("visible", None)) != now:
                known[version] = now
                changes.setdefault(version, []).append((event.version, *now, _sent(state, row)))
    return changes


def _touched(payload: Payload, blocks: dict[int, dict[str, Any]]) -> list[int]:
    """Return the blocks whose state an event may change; an undo may change any."""
    match payload:
        case BlocksHidden(blocks=hidden):
            wanted = [one.version for one in hidden]
        case BlocksRevealed(versions=versions):
            wanted = list(versions)
        case BlockRedacted(version=version):
            wanted = [version]
        case CompactionCompleted(covers=covers, carried=carried):
            wanted = [version for version in blocks if version in covers or version in carried]
        case _:
            wanted = list(blocks)
    return [version for version in wanted if version in blocks]


def _sent(state: str | None, row: dict[str, Any]) -> int:
    """Return the tokens that are sent of a block in a state; of one that is in that state now the row's own figure."""
    if state == row["state"]:
        return int(row["shown_tokens"] or 0)
    return int(row["tokens"] or 0) if state in {"visible", "carried"} else 0
