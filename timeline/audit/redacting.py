"""Take redacted content out of a log when it leaves its store, runs again, or goes on in a fork.

`Timeline.redact` overwrites the content where it is stored. In a log of an earlier release, a redaction may be only an
event: the fold shows a tombstone from then on, but the store still has the content. In an export of such a log, the
block's own event has the tombstone. Everything made from the block before its redaction is erased: replacement texts,
summaries and their digests, a title. Hashes over erased content are erased, too, because a short secret could be
guessed from its hash. So a context that showed the block has no fingerprint, and a call that was made from it has no
hash of its body. Neither can be verified.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import UserPrompt
from timeline.digest import Digest
from timeline.events import (
    DISOWNED,
    BlockAppended,
    BlockRedacted,
    BlocksHidden,
    BlocksRevealed,
    CompactionCompleted,
    ContextRendered,
    ConversationOpened,
    ModelCalled,
    Rewritten,
    SummaryParts,
    UnknownPayload,
    appended_block,
)
from timeline.events.other_payloads import CompactionFailed
from timeline.fold.window import TOMBSTONE, tombstone
from timeline.log.first_message import FirstMessage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from timeline.blocks import Block
    from timeline.events import Event, Payload
    from timeline.ports import ConversationInfo, EventStore

_TOLD_OF_SUMMARIES: Final = ("compaction_digest", "parts")
"""Keys of a summary's ``meta`` that repeat covered content."""
_QUOTING: Final = ("summarizer", "failed")
"""Reasons of a failed compaction whose detail is another program's error, which may quote what it was asked about."""
_ADDRESS: Final = ("type", "path", "turn_id", "author")


class Erasures:
    """The blocks to erase in conversations: their own and those that they share with their parents.

    A block is erased everywhere if one of the conversations, or one of their parents, redacts it.
    """

    def __init__(self) -> None:
        self._infos: dict[str, ConversationInfo] = {}
        self._redacted: dict[str, dict[int, dict[int, str]]] = {}
        """For each conversation: each redacted version, with the versions of the redacting events and their reasons."""
        self._erased: set[tuple[str, int]] = set()
        self._overwritten: set[tuple[str, int]] = set()
        """Redacted versions, with the conversation that holds them, whose content is gone from the store already."""
        self._owned: dict[str, dict[int, str]] = {}
        """For each conversation, the redacted versions that it holds itself, with their reasons."""
        self._rewritten: dict[str, list[tuple[int, Rewritten]]] = {}
        """For each conversation: the rewritten events, each with the version of the redaction that names it."""

    @classmethod
    async def of(cls, store: EventStore, conversations: Iterable[str]) -> Erasures:
        """Read the redactions of conversations and of those that they were forked from.

        Raises:
            ConversationNotFound: there is no such conversation.
        """
        erasures = cls()
        for conversation in conversations:
            next_: str | None = conversation
            while next_ is not None and next_ not in erasures._infos:
                info = erasures._infos[next_] = await store.info(next_)
                await erasures._read(store, next_)
                next_ = info.parent.conversation if info.base and info.parent is not None else None
        for conversation in erasures._infos:
            for version, by in erasures._redacted[conversation].items():
                owner = erasures._owner(conversation, version)
                owned = erasures._owned.setdefault(owner, {})
                if (conversation, version) in erasures._erased:
                    erasures._overwritten.add((owner, version))
                owned.setdefault(version, next(iter(by.values())))
        return erasures

    async def eraser(self, store: EventStore, conversation: str) -> Eraser:
        """Return the eraser of a conversation, for its events from first to last, shared ones included."""
        versions: dict[int, float] = {}
        reasons: dict[int, str] = {}
        for owner, after, until in self._lineage(conversation):
            for version in self._owned.get(owner, ()):
                if after < version <= until and (owner, version) not in self._overwritten:
                    by = self._redacted[conversation].get(version, {})
                    versions[version] = min(by, default=inf)
                    reasons[version] = next(iter(by.values()), "")
        blocks = await store.read_versions(conversation, versions)
        texts = [block.text for event in blocks if (block := appended_block(event.payload)) is not None]
        return Eraser(versions, reasons, texts)

    def still_shown(self, conversation: str, version: int) -> list[BlockRedacted]:
        """Return the redactions behind a version of blocks up to it: the log up to that version still shows these.

        The first one names the events up to that version that were rewritten: it proves a log that ends there.
        """
        shown = [
            BlockRedacted(version=block, reason=reason, erased=(owner, block) in self._overwritten)
            for owner, after, until in self._lineage(conversation)
            for block, reason in self._owned.get(owner, {}).items()
            if after < block <= min(until, version)
            and min(self._redacted[conversation].get(block, ()), default=inf) > version
        ]
        if rewritten := self._rewritten_since(conversation, version):
            first = shown[0] if shown else BlockRedacted(version=0, erased=True)
            shown[:1] = [first.model_copy(update={"rewritten": rewritten})]
        return shown

    def _rewritten_since(self, conversation: str, version: int) -> tuple[Rewritten, ...]:
        """Return the events up to a version that were written anew behind it, each as it is now."""
        found: dict[int, Rewritten] = {}
        for owner, _, until in reversed(self._lineage(conversation)):
            shared = min(until, version)
            found |= {one.version: one for at, one in self._rewritten[owner] if one.version <= shared < at}
        return tuple(found[each] for each in sorted(found))

    async def _read(self, store: EventStore, conversation: str) -> None:
        found = self._redacted.setdefault(conversation, {})
        rewritten = self._rewritten.setdefault(conversation, [])
        async for event in store.read(conversation, types=["block.redacted"]):
            # A redaction of a later version redacts nothing, as in the fold.
            if isinstance(event.payload, BlockRedacted) and event.payload.version < event.version:
                found.setdefault(event.payload.version, {})[event.version] = event.payload.reason
                rewritten += [(event.version, one) for one in event.payload.rewritten]
                if event.payload.erased:
                    self._erased.add((conversation, event.payload.version))

    def _lineage(self, conversation: str) -> list[tuple[str, int, int]]:
        """Return the owners of a conversation's versions: each with the range ``(first, last]`` that it owns."""
        info, until = self._infos[conversation], self._infos[conversation].version
        parts = [(conversation, info.base, until)]
        while info.base and info.parent is not None:
            until = min(until, info.base)
            info = self._infos[info.parent.conversation]
            parts.append((info.id, info.base, until))
        return parts

    def _owner(self, conversation: str, version: int) -> str:
        return next((o for o, after, until in self._lineage(conversation) if after < version <= until), conversation)


async def eraser_of(store: EventStore, conversation: str) -> Eraser:
    """Return the eraser of one conversation; call it for each event in order.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    return await (await Erasures.of(store, [conversation])).eraser(store, conversation)


async def erased_events(store: EventStore, conversation: str) -> dict[int, Event]:
    """Return, by version, the events of a conversation that have redacted content, as an export of it has them.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    eraser = await eraser_of(store, conversation)
    if not eraser.is_busy:
        return {}
    events = [event async for event in store.read(conversation)]
    return {event.version: clean for event in events if (clean := eraser.cleaned(event)) is not event}


class Eraser:
    """Erases the events of one conversation; call `erase` for each event in order.

    Args:
        versions: the blocks to erase, each with the version of the event that redacts it here; infinity for none.
        reasons: the recorded reasons.
        texts: the texts of these blocks.
    """

    def __init__(self, versions: Mapping[int, float], reasons: Mapping[int, str], texts: Collection[str]) -> None:
        self._versions = versions
        self._reasons = reasons
        self._texts = texts
        self._tainted: set[int] = set()
        self._erased: set[int] = set()
        """Versions of the recorded contexts that have no fingerprint any more."""
        self._prompts: dict[int, Block] = {}
        self._disowned: set[int] = set()

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to erase."""
        return bool(self._versions)

    def forget_context(self, version: int) -> None:
        """Note that a recorded context has no fingerprint any more: the bodies made from it lose their hash, too."""
        self._erased.add(version)

    def title(self, title: str) -> str:
        """Return a title, or the tombstone if a redacted block contains it."""
        words = title.removesuffix("…").strip()
        return TOMBSTONE if words and any(words in text for text in self._texts) else title

    def cleaned(self, event: Event) -> Event:
        """Return an event without erased content."""
        payload = self.erase(event.version, event.payload)
        return event if payload is None else event.model_copy(update={"payload": payload})

    def erase(self, version: int, payload: Payload) -> Payload | None:
        """Return the payload of an event without erased content, or None if nothing has to be erased."""
        if not self.is_busy and not self._erased:
            return None
        if isinstance(payload, BlockAppended | UnknownPayload):
            return self._block(version, payload)
        match payload:
            case BlocksHidden():
                if payload.reason in DISOWNED:
                    self._disowned.update(block.version for block in payload.blocks)
                return self._hidden(payload)
            case BlocksRevealed():
                self._disowned.difference_update(payload.versions)
            case CompactionCompleted():
                return self._summary(version, payload)
            case ContextRendered() if self._showed(payload.version):
                self._erased.add(version)
                return payload.model_copy(update={"fingerprint": ""})
            case ModelCalled() | CompactionFailed():
                return self._asked(version, payload)
            case ConversationOpened() if self.title(payload.title) != payload.title:
                return payload.model_copy(update={"title": TOMBSTONE})
        return None

    def _block(self, version: int, payload: BlockAppended | UnknownPayload) -> Payload | None:
        if isinstance(payload, BlockAppended) and type(payload.block) is UserPrompt:
            self._prompts[version] = payload.block
        if version not in self._versions:
            return None
        if isinstance(payload, UnknownPayload):
            return payload.model_copy(update={"data": _bare(payload.data)})
        return payload.model_copy(update={"block": tombstone(payload.block, self._reasons.get(version, ""))})

    def _hidden(self, payload: BlocksHidden) -> Payload | None:
        if not any(block.version in self._versions for block in payload.blocks):
            return None
        blocks = tuple(
            b.model_copy(update={"text": TOMBSTONE, "arguments": None if b.arguments is None else {}})
            if b.version in self._versions
            else b
            for b in payload.blocks
        )
        return payload.model_copy(update={"blocks": blocks})

    def _summary(self, version: int, payload: CompactionCompleted) -> Payload | None:
        """Erase a summary of erased blocks, or of a summary that is erased.

        A summary that was made before the user's first message was redacted is erased, too, since each summarizer
        receives that message. So is a summary for which a model was asked in the whole context.
        """
        covers, in_cache = payload.covers, payload.written_by.asked == "in_cache"
        told = self._first_message()
        made_of_it = any(
            (in_cache or target in covers or target in told) and target < version < redacted_at
            for target, redacted_at in self._versions.items()
        )
        if not made_of_it and self._tainted.isdisjoint(covers.summaries):
            return None
        self._tainted.add(version)
        meta = {key: value for key, value in payload.block.meta.items() if key not in _TOLD_OF_SUMMARIES}
        block = payload.block.model_copy(update={"text": TOMBSTONE, "data": None, "meta": meta})
        return payload.model_copy(update={"block": block, "parts": SummaryParts(), "digest": Digest()})

    def _first_message(self) -> Collection[int]:
        """Return the versions of the prompts that a summarizer would now be given as the task."""
        message = FirstMessage()
        for version, prompt in self._prompts.items():
            if version not in self._disowned:
                message.take(version, prompt)
            if message.is_over:
                break
        return message.versions

    def _showed(self, version: int) -> bool:
        """Return whether a context of this version may have shown erased content, or text made from it."""
        if any(summary <= version for summary in self._tainted):
            return True
        return any(target <= version < redacted_at for target, redacted_at in self._versions.items())

    def _asked(self, version: int, payload: ModelCalled | CompactionFailed) -> Payload | None:
        """Return what came of a request without its error, if it may have been sent erased content."""
        if isinstance(payload, ModelCalled):
            return without_hash(payload) if self._was_sent(version, payload) else None
        is_quoting = payload.reason in _QUOTING and payload.detail and self._showed(version)
        return payload.model_copy(update={"detail": TOMBSTONE}) if is_quoting else None

    def _was_sent(self, version: int, called: ModelCalled) -> bool:
        """Return whether a call may have been sent erased content; a call without a recorded context may have been."""
        if called.request is None and not called.error:
            return False
        return self._showed(version) if called.answers is None else called.answers in self._erased


def without_hash(called: ModelCalled) -> ModelCalled:
    """Return a call without the hash of its body, and without the words of its error, which may quote the body."""
    request = None if called.request is None else called.request.model_copy(update={"sha256": ""})
    return called.model_copy(update={"request": request, "error": TOMBSTONE if called.error else ""})


def _bare(data: Any) -> dict[str, Any]:
    """Return a payload of a later version with its identifying fields only, because its content is unknown here."""
    block = data.get("block") if isinstance(data, dict) else None
    address = {key: block[key] for key in _ADDRESS if key in block} if isinstance(block, dict) else {}
    return {"block": {**address, "text": TOMBSTONE}}
