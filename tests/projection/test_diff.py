"""Comparing two contexts: what entered, left and changed, and what broke the prefix."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import (
    AT,
    COUNTER,
    Scribe,
    answer,
    call,
    compact_fold,
    exchange,
    fold_of,
    grow,
    opened,
    prompt,
    result,
    small_policy,
    turn,
    words,
)
from timeline import policies
from timeline.blocks import Reasoning
from timeline.errors import InvalidArgument
from timeline.events import NUMBERED, BlockRedacted, BlocksHidden, BlocksRevealed, Replacement
from timeline.planning.account import account_of, fixed_part
from timeline.projection.context import RenderedContext
from timeline.projection.diff import diff
from timeline.projection.project import PROJECTION, Projector
from timeline.projection.summary_diff import SummaryDiff, SummaryRef, changed_lines
from timeline.store.memory import MemoryStore
from timeline.wire import SENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.blocks import Block
    from timeline.events import Payload
    from timeline.fold.fold import Fold
    from timeline.projection.cache_break import Cause
    from timeline.projection.diff import ContextDiff, Prefix

POLICY = small_policy()
SYSTEM = words(7)
TOOL: Final[Any] = {"name": "run", "input_schema": {"type": "object"}}


def seen(fold: Fold, **given_: Any) -> RenderedContext:
    """Render what a fold shows."""
    fixed = {"system": SYSTEM, "tools": [TOOL], **given_}
    window = fold.window
    neutral = Projector().project(window, POLICY.cache_points, **fixed)
    return RenderedContext(
        conversation="c",
        version=window.version,
        projection=PROJECTION,
        fingerprint=neutral.fingerprint(),
        window=window,
        policy=POLICY,
        neutral=neutral,
        account=account_of(window.items, fixed_part(POLICY, COUNTER.count, system=SYSTEM, tools=[TOOL]), POLICY),
    )


def apply(fold: Fold, payload: Payload) -> int:
    """Take in one more event; return its version."""
    fold.apply(fold.version + 1, AT, payload)
    return fold.version


def hide(fold: Fold, *versions: int, mode: Any = "replace") -> int:
    """Hide blocks; return the version of the decision."""
    replacements = tuple(Replacement(version=v, text=f"[gone {v}]", tokens=2) for v in versions)
    return apply(fold, BlocksHidden(mode=mode, reason="cold", blocks=replacements))


def conversation() -> Fold:
    """Return two turns, the second one with two rounds: versions 2 to 8."""
    return fold_of(*turn(20), prompt(10), *exchange("a", 40), *exchange("b", 40))


def cause(found: ContextDiff) -> Cause:
    """Return the cause, which the neutral form and the wire agree on."""
    assert {prefix.cause for prefix in found.prefixes} == {found.prefixes[0].cause}
    return found.prefixes[0].cause


@pytest.mark.parametrize("wire", [wire for wire in SENT if wire != "anthropic"])
def test_other_arguments_of_a_call_are_a_difference_where_they_stand_beside_the_content(wire: str) -> None:
    """Chat Completions and Responses send a call as fields of its message."""
    one, other = (
        fold_of(prompt(5), call("a", arguments={"path": path}), result("a", 5), answer(5)) for path in ("x.py", "y.py")
    )
    prefix = diff(seen(one), seen(other), wires=[wire]).prefixes[1]
    assert prefix.first_difference is not None
    assert "x.py" in prefix.first_difference.before
    assert "y.py" in prefix.first_difference.after


def test_a_context_and_itself_differ_in_nothing() -> None:
    """No row, whole prefixes, no first difference."""
    context = seen(conversation())
    found = diff(context, context, wires=SENT)
    assert (found.entered, found.left, found.changed, found.differs) == ((), (), (), ())
    assert cause(found).kind == "same"
    for prefix in found.prefixes:
        assert prefix.intact
        assert prefix.first_difference is None
        assert prefix.common_bytes == prefix.before_bytes == prefix.after_bytes
        assert prefix.common_tokens == context.account.sent


@pytest.mark.shows("004-7")
def test_appended_blocks_leave_the_prefix_intact() -> None:
    """What was cached before is used whole, though the markers and the ephemeral tail moved."""
    fold = conversation()
    before = seen(fold, ephemeral=["noon"])
    grow(fold, answer(30), prompt(4))
    found = diff(before, seen(fold, ephemeral=["one o'clock"]), wires=SENT)
    assert [(row.path, row.shown_tokens) for row in found.entered] == [
        ("ar:turn_2.assistant.completion", 30),
        ("ar:turn_3.user.prompt", 4),
    ]
    assert (found.left, found.changed, found.differs) == ((), (), ("ephemeral", "cache_points"))
    assert cause(found).kind == "appended"
    tokens = before.account.sent - before.account.fixed.ephemeral
    assert all(p.intact and p.common_bytes == p.before_bytes and p.common_tokens == tokens for p in found.prefixes)


def test_a_compaction_breaks_the_prefix_at_the_first_block_that_it_covers() -> None:
    """The rows name the summary; the carried prompt changed its state and not its bytes."""
    fold = conversation()
    before = seen(fold)
    summary = compact_fold(fold, 6, carried=[4])
    found = diff(before, seen(fold))
    assert [row.path for row in found.entered] == ["su:c.conv.range.summary"]
    assert {(row.version, row.covered_by) for row in found.left} == {(version, summary) for version in (2, 3, 5, 6)}
    [carried] = found.changed
    assert (carried.path, carried.before, carried.after) == ("ar:turn_2.user.prompt", "visible", "carried")
    assert carried.bytes_changed is False
    assert (cause(found).kind, cause(found).version) == ("compaction", summary)
    assert {
        (p.first_difference.before_path, p.first_difference.after_path) for p in found.prefixes if p.first_difference
    } == {("ar:turn_1.user.prompt", "su:c.conv.range.summary")}
    assert {prefix.common_tokens for prefix in found.prefixes} == {before.account.fixed.tokens}


def test_two_summaries_are_compared_line_by_line() -> None:
    """Each side is named by its address, its path and its compaction; the same summary on both is no difference."""
    fold = conversation()
    first = compact_fold(fold, 4, tokens=3)
    before = seen(fold)
    assert diff(before, before).summary is None
    second = compact_fold(fold, 6, tokens=4)
    found = diff(before, seen(fold)).summary
    assert found == SummaryDiff(
        SummaryRef(f"@{first}", "su:c.conv.range.summary", 1),
        SummaryRef(f"@{second}", "su:c.conv.range.summary.2", 2),
        changed_lines(words(3), words(4)),
    )


def test_a_compaction_that_was_taken_back_is_named() -> None:
    """The summary left, and no later one covers it."""
    fold = conversation()
    summary = compact_fold(fold, 6)
    found = diff(seen(fold), seen(conversation()))
    assert (cause(found).kind, cause(found).version) == ("undo", summary)
    assert [row.path for row in found.left] == ["su:c.conv.range.summary"]


def test_a_hide_breaks_the_prefix_at_the_block_that_it_hides() -> None:
    """The row says both sizes; the prefix is the same up to the first hidden block."""
    fold = conversation()
    before = seen(fold)
    version = hide(fold, 6, 8)
    found = diff(before, seen(fold))
    assert [(r.path, r.before, r.after, r.before_tokens, r.after_tokens, r.bytes_changed) for r in found.changed] == [
        ("tc:turn_2.a.result", "visible", "hidden", 40, 2, True),
        ("tc:turn_2.b.result", "visible", "hidden", 40, 2, True),
    ]
    assert cause(found).version == version
    assert cause(found).text.startswith(f"hide of version {version}: tc:turn_2.a.result")
    for prefix in found.prefixes:
        assert prefix.first_difference is not None
        assert prefix.first_difference.before_path == prefix.first_difference.after_path == "tc:turn_2.a.result"
        assert ("abc" in prefix.first_difference.before, "[gone 6]" in prefix.first_difference.after) == (True, True)


@pytest.mark.parametrize(
    ("decision", "kind"),
    [(BlocksRevealed(versions=(6,)), "reveal"), (BlockRedacted(version=6), "redaction")],
)
def test_what_is_shown_again_or_erased_is_named(decision: Payload, kind: str) -> None:
    """The event that changed the block at the first difference."""
    fold = conversation()
    hide(fold, 6)
    before = seen(fold)
    version = apply(fold, decision)
    assert (cause(diff(before, seen(fold))).kind, cause(diff(before, seen(fold))).version) == (kind, version)


def test_an_omitted_block_is_found_though_it_stands_nowhere() -> None:
    """What follows it moves up; the cause is the hide in front."""
    fold = conversation()
    before = seen(fold)
    version = hide(fold, 3, mode="omit")
    found = cause(diff(before, seen(fold)))
    assert (found.kind, found.version) == ("hide", version)


@pytest.mark.shows("004-92", "004-113")
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"system": words(8)}, "system"),
        ({"system": None}, "system"),
        ({"tools": []}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools"),
    ],
    ids=str,
)
def test_what_stands_before_the_conversation_is_compared_first(change: dict[str, Any], kind: str) -> None:
    """Tools, then the system prompt: a change there loses all that was cached behind it."""
    fold = conversation()
    found = diff(seen(fold), seen(fold, **change), wires=SENT)
    assert found.differs == (kind,)
    assert cause(found).kind == kind
    assert all(prefix.common_tokens <= 7 + COUNTER.count(json.dumps(TOOL)) for prefix in found.prefixes)
    assert found.prefixes[0].common_bytes <= len(json.dumps(TOOL)) + len(json.dumps(SYSTEM))


def test_a_late_result_takes_its_place_on_the_wire_only() -> None:
    """In timeline order it is appended; a provider wants it beside its call, where a stand-in was."""
    fold = fold_of(prompt(5), call("a"), prompt(6))
    before = seen(fold)
    grow(fold, result("a", 9))
    neutral, wire = diff(before, seen(fold)).prefixes
    assert neutral.cause.kind == "appended"
    assert (wire.cause.kind, wire.cause.version) == ("late_result", 5)
    assert wire.first_difference is not None
    assert wire.first_difference.after_path == "tc:turn_1.a.result"
    assert "interrupted" in wire.first_difference.before


def test_a_late_result_that_is_abridged_before_it_is_first_sent_is_no_hide() -> None:
    """Its place was kept by a stand-in: it is what came late, and nothing that was sent gave way."""
    fold = fold_of(prompt(5), call("a"), prompt(6))
    before = seen(fold)
    grow(fold, result("a", 9))
    apply(fold, BlocksHidden(reason=NUMBERED, blocks=(Replacement(version=5, text="1\tfew numbers", tokens=3),)))
    assert diff(before, seen(fold)).prefixes[1].cause.kind == "late_result"


def test_an_answer_that_was_the_last_word_has_its_white_space_back() -> None:
    """Anthropic is sent it without: nothing was decided, and it is told as what it is, both ways."""
    fold = fold_of(prompt(5), answer(text="Done. \n"))
    before = seen(fold)
    grow(fold, prompt(6))
    for found in (diff(before, seen(fold)), diff(seen(fold), before)):
        wire = found.prefixes[1]
        assert (wire.cause.kind, wire.cause.version) == ("last_word", None)
        assert wire.first_difference is not None
        assert wire.first_difference.before_path == wire.first_difference.after_path == "ar:turn_1.assistant.completion"


def test_void_signatures_are_told_by_the_decision_that_voided_them() -> None:
    """Signed reasoning behind a hidden block is another entry, and the first difference is the hide."""
    signed = Reasoning(data={"type": "thinking", "thinking": "hm", "signature": "c2ln"}, response_id="m")
    fold = fold_of(prompt(5), *exchange("a", 40), signed, answer(3, response_id="m"))
    before = seen(fold)
    version = hide(fold, 4)
    found = diff(before, seen(fold))
    assert ("bl:turn_1.assistant.reasoning", True) in [(row.path, row.bytes_changed) for row in found.changed]
    assert cause(found).version == version


def test_an_earlier_context_that_follows_a_longer_one_ends_sooner() -> None:
    """Compared backwards: all of the shorter one is the same, and that is said."""
    fold = conversation()
    short = seen(fold)
    grow(fold, answer(30))
    found = diff(seen(fold), short)
    assert [row.path for row in found.left] == ["ar:turn_2.assistant.completion"]
    assert cause(found).kind == "shortened"
    assert all(not p.intact and p.common_bytes == p.after_bytes for p in found.prefixes)


def test_a_difference_that_no_decision_explains_is_said_to_be_unknown() -> None:
    """Two conversations that share an id only."""
    one, other = fold_of(prompt(5, text="a")), fold_of(prompt(5, text="b"))
    assert cause(diff(seen(one), seen(other))).kind == "unknown"


def test_an_unknown_wire_is_a_typed_error() -> None:
    """The error names what was asked for."""
    context = seen(conversation())
    with pytest.raises(InvalidArgument, match="klingon"):
        diff(context, context, wires=["klingon"])


def test_the_bytes_of_a_program_that_makes_requests_itself_are_not_compared() -> None:
    """The AI SDK gets messages, and its providers' caches keep something else."""
    context = seen(conversation())
    with pytest.raises(InvalidArgument, match="compare one of anthropic"):
        diff(context, context, wires=["ai_sdk_ui"])


async def test_a_summary_that_is_told_in_several_messages_counts_once() -> None:
    """A question before it and an answer behind it stand at its path, and are part of its tokens."""
    timeline = await opened(MemoryStore(), policy=policies.keep_ratio(message_tokens=0), summarizer=Scribe())
    await timeline.append(*turn(1_000), *turn(1_000), *turn(10), *turn(10))
    await timeline.compact()
    await timeline.append(prompt(10))  # an answer at the end would be sent without its last blank
    before = await timeline.render()
    await timeline.append(answer(10))
    await timeline.render()
    found = await timeline.diff()
    assert [entry.type for entry in before.neutral.entries][:2] == ["conv.range.summary"] * 2
    assert {prefix.common_tokens for prefix in found.prefixes} == {before.account.messages}


def test_the_dump_is_json_of_a_stable_shape() -> None:
    """`timeline diff --json` prints these keys."""
    fold = conversation()
    before = seen(fold)
    hide(fold, 6)
    compact_fold(fold, 4)
    dump = diff(before, seen(fold)).dump()
    assert json.loads(json.dumps(dump))["conversation"] == "c"
    assert list(dump) == [
        "conversation",
        "before",
        "after",
        "differs",
        "entered",
        "left",
        "changed",
        "prefixes",
        "reuse",
        "summary",
    ]
    assert set(dump["before"]) == {"conversation", "version", "fingerprint", "tokens"}
    row = {"version", "path", "type", "turn_id"}
    assert set(dump["left"][0]) == set(dump["entered"][0]) == row | {"state", "shown_tokens", "covered_by"}
    sizes = {"before_tokens", "after_tokens"}
    assert set(dump["changed"][0]) == row | sizes | {"before", "after", "bytes_changed", "reason"}
    assert set(dump["prefixes"][0]) == {
        "wire",
        "before_bytes",
        "after_bytes",
        "common_bytes",
        "common_tokens",
        "intact",
        "first_difference",
        "cause",
    }
    assert set(dump["prefixes"][0]["cause"]) == {"kind", "text", "version"}
    places = {"before_place", "after_place", "before_path", "after_path"}
    assert set(dump["prefixes"][0]["first_difference"]) == places | {"byte", "before", "after"}


BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda n: [prompt(n)], st.integers(1, 9)),
        st.builds(lambda n: [answer(n, text="é " * n)], st.integers(1, 9)),
        st.builds(exchange, st.sampled_from("abc"), st.integers(1, 9)),
        st.builds(lambda c: [call(c)], st.sampled_from("abc")),
        st.builds(lambda c: [result(c)], st.sampled_from("abc")),
    ),
    min_size=1,
    max_size=8,
)


def decide(fold: Fold, kind: str, share: float) -> None:
    """Hide, omit, reveal or compact somewhere in a fold."""
    items = fold.window.items
    version = items[int(share * (len(items) - 1))].version
    if kind == "compact":
        compact_fold(fold, version)
    elif kind == "reveal":
        apply(fold, BlocksRevealed(versions=(version,)))
    elif kind != "nothing":
        hide(fold, version, mode=kind)


STORIES = st.tuples(
    BLOCKS,
    st.lists(
        st.tuples(st.sampled_from(["replace", "omit", "reveal", "compact", "nothing"]), st.floats(0, 1)), max_size=2
    ),
    BLOCKS | st.just([]),
)


@given(STORIES)
def test_rows_turn_the_blocks_of_one_context_into_those_of_the_other(
    story: tuple[Sequence[Sequence[Block]], Sequence[tuple[str, float]], Sequence[Sequence[Block]]],
) -> None:
    """Before, without what left, with what entered, is after; rows of changed blocks are all that else differs."""
    before, after = played(story)
    found = diff(before, after)
    old, new = ({b.path: b for b in context.blocks} for context in (before, after))
    assert old.keys() - {row.path for row in found.left} | {row.path for row in found.entered} == new.keys()
    assert not {row.path for row in found.entered} & old.keys()
    changed = {row.path for row in found.changed}
    old_bytes, new_bytes = ({e.path: e.canonical for e in c.neutral.entries} for c in (before, after))
    for path in old.keys() & new.keys():
        same = old[path].state == new[path].state and old_bytes.get(path) == new_bytes.get(path)
        assert same is (path not in changed)


def test_a_compaction_in_front_explains_a_message_that_held_both() -> None:
    """OpenAI's form joins two answers into one message; the second alone is left when the summary is omitted, too."""
    before, after = played(([[answer(1)], [answer(1)]], [("compact", 0.0), ("omit", 0.0)], []))
    causes = {prefix.wire: prefix.cause.kind for prefix in diff(before, after, wires=SENT).prefixes}
    assert causes["openai_chat"] == "compaction"
    assert "unknown" not in causes.values()


@given(STORIES)
def test_the_common_prefix_is_common_and_as_long_as_can_be(
    story: tuple[Sequence[Sequence[Block]], Sequence[tuple[str, float]], Sequence[Sequence[Block]]],
) -> None:
    """Both neutral forms begin with so many same bytes, and no more; every cause is a known one."""
    before, after = played(story)
    for prefix in diff(before, after, wires=SENT).prefixes:
        check_bounds(prefix, before)
        if prefix.wire != "neutral":
            continue
        one, other = naive(before), naive(after)
        assert (prefix.before_bytes, prefix.after_bytes) == (len(one), len(other))
        common = prefix.common_bytes
        assert one[:common] == other[:common]
        assert one == other or one[common : common + 1] != other[common : common + 1]


def played(story: Any) -> tuple[RenderedContext, RenderedContext]:
    """Play a story: blocks, a context, decisions, more blocks, another context."""
    first, decisions, second = story
    fold = fold_of(*[block for blocks in first for block in blocks])
    before = seen(fold)
    for kind, share in decisions:
        decide(fold, kind, share)
    grow(fold, *[block for blocks in second for block in blocks])
    return before, seen(fold)


def naive(context: RenderedContext) -> bytes:
    """Write the neutral form out at once."""
    neutral = context.neutral
    values = [*neutral.tools, neutral.system, *[json.loads(entry.canonical) for entry in neutral.entries]]
    lines = [json.dumps(v, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for v in values]
    return "\n".join(lines).encode()


def check_bounds(prefix: Prefix, before: RenderedContext) -> None:
    """Hold what is true of any prefix."""
    assert 0 <= prefix.common_bytes <= min(prefix.before_bytes, prefix.after_bytes)
    assert 0 <= prefix.common_tokens <= before.account.sent
    assert prefix.cause.kind != "unknown"
    assert prefix.intact is (prefix.cause.kind in {"same", "appended"})
    assert not prefix.intact or prefix.common_bytes == prefix.before_bytes
