"""Atomic groups: what a cut may never divide, and rounds."""

from __future__ import annotations

from tests.scenes import answer, call, compact_fold, fold_of, prompt, result, window_of
from timeline.blocks import Attachment, CustomBlock, Note, Reasoning, SystemMessage, TurnHeader
from timeline.fold.groups import atomic_groups, boundaries, rounds


def shape(*blocks: object) -> list[tuple[str, list[int]]]:
    """Return the groups that blocks form: kind and positions."""
    window = window_of(*blocks)  # type: ignore[arg-type]  # blocks all
    return [(group.kind, list(group.indices)) for group in atomic_groups(window.items)]


def legal(*blocks: object) -> list[int]:
    """Return the positions at which a cut divides no group."""
    items = window_of(*blocks).items  # type: ignore[arg-type]  # blocks all
    return [p for p, whole in enumerate(boundaries(items, atomic_groups(items))) if whole]


def test_a_turns_opening_is_one_group() -> None:
    """Header, prompt and attachments are not divided."""
    assert shape(TurnHeader(text="t"), prompt(), Attachment(), Attachment(), answer()) == [
        ("opening", [0, 1, 2, 3]),
        ("response", [4]),
    ]


def test_two_turns_have_two_openings() -> None:
    """Prompts that follow each other directly open a turn each."""
    assert shape(prompt(), prompt()) == [("opening", [0]), ("opening", [1])]


def test_a_response_with_parallel_calls_and_all_results_is_one_group() -> None:
    """Four calls and their four results stay together, signed reasoning and text included."""
    calls = [call(f"c{n}") for n in range(4)]
    results = [result(f"c{n}") for n in range(4)]
    blocks = (prompt(), Reasoning(text="r"), answer(), *calls, *results)
    assert shape(*blocks) == [("opening", [0]), ("response", [*range(1, 11)])]
    assert legal(*blocks) == [0, 1]


def test_a_group_may_have_others_in_its_middle() -> None:
    """A note between a call and its result belongs to no group but its own; no cut may stand there all the same."""
    blocks = (prompt(), call("a"), SystemMessage(text="hurry"), result("a"), answer())
    assert shape(*blocks) == [("opening", [0]), ("response", [1, 3]), ("single", [2]), ("response", [4])]
    assert legal(*blocks) == [0, 1, 4]


def test_other_blocks_stand_alone() -> None:
    """Notes, system messages, custom blocks and orphan results are groups of one."""
    blocks = (Note(text="n"), SystemMessage(text="s"), CustomBlock(type="a.b"), result("x"))
    assert [kind for kind, _ in shape(*blocks)] == ["single"] * 4


def test_a_summary_is_a_group_of_its_own() -> None:
    """The summary stands before what it carried."""
    fold = fold_of(prompt(), answer(), answer(response_id="m2"))
    compact_fold(fold, 3, carried=(2,))
    groups = atomic_groups(fold.window.items)
    assert [(g.kind, g.first, g.last) for g in groups] == [("summary", 0, 0), ("single", 1, 1), ("response", 2, 2)]


def test_a_pending_call_may_be_cut_off_from_its_result() -> None:
    """A call that waits for approval does not hold the cut back: the part before the cut is carried instead."""
    blocks = (prompt(), call("a", pending=True), prompt(), answer(), result("a"), answer())
    assert legal(*blocks) == [0, 1, 2, 3, 4, 5]
    assert [g.pending for g in atomic_groups(window_of(*blocks).items)] == [False, True, False, False, False]


def test_rounds_are_responses() -> None:
    """A round is one model response with its calls and their results; the final completion of a turn is one too."""
    window = window_of(prompt(), call("a"), result("a"), call("b"), result("b"), answer(), prompt(), answer())
    assert [(g.first, g.last) for g in rounds(atomic_groups(window.items))] == [(1, 2), (3, 4), (5, 5), (7, 7)]


def _long(pairs: int, *, together: int = 1) -> list[object]:
    """Make one response of so many calls, so many of which are said before their results come."""
    blocks: list[object] = [prompt()]
    for first in range(0, pairs, together):
        names = [f"c{n}" for n in range(first, first + together)]
        blocks += [call(name, response_id="r") for name in names]
        blocks += [result(name) for name in names]
    return blocks


def test_a_response_of_more_than_a_thousand_blocks_is_parted_between_its_pairs() -> None:
    """Each part is a group, so that a window can be cut in it; no call is parted from its result."""
    assert [(len(indices), indices[0]) for _, indices in shape(*_long(1_100))] == [
        (1, 0),
        (1_000, 1),
        (1_000, 1_001),
        (200, 2_001),
    ]
    assert legal(*_long(1_100)) == [0, 1, 1_001, 2_001]


def test_a_long_response_is_never_parted_while_a_call_waits() -> None:
    """The part goes on until all results are there, and until the end where a call of the newest response has none."""
    assert [len(indices) for _, indices in shape(*_long(1_200, together=400))] == [1, 1_600, 800]
    waiting = [prompt(), call("first", response_id="r"), *_long(600)[1:]]
    assert [len(indices) for _, indices in shape(*waiting)] == [1, 1_201]
