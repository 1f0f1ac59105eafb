"""Record a render: the context, a changed prefix before it, or the refusal in its place.

From these events a replay builds the context again, and a reader of the log sees what was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from timeline.display.logs import logger_of
from timeline.errors import ContextOverflow
from timeline.events import ContextRendered
from timeline.events.other_payloads import ContextOverflowed, PrefixChanged, ToolsChanged
from timeline.frozen import compact_json, sha256_hex
from timeline.wire.request import LateRecord

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from timeline.engine.conversation import Conversation
    from timeline.errors import BudgetImpossible
    from timeline.events import Payload
    from timeline.fold.state import Recorded
    from timeline.projection.context import RenderedContext

_LOGGER: Final = logger_of("timeline")


async def record_context(
    conversation: Conversation, context: RenderedContext, record: Literal["full", "hash"], at: datetime | None
) -> RenderedContext:
    """Record a context, unless the newest recorded one is the same; return it with the version of its record."""
    known = conversation.window.rendered
    if known is not None and _is_recorded(context, known, record):
        return context.model_copy(update={"recorded": known.version})
    neutral = context.neutral
    fixed = [neutral.system, list(neutral.tools), [each.text for each in neutral.ephemeral]]
    if not conversation.equipment.lets_in_whole(fixed):
        record = "hash"  # the application's hook would change these texts, so they must not be stored
    payloads, values = _events(context, known, record)
    first = await conversation.log.commit(payloads, at=at, values=values)
    return context.model_copy(update={"recorded": first + len(payloads) - 1})


def record_late(conversation: Conversation, context: RenderedContext, at: datetime | None) -> RenderedContext:
    """Begin to record a context, and return it as it is until then."""
    late = LateRecord()
    context = context.recorded_late(late)

    async def write() -> None:
        recorded = await record_context(conversation, context, "full", at)
        late.version = recorded.recorded

    conversation.rendered = context
    conversation.record_late(write())
    return context


async def record_overflow(
    conversation: Conversation, refusal: ContextOverflow | BudgetImpossible, at: datetime | None
) -> None:
    """Record a refused render for the followers of the log, unless the log already ends with the same refusal."""
    account = refusal.account
    payload = ContextOverflowed(
        tokens=account["total"] - account.get("unsent", 0),
        limit=account["limit"],
        reason="messages" if isinstance(refusal, ContextOverflow) else "fixed_part",
    )
    newest = await conversation.store.read_versions(conversation.id, [conversation.version])
    if [event.payload for event in newest] != [payload]:
        await conversation.log.commit([payload], at=at)


def _events(
    context: RenderedContext, known: Recorded | None, record: Literal["full", "hash"]
) -> tuple[list[Payload], Mapping[str, str]]:
    """Return the events that record a context, and the values that they name by hash: enough to build it again.

    If system prompt or tools differ from those of the previous recorded context, an event and a warning come first,
    since every provider caches by prefix, and bills a changed one in full (004, gap 8).

    Args:
        context: the rendered context.
        known: the recorded context before it, if there is one.
        record: ``"full"``, or ``"hash"`` to store system prompt, tools and tail by their hashes only.
    """
    neutral = context.neutral
    texts = {
        "policy": context.policy.canonical(),
        **_prefix(context),
        "ephemeral": compact_json([e.text for e in neutral.ephemeral]) if neutral.ephemeral else None,
    }
    hashes = {name: sha256_hex(text) for name, text in texts.items() if text is not None}
    stored = texts if record == "full" else {"policy": texts["policy"]}
    rendered = ContextRendered(
        version=context.version,
        projection=context.projection,
        fingerprint=context.fingerprint,
        record=record,
        tokens=context.account.sent,
        overflow=context.overflow,
        total=context.account.needed,
        limit=context.account.limit,
        **_counts(context),
        policy=hashes["policy"],
        system=hashes.get("system"),
        tools=hashes.get("tools"),
        ephemeral=hashes.get("ephemeral"),
    )
    values = {hashes[name]: text for name, text in stored.items() if text is not None}
    return [*_changes(context.conversation, known, rendered), rendered], values


def _counts(context: RenderedContext) -> dict[str, Any]:
    """Return the ratio of a context's figures, and the size of what was sent in the counter's own tokens.

    The provider's usage is compared with these tokens, whatever ratio or margin was in force.
    """
    policy, window, account = context.policy, context.window, context.account
    start = policy.first_ratio
    ratio = window.reported.ratio_from(start)
    media = account.media
    provider = account.fixed.provider
    # The policy's margin is added to media, too; calibrated counts do not scale media.
    own = account.sent - provider - media if start is not None else account.sent / (1 + policy.margin) - media
    return {
        "ratio": ratio,
        "counted": max(0, round(own / ratio)),
        "media": media,
        "provider": provider,
    }


def _is_recorded(context: RenderedContext, known: Recorded, record: Literal["full", "hash"]) -> bool:
    """Return whether a context equals the newest recorded one, and that record kept at least as much.

    Two contexts of one fingerprint may differ in the order of keys inside system prompt and tools. They are then sent
    as different bytes.
    """
    if known.fingerprint != context.fingerprint or (known.record, record) == ("hash", "full"):
        return False
    prefix = _prefix(context)
    hashes = tuple(None if text is None else sha256_hex(text) for text in (prefix["system"], prefix["tools"]))
    return known.prefix is None or known.prefix == hashes


def _prefix(context: RenderedContext) -> dict[str, str | None]:
    """Return system prompt and tools as they are stored, with keys in their own order."""
    neutral = context.neutral
    return {
        "system": None if neutral.system is None else compact_json(neutral.system),
        "tools": compact_json(list(neutral.tools)) if neutral.tools else None,
    }


def _changes(conversation: str, known: Recorded | None, rendered: ContextRendered) -> list[Payload]:
    """Return an event for each changed part of the prefix, system prompt or tools; log a warning for each."""
    if known is None or known.prefix is None:
        return []
    changes: list[Payload] = []
    system, tools = known.prefix
    if system != rendered.system:
        changes.append(PrefixChanged(before=system, after=rendered.system))
        _LOGGER.warning("conversation %s: the system prompt changed; the provider's cache starts anew", conversation)
    if tools != rendered.tools:
        changes.append(ToolsChanged(before=tools, after=rendered.tools))
        _LOGGER.warning("conversation %s: the tools changed; the provider's cache starts anew", conversation)
    return changes
