"""Errors about contexts that are too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.errors.base import TimelineError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class BudgetError(TimelineError):
    """The context and the limit cannot be brought together."""


class ContextOverflow(BudgetError):
    """The context is above the limit and cannot be made smaller.

    ``account`` is the token account by category, ``largest_blocks`` lists ``(path, tokens)``, largest first.
    """

    def __init__(self, account: Mapping[str, int], largest_blocks: Sequence[tuple[str, int]]) -> None:
        self.account = dict(account)
        self.largest_blocks = list(largest_blocks)
        largest = ", ".join(f"{path} ({tokens})" for path, tokens in self.largest_blocks[:3])
        super().__init__(
            f"The context needs {self.account.get('total')} tokens and the limit is {self.account.get('limit')}. "
            f"Largest blocks: {largest}. Raise max_tokens, or begin a new conversation."
        )


class BudgetImpossible(BudgetError):
    """System prompt, tools and reserves alone leave no room for a conversation."""

    def __init__(self, account: Mapping[str, int]) -> None:
        self.account = dict(account)
        super().__init__(
            f"The fixed part takes {self.account.get('fixed')} of {self.account.get('limit')} tokens and leaves no "
            "room for a summary and the newest messages. Raise max_tokens, or shorten the system prompt and tools."
        )


class ContextRefused(BudgetError):
    """The model refused a context for its size, and no smaller one could be made that it takes.

    Attributes:
        sent: sizes of the contexts that it refused, in our tokens, in order.
        limit: the limit that the provider named, in its own tokens; None where it named none.
        target: what the context was to be compacted to, in our tokens.
        tried: what the compaction did, or why it did nothing.
    """

    def __init__(self, *, sent: Sequence[int], limit: int | None, target: int, tried: Sequence[str]) -> None:
        self.sent = list(sent)
        self.limit = limit
        self.target = target
        self.tried = list(tried)
        named = f" (it named a limit of {limit})" if limit is not None else ""
        super().__init__(
            f"The model refused contexts of {', then '.join(map(str, self.sent))} tokens{named}. Compacting to "
            f"{target} tokens came to: {'; '.join(self.tried) or 'nothing'}. Lower max_tokens of the policy below the "
            "model's limit, shorten the system prompt and tools, or begin a new conversation."
        )
