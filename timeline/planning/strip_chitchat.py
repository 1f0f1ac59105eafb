"""Plan a `strip_chitchat` step: omit short user messages without content, as in [priority_chain]."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from timeline.blocks import UserPrompt
from timeline.events import BlocksHidden, Replacement
from timeline.planning.account import freed_by
from timeline.planning.messages import messages
from timeline.planning.plans import HideDecision

if TYPE_CHECKING:
    from timeline.fold.window import Item, Window
    from timeline.policy.model import Policy
    from timeline.policy.steps import StripChitchat

REASON: Final = "chitchat"
_QUESTION: Final = "?"


def plan_chitchat(window: Window, policy: Policy, step: StripChitchat) -> HideDecision | None:
    """Plan to omit the chitchat of a window; None where there is none. The newest prompt always stays."""
    prompts = [item for item in window.items if type(item.block) is UserPrompt]
    asked = _asked_before(window)
    newest = prompts[-1].version if prompts else 0
    chosen = [
        item
        for item in prompts
        if item.version != newest
        and item.state == "visible"
        and not item.keeps
        and not item.revealed
        and item.block.data is None
        and not (item.version in asked and _is_answer(item.block.text))
        and is_chitchat(item.block.text, step)
    ]
    if not chosen:
        return None
    omitted = {item.version: item._replace(omitted=True) for item in chosen}
    event = BlocksHidden(mode="omit", reason=REASON, blocks=tuple(Replacement(version=item.version) for item in chosen))
    return HideDecision(event, freed_by(omitted, window.items, policy))


def is_chitchat(text: str, step: StripChitchat) -> bool:
    """Return whether a user message is chitchat: short, trimmed too, without ``?`` or ``!``, and not a kept word."""
    trimmed = text.strip().lower()
    if len(text) > step.most_length or len(trimmed) >= step.below_length:
        return False
    return "?" not in trimmed and "!" not in trimmed and trimmed not in step.kept_words


def _is_answer(text: str) -> bool:
    """Return whether a message is one word or number, as the answer to a question may be."""
    return len(text.split()) == 1


def _asked_before(window: Window) -> set[int]:
    """Return the versions of the prompts that follow directly on a question of the assistant."""
    items, asked = window.items, set[int]()
    parts = messages(items)
    for before, part in pairwise(parts):
        if before.role == "assistant" and part.role == "user" and _asks(items, before.indices):
            asked.update(items[p].version for p in part.indices)
    return asked


def _asks(items: tuple[Item, ...], indices: tuple[int, ...]) -> bool:
    said = [items[p].block.text.rstrip() for p in indices if items[p].block.type == "assistant.completion"]
    return bool(said) and said[-1].endswith(_QUESTION)
