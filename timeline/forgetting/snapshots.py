"""Write a snapshot anew where events that it quotes were written anew: what it shows stays what the log folds to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from timeline.events import BlockAppended, BlocksHidden, CompactionCompleted, ContextRendered, UnknownPayload
from timeline.events.other_payloads import StageEntered
from timeline.fold.fold import count_of_unknown
from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from timeline.events import Payload
    from timeline.forgetting.quotes import Quotes
    from timeline.ports import Snapshot


def snapshot_anew(
    snapshot: Snapshot, payloads: Mapping[int, Payload], values: Mapping[str, str], quotes: Quotes
) -> Snapshot:
    """Return a snapshot with the texts and figures that payloads have now.

    Args:
        snapshot: the snapshot.
        payloads: the new payloads by version, those of the shared past included.
        values: the new hash of each stored text that is replaced, by the old one.
        quotes: what goes, of the names of models and responses too.
    """
    text = compact_json(snapshot.state)
    for hash_, replaced_by in values.items():
        text = text.replace(hash_, replaced_by)
    state: dict[str, Any] = json.loads(text)
    items: Any = state.get("items", [])
    state["items"] = [_item(item, payloads) for item in items]
    rendered: Any = state.get("rendered")
    if rendered and isinstance(new := payloads.get(rendered[0]), ContextRendered):
        prefix = None if rendered[3:] in ([], [None]) else [new.system, new.tools]
        state["rendered"] = [rendered[0], new.fingerprint, *rendered[2:3], prefix][: len(rendered)]
    _unname(state, quotes)
    stages: Any = state.get("stages", [])
    state["stages"] = [_stage(stage, payloads) for stage in stages]
    if "stages" not in snapshot.state:
        del state["stages"]
    return snapshot.model_copy(update={"state": state})


def _unname(state: dict[str, Any], quotes: Quotes) -> None:
    """Take what goes out of the names that a state has of a model and a response."""
    turns: Any = state.get("turns")
    reported: Any = state.get("reported")
    names: tuple[tuple[Any, Any], ...] = ((state, "model"), (turns, "response_id"), (reported, 0))
    for holder, place in names:
        if holder and isinstance(name := _at(holder, place), str):
            holder[place] = quotes.out_of(name)


def _at(holder: Any, place: Any) -> Any:
    return holder.get(place) if isinstance(holder, dict) else holder[place]


def _item(item: dict[str, Any], payloads: Mapping[int, Payload]) -> dict[str, Any]:
    own, decision = payloads.get(item["version"]), payloads.get(item.get("changed_at") or 0)
    if item.get("redacted"):
        return item  # an earlier redaction, which left the content in the log: it counts as its tombstone
    if isinstance(own, BlockAppended | CompactionCompleted):
        item = {**item, "tokens": own.tokens}
    elif isinstance(own, UnknownPayload):
        item = {**item, "tokens": count_of_unknown(own)[0]}
    if item.get("replacement") is not None and isinstance(decision, BlocksHidden):
        new = next((block for block in decision.blocks if block.version == item["version"]), None)
        if new is not None:
            item = {**item, "replacement": new.model_dump(mode="json", exclude_defaults=True)}
    return item


def _stage(stage: list[Any], payloads: Mapping[int, Payload]) -> list[Any]:
    new = payloads.get(stage[2])
    return [new.stage, new.label, *stage[2:]] if isinstance(new, StageEntered) else stage
