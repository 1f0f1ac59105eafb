"""Functions of the application to await around a compaction, and before a block is stored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from timeline.errors import InvalidArgument

if TYPE_CHECKING:
    from timeline.blocks import Block

Hook: TypeAlias = Callable[[dict[str, Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Skip:
    """Returned by `Hooks.on_before_compaction` to prevent the compaction; the reason is recorded."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Functions of the application to await around a compaction; an error in one is recorded, never fatal.

    None has a deadline: a render waits for its hooks. Limit what a hook waits for within it (``asyncio.timeout``).

    The hooks are those of the cut-point design (002) [cut_point], the last that of the keep-ratio design (003)
    [keep_ratio].

    Attributes:
        on_before_compaction: called with ``{before_tokens}``. Return `Skip` to prevent the compaction: it is refused as
            ``vetoed``, and not tried again until the conversation has grown. Return a text to use it as the summary,
            instead of the summarizer's: it replaces all covered blocks, an earlier summary included, and is cut to the
            policy's caps. With any other value the compaction goes on. A dry run calls none of the hooks around a
            compaction, so it shows the result without them.
        on_after_compaction: called with ``{before_tokens, after_tokens, compacted_tokens}``; its result is ignored.
        on_session_start: called next, when the conversation goes on from a summary, with ``{source, conversation,
            summary_path, compaction_number, before_tokens, after_tokens}``; ``source`` is ``"compact"``. Its result is
            ignored.
        on_append: called with each block before it is counted and stored; returns the block to store, such as one with
            its secrets masked (`timeline.forgetting.mask_credentials`). The hook gets every other text that is stored
            as a `Note`: titles, errors, labels and approvals of stages, entries of frameworks, summaries. A dry run
            calls it, too, with what would be stored, and shows the result. System prompt, tools and ephemeral texts are
            sent as they are: if the hook changes one, the context is recorded by hashes, as with ``record="hash"``; if
            it changes the request of a call, the call is recorded without the request. The hook is a plain function,
            not a coroutine. If it raises an error, that error is raised and nothing is stored, since a secret that
            could not be masked must not get in.

    Example:
        ```python
        from timeline import Hooks, Skip, Timeline, open_store


        async def before(facts):  # {"before_tokens": …}
            return Skip("a deploy is running")


        store = await open_store("memory://")
        timeline = await Timeline.open(store, "cards", hooks=Hooks(on_before_compaction=before))
        ```
    """

    on_before_compaction: Hook | None = field(default=None)
    on_after_compaction: Hook | None = field(default=None)
    on_session_start: Hook | None = field(default=None)
    on_append: Callable[[Block], Block] | None = field(default=None)

    def __post_init__(self) -> None:
        """Refuse what cannot be called; otherwise it would fail much later, in a compaction."""
        for each in fields(self):
            hook = getattr(self, each.name)
            if hook is not None and not callable(hook):
                raise InvalidArgument(each.name, f"must be a function, not of type {type(hook).__name__}")
