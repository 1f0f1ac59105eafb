"""Plan a `strip_chitchat` step: omit short user messages without content, as in [priority_chain].

A message that stays needlessly costs a few tokens; without an answer the conversation loses its point. So everything
that may be an answer stays: what follows a question of the assistant, with or without a question mark, and what follows
a summary directly, since it may have covered the question. Collapsed stages are over, so no question is open behind
them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from timeline.blocks import AssistantCompletion, Attachment, UserPrompt
from timeline.events import BlocksHidden, Replacement
from timeline.planning.collapse_stages import COLLAPSED_BY
from timeline.planning.costs import changed_tokens
from timeline.planning.messages import messages
from timeline.planning.plans import HideDecision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.policy.steps import StripChitchat

REASON: Final = "chitchat"
_SAID: Final = (UserPrompt, Attachment)
_ASKING: Final = re.compile("[?\N{FULLWIDTH QUESTION MARK}\N{ARABIC QUESTION MARK}]")
_EXCLAIMING: Final = re.compile("[!\N{FULLWIDTH EXCLAMATION MARK}]")
_STRAIGHT: Final = "'"
_CURLY: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
_WORD: Final = re.compile(rf"\w+(?:{_STRAIGHT}\w+)*")
# Behind a comma, "which" begins no question: it continues a statement.
_CHOOSING: Final = re.compile(
    r"\b(?:"
    r"choose|pick|select|(?<!, )which|prefer|decide|specify|let (?:me|us) know|tell (?:me|us)"
    r"|(?:reply|answer) with|your (?:choice|pick|call|preference)|up to you|waiting for your"
    r"|pilih(?:lah|an)?|tentukan|sebutkan|beri tahu|beritahu|kabari|mau (?:yang )?(?:mana|apa)|yang mana|lebih suka"
    r"|tolong jawab|jawab dengan|apakah"
    r")\b",
    re.IGNORECASE,
)
"""Words that ask for a choice or an answer without a question mark, in English and Indonesian."""
_NUMBERS: Final = frozenset(
    [
        *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "both", "half"),
        *("first", "second", "third", "pertama", "kedua", "ketiga", "keduanya", "setengah"),
        *("dua", "tiga", "empat", "lima", "enam", "tujuh", "delapan", "sembilan", "sepuluh", "sebelas"),
    ]
)
"""Numbers in words, in English and Indonesian. ``one`` and ``satu`` count only alone: "nice one" has no number."""
_ONE: Final = frozenset({"one", "satu", "zero", "nol"})
_OPEN: Final = (":", "\N{FULLWIDTH COLON}")
"""How a last line ends that leaves the rest to the user."""
_MARKUP: Final = " \t*_"
_QUOTED: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\bhttps?://\S+", re.DOTALL)
"""Code and links, where a question mark asks nothing."""


def plan_chitchat(window: Window, policy: Policy, step: StripChitchat) -> HideDecision | None:
    """Plan to omit the chitchat of a window; None where there is none. The newest prompt always stays."""
    prompts = [item for item in window.items if type(item.block) is UserPrompt]
    parts = _parts(window.items)
    answers = _answers(window)
    newest = prompts[-1].version if prompts else 0
    chosen = [
        item
        for item in prompts
        if item.version != newest
        and item.state == "visible"
        and not item.keeps
        and not item.revealed
        and item.block.data is None
        and item.version not in answers
        and item.version not in parts
        and is_chitchat(item.block.text, step)
    ]
    if not chosen:
        return None
    omitted = {item.version: item._replace(omitted=True) for item in chosen}
    event = BlocksHidden(mode="omit", reason=REASON, blocks=tuple(Replacement(version=item.version) for item in chosen))
    return HideDecision(event, *changed_tokens(omitted, window.items, policy))


def is_chitchat(text: str, step: StripChitchat) -> bool:
    """Return whether a user message is chitchat by itself: short, no question or exclamation, number or kept word."""
    trimmed = text.strip().lower()
    if _length(text) > step.most_length or _length(trimmed) >= step.below_length:
        return False
    if _ASKING.search(trimmed) or _EXCLAIMING.search(trimmed) or any(sign.isdigit() for sign in trimmed):
        return False
    words = _words(trimmed)
    numbers = words.split()
    if not _NUMBERS.isdisjoint(numbers) or (len(numbers) == 1 and numbers[0] in _ONE):
        return False
    return not any(_words(kept.lower()) in words for kept in step.kept_words)


def _length(text: str) -> int:
    """Return the length as [priority_chain] measures it, in UTF-16 units: an emoji has two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def is_stripped(item: Item) -> bool:
    """Return whether an item was omitted as chitchat: it is shown no more, but the summary that covers it has it."""
    return item.omitted and item.hide is not None and item.hide.reason == REASON


def _parts(items: Sequence[Item]) -> set[int]:
    """Return the versions of the user's blocks that make up a message with others of them: it says more than each does.

    A picture beside a prompt is one of them, also where it was appended as an attachment.
    """
    said = ([p for p in part.indices if isinstance(items[p].block, _SAID)] for part in messages(items))
    return {items[position].version for positions in said if len(positions) > 1 for position in positions}


def _words(text: str) -> str:
    """Return the words of a text, each between spaces."""
    words = _WORD.findall(text.replace(_CURLY, _STRAIGHT))
    return f" {' '.join(words)} "


def _answers(window: Window) -> set[int]:
    """Return the versions of the prompts that may answer a question: said before the assistant said anything else."""
    asked, answers = False, set[int]()
    over = {done.block.path for done in window.summaries if done.written_by.summarizer == COLLAPSED_BY}
    for item in window.items:
        if item.is_summary:
            asked = item.block.path not in over
        elif type(item.block) is AssistantCompletion and item.block.text.strip():
            asked = _asks(item.block.text)
        elif asked and type(item.block) is UserPrompt:
            answers.add(item.version)
    return answers


def _asks(text: str) -> bool:
    """Return whether the assistant asks something: a question, words of choosing, or a last line that is left open.

    Words that only mention a choice count as well: what stays needlessly costs a few tokens.
    """
    words = _QUOTED.sub("", text)
    if _ASKING.search(words) or _CHOOSING.search(words):
        return True
    return words.rstrip().rstrip(_MARKUP).endswith(_OPEN)
