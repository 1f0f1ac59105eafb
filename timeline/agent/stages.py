"""Enter, approve and rewind the stages of the work, and keep the memory digest of their decisions in view.

Each decision is taken on the log as it is at the commit: another writer may have entered or approved a stage meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from timeline import checks
from timeline.blocks import IN_TAIL, StageDigest
from timeline.errors import StageNotFound, StageRefused
from timeline.events import BlocksHidden, Replacement, appended_block
from timeline.events.other_payloads import StageApproved, StageEntered, StageRewound
from timeline.fold.fold import Fold
from timeline.fold.stages import advanced, current_stage
from timeline.frozen import repair_text
from timeline.log.stored import addressed_block
from timeline.planning.collapse_stages import approvals, memory_digest
from timeline.planning.messages import messages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from timeline.engine.conversation import Conversation
    from timeline.events import Payload
    from timeline.fold.stages import Stage
    from timeline.log.protocol import Decision

DECISION_CHARACTERS: Final = 200
SHORT_CHARACTERS: Final = 280
DETAILED_CHARACTERS: Final = 1_000
"""Characters of an approval's texts, as in the priority-chain design [priority_chain]: decision, short, detailed."""
_NOT_SAID: Final = frozenset({"note", "stage.digest", "system.message", "conv.range.summary"})
"""Types of blocks that are no messages of the conversation."""


async def enter(conversation: Conversation, stage: str, label: str, at: datetime | None) -> Stage:
    """Begin a stage. See `Timeline.enter_stage`.

    Raises:
        StageRefused: another stage is unfinished, or this one is approved already.
        InvalidArgument: the name is blank, or an argument is not a text.
    """
    checks.text_of("stage", stage, DECISION_CHARACTERS, least=1)
    checks.text_of("label", label, DECISION_CHARACTERS)
    entered = StageEntered(stage=repair_text(stage), label=repair_text(label or stage))

    async def choose(_: datetime) -> list[Payload]:
        _check_may_enter(conversation, entered.stage)
        return [entered]

    return await _decide(conversation, choose, at)


async def approve(
    conversation: Conversation,
    at: datetime | None,
    *,
    decision: str,
    short: str,
    detailed: str,
    references: Sequence[str],
    citations: Sequence[str],
    artifacts: Sequence[str],
) -> Stage:
    """Approve the current stage, and put its decision into the memory digest. See `Timeline.approve_stage`.

    Raises:
        StageRefused: there is no unfinished stage.
        InvalidArgument: a text is too long or missing, or a list is not one.
    """
    checks.text_of("decision", decision, DECISION_CHARACTERS, least=1)
    checks.text_of("short", short, SHORT_CHARACTERS)
    checks.text_of("detailed", detailed, DETAILED_CHARACTERS)
    for name, values in (("references", references), ("citations", citations), ("artifacts", artifacts)):
        checks.texts(name, values)

    async def choose(time: datetime) -> list[Payload]:
        current = current_stage(conversation.window.stages)
        if current is None:
            raise StageRefused(conversation.id, "", "no stage is unfinished; enter one first")
        first, last, count = await _boundaries(conversation, current)
        approved = conversation.equipment.screened(
            StageApproved(
                stage=current.stage,
                label=current.label,
                decision=decision,
                short=short,
                detailed=detailed,
                first=first,
                last=last,
                count=count,
                references=tuple(references),
                citations=tuple(citations),
                artifacts=tuple(artifacts),
            )
        )
        # Both go into one append: no reader may see an approved stage whose decision is not in view.
        return [approved, *await _memory_digest(conversation, approved, time)]

    return await _decide(conversation, choose, at)


async def rewind(conversation: Conversation, stage: str, at: datetime | None) -> Stage:
    """Reopen an approved stage. See `Timeline.rewind_stage`.

    Raises:
        StageNotFound: no live stage has that name.
        StageRefused: the stage is not approved yet, so there is no approval to take back.
    """
    checks.text("stage", stage)
    rewound = StageRewound(stage=repair_text(stage))

    async def choose(time: datetime) -> list[Payload]:
        live = {known.stage: known for known in conversation.window.stages}
        known = live.get(rewound.stage)
        if known is None:
            raise StageNotFound(conversation.id, rewound.stage, list(live))
        if known.approval is None:
            raise StageRefused(
                conversation.id, known.stage, "it is not approved yet, so there is no approval to take back"
            )
        return [rewound, *await _memory_digest(conversation, rewound, time)]

    return await _decide(conversation, choose, at)


async def _decide(conversation: Conversation, choose: Decision, at: datetime | None) -> Stage:
    """Append the events that ``choose`` returns on the log as it is at the commit; return the newest live stage."""
    await conversation.log.catch_up()
    await conversation.log.decide(choose, at=at)
    return conversation.window.stages[-1]


def _check_may_enter(conversation: Conversation, stage: str) -> None:
    stages = conversation.window.stages
    current = current_stage(stages)
    if current is not None:
        cure = "approve it first" if current.stage != stage else "it needs not be entered again"
        raise StageRefused(conversation.id, stage, f"stage {current.stage!r} is unfinished; {cure}")
    if any(known.stage == stage for known in stages):
        raise StageRefused(conversation.id, stage, "it is approved; reopen it with rewind_stage")


async def _memory_digest(
    conversation: Conversation, payload: StageApproved | StageRewound, at: datetime
) -> list[Payload]:
    """Return the memory digest as it is once an event is in the log: a whole list, which replaces the one before.

    It also replaces lists that an earlier version of this library placed between the messages.
    """
    window = conversation.window
    approved = approvals(advanced(window.stages, window.version + 1, payload))
    text = memory_digest(approved, conversation.policy.memory_digest)
    digest = StageDigest(text=text, meta={IN_TAIL: True})
    heading = conversation.policy.memory_digest.heading
    earlier = tuple(
        Replacement(version=item.version)
        for item in window.items
        if type(item.block) is StageDigest and not item.unsent and item.block.text.startswith(heading)
    )
    appended = await addressed_block(conversation.log, digest, at, conversation.counter)
    return [appended, *([BlocksHidden(mode="omit", reason="superseded", blocks=earlier)] if earlier else [])]


async def _boundaries(conversation: Conversation, stage: Stage) -> tuple[int, int, int]:
    """Return the versions of the first and last message of a stage, and the number of its messages."""
    fold = Fold(conversation.id)
    events = conversation.store.read(conversation.id, after=stage.entered, until=conversation.version)
    async for event in events:
        block = appended_block(event.payload)
        if block is not None and block.type not in _NOT_SAID:
            fold.apply(event.version, event.at, event.payload)
    items = fold.window.items
    return (items[0].version, items[-1].version, len(messages(items))) if items else (0, 0, 0)
