"""What one render of a conversation leaves for the next: it saves work, and changes no result."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from timeline.log.off_loop import WORTH_A_THREAD, off_loop
from timeline.planning.account import AccountCache
from timeline.planning.costs import costs_of
from timeline.planning.hidden_requests import ReadPrompts
from timeline.planning.hide import NewestContents, OwedNotice
from timeline.planning.originals import CutBlocks
from timeline.planning.repeats import Passages, References
from timeline.planning.replacements import Replacements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item
    from timeline.policy.model import Policy


@dataclass(frozen=True, slots=True)
class Known:
    """What the decisions of one render leave for those of the next.

    Attributes:
        accounts: draws up the accounts.
        owed: finds whether a notice is due.
        replacements: makes the replacements of old blocks.
        prompts: reads what users ask for in the blocks that are hidden.
        contents: finds the blocks that hold the newest content of a file.
        cut: cuts blocks for the summaries.
        passages: finds which lines are in sight.
        references: finds the results that leave out what is no longer in sight.
    """

    accounts: AccountCache = field(default_factory=AccountCache)
    owed: OwedNotice = field(default_factory=OwedNotice)
    replacements: Replacements = field(default_factory=Replacements)
    prompts: ReadPrompts = field(default_factory=ReadPrompts)
    contents: NewestContents = field(default_factory=NewestContents)
    cut: CutBlocks = field(default_factory=CutBlocks)
    passages: Passages = field(default_factory=Passages)
    references: References = field(default_factory=References)

    def begin(self, items: Sequence[Item], policy: Policy) -> None:
        """Begin a render with a log's own window: forget what was remembered of windows that it does not continue."""
        self.accounts.begin(items, policy)
        self.cut.keep(items)


async def settle(accounts: AccountCache, items: Sequence[Item], policy: Policy) -> None:
    """Count a window's items off the loop where many are new to the cache, so that their account is then at hand."""
    if accounts.unknown(items, policy) >= WORTH_A_THREAD:
        # The thread counts all items anew, since it may not add to costs that the loop reads meanwhile.
        accounts.adopt(items, await off_loop(len(items), partial(costs_of, items, policy)))
