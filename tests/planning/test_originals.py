"""What a summarizer reads of hidden blocks where the policy asks for originals, and how it is cut (ADR 0038)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import COUNTER, answer, apply, call, exchange, fold_of, planned, prompt, result, small_policy, turn
from timeline import policies
from timeline.blocks import AssistantCompletion, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.events import BlockRedacted, BlocksHidden, BlocksRevealed, Replacement
from timeline.planning.account import FixedPart
from timeline.planning.originals import MORE, SEEN_THROUGH, CutBlocks, fitted, head_and_tail, room_for
from timeline.planning.summary_requests import Wanted, summary_requests
from timeline.ports import CUT_KEY, GAP, HIDDEN_KEY

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.fold.fold import Fold
    from timeline.ports import SummaryRequest

POLICY = policies.keep_last(messages=2)
ORIGINALS = Wanted(source="original", window=100_000)
LINES = "\n".join(f"line {number} says what it says" for number in range(1_000))
HIDDEN = Replacement(version=4, text="[hidden]", tokens=2)


def request(fold: Fold, wanted: Wanted = ORIGINALS) -> SummaryRequest:
    """Return the request for the finished part of a conversation."""
    asked = summary_requests(fold.window, planned(fold.window, POLICY, FixedPart(system=10)), COUNTER, wanted).history
    assert asked is not None
    return asked


def conversation(*decisions: Payload, size: int = 50) -> Fold:
    """Return a conversation whose result, version 4, is as large as said, and decisions about it."""
    fold = fold_of(prompt(), call("a"), result("a", size), *turn(1_500), *turn(1_500), *turn())
    for payload in decisions:
        apply(fold, fold.version + 1, payload)
    return fold


def third(fold: Fold, wanted: Wanted = ORIGINALS) -> Block:
    """Return the block of version 4 as the request has it."""
    return request(fold, wanted).blocks[2]


# Which blocks


@pytest.mark.parametrize("reason", sorted(SEEN_THROUGH))
def test_a_block_that_was_hidden_automatically_is_given_as_it_was_said(reason: str) -> None:
    """By a cold cache, under pressure, in a preview, as a cleared output, or by the recorded client."""
    fold = conversation(BlocksHidden(reason=reason, blocks=(HIDDEN,)))
    assert third(fold) == fold.window.items[2].block
    assert all(HIDDEN_KEY not in block.meta for block in request(fold).blocks)


def test_by_default_a_summarizer_reads_what_the_model_was_shown() -> None:
    """Published designs keep their literal input."""
    fold = conversation(BlocksHidden(reason="cold", blocks=(HIDDEN,)))
    assert (third(fold, Wanted()).text, third(fold, Wanted()).meta) == ("[hidden]", {HIDDEN_KEY: "cold"})


def test_a_hidden_call_is_given_with_its_arguments() -> None:
    """Its replacement has one argument, none of its tool's."""
    asked = call("a", arguments={"file_path": "src/app.py", "content": "x = 1"})
    fold = fold_of(prompt(), asked, result("a"), *turn(1_500), *turn(1_500), *turn())
    replacement = Replacement(version=3, arguments={"_hidden": "src/app.py @3"}, tokens=5)
    apply(fold, fold.version + 1, BlocksHidden(reason="pressure", blocks=(replacement,)))
    [given_call] = [block for block in request(fold).blocks if isinstance(block, ToolCall)]
    assert given_call.arguments == {"file_path": "src/app.py", "content": "x = 1"}


def test_a_block_that_was_hidden_by_hand_stays_hidden() -> None:
    """The application may have hidden it from every model; so it stays when it was hidden automatically before."""
    by_hand = BlocksHidden(reason="manual", blocks=(HIDDEN,))
    automatic = BlocksHidden(reason="cold", blocks=(HIDDEN,))
    for decisions in ((by_hand,), (automatic, BlocksRevealed(versions=(4,)), by_hand)):
        assert third(conversation(*decisions)).text == "[hidden]"


def test_an_omitted_block_stays_out() -> None:
    """Rejected, abandoned and superseded work is omitted, whatever the reason says."""
    gone = (Replacement(version=3), Replacement(version=4))
    for reason in ("manual", "superseded", "cold"):
        fold = conversation(BlocksHidden(mode="omit", reason=reason, blocks=gone))
        assert {"react.tool.call", "react.tool.result"}.isdisjoint(block.type for block in request(fold).blocks)


def test_a_redacted_block_stays_erased() -> None:
    """Also one that had been hidden automatically before."""
    hidden = BlocksHidden(reason="cold", blocks=(HIDDEN,))
    redacted = BlockRedacted(version=4, reason="secret")
    assert third(conversation(hidden, redacted)).text == "[redacted]"


def test_blocks_that_nothing_hid_are_given_whole_whatever_their_size() -> None:
    """Where no block is seen through, a request is what it always was."""
    fold = conversation(size=9_000)
    assert request(fold).blocks == request(fold, Wanted()).blocks


def test_originals_are_cut_to_the_tokens_that_were_shown() -> None:
    """A summary costs about as much as one of the stand-ins."""
    fold = conversation(BlocksHidden(reason="cold", blocks=(HIDDEN,)), size=9_000)
    shown = sum(COUNTER.count(block.countable()) for block in request(fold, Wanted()).blocks)
    given_tokens = sum(COUNTER.count(block.countable()) for block in request(fold).blocks)
    assert third(fold).meta == {CUT_KEY: True}
    assert shown < given_tokens <= shown + MORE


def test_our_presets_ask_for_originals_and_published_designs_do_not() -> None:
    """The field at its default is no part of a policy's text, so that hashes in logs stay."""
    for ours in (policies.gentle(), policies.balanced(), policies.economical()):
        assert '"source":"original"' in ours.canonical()
    for published in (policies.cut_point(), policies.keep_last(), policies.prune_then_summarize()):
        assert "source" not in published.canonical()
    assert small_policy().hash() == policies.cut_point(counter="chars4").hash()


# How much


@pytest.mark.parametrize(
    ("shown", "window", "room"),
    [
        (50_000, 100_000, 50_000 + MORE),
        (300, 100_000, 300 + MORE),
        (300, 1_000, 1_000 - 125 - 100 - 200),  # a small window: less an eighth, the earlier summary, the answer
        (9_000, 4_000, 9_000),  # asked about in chunks, as ever
    ],
)
def test_the_room_is_little_more_than_what_was_shown_and_within_the_window(shown: int, window: int, room: int) -> None:
    """More would cost more than its facts are worth."""
    assert room_for(shown, window, previous=100, answer=200) == room


# What is cut


def sizes(blocks: list[Block]) -> list[int]:
    """Return the tokens of blocks."""
    return [COUNTER.count(block.countable()) for block in blocks]


def cut(blocks: list[Block], room: int) -> list[Block]:
    """Cut blocks of a counted size."""
    return fitted([(block, COUNTER.count(block.countable())) for block in blocks], room, COUNTER)


def test_what_fits_is_whole() -> None:
    """To the last token."""
    blocks = [prompt(300), *exchange("a", 700), answer(400)]
    assert cut(blocks, sum(sizes(blocks))) == blocks


def test_the_oldest_result_is_cut_first_and_shortest() -> None:
    """Down to a size one after the other, then to the next size."""
    blocks: list[Block] = [result("a", 3_000), result("b", 3_000), result("c", 3_000)]
    left = sizes(cut(blocks, 5_100))
    assert [round(tokens, -3) for tokens in left] == [1_000, 2_000, 2_000]
    assert [round(tokens, -3) for tokens in sizes(cut(blocks, 7_500))] == [2_000, 2_000, 3_000]


def test_answers_and_prompts_are_whole_while_a_result_can_be_shorter() -> None:
    """Then answers are cut, and what users wrote at the very end."""
    blocks = [prompt(900), result("a", 900), Reasoning(text="abc " * 900), answer(900)]
    assert [block.meta.get(CUT_KEY, False) for block in cut(blocks, 2_000)] == [False, True, True, False]
    assert [block.meta.get(CUT_KEY, False) for block in cut(blocks, 1_500)] == [False, True, True, True]
    assert [block.meta.get(CUT_KEY, False) for block in cut(blocks, 500)] == [True, True, True, True]


def test_a_cut_call_keeps_its_names_and_paths() -> None:
    """A path in two pieces would be a file that never was."""
    path = "/home/me/" + "deep/" * 30 + "app.py"
    edits = [{"old": LINES, "new": LINES}]
    [left] = cut([call("a", "edit", arguments={"file_path": path, "edits": edits, "all": True})], 100)
    assert isinstance(left, ToolCall)
    assert isinstance(left.arguments, dict)
    assert (left.arguments["file_path"], left.arguments["all"]) == (path, True)
    assert GAP in str(left.dump()["arguments"]["edits"][0]["old"])
    assert COUNTER.count(left.countable()) < 400


def test_arguments_that_are_a_text_are_cut_as_a_text() -> None:
    """Such as a patch."""
    [left] = cut([call("a", "apply_patch", arguments=LINES)], 300)
    assert isinstance(left, ToolCall)
    assert str(left.arguments).startswith("line 0 says")


def test_a_cut_text_begins_and_ends_with_whole_lines() -> None:
    """No name is divided, and no figure or word is put in between."""
    head, _, tail = head_and_tail(LINES, 200, COUNTER).partition(f"\n{GAP}\n")
    assert LINES.startswith(head + "\n")
    assert LINES.endswith("\n" + tail)
    assert COUNTER.count(head) > COUNTER.count(tail) > 40


@pytest.mark.parametrize("size", range(3, 40, 3))
def test_a_cut_divides_no_name_where_there_is_no_space_near_it(size: int) -> None:
    """Half of a name is one that nobody said, and a summary would repeat it."""
    text = "NewSilentError(readConfig(" * 40
    head, _, tail = head_and_tail(text, size, COUNTER).partition(f"\n{GAP}\n")
    assert {*re.findall(r"\w+", head + " " + tail)} <= {"NewSilentError", "readConfig"}


@given(
    st.lists(st.tuples(st.sampled_from([UserPrompt, AssistantCompletion, ToolResult]), st.integers(0, 6_000))),
    st.integers(0, 20_000),
)
def test_cut_blocks_fit_or_are_all_at_the_last_size(made: list[tuple[Any, int]], room: int) -> None:
    """Each in its place; the same blocks are cut in the same way."""
    blocks: list[Block] = [
        result(str(n), tokens) if kind is ToolResult else kind(text="abc " * tokens)
        for n, (kind, tokens) in enumerate(made)
    ]
    left = cut(blocks, room)
    assert [block.type for block in left] == [block.type for block in blocks]
    assert sum(sizes(left)) <= max(room, 30 * len(blocks))
    assert left == cut(blocks, room)


def test_a_block_is_cut_once_for_all_requests_that_cut_it_to_one_size() -> None:
    """Another size, or a block that only says the same, is cut anew."""
    cut, block = CutBlocks(), result("a", 2_000)
    first = cut.of(block, 500, COUNTER)
    assert cut.of(block, 500, COUNTER) is first
    assert fitted([(block, 2_000)], 500, COUNTER, cut)[0] is first
    assert cut.of(block, 250, COUNTER) == fitted([(block, 2_000)], 250, COUNTER)[0]
    assert cut.of(block.model_copy(), 500, COUNTER) == first


def test_nothing_is_kept_of_a_cut_block_that_was_redacted() -> None:
    """The window has its tombstone, and forgets what was cut of everything else."""
    fold, cut = conversation(size=2_000), CutBlocks()
    kept = [cut.of(item.block, 100, COUNTER) for item in fold.window.items[2:4]]
    apply(fold, fold.version + 1, BlockRedacted(version=4, reason="a test"))
    cut.keep(fold.window.items)
    assert [block for *_, block in cut._known.values()] == kept[1:]
