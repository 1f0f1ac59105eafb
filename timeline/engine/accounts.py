"""Draw up the accounts of a conversation's windows, the first one of a long window off the event loop."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from timeline.log.off_loop import WORTH_A_THREAD, off_loop
from timeline.planning.account import costs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item
    from timeline.planning.account import AccountCache
    from timeline.policy.model import Policy


async def settle(accounts: AccountCache, items: Sequence[Item], policy: Policy) -> None:
    """Count items of which the cache does not know many, so that their account is then drawn up at once."""
    if accounts.unknown(items, policy) >= WORTH_A_THREAD:
        # All of them: the thread may not add to costs that the loop reads meanwhile.
        accounts.adopt(items, await off_loop(len(items), partial(costs_of, items, policy)))
