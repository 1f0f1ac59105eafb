"""Plan which old blocks are shown as short replacements from now on (design: Hiding).

One planner serves both occasions: the cache is cold, or the context is above the trigger. The newest rounds stay
untouched. Older tool output and bulky arguments are replaced, but not the newest content of each file, which an agent
reads most. Texts that are older still are shortened. Ages are in rounds or turns. All hides are one batch, which is
planned only if it frees enough, since each change of the prefix costs a cache. The rule extends the TTL pruning of the
cut-point design [cut_point].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Reasoning,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserPrompt,
)
from timeline.facts.plans import plan_of
from timeline.facts.tool_use import tool_use
from timeline.fold.window import replaced
from timeline.frozen import begins_with
from timeline.planning.costs import costs_of
from timeline.planning.replacements import Replacements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.events import Replacement
    from timeline.fold.window import Item, Window
    from timeline.planning.costs import Costs
    from timeline.policy.model import Hiding, Policy
    from timeline.ports import TokenCounter


AgeUnit: TypeAlias = Literal["rounds", "turns"]


def ages(items: Sequence[Item], unit: AgeUnit) -> list[int]:
    """Return for each item, in timeline order, how many rounds (or turns) of the window are newer than its own.

    A round is one model response with its calls and their results. An item of no round, such as a prompt, is as old as
    the number of rounds after it. The newest round has age 0.
    """
    if unit == "turns":
        return _by_turn(items)
    responses = sorted({item.response for item in items if item.response})
    newer = {response: len(responses) - 1 - rank for rank, response in enumerate(responses)}
    found: list[int] = []
    after: set[int] = set()
    for item in reversed(items):
        if item.response:
            after.add(item.response)
        found.append(newer.get(item.response, len(after)))
    return found[::-1]


def _by_turn(items: Sequence[Item]) -> list[int]:
    turns: dict[str, int] = {}
    return [turns.setdefault(item.block.turn_id, len(turns)) for item in reversed(items)][::-1]


_WHOLE_KEYS: Final = ("content", "contents", "file_text", "text", "new_source")
"""Arguments that hold the text of a call that writes a whole file."""
_PART_KEYS: Final = ("offset", "limit", "view_range", "start_line", "end_line", "line_start", "line_end", "pages")
"""Arguments that name a part of a file; each such part counts as a file of its own."""


class NewestContents:
    """Finds the blocks that hold the newest content of a file, and remembers what each call of the window holds.

    A hide changes only how blocks are shown, so the next plan asks about the same calls again.
    """

    def __init__(self) -> None:
        self._known: dict[int, _Held] = {}

    def of(self, items: Sequence[Item]) -> set[int]:
        """Return the versions of the blocks that hold the newest content of a file, or of a part of it.

        Such a block is the result of a call that read the file, the call that wrote all of it, or its attachment. Edits
        hold no content, and neither do failed calls: their text is not in the file.

        Args:
            items: of a window, in timeline order.
        """
        results = {item.answers: item for item in items if item.answers is not None}
        known: dict[int, _Held] = {}
        newest: dict[str, int] = {}
        for item in items:
            block, result = item.block, results.get(item.version)
            if type(block) is not ToolCall and type(block) is not Attachment:
                continue
            answer, held = None if result is None else result.block, self._known.get(item.version)
            if held is None or held.block is not block or held.answer is not answer:
                held = _Held(block, answer, tuple(_contents(item, result)))
            known[item.version] = held
            newest.update(held.contents)
        self._known = known
        return {*newest.values()}


class _Held(NamedTuple):
    """The contents of a call and its result: each a file, or a part of one, and the version of the block with it."""

    block: Block
    answer: Block | None
    contents: tuple[tuple[str, int], ...]


def holds_whole_file(call: ToolCall) -> bool:
    """Return whether a call that writes a file has all of its text in an argument."""
    arguments = call.arguments
    return isinstance(arguments, dict) and any(isinstance(arguments.get(key), str) for key in _WHOLE_KEYS)


def _contents(item: Item, result: Item | None) -> list[tuple[str, int]]:
    block = item.block
    if type(block) is Attachment:
        return [(str(block.meta.get("file") or block.path), item.version)]
    if type(block) is not ToolCall or not isinstance(block.arguments, dict):
        return []
    arguments = block.arguments
    use = tool_use(block)
    answer = None if result is None else result.block
    if use is None or (isinstance(answer, ToolResult) and answer.failed):
        return []
    if use.kind == "write" and holds_whole_file(block):
        return [(file, item.version) for file in use.subjects]
    if use.kind == "read" and result is not None:
        part = "".join(f"\n{key}={arguments[key]}" for key in _PART_KEYS if arguments.get(key) is not None)
        return [(file + part, result.version) for file in use.subjects]
    return []


_SHORTENED: Final[frozenset[type[Block]]] = frozenset(
    {UserPrompt, AssistantCompletion, Reasoning, ToolCall, SystemMessage, CustomBlock}
)
"""Texts, thoughts and calls, which are hidden once they are ``old``."""
AUTOMATIC: Final = frozenset({"cold", "pressure", "refused"})
"""The reasons of hides that nobody asked for."""
_LEAST_GAIN: Final = 2
"""A block is hidden only where its replacement is at most half as long."""
NOTICE_KEY: Final = "notice"
"""Key of a `SystemMessage`'s ``meta`` that names the runtime's purpose of the message."""
NOTICE: Final = (
    "Older content of this conversation is hidden to save room. What stands for it ends with an address, @ and a "
    "number: read that address to see all of it. Calls shown with _hidden were made with all their arguments, as "
    "yours must be."
)


@dataclass(frozen=True, slots=True)
class HidePlan:
    """A batch of hides, and what it changes in the account.

    Attributes:
        replacements: in timeline order.
        before: the tokens of the messages before the hides.
        freed: how many of them the hides free.
        behind: how many of them are in the first hidden block and behind it.
    """

    replacements: tuple[Replacement, ...]
    before: int
    freed: int
    behind: int


def plan_hide(
    window: Window,
    policy: Policy,
    hiding: Hiding,
    counter: TokenCounter,
    *,
    least: int,
    replacements: Replacements | None = None,
    contents: NewestContents | None = None,
    known: Costs | None = None,
) -> HidePlan | None:
    """Plan one batch of automatic hides, or None where less than ``least`` tokens would be freed.

    Headers, summaries, pinned blocks, stage digests, the newest prompt and open calls stay as they are, and so do
    blocks that are hidden already or were revealed.

    Args:
        window: the blocks.
        policy: gives the costs.
        hiding: says what is old.
        counter: counts the replacements.
        least: least tokens that are worth a batch.
        replacements: remembers the replacements of earlier plans, so that they are not made again.
        contents: finds the newest contents, and remembers those of earlier plans.
        known: the costs of the window's items, if they are known.
    """
    replacements = replacements or Replacements()
    eligible = _eligible(window, hiding, contents or NewestContents())
    known = known or costs_of(window.items, policy)
    before = known.tokens
    versions = {item.version for item in eligible}
    if sum(cost for item, cost in zip(window.items, before, strict=True) if item.version in versions) < least:
        return None
    calls = {item.version: item.block for item in window.items if type(item.block) is ToolCall}
    chosen: list[Replacement] = []
    changed: list[tuple[Item, Item]] = []
    for item in eligible:
        call = None if item.answers is None else calls.get(item.answers)
        replacement = replacements.of(item, call, hiding.replacement_tokens, counter, address=window.address_of(item))
        if replacement.tokens * _LEAST_GAIN <= item.tokens and replacement.tokens < item.tokens:
            chosen.append(replacement)
            changed.append((item, replaced(item, replacement)))
    replacements.forget(versions)
    freed = known.freed(changed)
    if not chosen or freed < least:
        return None
    behind = sum(cost for item, cost in zip(window.items, before, strict=True) if item.version >= chosen[0].version)
    return HidePlan(tuple(chosen), sum(before), freed, behind)


def needs_notice(window: Window) -> bool:
    """Return whether a hide needs a notice to the model now: none is in view, and no response is in progress.

    A notice inside a response would move on the wire with each block that is still to come.
    """
    shown = any(is_notice(item.block) and item.state in {"visible", "carried"} for item in window.items)
    return not shown and not window.speaking


class OwedNotice:
    """Finds whether a notice is due for an earlier hide that was decided while a response was in progress.

    None is due after a summary since that hide, which may have covered the notice: it comes again with the next hide.
    Of a window that continues the last one asked about, only the new items are read.
    """

    def __init__(self) -> None:
        self._items: Sequence[Item] = ()
        self._hidden = self._noticed = 0

    def is_due(self, window: Window) -> bool:
        """Return whether a window owes a notice now."""
        if not begins_with(window.items, self._items):
            self._items, self._hidden, self._noticed = (), 0, 0
        for item in window.items[len(self._items) :]:
            if item.hide is not None and item.hide.reason in AUTOMATIC:
                self._hidden = max(self._hidden, item.hide.version)
            if item.is_summary or is_notice(item.block):
                self._noticed = max(self._noticed, item.version)
        self._items = window.items
        return self._hidden > self._noticed and needs_notice(window)


def is_notice(block: Block) -> bool:
    """Return whether a block is the runtime's notice that content is hidden."""
    return type(block) is SystemMessage and block.meta.get(NOTICE_KEY) == "hidden"


def _eligible(window: Window, hiding: Hiding, contents: NewestContents) -> list[Item]:
    """Return the items that are old enough for their kind to be hidden, in timeline order."""
    items = window.items
    protected = contents.of(items)
    spared = {item.version for item in window.open_calls()}
    spared.update(_newest_message(items))
    spared.update(_open_plan(items))
    return [
        item
        for item, age in zip(items, ages(items, hiding.unit), strict=True)
        if age >= _least_age(item, hiding, protected=item.version in protected) and _may_hide(item, spared)
    ]


def _newest_message(items: Sequence[Item]) -> list[int]:
    """Return the versions of the prompts that are parts of the user's newest message."""
    prompts = [position for position, item in enumerate(items) if type(item.block) is UserPrompt]
    if not prompts:
        return []
    first = prompts[-1]
    while first and items[first].continues(items[first - 1]):
        first -= 1
    return [items[position].version for position in prompts if position >= first]


def _open_plan(items: Sequence[Item]) -> list[int]:
    """Return the version of the call that gives the newest plan, as long as a step of it is open.

    An agent works from its plan for longer than from a file, and makes no call to read the plan again.
    """
    calls = ((item.version, plan_of(item.block)) for item in reversed(items) if type(item.block) is ToolCall)
    newest = next(((version, steps) for version, steps in calls if steps), None)
    return [newest[0]] if newest is not None and any(step.is_open for step in newest[1]) else []


def _least_age(item: Item, hiding: Hiding, *, protected: bool) -> float:
    """Return the age at which an item is hidden; infinite for an item that never is."""
    kind = type(item.block)
    if kind is Attachment or protected:
        return max(hiding.intact, hiding.files)
    if kind is ToolResult or (kind is ToolCall and item.tokens > _LEAST_GAIN * hiding.replacement_tokens):
        return hiding.intact
    return max(hiding.intact, hiding.old) if kind in _SHORTENED else float("inf")


def _may_hide(item: Item, spared: set[int]) -> bool:
    shown = item.state in {"visible", "abridged", "carried"}
    return shown and not item.revealed and not item.keeps and item.version not in spared and not is_notice(item.block)
