"""Which passages of new results are left out, since an earlier block shows them (ADR 0090)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import COUNTER, answer, apply, call, fold_of, grow, prompt, result, small_policy, window_of
from timeline.blocks import Block, ToolCall, ToolResult
from timeline.events import (
    REPEATED,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    ContextRendered,
    Replacement,
)
from timeline.fold.fold import Fold
from timeline.fold.snapshot import take_snapshot
from timeline.planning.abridge import Abridged, abridgeable, plan_abridged
from timeline.planning.costs import costs_of
from timeline.planning.hide import plan_hide
from timeline.planning.outline import outline
from timeline.planning.repeats import Passages, References
from timeline.planning.replacements import can_preview
from timeline.policies import none
from timeline.policy.model import Hiding, Repeats

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.policy.model import Policy

LINES = [f"    line {number} of the file says something of its own" for number in range(1, 41)]


def read(call_id: str, lines: list[str], **fields: Any) -> list[Block]:
    """Return a round that reads lines of a file."""
    return [call(call_id, response_id=call_id), ToolResult(call_id=call_id, text="\n".join(lines), **fields)]


def numbered(lines: list[str], first: int = 1) -> list[str]:
    """Return lines behind their numbers, as a tool prints them."""
    return [f"{number:6}→{line}" for number, line in enumerate(lines, first)]


def abridged(window: Window, policy: Policy, known: Passages | None = None) -> Abridged:
    """Plan how the newest results of a window are shown."""
    return plan_abridged(abridgeable(window, policy), window, policy, COUNTER, known or Passages())


def shown(window: Window, repeats: Repeats | None = None) -> list[str]:
    """Return the texts of the planned replacements."""
    return [planned.text for planned in abridged(window, none(repeats=repeats or Repeats())).repeated]


def hidden(fold: Fold) -> tuple[Replacement, ...]:
    """Plan, and take the plan in."""
    planned = abridged(fold.window, none(repeats=Repeats())).repeated
    apply(fold, fold.version + 1, BlocksHidden(reason=REPEATED, blocks=planned))
    return planned


def test_a_file_that_is_read_again_is_shown_by_its_first_and_last_line() -> None:
    """Between them: how many lines are left out, and the address of the block that shows them."""
    window = window_of(prompt(), *read("a", LINES), *read("b", LINES))
    assert shown(window) == [f"{LINES[0]}\n[… 38 lines, as above in @4]\n{LINES[-1]}"]


def test_only_what_an_edit_changed_is_shown_again() -> None:
    """Numbers that follow each other may differ from those above: the edit moved what is below it."""
    edited = [*LINES[:20], "    and this one is new", *LINES[20:]]
    window = window_of(prompt(), *read("a", numbered(LINES)), *read("b", numbered(edited)))
    lines = numbered(edited)
    middle = [lines[0], "[… 18 lines, as above in @4]", *lines[19:22], "[… 18 lines, as above in @4]", lines[-1]]
    assert shown(window) == ["\n".join(middle)]


def test_lines_without_their_numbers_are_found_behind_numbers_and_the_other_way_round() -> None:
    """A file that was written, or printed, is read by another tool."""
    for first, second in ((LINES, numbered(LINES)), (numbered(LINES), LINES)):
        assert "[… 38 lines, as above in @4]" in shown(window_of(prompt(), *read("a", first), *read("b", second)))[0]


def test_numbers_with_a_gap_end_a_passage() -> None:
    """They could not be told from the first line's number."""
    gap = [*numbered(LINES[:20]), *numbered(LINES[20:], first=31)]
    text = shown(window_of(prompt(), *read("a", numbered(LINES)), *read("b", gap)))[0]
    assert text.count("18 lines, as above in @4") == 2
    assert gap[19] in text
    assert gap[20] in text


def test_what_a_call_wrote_is_not_shown_again_by_its_result() -> None:
    """The arguments of the call are in sight."""
    wrote = call("a", response_id="a", arguments={"file": "x.py", "content": "\n".join(LINES)})
    window = window_of(prompt(), wrote, result("a"), *read("b", numbered(LINES)))
    assert "[… 38 lines, as above in @3]" in shown(window)[0]


def test_two_results_of_one_response_may_repeat_each_other() -> None:
    """The second one refers to the first one."""
    both: list[Block] = [call(name, response_id="r") for name in "ab"]
    both += [ToolResult(call_id=name, text="\n".join(LINES)) for name in "ab"]
    assert shown(window_of(prompt(), *both)) == [f"{LINES[0]}\n[… 38 lines, as above in @5]\n{LINES[-1]}"]


def test_what_is_left_out_above_is_no_passage_to_refer_to() -> None:
    """A third reading refers to the block that shows the lines, not to the one that left them out."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    hidden(fold)
    grow(fold, *read("c", LINES))
    assert "as above in @4]" in shown(fold.window)[0]


@pytest.mark.parametrize("behind", [answer(response_id="later"), call("later", response_id="later")])
def test_what_a_model_was_sent_stays_as_it_was_sent(behind: Block) -> None:
    """Once the model has answered, changing a result would cost the provider's cache."""
    assert shown(window_of(prompt(), *read("a", LINES), *read("b", LINES), behind)) == []


def test_short_passages_stay() -> None:
    """A reference costs tokens, too."""
    window = window_of(prompt(), *read("a", LINES[:4]), *read("b", LINES[:4]))
    assert shown(window) == []
    assert shown(window, Repeats(lines=1, characters=1, minimum=1)) != []


def test_a_long_passage_that_says_next_to_nothing_stays() -> None:
    """Ten lines that close brackets have fewer characters than the line that would stand for them."""
    closing = [bracket for _ in range(5) for bracket in ("    }", "  ]")]
    first, second = ([f"{LINES[0]}, {name}", *closing, f"{LINES[1]}, {name}"] for name in "ab")
    window = window_of(prompt(), *read("a", first), *read("b", second))
    assert shown(window, Repeats(minimum=1)) == []
    assert shown(window, Repeats(minimum=1, characters=1)) != []


def test_of_two_blocks_that_show_a_passage_the_newer_one_is_named() -> None:
    """It stays in sight for longer, whether or not it shows more than the older one."""
    for behind in ([], LINES[20:]):
        first, second = [*LINES[:20], *behind], [*LINES[:20], *reversed(LINES[20:])]
        fold = fold_of(prompt(), *read("a", first), *read("b", second), *read("c", LINES[:20]))
        assert "[… 18 lines, as above in @6]" in shown(fold.window)[0]


def test_a_result_of_which_nothing_says_what_it_refers_to_is_shown_whole_again() -> None:
    """A redaction of an earlier release took the references out of a replacement, with words of it."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    apply(fold, 7, BlocksHidden(reason=REPEATED, blocks=(Replacement(version=6, text="[redacted]", tokens=3),)))
    assert References().lost(fold.window) == (6,)


def test_a_list_of_messages_keeps_all_of_its_results() -> None:
    """Nothing that is left out of a list could be shown again."""
    fold = Fold("c", readable=False)
    fold.version = 1
    grow(fold, prompt(), *read("a", LINES), *read("b", LINES))
    assert shown(fold.window) == []


def test_a_result_with_a_picture_stays() -> None:
    """Its replacement would be a text alone."""
    picture = [{"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]
    assert shown(window_of(prompt(), *read("a", LINES), *read("b", LINES, data=picture))) == []


@pytest.mark.parametrize(
    "decision",
    [
        BlocksPinned(versions=(6,)),
        BlocksRevealed(versions=(6,)),
        BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=6),)),
        BlockRedacted(version=6),
    ],
)
def test_a_result_that_a_decision_speaks_of_stays(decision: BlocksHidden) -> None:
    """What the application decided about a block goes before a policy."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    apply(fold, fold.version + 1, decision)
    assert shown(fold.window) == []


@pytest.mark.parametrize(
    "decision",
    [
        BlocksHidden(reason="manual", blocks=(Replacement(version=4, text="x"),)),
        BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=4),)),
        BlockRedacted(version=4),
    ],
)
def test_a_block_that_is_out_of_sight_is_no_reason_to_leave_anything_out(decision: BlocksHidden) -> None:
    """And a result that refers to it is shown whole again."""
    fold = fold_of(prompt(), *read("a", LINES))
    apply(fold, fold.version + 1, decision)
    grow(fold, *read("b", LINES))
    assert shown(fold.window) == []

    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    references = References()
    hidden(fold)
    assert references.lost(fold.window) == ()
    apply(fold, fold.version + 1, decision)
    assert references.lost(fold.window) == (6,)
    apply(fold, fold.version + 1, BlocksRevealed(versions=(6,), reason="restored"))
    assert references.lost(fold.window) == ()
    assert not fold.window.items[-1].revealed  # a later hide may take it


def test_leaving_repeats_out_rewrites_no_prefix() -> None:
    """So the contexts before and behind it are compared for the provider's ratio."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    before = fold.window.reported.rewrites
    hidden(fold)
    assert fold.window.reported.rewrites == before


def test_passages_that_were_read_before_give_the_same_plan() -> None:
    """Also where a block was shown otherwise since."""
    fold, kept = fold_of(prompt(), *read("a", LINES), *read("b", LINES[:20])), Passages()
    for decision in (None, BlocksHidden(reason="manual", blocks=(Replacement(version=4, text="x"),))):
        if decision is not None:
            apply(fold, fold.version + 1, decision)
        grow(fold, *read(f"c{fold.version}", LINES))
        planned = abridged(fold.window, none(repeats=Repeats()), kept).repeated
        assert planned == abridged(fold.window, none(repeats=Repeats())).repeated
        assert planned


def test_a_call_without_lines_is_no_passage() -> None:
    """Arguments of one line are not looked at, and neither is a call that has none."""
    asked = ToolCall(call_id="z", name="run", arguments={"command": "make"}, response_id="z")
    assert shown(window_of(prompt(), asked, result("z"), *read("a", LINES))) == []


def test_a_later_hide_takes_a_result_that_leaves_out_what_is_in_sight() -> None:
    """It is as old as others are, and one batch takes it and the block that it refers to."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", [*LINES, *map(str.upper, LINES)]))
    hidden(fold)
    grow(fold, *[block for n in range(3) for block in read(f"r{n}", [f"{n}"])])
    planned = plan_hide(fold.window, small_policy(), Hiding(intact=2, old=9, files=2), COUNTER, least=0)
    assert planned is not None
    assert [replacement.version for replacement in planned.replacements] == [4, 6]


def test_a_result_that_leaves_out_what_is_in_sight_may_still_be_too_large() -> None:
    """Then a preview takes its place, by what is shown of it."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", [*LINES, *map(str.upper, LINES)]))
    hidden(fold)
    item = fold.window.items[-1]
    assert can_preview(item, item.shown_tokens - 1)
    assert not can_preview(item, item.shown_tokens)


def test_the_account_counts_it_as_a_result() -> None:
    """It is no hidden block: all of it is in sight."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    hidden(fold)
    costs = costs_of(fold.window.items, small_policy())
    assert costs.by_category["results"] == sum(item.shown_tokens for item in fold.window.items if item.answers)
    assert "hidden" not in costs.by_category


def test_the_outline_of_a_policy_says_it() -> None:
    """And nothing of a policy that shows all of every result."""
    assert outline(small_policy()).repeats == ""
    assert "where 5 lines or more are left out" in outline(small_policy(repeats=Repeats(lines=5))).repeats


def test_many_empty_lines_take_no_square_of_their_number() -> None:
    """A tool printed them twice: each line is compared a few times, and all of them stay."""
    window = window_of(prompt(), *read("a", [""] * 30_000), *read("b", [""] * 30_000))
    assert shown(window) == []


def test_a_snapshot_keeps_which_blocks_show_the_rest() -> None:
    """A conversation that is opened from it shows the result whole again once these are out of sight."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    hidden(fold)
    items: Any = take_snapshot(fold).state["items"]
    assert [fields["replacement"]["repeats"] for fields in items if "replacement" in fields] == [[4]]


def test_a_call_that_is_not_sent_since_its_result_is_omitted_shows_nothing() -> None:
    """Its arguments are in no request, so what referred to them is shown whole again."""
    wrote = call("a", response_id="a", arguments={"file": "x.py", "content": "\n".join(LINES)})
    fold = fold_of(prompt(), wrote, result("a"), *read("b", LINES))
    hidden(fold)
    omitted = BlocksHidden(mode="omit", reason="abandoned", blocks=(Replacement(version=4),))
    apply(fold, fold.version + 1, omitted)
    assert References().lost(fold.window) == (6,)
    apply(fold, fold.version + 1, BlocksRevealed(versions=(6,), reason="restored"))
    grow(fold, *read("c", LINES))
    assert "as above in @6]" in shown(fold.window)[0]


def test_what_a_recorded_context_showed_stays_although_no_response_came() -> None:
    """A policy that is set between two renders, or a block that is revealed, shortens nothing that was sent."""
    fold = fold_of(prompt(), *read("a", LINES), *read("b", LINES))
    rendered = ContextRendered(version=fold.version, projection=1, fingerprint="", policy="")
    apply(fold, fold.version + 1, rendered)
    assert shown(fold.window) == []
