"""What tests of compactions share: a policy, and conversations above its trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.scenes import exchange, opened, prompt, small_policy, turn

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.store.memory import MemoryStore

POLICY = small_policy(max_tokens=4_000, keep_recent_tokens=400)
FINISHED = (*turn(1_500), *turn(1_500), *turn(400, asked=300))
"""Three turns above the trigger; a cut at the third splits nothing."""


async def split(store: MemoryStore, **options: Any) -> Timeline:
    """Return a conversation above the trigger whose second turn will be split."""
    timeline = await opened(store, **{"policy": POLICY, **options})
    await timeline.append(*turn(1_500), prompt(20), *exchange("a", 1_500), *exchange("b", 1_000), *exchange("d", 400))
    return timeline


def texts(timeline: Timeline) -> list[str]:
    """Return the texts of the window's items."""
    return [item.block.text for item in timeline.window.items]
