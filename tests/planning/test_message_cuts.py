"""Cuts that count messages: where the range of seeds 000, 001, 003 and 004 ends (design, section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import COUNTER, answer, apply, call, compact_fold, fold_of, grow, prompt, result, window_of
from timeline import policies
from timeline.blocks import CONTINUES_KEY, Attachment, Reasoning, SystemMessage, TurnHeader
from timeline.events import BlocksHidden, Replacement
from timeline.fold.groups import atomic_groups
from timeline.planning.account import FixedPart
from timeline.planning.message_cuts import cut_end, seed_boundary
from timeline.planning.messages import messages
from timeline.planning.planned import PlannedSteps
from timeline.planning.plans import Plan, Refusal
from timeline.policy.steps import KeepLast, KeepRatio, KeepTurns, Oldest, Summarize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.fold.window import Item
    from timeline.policy.steps import MessageCut

POLICY: Final = policies.keep_last(min_progress=0, min_progress_tokens=1)
SYSTEM: Final = FixedPart(system=10)


def step(number: int, text: str = "") -> list[Block]:
    """Return one step of an agent: a message with a call, and its result."""
    said = [answer(text=text, response_id=f"m{number}")] if text else []
    return [*said, call(f"c{number}", response_id=f"m{number}"), result(f"c{number}")]


def end_of(cut: MessageCut, *blocks: Block) -> int | None:
    """Return how many messages a cut takes."""
    items = window_of(*blocks).items
    return messages_before(cut, items)


def messages_before(cut: MessageCut, items: Sequence[Item]) -> int | None:
    """Return the number of the first message that a cut keeps, after the moving."""
    end = cut_end(cut, items, atomic_groups(items))
    if end is None:
        return None
    return sum(part.indices[0] < end for part in messages(items))


# Messages


def test_a_response_is_one_message_and_each_result_is_one() -> None:
    """Reasoning, text and calls together; parallel results apart."""
    said = [Reasoning(text="hm", response_id="m1"), answer(response_id="m1"), call("a", response_id="m1")]
    window = window_of(prompt(), *said, call("b", response_id="m1"), result("a"), result("b"))
    assert [part.role for part in messages(window.items)] == ["user", "assistant", "tool", "tool"]
    alone = window_of(prompt(), answer(response_id="m1"), answer(response_id="m2"))
    assert [part.role for part in messages(alone.items)] == ["user", "assistant", "assistant"]


def test_what_opens_a_turn_is_one_message() -> None:
    """Header, prompt and attachments, in each turn."""
    opening = (TurnHeader(text="Monday"), prompt(), Attachment(text="a,b"))
    window = window_of(*opening, answer(), *opening)
    assert [part.indices for part in messages(window.items)] == [(0, 1, 2), (3,), (4, 5, 6)]
    asked_again = window_of(prompt(), *opening)
    assert [part.indices for part in messages(asked_again.items)] == [(0,), (1, 2, 3)]


@pytest.mark.parametrize("meta", [{}, {CONTINUES_KEY: True}])
@pytest.mark.parametrize(
    "given",
    [
        Attachment(text="a,b", turn_id="t"),
        Attachment(text="a,b", turn_id="t", meta={CONTINUES_KEY: True}),
        TurnHeader(text="Monday", turn_id="t"),
    ],
)
def test_two_prompts_are_two_messages(given: Block, meta: dict[str, Any]) -> None:
    """Also without an answer in between, and in one turn, whatever came with the first one."""
    window = window_of(prompt(turn_id="t"), prompt(turn_id="t"), SystemMessage(text="hurry"))
    assert [part.role for part in messages(window.items)] == ["user", "user", "system"]
    beside = window_of(given, prompt(turn_id="t", meta=meta), prompt(turn_id="t"))
    assert [part.indices for part in messages(beside.items)] == [(0, 1), (2,)]
    behind = window_of(prompt(turn_id="t"), given, prompt(turn_id="t"))
    assert [part.indices for part in messages(behind.items)] == [(0, 1), (2,)]


@pytest.mark.parametrize(
    ("omitted", "roles"),
    [
        ((), ["user", "assistant", "user"]),
        ((4,), ["user", "assistant", "user"]),
        ((2, 3, 4), ["user"]),
        ((3, 4), ["user"]),
    ],
)
def test_a_further_part_of_a_message_begins_one_where_no_part_before_it_is_sent(
    omitted: tuple[int, ...], roles: list[str]
) -> None:
    """It joins what the user said before it in its turn, and never an answer."""
    further = prompt(turn_id="t", meta={CONTINUES_KEY: True})
    fold = fold_of(prompt(turn_id="t"), answer(), prompt(turn_id="t"), further)
    if omitted:
        blocks = tuple(Replacement(version=version) for version in omitted)
        apply(fold, fold.version + 1, BlocksHidden(mode="omit", reason="manual", blocks=blocks))
    assert [part.role for part in messages(fold.window.items)] == roles


def test_what_is_omitted_is_no_message() -> None:
    """Stripped chitchat does not count any more."""
    fold = fold_of(prompt(), answer(), prompt())
    apply(fold, 5, BlocksHidden(mode="omit", reason="chitchat", blocks=(Replacement(version=2),)))
    assert [part.indices for part in messages(fold.window.items)] == [(1,), (2,)]


# Keep last (seed 001)


def flashcards() -> list[Block]:
    """Return seed 001's example, whose message [n] is the n-th here: its [0] is the system prompt, no part of a log.

    [1] asks, [2] to [45] are steps of an agent, [46] answers, [47] asks, [48] and [49] are the newest step.
    """
    steps = [block for n in range(2, 46, 2) for block in step(n, f"Step {n}")]
    asked = prompt(text="Build a flashcard app")
    return [
        asked,
        *steps,
        answer(response_id="m46"),
        prompt(text="Add AI integration"),
        *step(48, "I'll add OpenAI..."),
    ]


@pytest.mark.shows("001-15", "001-20")
def test_50_messages_keep_10_with_a_tool_pair_on_the_boundary() -> None:
    """Seed 001's figure: [1] to [39] are compacted, [40] with its result [41] is the first that is kept."""
    window = window_of(*flashcards())
    parts = messages(window.items)
    assert len(parts) == 49
    decision = PlannedSteps().plan(Summarize(cut=KeepLast(messages=10)), window, FixedPart(system=10), POLICY, COUNTER)
    assert isinstance(decision, Plan), decision
    assert len(messages(decision.covered)) == 39
    kept = [part for part in parts if window.items[part.indices[0]].version >= decision.cut_version]
    assert [part.role for part in kept] == [*["assistant", "tool"] * 3, "assistant", "user", "assistant", "tool"]
    assert window.items[kept[0].indices[0]].block.text == "Step 40"


@pytest.mark.shows("001-16", "001-49", "001-57")
@pytest.mark.parametrize(("keep", "first"), [(10, 40), (9, 40), (8, 42), (11, 38), (1, 48), (2, 48)])
def test_a_boundary_on_a_result_moves_back_to_its_call(keep: int, first: int) -> None:
    """One message more is kept, never an orphan."""
    assert messages_before(KeepLast(messages=keep), window_of(*flashcards()).items) == first - 1


@pytest.mark.shows("001-16")
def test_parallel_results_move_the_boundary_as_far_as_their_call() -> None:
    """As the seed walks back while it points at a tool message."""
    blocks = [
        prompt(),
        answer(),
        *(call(f"p{n}", response_id="m") for n in range(3)),
        *(result(f"p{n}") for n in range(3)),
    ]
    assert [end_of(KeepLast(messages=keep), *blocks) for keep in (1, 2, 3, 4)] == [2, 2, 2, 2]


def test_a_call_that_waited_for_approval_is_carried_where_its_result_is_the_first_message_that_stays() -> None:
    """The result came so late that the cut may stand right before it; without its call it would be an orphan."""
    waited = call("p", response_id="m1", pending=True)
    window = window_of(prompt(400), waited, prompt(400), answer(400, response_id="m2"), result("p"), answer())
    step_ = Summarize(cut=KeepLast(messages=2))
    decision = PlannedSteps().plan(step_, window, SYSTEM, POLICY, COUNTER)
    assert isinstance(decision, Plan), decision
    assert (decision.cut_version, decision.carried) == (6, (3,))


# The edge cases of seed 001


@pytest.mark.shows("001-12", "001-51", "R-001-6")
@pytest.mark.parametrize("count", [1, 2, 10])
def test_at_most_as_many_messages_as_are_kept_are_never_cut(count: int) -> None:
    """A very short session, and one whose messages are all recent: nothing to cover, as a typed refusal."""
    window = window_of(*(prompt() for _ in range(count)))
    decision = PlannedSteps().plan(Summarize(cut=KeepLast(messages=10)), window, FixedPart(), POLICY, COUNTER)
    assert isinstance(decision, Refusal)
    assert decision.reason == "nothing_to_cover"


def test_an_empty_conversation_is_never_cut() -> None:
    """Of no cut."""
    for cut in (KeepLast(), KeepRatio(), KeepTurns(), Oldest()):
        assert seed_boundary(cut, [], ()) is None


def test_a_boundary_that_moves_back_to_the_beginning_covers_nothing() -> None:
    """All that there is belongs to one call: the seed's boundary at or before the start of what may be compacted."""
    calls = [call(f"p{n}", response_id="m") for n in range(3)]
    assert end_of(KeepLast(messages=1), *calls, *(result(f"p{n}") for n in range(3))) is None


@pytest.mark.shows("001-18")
def test_nothing_but_the_summary_before_the_boundary_covers_nothing() -> None:
    """Seed 001: an earlier summary is integrated with something new, or stays."""
    fold = fold_of(*(block for n in range(4) for block in (prompt(), answer())))
    compact_fold(fold, 3)
    keep = len(messages(fold.window.items)) - 1
    decision = PlannedSteps().plan(Summarize(cut=KeepLast(messages=keep)), fold.window, FixedPart(), POLICY, COUNTER)
    assert isinstance(decision, Refusal)
    assert decision.reason == "nothing_to_cover"


def test_an_earlier_summary_is_integrated_and_superseded() -> None:
    """Its covered versions stay covered; the new range begins where the old one did."""
    fold = fold_of(*(block for n in range(8) for block in (prompt(50), answer(50))))
    compact_fold(fold, 5)
    grow(fold, *(block for n in range(4) for block in (prompt(50), answer(50))))
    decision = PlannedSteps().plan(Summarize(cut=KeepLast(messages=4)), fold.window, FixedPart(), POLICY, COUNTER)
    assert isinstance(decision, Plan), decision
    assert decision.supersedes == ("su:c.conv.range.summary",)
    assert decision.covers is not None
    assert decision.covers.ranges[0][0] == 2
    assert not any(item.is_summary for item in decision.covered)


@pytest.mark.parametrize(
    ("blocks", "split"),
    [
        ([prompt(300), *step(1), *step(2), *step(3)], "turn_1"),
        ([prompt(300), answer(300), prompt(300), *step(1), *step(2)], "turn_2"),
        ([prompt(300), answer(300), answer(300), prompt(), answer(), prompt(), answer()], None),
    ],
    ids=["only-turn", "turn-behind-another", "between-turns"],
)
def test_the_turn_that_a_cut_divides_is_named(blocks: list[Block], split: str | None) -> None:
    """No part of the summary is for it alone: one request is about the whole range."""
    decision = PlannedSteps().plan(Summarize(cut=KeepLast(messages=4)), window_of(*blocks), SYSTEM, POLICY, COUNTER)
    assert isinstance(decision, Plan), decision
    assert (decision.split_turn_id, decision.prefix_turn_id) == (split, None)


# Keep ratio (seed 003)


def refactoring() -> list[Block]:
    """Return the 14 messages that seed 003's figure draws, [0] to [13]; its caption says 20."""
    turns = [block for n in range(3) for block in (prompt(), answer(response_id=f"m{n}"), *step(n))]
    return [*turns, prompt(text="Run the tests"), *step(3), prompt(text="Now deploy"), answer(text="I'll push to git")]


@pytest.mark.shows("003-19")
def test_14_messages_keep_40_percent() -> None:
    """Seed 003's figure: the cut stands at 9, before the prompt that runs the tests."""
    window = window_of(*refactoring())
    parts = messages(window.items)
    assert len(parts) == 14
    assert seed_boundary(KeepRatio(share=0.4), parts, window.items) == 9
    end = cut_end(KeepRatio(share=0.4), window.items, atomic_groups(window.items))
    assert end is not None
    assert window.items[end].block.text == "Run the tests"


@pytest.mark.shows("003-20", "R-003-4")
def test_a_ratio_cut_inside_a_pair_keeps_the_whole_pair() -> None:
    """Seed 003's drawing: split here? No, it would part a call from its result."""
    blocks = [prompt(), *step(1), prompt(), answer(), prompt(), *step(2), answer()]
    assert end_of(KeepRatio(share=0.23), *blocks) == 6
    assert len(messages(window_of(*blocks).items)) == 9


@pytest.mark.shows("003-19", "R-003-4")
@pytest.mark.parametrize(("count", "kept"), [(3, 1), (5, 2), (10, 4), (20, 8)])
def test_the_kept_share_is_rounded_down(count: int, kept: int) -> None:
    """Of n messages n - floor(0.4 n) are taken."""
    window = window_of(*(prompt() for _ in range(count)))
    assert seed_boundary(KeepRatio(share=0.4), messages(window.items), window.items) == count - kept


@pytest.mark.parametrize(("count", "taken"), [(1, None), (2, 1)])
def test_the_newest_message_stays_where_the_share_is_less_than_one(count: int, taken: int | None) -> None:
    """A context ends with a message that the model continues from."""
    assert end_of(KeepRatio(share=0.4), *(prompt() for _ in range(count))) == taken


# Keep turns (seed 004)


@pytest.mark.shows("004-70", "004-73")
def test_the_newest_turns_are_kept_whole() -> None:
    """Backwards to the second prompt."""
    blocks = [prompt(), answer(), prompt(), *step(1), prompt(), *step(2), answer()]
    assert end_of(KeepTurns(turns=2), *blocks) == 2
    assert end_of(KeepTurns(turns=1), *blocks) == 5


@pytest.mark.shows("R-004-19")
@pytest.mark.parametrize("turns", [1, 2])
def test_keeping_all_turns_that_there_are_is_a_typed_refusal(turns: int) -> None:
    """It would free nothing."""
    window = window_of(*(block for n in range(turns) for block in (prompt(500), *step(n))))
    decision = PlannedSteps().plan(Summarize(cut=KeepTurns(turns=turns)), window, FixedPart(), POLICY, COUNTER)
    assert isinstance(decision, Refusal)
    assert decision.reason == "nothing_to_cover"


# Oldest (seed 000)


@pytest.mark.shows("000-29")
def test_the_oldest_twenty_messages_are_taken() -> None:
    """P3 of the general chat."""
    assert end_of(Oldest(messages=20), *(block for _ in range(30) for block in (prompt(), answer()))) == 20


def test_the_newest_message_is_never_taken() -> None:
    """However few there are."""
    assert end_of(Oldest(messages=20), prompt(), answer(), prompt()) == 2
    assert end_of(Oldest(messages=20), prompt()) is None


# All


@pytest.mark.shows("001-57")
@given(
    kinds=st.lists(st.sampled_from(["turn", "step", "pair", "say"]), min_size=1, max_size=30),
    cut=st.one_of(
        st.builds(KeepLast, messages=st.integers(1, 15)),
        st.builds(KeepRatio, share=st.floats(0.05, 0.95)),
        st.builds(KeepTurns, turns=st.integers(1, 4)),
        st.builds(Oldest, messages=st.integers(1, 30)),
    ),
)
def test_no_cut_divides_a_group_and_none_keeps_less_than_its_seed(kinds: list[str], cut: MessageCut) -> None:
    """Each moves back only, to where calls and their results stay together."""
    blocks: list[Block] = []
    for n, kind in enumerate(kinds):
        both = [f"{n}a", f"{n}b"]
        made: dict[str, list[Block]] = {
            "turn": [prompt()],
            "step": step(n),
            "say": [answer(response_id=f"s{n}")],
            "pair": [*(call(id_, response_id=f"m{n}") for id_ in both), *map(result, both)],
        }
        blocks += made[kind]
    items = window_of(*blocks).items
    groups = atomic_groups(items)
    end = cut_end(cut, items, groups)
    if end is None:
        return
    assert all(group.last < end or group.first >= end for group in groups)
    boundary = seed_boundary(cut, messages(items), items)
    assert boundary is not None
    assert sum(part.indices[0] < end for part in messages(items)) <= boundary
