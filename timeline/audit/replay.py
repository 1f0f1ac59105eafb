"""Recorded contexts: find one by name, and build it again from the log, byte for byte as it was sent.

`verify` rebuilds all of them in one pass. `rebuild_contexts` rebuilds a few, from the newest snapshot on if that is old
enough.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import ContextNotFound, ContextUnavailable, HistoryUnavailable, InvalidPolicy
from timeline.events import BlockRedacted, ContextRendered
from timeline.fold.counts import Recount, in_unit
from timeline.fold.fold import HistoryNeeded
from timeline.frozen import sha256_hex
from timeline.log.history import fold_near, fold_past, restored
from timeline.log.in_turns import in_turns
from timeline.planning.account import account_of, fixed_part
from timeline.planning.costs import scaled
from timeline.planning.tail import tail_from
from timeline.policy.model import Policy
from timeline.projection.context import RenderedContext
from timeline.projection.project import PROJECTIONS, Projector
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from timeline.events import Event
    from timeline.fold.window import Window
    from timeline.ports import EventStore
    from timeline.wire.neutral import NeutralContext

_NUMBER: Final = re.compile(r"#(\d+)")
_LAST: Final = re.compile(r"last(?:~(\d+))?")


@dataclass(frozen=True, slots=True)
class RecordedContext:
    """A recorded context: its number in the conversation (from 1), and its event's version, time and payload.

    ``rendered.version`` is the version of the log that it was projected from.
    """

    number: int
    version: int
    at: datetime
    rendered: ContextRendered


async def recorded_contexts(
    store: EventStore, conversation: str, erased: Mapping[int, Event] | None = None
) -> list[RecordedContext]:
    """List the recorded contexts of a conversation, oldest first.

    Args:
        store: where it lives.
        conversation: its id.
        erased: events without redacted content, by version, to be read in place of the stored ones.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    redacted = await overwritten_blocks(store, conversation)
    found: list[RecordedContext] = []
    async for stored in store.read(conversation, types=["context.rendered"]):
        event = (erased or {}).get(stored.version, stored)
        if isinstance(event.payload, ContextRendered):
            rendered = without_proof(event.payload, event.version, redacted)
            found.append(RecordedContext(len(found) + 1, event.version, event.at, rendered))
    return found


async def overwritten_blocks(store: EventStore, conversation: str) -> dict[int, int]:
    """Return the versions whose content was overwritten, each with the version of the redaction."""
    return {
        event.payload.version: event.version
        async for event in store.read(conversation, types=["block.redacted"])
        if isinstance(event.payload, BlockRedacted) and event.payload.erased
    }


def without_proof(rendered: ContextRendered, recorded: int, redacted: Mapping[int, int]) -> ContextRendered:
    """Return a context without its fingerprint if it was rendered before a redaction and recorded behind it.

    A context that was recorded before the redaction has lost its fingerprint already.
    """
    late = any(block <= rendered.version < by < recorded for block, by in redacted.items())
    return rendered.model_copy(update={"fingerprint": ""}) if late else rendered


def find_context(recorded: Sequence[RecordedContext], name: str) -> RecordedContext:
    """Find a recorded context: by ``#3`` (its number), ``last``, ``last~1``, or the version of its event.

    Raises:
        ContextNotFound: no context has this name; the error lists the newest ones.
    """
    if match := _NUMBER.fullmatch(name):
        place = int(match[1]) - 1
    elif match := _LAST.fullmatch(name):
        place = len(recorded) - 1 - int(match[1] or 0)
    else:
        versions = [str(context.version) for context in recorded]
        place = versions.index(name) if name in versions else -1
    if not 0 <= place < len(recorded):
        raise ContextNotFound(name, [(context.number, context.version) for context in recorded])
    return recorded[place]


async def recorded_values(store: EventStore, rendered: Iterable[ContextRendered]) -> dict[str, str]:
    """Return the content-addressed values that recorded contexts refer to, as far as the store holds them."""
    return await store.values(
        {h for r in rendered for h in (r.policy, r.system, r.tools, r.ephemeral) if h is not None}
    )


async def sound_values(store: EventStore, recorded: Iterable[RecordedContext]) -> dict[str, str]:
    """Return the values that recorded contexts refer to, without those that do not match their hashes."""
    return matching(await recorded_values(store, [context.rendered for context in recorded]))


def matching(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that match their hashes."""
    return {hash_: text for hash_, text in values.items() if sha256_hex(text) == hash_}


async def recorded_policy(store: EventStore, hash_: str | None) -> Policy | None:
    """Return the policy that an event or a window names by its hash; None without one, or if it is unreadable."""
    return None if hash_ is None else _policy((await store.values([hash_])).get(hash_))


def rebuild(
    window: Window, rendered: ContextRendered, values: Mapping[str, str], projector: Projector
) -> tuple[Policy, NeutralContext]:
    """Build a recorded context again from the window of its version. The caller compares the fingerprints.

    Args:
        window: the window at ``rendered.version``.
        rendered: the recorded context.
        values: the content-addressed values that it refers to.
        projector: remembers entries from one context to the next.

    Raises:
        ContextUnavailable: a part is missing; ``reason`` names it.
    """
    if not rendered.fingerprint:  # exported without its redacted parts, see `timeline.audit.redacting`
        raise ContextUnavailable(rendered.version, "redacted")
    policy = _policy(values.get(rendered.policy))
    wanted = (rendered.system, rendered.tools, rendered.ephemeral)
    if rendered.projection not in PROJECTIONS:
        raise ContextUnavailable(rendered.version, "projection")
    if any(h is not None and h not in values for h in wanted):
        raise ContextUnavailable(rendered.version, "unrecorded_prefix")
    if policy is None:
        raise ContextUnavailable(rendered.version, "policy")
    system, tools, ephemeral = (_value(values, h) for h in wanted)
    neutral = projector.of(rendered.projection).project(
        window,
        policy.cache_points,
        policy=rendered.policy,
        system=system,
        tools=tools or (),
        ephemeral=ephemeral or (),
    )
    return policy, neutral


async def rebuild_contexts(
    store: EventStore, conversation: str, chosen: Sequence[RecordedContext]
) -> list[RenderedContext]:
    """Build recorded contexts again, byte for byte; each one's tokens are counted with its policy's counter.

    Raises:
        ContextUnavailable: one of them cannot be built, or differs from its record.
    """
    sound = await sound_values(store, chosen)
    windows = await _windows(store, conversation, {context.rendered.version for context in chosen})
    return [rebuilt(conversation, c, windows[c.rendered.version], sound, Projector()) for c in chosen]


def rebuilt(
    conversation: str, recorded: RecordedContext, window: Window, values: Mapping[str, str], projector: Projector
) -> RenderedContext:
    """Build a recorded context again from the window of its version; its tokens are counted with its policy's counter.

    Raises:
        ContextUnavailable: it cannot be built, or differs from its record.
    """
    rendered = recorded.rendered
    policy, neutral = rebuild(window, rendered, values, projector)
    if projector.of(rendered.projection).fingerprint(neutral) != rendered.fingerprint:
        raise ContextUnavailable(rendered.version, "mismatch")
    ratio = window.reported.ratio_from(policy.first_ratio)
    plain = get_counter(policy.counter)
    counter = in_unit(plain, ratio)
    window = replace(window, items=Recount(plain, ratio).items(window.items))
    fixed = fixed_part(
        policy,
        lambda text: scaled(counter.count(text), policy),
        system=neutral.system,
        tools=neutral.tools,
        tail=tail_from(window, policy, [entry.text for entry in neutral.ephemeral]),
        reported=window.reported,
    )
    return RenderedContext(
        conversation=conversation,
        version=rendered.version,
        projection=rendered.projection,
        fingerprint=rendered.fingerprint,
        window=window,
        policy=policy,
        neutral=neutral,
        account=account_of(window.items, fixed, policy),
        overflow=rendered.overflow,
        recorded=recorded.version,
    )


async def _windows(store: EventStore, conversation: str, versions: Collection[int]) -> dict[int, Window]:
    """Return the windows at some versions; for versions behind the newest snapshot, folding begins there."""
    stored = await store.load_window(conversation)
    snapshot = stored.snapshot
    if snapshot is not None and min(versions) >= snapshot.version:
        shown = [event for event in stored.events if event.version <= snapshot.version]
        fold = await restored(store, conversation, snapshot, shown)
    else:
        try:
            fold = await fold_near(store, conversation, until=min(versions))
        except HistoryUnavailable:  # one by one: some of them may still be there
            return {version: await _window(store, conversation, version) for version in versions}
    windows = {version: fold.window for version in versions if version == fold.version}
    try:
        async for event in in_turns(store.read(conversation, after=fold.version, until=max(versions))):
            if event.version != fold.version + 1:  # scavenged in between
                break
            fold.apply(event.version, event.at, event.payload)
            if event.version in versions:
                windows[event.version] = fold.window
    except HistoryNeeded:  # an undo in between
        windows.clear()
    if len(windows) == len(versions):
        return windows
    return {version: await _window(store, conversation, version) for version in versions}


async def _window(store: EventStore, conversation: str, version: int) -> Window:
    """Return the window at a version, folded by itself, as it was then."""
    try:
        return (await fold_past(store, conversation, version)).window
    except HistoryUnavailable as gone:
        if not gone.scavenged:
            raise
        raise ContextUnavailable(version, "retention") from gone


def _policy(text: str | None) -> Policy | None:
    """Parse a recorded policy; None if it is gone, or written by a later version."""
    if text is None:
        return None
    try:
        return Policy.parse(text)
    except InvalidPolicy:
        return None


def _value(values: Mapping[str, str], hash_: str | None) -> Any:
    return None if hash_ is None else json.loads(values[hash_])
