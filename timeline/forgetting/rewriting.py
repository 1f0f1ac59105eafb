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
from timeline.events.encoding import checksum, decode_payload, encode_payload
from timeline.events.other_payloads import CompactionFailed, FrameworkEntry, FrameworkRecord, HookFailed
from timeline.facts.of_items import WindowFacts
from timeline.fold.fold import HistoryNeeded
from timeline.fold.window import TOMBSTONE, Window
from timeline.forgetting.quotes import words_of
from timeline.forgetting.summaries import summary_anew
from timeline.frozen import compact_json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.fold.fold import Fold
    from timeline.forgetting.framework_copies import FrameworkCopies
    from timeline.forgetting.quotes import Quotes
    from timeline.forgetting.recalls import Recalls

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
        targets: versions of the blocks whose content is erased, each with the reason. Answers of the recall tool that
            repeat what is erased or written anew come to them.
        reason: why these answers go.
        recalls: finds them, and knows by now what else is removed.
        quotes: the texts of these blocks, or the words to take out.
        texts: their texts as they begin, for titles, which begin like them.
        copies: takes what frameworks repeat of all this out of their entries.
        values: content-addressed texts that are replaced: the new hash by the old one.
        shared: new payloads of events that the conversation shares with its parents.
        base: the last version that it shares.
    """

    fold: Fold
    targets: dict[int, str]
    reason: str
    recalls: Recalls
    quotes: Quotes
    copies: FrameworkCopies
    texts: Collection[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[int, Payload] = field(default_factory=dict)
    base: int = 0
    payloads: dict[int, Payload] = field(default_factory=dict)
    checksums: dict[int, str] = field(default_factory=dict)
    """The checksum of each event that is written anew."""
    _eraser: Eraser = field(init=False)
    _erased: dict[int, float] = field(init=False)
    """The targets, as the eraser takes them."""
    _known: WindowFacts = field(default_factory=WindowFacts)
    _partners: set[int] = field(default_factory=set)
    _changed_since: float = inf
    """The first version at which something that a context may show was written anew."""
    _blind: bool = False
    """Whether the fold could not go on; summaries are then emptied instead of written anew."""

    def __post_init__(self) -> None:
        """Make the eraser, which knows which content was made from which."""
        self._erased = dict.fromkeys(self.targets, inf)
        self._eraser = Eraser(self._erased, self.targets, self.texts)

    def take(self, event: Event) -> None:
        """Take the next event."""
        old, block = event.payload, appended_block(event.payload)
        if block is not None:
            self._pair(event.version, block)
        new = self.shared.get(event.version) or self._rewritten(event)
        if new is not None and new != old:
            if block is not None:
                self.recalls.remove(event.version, block.path)
            self.copies.write_anew(old, new)
            if isinstance(new, _SHOWN) or (self._is_digest(new) and event.version not in self.targets):
                self._changed_since = min(self._changed_since, event.version)
            if event.version > self.base:
                self.payloads[event.version] = new
                self.checksums[event.version] = _checksum(event, new)
        self._fold(event, new or old)

    def go_on_from(self, fold: Fold, at: datetime) -> None:
        """Go on from a fold of all earlier events in their new form, and redact the targets in its window."""
        self.fold = fold
        for version in self.targets:
            if version <= fold.version and fold.live(version) is not None:
                fold.apply(fold.version, at, BlockRedacted(version=version))

    def _pair(self, version: int, block: Block) -> None:
        """Note what a block has to do with redacted ones: it is an answer that repeats one, or a pair's other half.

        The replacement of a call quotes its result, and the other way round.
        """
        if self.recalls.repeats(version, block):
            self.targets.setdefault(version, self.reason)
            self._erased[version] = inf
        if isinstance(block, ToolResult):
            call = self.recalls.answered(block)
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
        if isinstance(payload, FrameworkEntry | FrameworkRecord):
            payload = self.copies.out_of(payload)
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
