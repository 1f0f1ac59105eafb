"""Decide what becomes of each event of a conversation when content of it is redacted. Pure: events in, payloads out.

Redacted content is erased, and so is everything made of it: the replacement in its place, the summaries that covered
it, the summaries of those, their digests, and the hashes of contexts and bodies that contained it. Summaries are
written anew from what is left. Other events lose the words that they quote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel

from timeline.audit.redacting import Eraser, without_hash
from timeline.blocks import StageDigest, ToolCall, ToolResult, instant_text
from timeline.events import (
    ABRIDGED,
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    ContextRendered,
    ModelCalled,
    PolicyOrigin,
    appended_block,
)
from timeline.events.addresses import SIGN
from timeline.events.encoding import checksum, decode_payload, encode_payload
from timeline.events.other_payloads import CompactionFailed, FrameworkEntry, HookFailed
from timeline.facts.call_versions import CallVersions
from timeline.facts.of_items import WindowFacts
from timeline.fold.fold import HistoryNeeded
from timeline.fold.window import TOMBSTONE, Window
from timeline.forgetting.quotes import words_of
from timeline.forgetting.second_copies import without_second_copy
from timeline.forgetting.summaries import summary_anew
from timeline.frozen import compact_json
from timeline.log.in_turns import in_turns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.fold.fold import Fold
    from timeline.forgetting.quotes import Quotes
    from timeline.ports import EventStore

RECALL: Final = "recall"
"""Name of the tool that reads a block back: its result repeats the block."""
UNNAMED: Final = "redacted"
"""Replaces the erased name of a tool: providers allow hardly more than letters and digits in it."""
_ERRORS: Final = {CompactionFailed: "detail", HookFailed: "error", ModelCalled: "error"}
_SHOWN: Final = (CompactionCompleted, BlocksHidden)
"""Payloads, besides blocks, whose texts a context shows."""


@dataclass(slots=True)
class Rewriter:
    """Goes through the events of one conversation, shared ones first, and collects what is written anew.

    Args:
        fold: the fold with which the readable log begins; each event is applied to it.
        targets: versions of the blocks whose content is erased, each with the reason.
        quotes: the texts of these blocks, or the words to take out.
        texts: their texts as they begin, for titles, which begin like them.
        answered: ids of the calls whose results are among them.
        values: content-addressed texts that are replaced: the new hash by the old one.
        shared: new payloads of events that the conversation shares with its parents.
        base: the last version that it shares.
    """

    fold: Fold
    targets: Mapping[int, str]
    quotes: Quotes
    texts: Collection[str] = ()
    answered: Collection[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[int, Payload] = field(default_factory=dict)
    base: int = 0
    payloads: dict[int, Payload] = field(default_factory=dict)
    checksums: dict[int, str] = field(default_factory=dict)
    """The checksum of each event that is written anew."""
    _eraser: Eraser = field(init=False)
    _known: WindowFacts = field(default_factory=WindowFacts)
    _partners: set[int] = field(default_factory=set)
    _calls: CallVersions = field(default_factory=CallVersions)
    _changed_since: float = inf
    """The first version at which something that a context may show was written anew."""
    _blind: bool = False
    """Whether the fold could not go on; summaries are then emptied instead of written anew."""

    def __post_init__(self) -> None:
        """Make the eraser, which knows which content was made from which."""
        self._eraser = Eraser(dict.fromkeys(self.targets, inf), self.targets, self.texts)

    def take(self, event: Event) -> None:
        """Take the next event."""
        old = event.payload
        self._pair(event.version, appended_block(old))
        new = self.shared.get(event.version) or self._rewritten(event)
        if new is not None and new != old:
            if isinstance(new, _SHOWN) or (self._is_digest(new) and event.version not in self.targets):
                self._changed_since = min(self._changed_since, event.version)
            if event.version > self.base:
                self.payloads[event.version] = new
                self.checksums[event.version] = _checksum(event, new)
        self._fold(event, new or old)

    def may_be_recalled(self, events: Iterable[Event], paths: Mapping[int, str]) -> bool:
        """Return whether one of further events may repeat a redacted block: asks the recall tool for it, or answers.

        Args:
            events: behind those that were taken.
            paths: by version the path of each block that may go.
        """
        names = {*paths.values(), *(f"{SIGN}{version}" for version in paths)}
        late = CallVersions()
        for event in events:
            block = appended_block(event.payload)
            if isinstance(block, ToolCall):
                late.add(event.version, block)
                if asked_for(block) in names:
                    return True
            elif isinstance(block, ToolResult) and late.answered(block) is None:
                call = self._calls.answered(block)
                item = None if call is None else self.fold.live(call)
                if call is not None and (item is None or asked_for(item.block) in names):
                    return True  # of a call that is out of view nobody knows here what it asked for
        return False

    def go_on_from(self, fold: Fold, at: datetime) -> None:
        """Go on from a fold of all earlier events in their new form, and redact the targets in its window."""
        self.fold = fold
        for version in self.targets:
            if version <= fold.version and fold.live(version) is not None:
                fold.apply(fold.version, at, BlockRedacted(version=version))

    def _pair(self, version: int, block: Block | None) -> None:
        """Note which block is the other half of a redacted call or result: its replacement quotes the redacted one."""
        if isinstance(block, ToolCall):
            self._calls.add(version, block)
        elif block is not None and block.call_id is not None:
            call = self._calls.answered(block)
            if call is not None and (call in self.targets or version in self.targets):
                self._partners.update({call, version})

    def _fold(self, event: Event, payload: Payload) -> None:
        if self._blind or event.version <= self.fold.version:
            return
        if isinstance(payload, CompactionCompleted):
            self._known.cover(payload, self.fold.window.items)
        try:
            self.fold.apply(event.version, event.at, payload)
        except HistoryNeeded:
            self._blind = True
            return
        if event.version in self.targets and self.fold.live(event.version) is not None:
            self.fold.apply(event.version, event.at, BlockRedacted(version=event.version))

    def _rewritten(self, event: Event) -> Payload | None:
        """Return the payload of an event without what goes; None where nothing changes."""
        old = event.payload
        if isinstance(old, BlocksHidden) and old.reason in ABRIDGED:
            # An abridged result shows only its own words, so they are erased with it alone, and not with another block.
            return self._eraser.erase(event.version, old)
        new = self._eraser.erase(event.version, old) or old
        if isinstance(old, CompactionCompleted):
            if new is not old:
                empty = Window(self.fold.conversation)
                window = empty if self._blind or event.version <= self.fold.version else self.fold.window
                new = summary_anew(window, old, self._known)
        elif isinstance(new, BlocksHidden):
            new = self._hidden(new)
        elif isinstance(new, ContextRendered) and new.fingerprint and self._is_changed(new):
            self._eraser.forget_context(event.version)
            new = new.model_copy(update={"fingerprint": ""})
        new = self._unquoted(event, new)
        return None if new is old else new

    def _is_changed(self, rendered: ContextRendered) -> bool:
        """Return whether a context showed something that is written anew, or was sent with a text that is replaced."""
        named = {rendered.system, rendered.tools, rendered.ephemeral}
        return rendered.version >= self._changed_since or not self.values.keys().isdisjoint(named)

    def _hidden(self, payload: BlocksHidden) -> BlocksHidden:
        if not any(block.version in self._partners for block in payload.blocks):
            return payload
        blocks = tuple(
            b.model_copy(update={"text": TOMBSTONE if b.text else "", "arguments": None if b.arguments is None else {}})
            if b.version in self._partners
            else b
            for b in payload.blocks
        )
        return payload.model_copy(update={"blocks": blocks})

    def _unnamed(self, payload: BlockAppended) -> BlockAppended:
        """Return an erased block without the words that the name of its tool, or the id of its response, quotes."""
        block, changes = payload.block, {}
        if isinstance(block, ToolCall) and self.quotes.are_in(block.name):
            changes["name"] = UNNAMED
        if block.response_id is not None and self.quotes.are_in(block.response_id):
            changes["response_id"] = self.quotes.out_of(block.response_id)
        return payload.model_copy(update={"block": block.model_copy(update=changes)}) if changes else payload

    @staticmethod
    def _is_digest(payload: Payload) -> bool:
        """Return whether an event appends what the approvals of stages decided: their words, no block of its own."""
        return isinstance(payload, BlockAppended) and isinstance(payload.block, StageDigest)

    def _unquoted(self, event: Event, payload: Payload) -> Payload:
        """Return a payload without the words that it quotes, and with the hashes of texts that are replaced."""
        if isinstance(payload, BlockAppended) and event.version in self.targets:
            return self._unnamed(payload)
        if isinstance(payload, BlockAppended) and self._is_digest(payload):
            text = self.quotes.out_of(payload.block.text)
            return payload.model_copy(update={"block": payload.block.model_copy(update={"text": text})})
        if isinstance(payload, BlockAppended | BlockRedacted):
            return payload  # a block that quotes another one is redacted only by itself
        name = _ERRORS.get(type(payload))
        if name is not None and getattr(payload, name) and self.quotes.hold(getattr(payload, name)):
            payload = payload.model_copy(update={name: TOMBSTONE})
        if isinstance(payload, FrameworkEntry):
            payload = without_second_copy(payload, self.answered)
        text = encode_payload(payload)
        clean = text
        for old, new in self.values.items():
            clean = clean.replace(old, new)
        value, fixed = json.loads(clean), fixed_words(type(payload))
        # Search the values, and not the JSON text, where JSON inside a string is escaped twice.
        if self.quotes.are_in("\n".join(words_of(value, fixed))):
            clean = compact_json(self.quotes.out_of_json(value, fixed))
        if clean == text:
            return payload
        left = decode_payload(event.type, event.schema_version, clean)
        if isinstance(left, ModelCalled) and isinstance(payload, ModelCalled) and left.request != payload.request:
            return without_hash(left)  # the hash covers the redacted words, and the body cannot be built again
        return left


@cache
def fixed_words(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields of a payload, nested ones included, whose values are words of the library."""
    found: set[str] = set()
    for name, each in model.model_fields.items():
        for part in _parts(each.annotation):
            if get_origin(part) is Literal or part is PolicyOrigin:
                found.add(name)
            elif isinstance(part, type) and issubclass(part, BaseModel):
                found |= fixed_words(part)
    return frozenset(found)


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and all its parts: for ``tuple[Named, ...] | None`` also ``Named``."""
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _checksum(event: Event, payload: Payload) -> str:
    at, text = instant_text(event.at), encode_payload(payload)
    return checksum(event.conversation, event.version, event.id, event.type, event.schema_version, at, text)


def asked_for(block: Block | None) -> str | None:
    """Return the path or address that a call asks the recall tool for, whose result repeats the block there."""
    if not isinstance(block, ToolCall) or block.name != RECALL or not isinstance(block.arguments, dict):
        return None
    path = block.arguments.get("path")
    return path if isinstance(path, str) else None


async def recalled(
    store: EventStore, conversation: str, paths: Mapping[int, str], targets: Mapping[int, str]
) -> dict[int, str]:
    """Return the results of the recall tool that repeat redacted blocks, each with the reason.

    Args:
        store: holds the conversation.
        conversation: its id.
        paths: by version the path of each block that may go.
        targets: by version the reason of each that goes; no block is read back before it is there.
    """
    calls = CallVersions()
    recalls: dict[int, str] = {}
    found: dict[int, str] = {}
    if not targets:
        return found
    reasons = {f"{SIGN}{version}": why for version, why in targets.items()}
    reasons |= {paths[version]: why for version, why in targets.items()}
    blocks = store.read(conversation, after=min(targets) - 1, types=["block.appended"])
    async for event in in_turns(blocks):
        block = appended_block(event.payload)
        if isinstance(block, ToolCall):
            calls.add(event.version, block)
            if (why := reasons.get(asked_for(block) or "")) is not None:
                recalls[event.version] = why
        elif block is not None and block.call_id is not None:
            call = calls.answered(block)
            if call is not None and call in recalls:
                found[event.version] = recalls[call]
    return found
