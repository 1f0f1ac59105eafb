"""The fold of a conversation at any version, from the nearest keyframe before it.

A keyframe holds the live items of a version without their texts, and the small state beside them. The first question
about the past reads the log once and sets a keyframe each so many versions; any later one folds the events behind the
nearest keyframe only.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

from timeline.blocks import CONTINUES_KEY, IN_TAIL, ToolCall
from timeline.digest import Digest
from timeline.errors import HistoryUnavailable
from timeline.events import BlockAppended, BlocksHidden, CompactionCompleted, SummaryParts
from timeline.fold.fold import Fold
from timeline.frozen import unchecked
from timeline.inspector.another_log import is_another_log
from timeline.inspector.figures import Figures, Growing
from timeline.log.history import base_fold, check_version, load_fold, reverted_versions
from timeline.log.in_turns import in_turns

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from timeline.blocks import Block
    from timeline.events import Payload, Replacement
    from timeline.fold.turns import Turns
    from timeline.fold.window import Item
    from timeline.ports import ConversationInfo, EventStore

EVERY: Final = 500
"""Versions between two keyframes."""
_FAR: Final = 4
"""Keyframes without which a stored snapshot may be nearer than the newest one that is there."""
_SMALL: Final = 4
"""The share of a log that its window is at most, where the newest version is folded from the stored snapshot."""
MOST_BYTES: Final = 256 * 1024 * 1024
"""Memory that all keyframes may take, as it is estimated."""
_ITEM_BYTES: Final = 1_500
"""A live item with its block, without the text: measured at 1.2 to 1.4 KB."""
_REFERENCE_BYTES: Final = 8


class _Keyframe(NamedTuple):
    version: int
    taken_back: frozenset[int]
    items: Sequence[Item]
    turns: Turns
    summaries: tuple[CompactionCompleted, ...]
    figures: Figures


@dataclass(slots=True)
class _Film:
    """The keyframes of one conversation, by version, how far they reach, and up to which version no redaction came."""

    first_version: int
    seen: int
    reach: int = 0
    frames: list[_Keyframe] = field(default_factory=list)
    blocks: int = 0
    turning: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def bytes(self) -> int:
        """The memory that they take: each block once, and a reference for each item of each keyframe."""
        return self.blocks * _ITEM_BYTES + sum(len(frame.items) for frame in self.frames) * _REFERENCE_BYTES


class Moments:
    """The folds of a store's conversations at past versions.

    Args:
        store: holds the conversations.
        every: versions between two keyframes.
        most_bytes: memory that keyframes may take; beyond it, those of the conversation that was asked for the longest
            ago are dropped.

    Attributes:
        every: versions between two keyframes.
    """

    def __init__(self, store: EventStore, *, every: int = EVERY, most_bytes: int = MOST_BYTES) -> None:
        self._store = store
        self.every = every
        self._most_bytes = most_bytes
        self._films: OrderedDict[str, _Film] = OrderedDict()

    async def fold(self, conversation: str, version: int) -> Fold:
        """Return the fold of a conversation at a version; the texts of its blocks are left out."""
        film, taken_back = await self._film(conversation, version)
        async with film.turning:
            fold = await self._run(conversation, film, version, taken_back)
        self._forget()
        return fold

    async def figures(self, conversation: str, version: int) -> Figures:
        """Return what the window of a version adds up to, without a fold where nothing was decided since a keyframe."""
        film, taken_back = await self._film(conversation, version)
        async with film.turning:
            frame = _nearest(film, version, taken_back) or await self._newest(conversation, film, version, taken_back)
            grown = None
            if frame is not None and version - frame.version <= 2 * self.every:
                grown = await self._grown(conversation, frame, version)
            figures = grown or Figures.of(await self._run(conversation, film, version, taken_back))
        self._forget()
        return figures

    def offer(
        self, fold: Fold, taken_back: frozenset[int], figures: Figures, *, first_version: int, seen: int, blocks: int
    ) -> None:
        """Keep what another reader of the log folded as a keyframe, unless there is one.

        Args:
            fold: without texts; it goes on behind the keyframe.
            taken_back: the compactions that were undone by then.
            figures: of the same version.
            first_version: of the log that was read.
            seen: the version up to which no redaction came since the reader began.
            blocks: how many blocks the fold took up since the keyframe before.
        """
        film = self._films.get(fold.conversation)
        if film is None or film.first_version != first_version:
            film = self._films[fold.conversation] = _Film(first_version, seen)
        if film.seen > seen:
            return  # the reader may have read what a redaction wrote anew since
        if any((frame.version, frame.taken_back) == (fold.version, taken_back) for frame in film.frames):
            return
        film.blocks += blocks if fold.version > film.reach else 0
        film.reach = max(film.reach, fold.version)
        insort(film.frames, _keyframe(fold, taken_back, figures), key=lambda frame: frame.version)
        self._forget()

    async def _film(self, conversation: str, version: int) -> tuple[_Film, frozenset[int]]:
        """Return the keyframes of a conversation, and the compactions that were taken back by a version."""
        await check_version(self._store, conversation, version)
        info = await self._store.info(conversation)
        film = self._films.pop(conversation, None)
        if film is None or await self._is_other(info, film):
            film = _Film(info.first_version, info.version)
        film.seen = max(film.seen, info.version)
        self._films[conversation] = film
        return film, frozenset(await reverted_versions(self._store, conversation, version))

    async def _is_other(self, info: ConversationInfo, film: _Film) -> bool:
        """Return whether the log is no longer the one that the keyframes are of."""
        return await is_another_log(
            self._store, info, first_version=film.first_version, reached=film.reach, seen=film.seen
        )

    async def _newest(
        self, conversation: str, film: _Film, version: int, taken_back: frozenset[int]
    ) -> _Keyframe | None:
        """Set a keyframe at the newest version from the stored snapshot, and return it; None where it saves nothing.

        The page asks for the newest version first, and of a log that is compacted its window is a small part.
        """
        info = await self._store.info(conversation)
        if film.frames or version != info.version or info.version - info.window_start > info.version // _SMALL:
            return None
        fold = lighter(await load_fold(self._store, conversation), taken_back)
        if fold.version != version:
            return None  # it grew in the meantime
        frame = _keyframe(fold, frozenset(taken_back), Figures.of(fold))
        film.blocks += len(frame.items)
        film.frames.append(frame)
        return frame

    async def _grown(self, conversation: str, frame: _Keyframe, version: int) -> Figures | None:
        """Return the figures of a version from those of a keyframe; None where something was decided in between."""
        growing, turns = Growing(frame.figures), frame.turns.copy()
        last = frame.version
        async for event in in_turns(self._store.read(conversation, after=frame.version, until=version)):
            if event.version != last + 1 or not growing.take(event):
                return None
            if isinstance(event.payload, BlockAppended):
                turns.advance(event.payload.block, event.payload.block.turn_id, event.version)
            last = event.version
        return growing.figures(turns) if last == version else None

    async def _run(self, conversation: str, film: _Film, version: int, taken_back: frozenset[int]) -> Fold:
        """Fold up to a version from the newest keyframe on the way, and set those that are missing."""
        frame = _nearest(film, version, taken_back)
        fold = None if frame is None else _resumed(conversation, frame, taken_back)
        if fold is None or version - fold.version > _FAR * self.every:
            base = await light_base(self._store, conversation, version, taken_back)
            if fold is None or base.version > fold.version:
                frame, fold = None, base
        known = {(frame.version, frame.taken_back) for frame in film.frames}
        growing: Growing | None = Growing(Figures.of(fold) if frame is None else frame.figures)
        async for event in in_turns(self._store.read(conversation, after=fold.version, until=version)):
            if event.version != fold.version + 1:
                raise await self._gone(conversation, version)
            fold.apply(event.version, event.at, lightened(event.payload))
            if growing is not None and not growing.take(event):
                growing = None
            film.blocks += isinstance(event.payload, BlockAppended) and event.version > film.reach
            film.reach = max(film.reach, event.version)
            if event.version % self.every == 0:
                figures = Figures.of(fold) if growing is None else growing.figures(fold.turns)
                growing = Growing(figures)
                seen = frozenset(v for v in taken_back if v <= event.version)
                if (event.version, seen) not in known:
                    insort(film.frames, _keyframe(fold, seen, figures), key=lambda frame: frame.version)
        if fold.version != version:
            raise await self._gone(conversation, version)
        return fold

    async def _gone(self, conversation: str, version: int) -> HistoryUnavailable:
        info = await self._store.info(conversation)
        return HistoryUnavailable(
            conversation, version, info.first_version, info.version, scavenged=version < info.first_version
        )

    def _forget(self) -> None:
        while len(self._films) > 1 and sum(film.bytes for film in self._films.values()) > self._most_bytes:
            self._films.popitem(last=False)
        for film in self._films.values():
            while film.bytes > self._most_bytes and len(film.frames) > 1:
                del film.frames[1::2]


def _nearest(film: _Film, version: int, taken_back: frozenset[int]) -> _Keyframe | None:
    """Return the newest keyframe that is on the way to a version."""
    place = bisect_right(film.frames, version, key=lambda frame: frame.version)
    for frame in reversed(film.frames[:place]):
        if frame.taken_back == frozenset(v for v in taken_back if v <= frame.version):
            return frame
    return None


def _resumed(conversation: str, frame: _Keyframe, taken_back: frozenset[int]) -> Fold:
    """Return the fold of a keyframe."""
    fold, figures = Fold(conversation, taken_back), frame.figures
    turns = frame.turns.copy()
    fold.resume(frame.version, items=frame.items, turns=turns, summaries=frame.summaries, state=figures.state)
    fold.at = figures.at
    return fold


def _keyframe(fold: Fold, taken_back: frozenset[int], figures: Figures) -> _Keyframe:
    """Return the keyframe of a fold's version."""
    return _Keyframe(fold.version, taken_back, fold.stored, fold.turns.copy(), fold.window.summaries, figures)


async def light_base(store: EventStore, conversation: str, until: int, without: Collection[int] = ()) -> Fold:
    """Return the fold that the log goes on from up to a version, without texts: empty, or that of a stored snapshot."""
    return lighter(await base_fold(store, conversation, until=until, without=without), without)


def lighter(fold: Fold, without: Collection[int] = ()) -> Fold:
    """Return a copy of a fold without texts."""
    light, window = Fold(fold.conversation, without), fold.window
    light.resume(
        fold.version,
        items=[item._replace(block=_light(item.block), replacement=_short(item.replacement)) for item in fold.stored],
        turns=fold.turns.copy(),
        summaries=[_without_text(made) for made in window.summaries],
        state=window.state,
    )
    light.at = fold.at
    return light


def lightened(payload: Payload) -> Payload:
    """Return a payload without the texts that it would keep in memory; what a fold decides by stays."""
    match payload:
        case BlockAppended():
            return unchecked(
                BlockAppended, {**payload.__dict__, "block": _light(payload.block)}, payload.model_fields_set
            )
        case CompactionCompleted():
            return _without_text(payload)
        case BlocksHidden():
            return payload.model_copy(update={"blocks": tuple(map(_short, payload.blocks))})
        case _:
            return payload


def _light(block: Block) -> Block:
    meta = block.meta
    marks = {key: meta[key] for key in (CONTINUES_KEY, IN_TAIL) if key in meta} if meta else meta
    kept = {**block.__dict__, "text": "", "data": None, "meta": marks}
    if isinstance(block, ToolCall):
        kept["arguments"] = {}
    return unchecked(type(block), kept, block.model_fields_set)  # its fields were checked when it was read


def _without_text(made: CompactionCompleted) -> CompactionCompleted:
    light = {"block": _light(made.block), "parts": SummaryParts(), "digest": Digest()}
    return made.model_copy(update=light)


def _short(shown: Replacement | None) -> Replacement | None:
    return None if shown is None else shown.model_copy(update={"text": "", "arguments": None})
