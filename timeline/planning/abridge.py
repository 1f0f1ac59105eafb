"""Plan how new results are shown shorter before they are first sent, without taking anything out of sight.

To change what was never sent costs no cache. So only the newest results are shortened, those that no context held yet.
Two things are left out of them: passages that are in sight (`timeline.planning.repeats`), and numbers of lines that
follow from others (`timeline.planning.line_numbers`). A list of messages keeps nothing that could be shown again, so
nothing is left out there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from timeline.blocks import ToolResult
from timeline.content.native import JSON_TEXT
from timeline.events import NUMBERED, REPEATED, Replacement
from timeline.events.addresses import Address
from timeline.fold.window import unsent_calls
from timeline.planning.line_numbers import may_have_numbers, with_few_numbers
from timeline.planning.repeats import Passages, without_passages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item, Window
    from timeline.policy.model import LineNumbers, Policy
    from timeline.ports import TokenCounter


class Abridged(NamedTuple):
    """What is shown of results, in timeline order, by the reason why it is shorter.

    Attributes:
        repeated: without passages that are in sight; some of them without numbers, too.
        numbered: without numbers of lines alone.
    """

    repeated: tuple[Replacement, ...]
    numbered: tuple[Replacement, ...]

    @property
    def by_reason(self) -> tuple[tuple[str, tuple[Replacement, ...]], ...]:
        """The replacements by the reason of their hide; a reason without any is left out."""
        both = ((REPEATED, self.repeated), (NUMBERED, self.numbered))
        return tuple((reason, blocks) for reason, blocks in both if blocks)


def plan_abridged(
    new: Sequence[Item], window: Window, policy: Policy, counter: TokenCounter, passages: Passages
) -> Abridged:
    """Plan how the newest results are shown, where the policy has them shown shorter.

    Args:
        new: the results, as `abridgeable` finds them.
        window: the blocks.
        policy: its ``repeats`` and ``line_numbers`` say what is worth it.
        counter: counts the replacements.
        passages: keeps what earlier plans read, so that it is not read again.
    """
    if new and policy.repeats is not None:
        gone = unsent_calls(window.items)
        first = new[0].version
        passages.read(
            item for item in window.items if item.version < first and item.is_in_sight and item.version not in gone
        )
    planned: list[Replacement] = []
    for item in new:
        replacement = _abridged(item, policy, counter, passages)
        if replacement is not None:
            planned.append(replacement)
        if policy.repeats is not None and item.is_in_sight:
            passages.add(item if replacement is None else item._replace(replacement=replacement))
    return Abridged(
        tuple(block for block in planned if block.repeats), tuple(block for block in planned if not block.repeats)
    )


def abridgeable(window: Window, policy: Policy) -> list[Item]:
    """Return the newest results, in timeline order, if a cheap look shows that one of them may get shorter."""
    if not window.readable or not policy.abridges:
        return []
    least = min(rule.minimum for rule in (policy.repeats, policy.line_numbers) if rule is not None)
    new = _newest_results(window)
    candidates = (item for item in new if item.tokens > least and _may_be_abridged(item))
    return new if any(policy.repeats is not None or may_have_numbers(item.block.text) for item in candidates) else []


def _newest_results(window: Window) -> list[Item]:
    """Return the newest response's results since the last recorded context, in timeline order: none was sent yet."""
    found: list[Item] = []
    sent = 0 if window.rendered is None else window.rendered.version
    for item in reversed(window.items):
        if 0 < item.response < window.response or item.version < sent:
            break
        if item.answers is not None and item.response == window.response:
            found.append(item)
    return found[::-1]


def _may_be_abridged(item: Item) -> bool:
    plain = type(item.block) is ToolResult and item.block.data in (None, JSON_TEXT)
    return plain and item.state == "visible" and not item.revealed and not item.keeps


def _abridged(item: Item, policy: Policy, counter: TokenCounter, passages: Passages) -> Replacement | None:
    """Return what is shown of a result; None where that is hardly shorter."""
    if not _may_be_abridged(item):
        return None
    text = item.block.text
    sources: tuple[int, ...] = ()
    least = 0
    if policy.repeats is not None:
        text, sources = without_passages(text, policy.repeats, passages)
        least = policy.repeats.minimum
    if policy.line_numbers is not None:
        text = _with_few_numbers(text, policy.line_numbers, Address(item.version))
        least = least if sources else policy.line_numbers.minimum
    if text == item.block.text:
        return None
    tokens = counter.count(text)
    if tokens + least > item.tokens:
        return None
    return Replacement(version=item.version, text=text, tokens=tokens, repeats=sources)


def _with_few_numbers(text: str, line_numbers: LineNumbers, address: Address) -> str:
    lines = text.split("\n")
    shown = with_few_numbers(lines, line_numbers.every)
    # The line names the address: a number that is left out cannot be found by its digits.
    said = f"[one line in {line_numbers.every} has its number, all of them in {address}]"
    return text if shown == lines else "\n".join([said, *shown])
