"""A result that is abridged has a state of its own: it is not hidden, since all that it says is in sight (ADR 0093)."""

from __future__ import annotations

import pytest

from tests.abridged import PRINTED, read_numbered
from tests.planning.test_manual import states
from tests.scenes import apply, exchange, fold_of, prompt
from timeline.audit.why import WayBack
from timeline.events import NUMBERED, REPEATED, BlocksHidden, Replacement
from timeline.store.memory import MemoryStore


@pytest.mark.parametrize(
    ("reason", "state"), [(NUMBERED, "abridged"), (REPEATED, "abridged"), ("cold", "hidden"), ("manual", "hidden")]
)
def test_the_reason_of_the_decision_parts_abridged_from_hidden(reason: str, state: str) -> None:
    """The event is of the same type, so logs of earlier versions have the state, too."""
    fold = fold_of(prompt(5), *exchange("a", 40))
    apply(fold, 5, BlocksHidden(reason=reason, blocks=(Replacement(version=4, text="1: one", tokens=3),)))
    assert states(fold)[2] == state


async def test_a_context_calls_a_result_without_line_numbers_abridged() -> None:
    """So do its decisions, and the rule in words; nothing is called hidden."""
    timeline = await read_numbered(MemoryStore())
    context = await timeline.render(record=False)
    assert [block.state for block in context.blocks] == ["visible", "abridged"]
    item, block = timeline.window.items[1], context.blocks[1]
    assert block.reason.endswith(f"; abridged {item.tokens:,} tokens to {item.shown_tokens}, decided at version 4")


async def test_a_render_says_that_it_abridged_what_is_new() -> None:
    """A decision of its own kind, with what it freed."""
    timeline = await read_numbered(MemoryStore())
    past = await timeline.at(3)
    assert [item.state for item in past.window.items] == ["visible", "visible"]
    fork = await timeline.fork(at=3, conversation="again")
    [taken] = (await fork.render()).decisions
    assert (taken.kind, taken.reason, taken.facts["blocks"]) == ("abridged", NUMBERED, 1)


async def test_why_names_how_an_abridged_result_is_shown_and_how_to_see_it_whole() -> None:
    """Read it, or reveal it: then it is sent in full."""
    timeline = await read_numbered(MemoryStore())
    because = await timeline.why("@3")
    assert (because.state, because.since_version, because.reason) == ("abridged", 4, NUMBERED)
    assert because.shown_as is not None
    assert because.shown_as.kind == "abridged"
    assert because.ways_back == (WayBack("read", "@3"), WayBack("reveal", "@3"))
    assert (await timeline.read("@3")).text == PRINTED
    await timeline.reveal("@3")
    assert [block.state for block in (await timeline.render()).blocks] == ["visible", "visible"]


async def test_an_abridged_result_that_is_hidden_later_is_hidden_since_then() -> None:
    """Not since it was abridged."""
    timeline = await read_numbered(MemoryStore())
    await timeline.hide("@3")
    because = await timeline.why("@3")
    assert (because.state, because.since_version) == ("hidden", timeline.version)
    assert (await timeline.why("@3", at=timeline.version - 1)).state == "abridged"
