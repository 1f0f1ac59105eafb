"""Give a summarizer the originals of the blocks that only automatic decisions hid, cut to the room there is.

A hide saves tokens in each call of the agent, but a summarizer reads its range once. So a summary of replacements would
save little, and lose what the hide left in the log. A block that was hidden by hand, omitted or redacted is given as
the model saw it: that decision is the application's (ADR 0038).

Only sizes decide what is cut, so that a replay gives the same blocks. Work is cut first, oldest first: results and
attachments, then calls, then thoughts, each down to a size, then all of them to the next size. The assistant's texts
are cut once all of these are at the last size, and what users wrote after that.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, Attachment, ToolCall, ToolResult, UserPrompt
from timeline.events import ABRIDGED
from timeline.frozen import canonical_json
from timeline.planning.clear_tool_outputs import REASON as CLEARED
from timeline.planning.hide import AUTOMATIC
from timeline.planning.replacements import ending
from timeline.ports import CUT_KEY, GAP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.ports import TokenCounter

SEEN_THROUGH: Final = AUTOMATIC | ABRIDGED | {CLEARED, "spill", "imported"}
"""The reasons of hides that no person decided, those of previews and of a recorded client included."""
MORE: Final = 500
"""Tokens that originals may have beyond what was shown, since a few replacements alone have hardly any."""
_WINDOW_SHARE: Final = 8
"""One part in this many of a summarizer's window is kept for prompt and tasks."""
_SIZES: Final = (4_000, 2_000, 1_000, 500, 250, 120, 60, 30)
"""Tokens to which blocks are cut, one size after the other."""
_LEAST_CALL: Final = 250
"""No call is cut further: its names and paths are what a summary is about."""
_SHORT: Final = 200
"""Characters of an argument that is never cut: a path in two pieces is no path."""
_TAIL_SHARE: Final = 3
"""One part in this many of a cut text is its end."""
_OF_NAMES: Final = f"{ascii_letters}{digits}_./~@+:%#?=&$-"
"""Characters of names, paths and URLs: half of one is an invented name."""
_LONGEST_NAME: Final = 200
"""Characters of a name; a longer run of its characters is data, of which a piece is as good as another."""


def is_seen_through(item: Item) -> bool:
    """Return whether an item is shown as a replacement that only automatic decisions put there."""
    return item.replacement is not None and item.hide is not None and item.hide.reason in SEEN_THROUGH


def room_for(shown: int, window: int, previous: int, answer: int) -> int:
    """Return the tokens that a request's blocks may have: as many as were shown of them, and `MORE`.

    So originals cost what replacements did. Twice as many tokens would cost 1 to 4 % of all input, and gave a summary
    by extraction hardly a further fact that a later answer needed (ADR 0038).

    Args:
        shown: tokens of the same blocks as the model saw them. At least so many are asked about in any case, in chunks
            where the window has no room for them.
        window: tokens that the summarizer reads and writes at once.
        previous: tokens of the earlier summary, which the summarizer reads too.
        answer: tokens that it may write.
    """
    by_window = window - window // _WINDOW_SHARE - previous - answer
    return max(shown, min(shown + MORE, by_window))


@dataclass(slots=True)
class _Piece:
    """A block, its tokens, and the size to which it is to be cut, if any."""

    block: Block
    tokens: int
    size: int | None = None

    @property
    def left(self) -> int:
        return self.tokens if self.size is None else min(self.size, self.tokens)


class CutBlocks:
    """Cuts blocks, and remembers the cut ones: each takes dozens of counts, and the next dry run makes the same cuts.

    Once a render has recorded its compaction, none of them is needed again.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Block, int, str, Block]] = {}

    def of(self, block: Block, size: int, counter: TokenCounter) -> Block:
        """Return a block of about ``size`` tokens: beginning and end of its text, or of its long arguments."""
        known = self._known.get(id(block))
        if known is None or known[0] is not block or known[1:3] != (size, counter.name):
            known = self._known[id(block)] = block, size, counter.name, _cut(block, size, counter)
        return known[3]

    def keep(self, items: Sequence[Item]) -> None:
        """Forget the cut ones of all blocks but those in a window, which has a redacted block as its tombstone."""
        if self._known:
            kept = {id(item.block) for item in items}
            self._known = {key: known for key, known in self._known.items() if key in kept}


def fitted(
    blocks: Sequence[tuple[Block, int]], room: int, counter: TokenCounter, cut: CutBlocks | None = None
) -> list[Block]:
    """Cut blocks, each given with its tokens, until all fit together; a cut block has `CUT_KEY` in its meta."""
    cut = cut or CutBlocks()
    pieces = [_Piece(block, tokens) for block, tokens in blocks]
    excess = sum(piece.tokens for piece in pieces) - room
    for piece, size in _cuts(pieces) if excess > 0 else ():
        before, piece.size = piece.left, size
        excess -= before - piece.left
        if excess <= 0:
            break
    return [piece.block if piece.size is None else cut.of(piece.block, piece.size, counter) for piece in pieces]


def _cuts(pieces: Sequence[_Piece]) -> Iterator[tuple[_Piece, int]]:
    """Yield each cut that would shorten a piece, in the order in which they are made."""
    for parts in _PARTS:
        of_parts = [piece for part in parts for piece in pieces if part(piece.block)]
        for size in _SIZES:
            for piece in of_parts:
                if piece.left > size >= (_LEAST_CALL if _is_call(piece.block) else 0):
                    yield piece, size


def _is_result(block: Block) -> bool:
    return isinstance(block, ToolResult | Attachment)


def _is_call(block: Block) -> bool:
    return isinstance(block, ToolCall)


def _is_answer(block: Block) -> bool:
    return isinstance(block, AssistantCompletion)


def _is_users(block: Block) -> bool:
    return isinstance(block, UserPrompt)


def _is_other(block: Block) -> bool:
    """Return whether a block is of no other kind here: a thought, a message of the runtime, an application's own."""
    return not (_is_result(block) or _is_call(block) or _is_answer(block) or _is_users(block))


_PARTS: Final[tuple[tuple[Callable[[Block], bool], ...], ...]] = (
    (_is_result, _is_call, _is_other),
    (_is_answer,),
    (_is_users,),
)
"""The kinds of blocks that are cut together, size by size; the next group is cut only once the one before is done."""


def _cut(block: Block, size: int, counter: TokenCounter) -> Block:
    """Return a block of about ``size`` tokens: beginning and end of its text, or of its long arguments."""
    changes: dict[str, Any] = {"data": None, "meta": {**block.meta, CUT_KEY: True}}
    if isinstance(block, ToolCall):
        changes["arguments"] = _cut_arguments(block, size, counter)
    else:
        changes["text"] = head_and_tail(block.text, size, counter)
    return block.model_copy(update=changes)


def _cut_arguments(call: ToolCall, size: int, counter: TokenCounter) -> str | dict[str, Any]:
    """Return a call's arguments with their long texts cut, all to the same size, until they fit or are short."""
    if isinstance(call.arguments, str):
        return head_and_tail(call.arguments, size, counter)
    arguments = call.arguments
    for share in (1, 2, 4, 8, 16):
        arguments = _with_short_texts(call.arguments, size // share, counter)
        if counter.count(canonical_json(arguments)) <= size:
            break
    return arguments


def _with_short_texts(value: Any, size: int, counter: TokenCounter) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _SHORT else head_and_tail(value, size, counter)
    if isinstance(value, dict):
        return {key: _with_short_texts(part, size, counter) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_short_texts(part, size, counter) for part in value]
    return value


def head_and_tail(text: str, size: int, counter: TokenCounter) -> str:
    """Return beginning and end of a text, of about ``size`` tokens, whole lines or words where there are any."""
    if counter.count(text) <= size:
        return text
    tail = size // _TAIL_SHARE
    beginning = counter.truncate(text, size - tail)
    head = _whole_words(beginning, text[len(beginning) :][:1])
    end = ending(text[len(head) :], tail, counter)
    return f"{head}\n{GAP}\n{_whole_words(end[::-1], text[: len(text) - len(end)][-1:])[::-1]}"


def _whole_words(text: str, beyond: str) -> str:
    """Return a beginning without the line that the cut divided, or else without the divided word.

    Where too little would be left, it at least ends before the name that goes on with ``beyond``, the character behind
    the cut.
    """
    at = max(text.rfind("\n"), 0)
    if 2 * at < len(text):
        at = max(text.rfind(" "), at)
    if 2 * at >= len(text):
        return text[:at]
    bare = text.rstrip(_OF_NAMES) if beyond and beyond in _OF_NAMES else text
    return bare if len(text) - len(bare) <= _LONGEST_NAME else text
