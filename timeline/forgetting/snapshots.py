"""Write a snapshot anew after the events that it quotes were: it must stay equal to the fold of the log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from timeline.events import BlockAppended, BlocksHidden, CompactionCompleted, ContextRendered, UnknownPayload
from timeline.events.other_payloads import StageEntered
from timeline.fold.fold import Fold, count_of_unknown
from timeline.fold.window import TOMBSTONE
from timeline.frozen import compact_json
from timeline.log.history import restored

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from timeline.events import Payload
    from timeline.forgetting.quotes import Quotes
    from timeline.ports import EventStore, Snapshot


def snapshot_anew(
    snapshot: Snapshot, payloads: Mapping[int, Payload], values: Mapping[str, str], quotes: Quotes
) -> Snapshot:
    """Return a snapshot with the texts and figures that payloads have now.

    Args:
        snapshot: the snapshot.
        payloads: the new payloads by version, those of the shared past included.
        values: the new hash of each stored text that is replaced, by the old one.
        quotes: what is redacted, also from the names of models and responses.
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


async def base_anew(  # noqa: PLR0917 - what a base is made of, and what is to be anew in it
    store: EventStore,
    conversation: str,
    without: Collection[int],
    payloads: Mapping[int, Payload],
    values: Mapping[str, str],
    quotes: Quotes,
) -> Fold:
    """Return the fold with which the readable log begins, with what the events say now.

    Args:
        store: holds the conversation.
        conversation: its id.
        without: versions of the compactions that are taken back later.
        payloads: see `snapshot_anew`.
        values: see `snapshot_anew`.
        quotes: see `snapshot_anew`.
    """
    base = await store.load_base(conversation)
    if base is None or base.snapshot is None:
        return Fold(conversation, without)
    events = [e.model_copy(update={"payload": payloads.get(e.version, e.payload)}) for e in base.events]
    return await restored(store, conversation, snapshot_anew(base.snapshot, payloads, values, quotes), events, without)


def _unname(state: dict[str, Any], quotes: Quotes) -> None:
    """Take redacted words out of the names of a model and a response in a state."""
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
        return item  # redacted by an earlier release, which left the content in the log: it counts as its tombstone
    if isinstance(own, BlockAppended | CompactionCompleted):
        item = {**item, "tokens": own.tokens}
    elif isinstance(own, UnknownPayload):
        item = {**item, "tokens": count_of_unknown(own)[0]}
    replacement: Any = item.get("replacement")
    if replacement is not None:
        hidden = decision.blocks if isinstance(decision, BlocksHidden) else ()
        new = next((block for block in hidden if block.version == item["version"]), None)
        if new is not None:
            item = {**item, "replacement": new.model_dump(mode="json", exclude_defaults=True)}
        elif isinstance(own, BlockAppended | UnknownPayload):  # erased; the decision that hid it was scavenged
            gone = {"text": TOMBSTONE, "arguments": {}}
            item = {**item, "replacement": {name: gone.get(name, value) for name, value in replacement.items()}}
    return item


def _stage(stage: list[Any], payloads: Mapping[int, Payload]) -> list[Any]:
    new = payloads.get(stage[2])
    return [new.stage, new.label, *stage[2:]] if isinstance(new, StageEntered) else stage
