"""Earlier summaries among plain messages: what a compaction put at the head of a list is known by its form.

A log records its compactions; a list only has what they look like. The forms of all presets are known, whichever one
is in force now.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from timeline.blocks import AssistantCompletion, SystemMessage, UserPrompt
from timeline.planning.summary_requests import SESSION_SUMMARY
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.blocks import Block
    from timeline.policy.steps import SummaryForm

_LOWERED: Final = "[system message] "
"""What the wires write before a summary that a form wants the system to say."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A summary that a list begins with.

    Attributes:
        text: all of it, heading included.
        body: what it says under its heading.
        round: its number; 1 where its form does not tell it.
        form: how it is told.
        rest: the blocks of the messages behind it.
    """

    text: str
    body: str
    round: int
    form: SummaryForm
    rest: tuple[tuple[Block, ...], ...]


def earlier_summary(messages: Sequence[Sequence[Block]], form: SummaryForm) -> Earlier | None:
    """Find the summary that a list begins with.

    Args:
        messages: the blocks of each message, in order.
        form: of the policy in force; tried before the presets'.
    """
    flat = [(number, block) for number, blocks in enumerate(messages) for block in blocks]
    for known in (form, *_preset_forms()):
        found = _told(known, [block for _, block in flat[:3]])
        if found is not None:
            text, body, round_, taken = found
            rest = [tuple(b for n, b in flat[taken:] if n == number) for number in range(len(messages))]
            return Earlier(text, body, round_, known, tuple(blocks for blocks in rest if blocks))
    return None


def _told(form: SummaryForm, blocks: Sequence[Block]) -> tuple[str, str, int, int] | None:
    """Read a summary of one form; return its text, its body, its round, and of how many blocks it is made."""
    at = 0
    if form.question:
        if not blocks or type(blocks[0]) is not UserPrompt or blocks[0].text != form.question:
            return None
        at = 1
    if at >= len(blocks) or type(blocks[at]) not in {UserPrompt, AssistantCompletion, SystemMessage}:
        return None
    text = blocks[at].text.removeprefix(_LOWERED)
    heading = next((match for pattern in _headings(form) if (match := pattern.match(text))), None)
    if heading is None or not (form.heading or form.question):
        return None
    at += 1
    if form.answer and at < len(blocks) and blocks[at].text == form.answer:
        at += 1
    number = int(heading.groupdict().get("round") or 1)
    return text, text[heading.end() :].strip(), number, at


def _headings(form: SummaryForm) -> Iterator[re.Pattern[str]]:
    yield re.compile(re.escape(form.heading).replace(re.escape("{round}"), r"(?P<round>\d+)"))
    if "Session Summary" in form.heading:
        yield SESSION_SUMMARY


@cache
def _preset_forms() -> tuple[SummaryForm, ...]:
    return tuple(dict.fromkeys(preset().form for preset in PRESETS.values()))
