"""Which blocks one batch of hides takes (design, section 6, hiding; seed 002, TTL pruning)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import (
    COUNTER,
    answer,
    apply,
    call,
    compact_fold,
    exchange,
    fold_of,
    grow,
    prompt,
    result,
    small_policy,
    turn,
    window_of,
    words,
)
from timeline.blocks import (
    CONTINUES_KEY,
    Attachment,
    Block,
    CustomBlock,
    Note,
    Reasoning,
    StageDigest,
    SystemMessage,
    TurnHeader,
)
from timeline.events import BlockRedacted, BlocksHidden, BlocksPinned, BlocksRevealed, Replacement
from timeline.fold.window import Window
from timeline.planning.account import FixedPart, account_of
from timeline.planning.hide import NOTICE_KEY, HidePlan, OwedNotice, ages, is_notice, needs_notice, plan_hide
from timeline.policy.model import Hiding

POLICY = small_policy()
HIDING = Hiding(intact=2, old=4, files=6)
TURNS = Hiding(unit="turns", intact=2, old=4, files=6)


def plan(window: Window, hiding: Hiding = HIDING, least: int = 0) -> HidePlan | None:
    """Plan one batch."""
    return plan_hide(window, POLICY, hiding, COUNTER, least=least)


def hidden(window: Window, hiding: Hiding = HIDING, least: int = 0) -> list[str]:
    """Return the paths that one batch hides, without what all of them begin with."""
    planned = plan(window, hiding, least)
    versions = {r.version for r in planned.replacements} if planned is not None else set()
    return [item.block.path.split(".", 1)[1] for item in window.items if item.version in versions]


def rounds(count: int, tokens: int = 200) -> list[Block]:
    """Return rounds whose results are that large, each with a name that tells its number."""
    return [block for n in range(count) for block in exchange(f"r{n}", tokens)]


# By age


def test_the_newest_rounds_stay_and_older_results_give_way() -> None:
    """With two rounds intact, the third from the end is the first to go."""
    window = window_of(prompt(), *rounds(4))
    assert hidden(window) == ["r0.result", "r1.result"]


def test_in_turns_the_newest_turns_stay() -> None:
    """A long turn is hidden as a whole, or not at all."""
    window = window_of(prompt(), *rounds(2), prompt(), *rounds(5)[4:], *turn(200))
    assert hidden(window, TURNS) == ["r0.result", "r1.result"]
    assert hidden(window_of(prompt(), *rounds(9)), TURNS) == []


def test_bulky_arguments_give_way_with_the_results() -> None:
    """Those beyond twice a replacement; smaller ones stay until they are old."""
    bulky = call("big", arguments={"content": words(200)})
    small = call("small", arguments={"content": words(100)})
    window = window_of(prompt(), bulky, result("big"), small, result("small"), *rounds(2))
    assert hidden(window) == ["big.call"]


@pytest.mark.parametrize(
    "old",
    [
        prompt(200),
        answer(200),
        Reasoning(text=words(200)),
        SystemMessage(text=words(200)),
        CustomBlock(type="app.x", text=words(200)),
        call("c", arguments={"content": words(100)}),
    ],
    ids=lambda block: block.type,
)
def test_texts_thoughts_and_calls_are_shortened_from_the_old_age_on(old: Block) -> None:
    """Four rounds behind them and not three."""
    tail = [[answer(response_id=f"t{n}")] for n in range(4)]
    before = window_of(prompt(), old, prompt(), *(b for r in tail[:3] for b in r), *rounds(1, 5))
    after = window_of(prompt(), old, prompt(), *(b for r in tail for b in r), *rounds(1, 5))
    age = ages(before.items, "rounds")[1]
    assert ages(after.items, "rounds")[1] == age + 1
    assert hidden(before, Hiding(intact=2, old=age + 1)) == []
    assert len(hidden(after, Hiding(intact=2, old=age + 1))) == 1


def test_an_old_age_below_the_intact_one_means_the_intact_one() -> None:
    """What is intact is intact."""
    window = window_of(prompt(), answer(200), prompt(), *rounds(2, 5))
    assert hidden(window, Hiding(intact=3, old=1)) == []


def test_the_newest_content_of_a_file_stays_for_longer() -> None:
    """An older reading of the same file goes with the other results."""
    read = {"name": "Read", "arguments": {"file_path": "a.py"}}
    window = window_of(prompt(), *exchange("x", 200, **read), *exchange("y", 200, **read), *rounds(5))
    assert hidden(window) == ["x.result", "r0.result", "r1.result", "r2.result"]
    window = window_of(prompt(), *exchange("x", 200, **read), *exchange("y", 200, **read), *rounds(6))
    assert hidden(window)[:3] == ["x.result", "y.result", "r0.result"]


def test_each_range_of_a_file_is_content_of_its_own() -> None:
    """Reading lines 1 to 50 does not make lines 51 to 100 old."""
    first = {"name": "Read", "arguments": {"file_path": "a.py", "offset": 0}}
    second = {"name": "Read", "arguments": {"file_path": "a.py", "offset": 50}}
    window = window_of(prompt(), *exchange("x", 200, **first), *exchange("y", 200, **second), *rounds(3))
    assert hidden(window) == ["r0.result"]


def test_the_call_that_wrote_a_file_keeps_its_content() -> None:
    """As long as nothing newer holds it; its short result goes by itself."""
    written = call("w", "Write", arguments={"file_path": "a.py", "content": words(200)})
    window = window_of(prompt(), written, result("w", 300), *rounds(2, 5))
    assert hidden(window) == ["w.result"]
    window = window_of(prompt(), written, result("w", 300), *rounds(6, 5))
    assert hidden(window) == ["w.call", "w.result"]


def test_attachments_and_pictures_stay_as_long_as_files() -> None:
    """They came with a prompt, and are content like a file's."""
    picture = Attachment(data={"type": "image"}, meta={"file": "shot.png"})
    pasted = Attachment(text=words(200), meta={"file": "log.txt"})
    fold = fold_of(prompt(), picture, pasted, prompt(), *rounds(5, 5))
    assert hidden(fold.window) == []
    grow(fold, answer(response_id="one more"))
    # No counter of texts sees a picture: it is counted when it is appended, and these scenes count texts.
    assert hidden(fold.window) == ["log%2Etxt"]


# Never

OLD_ROUNDS = [block for n in range(6) for block in exchange(f"o{n}", 1, response_id=f"o{n}")]


@pytest.mark.parametrize(
    "block",
    [TurnHeader(text=words(300), turn_id="turn_1"), Note(text=words(300)), StageDigest(text=words(300))],
    ids=lambda block: block.type,
)
def test_headers_notes_and_stage_digests_are_never_hidden(block: Block) -> None:
    """However old and large."""
    assert hidden(window_of(block, prompt(), *OLD_ROUNDS)) == []


def test_summaries_are_never_hidden() -> None:
    """They stand for what is hidden already."""
    fold = fold_of(*turn(200))
    compact_fold(fold, 3, tokens=900)
    grow(fold, prompt(), *OLD_ROUNDS)
    assert hidden(fold.window) == []


def test_pinned_blocks_are_never_hidden() -> None:
    """Until they are unpinned."""
    fold = fold_of(prompt(), *rounds(4))
    apply(fold, fold.version + 1, BlocksPinned(versions=(3, 4)))
    assert hidden(fold.window) == ["r1.result"]


def planned_steps(call_id: str, *states: str) -> list[Block]:
    """Return the call of a planning tool with a long step for each status, and its result."""
    todos = [{"content": f"Step {n}. {words(60)}", "status": state} for n, state in enumerate(states)]
    return [call(call_id, "TodoWrite", arguments={"todos": todos}), result(call_id)]


def test_the_newest_plan_is_not_hidden_while_a_step_of_it_is_open() -> None:
    """An agent works from it, and looks at it by no other call."""
    window = window_of(
        prompt(), *planned_steps("p1", "pending", "pending"), *planned_steps("p2", "completed", "pending"), *rounds(9)
    )
    assert [path for path in hidden(window) if path.startswith("p")] == ["p1.call"]
    done = window_of(prompt(), *planned_steps("p1", "completed", "cancelled"), *rounds(9))
    assert "p1.call" in hidden(done)


def test_the_newest_prompt_is_never_hidden() -> None:
    """It is what the agent works on, however many rounds ago it was said."""
    assert hidden(window_of(prompt(300), prompt(300), *OLD_ROUNDS)) == ["user.prompt"]
    assert hidden(window_of(prompt(300), *OLD_ROUNDS)) == []


def test_no_part_of_the_newest_message_is_hidden() -> None:
    """A message of several texts is one prompt: its first part may be the task, and its last one a word."""
    part: dict[str, Any] = {"meta": {CONTINUES_KEY: True}, "turn_id": "t"}
    file = Attachment(text=words(9), author="user", **part)
    newest = (prompt(300, turn_id="t"), file, prompt(300, **part), prompt(5, **part))
    assert hidden(window_of(prompt(300), *newest, *OLD_ROUNDS)) == ["user.prompt"]
    later = prompt(300, turn_id="t")
    assert hidden(window_of(*newest, later, *OLD_ROUNDS)) == ["user.prompt", "user.prompt.2"]


def test_open_calls_are_never_hidden() -> None:
    """A call that waits for an approval stays readable until it is answered."""
    waits = call("w", arguments={"content": words(300)}, pending=True, response_id="w")
    assert hidden(window_of(prompt(), waits, *OLD_ROUNDS)) == []
    answered = window_of(prompt(), waits, *OLD_ROUNDS, result("w"))
    assert hidden(answered) == ["w.call"]


def test_dead_calls_are_hidden_like_any_other() -> None:
    """Nothing will answer them."""
    dead = call("d", arguments={"content": words(300)}, response_id="d")
    assert hidden(window_of(prompt(), dead, *OLD_ROUNDS)) == ["d.call"]


def test_what_was_decided_about_a_block_stands() -> None:
    """Hidden, omitted, redacted and revealed blocks are left as they are: a hide is sticky, and so is a reveal."""
    fold = fold_of(prompt(), *rounds(7))
    for payload in (
        BlocksHidden(reason="manual", blocks=(Replacement(version=4, text="mine", tokens=1),)),
        BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=5), Replacement(version=6))),
        BlockRedacted(version=8),
        BlocksHidden(reason="cold", blocks=(Replacement(version=10, text="x", tokens=1),)),
        BlocksRevealed(versions=(10,)),
    ):
        apply(fold, fold.version + 1, payload)
    assert hidden(fold.window) == ["r4.result"]


def test_the_notice_itself_is_never_hidden() -> None:
    """A message of the application's own is."""
    notice = SystemMessage(text=words(300), meta={NOTICE_KEY: "hidden"})
    assert hidden(window_of(prompt(), notice, *OLD_ROUNDS)) == []
    assert hidden(window_of(prompt(), SystemMessage(text=words(300)), *OLD_ROUNDS)) == ["system.message"]


# Whether


def test_a_batch_that_frees_less_than_the_minimum_is_not_made() -> None:
    """Each change of the prefix costs a cache: the tokens freed, replacements counted, have to be worth it."""
    window = window_of(prompt(), *rounds(4))
    made = plan(window)
    assert made is not None
    assert made.freed == 400 - sum(r.tokens for r in made.replacements)
    assert plan(window, least=made.freed) == made
    assert plan(window, least=made.freed + 1) is None


def test_a_window_with_nothing_old_has_no_plan() -> None:
    """Not even an empty one, whatever the minimum."""
    assert plan(window_of(prompt(), *rounds(2)), least=0) is None
    assert plan(Window("c"), least=0) is None


def test_a_replacement_that_would_not_halve_a_block_is_not_made() -> None:
    """The model loses content; that has to be worth something."""
    replacement = hidden_tokens()
    assert hidden(window_of(prompt(), call("x"), result("x", 2 * replacement), *rounds(2, 5))) == ["x.result"]
    assert hidden(window_of(prompt(), call("x"), result("x", 2 * replacement - 1), *rounds(2, 5))) == []


def hidden_tokens() -> int:
    """Return what the replacement of a two-digit result costs."""
    made = plan(window_of(prompt(), call("x"), result("x", 50), *rounds(2, 5)))
    assert made is not None
    return made.replacements[0].tokens


def test_an_empty_thought_is_left_alone() -> None:
    """Hiding it would free nothing and change the bytes."""
    assert hidden(window_of(prompt(), Reasoning(response_id="t"), *OLD_ROUNDS)) == []


def test_what_is_freed_is_what_the_account_falls_by() -> None:
    """With the policy's margin, and with the stand-in that the wire adds for a missing result."""
    dead = call("d", arguments={"content": words(203)}, response_id="d")
    fold = fold_of(prompt(), dead, *OLD_ROUNDS)
    policy = small_policy(margin=0.1)
    made = plan_hide(fold.window, policy, HIDING, COUNTER, least=0)
    assert made is not None
    before = account_of(fold.window.items, FixedPart(), policy)
    apply(fold, fold.version + 1, BlocksHidden(reason="cold", blocks=made.replacements))
    assert made.freed == before.messages - account_of(fold.window.items, FixedPart(), policy).messages


def test_what_a_warm_cache_loses_is_counted_from_the_first_hidden_block_on() -> None:
    """What stands before it is read from the cache as ever."""
    window = window_of(prompt(30), *rounds(4))
    made = plan(window)
    assert made is not None
    first = made.replacements[0].version
    assert first > 3
    assert made.behind == sum(item.shown_tokens for item in window.items if item.version >= first)
    assert made.before - made.behind == sum(item.shown_tokens for item in window.items if item.version < first)


# The notice


def test_the_notice_is_needed_until_it_is_in_view() -> None:
    """Covered or hidden, it does not tell the model anything."""
    notice = SystemMessage(text="n", meta={NOTICE_KEY: "hidden"})
    fold = fold_of(prompt())
    assert needs_notice(fold.window)
    grow(fold, notice)
    assert not needs_notice(fold.window)
    apply(fold, 4, BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=3),)))
    assert needs_notice(fold.window)


def test_the_notice_waits_while_the_model_speaks() -> None:
    """Its newest response may go on until something is said to it."""
    assert not needs_notice(window_of(prompt(), answer()))
    assert needs_notice(window_of(prompt(), answer(), prompt()))


def test_a_notice_is_owed_for_a_hide_by_itself_that_nothing_followed() -> None:
    """Neither the message itself, even if it was left out since, nor a summary, which may have covered it."""
    fold = fold_of(prompt(), *exchange("a", 200), *turn())
    apply(fold, 7, BlocksHidden(reason="manual", blocks=(Replacement(version=4, text="r", tokens=1),)))
    grow(fold, prompt())
    assert not OwedNotice().is_due(fold.window)
    apply(fold, 9, BlocksHidden(reason="cold", blocks=(Replacement(version=5, text="r", tokens=1),)))
    assert OwedNotice().is_due(fold.window)
    told = fold.copy()
    grow(told, SystemMessage(text="n", meta={NOTICE_KEY: "hidden"}))
    apply(told, 11, BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=10),)))
    assert not OwedNotice().is_due(told.window)
    compact_fold(fold, 4)
    assert not OwedNotice().is_due(fold.window)


def test_only_the_runtimes_own_message_is_the_notice() -> None:
    """Told by its mark, not by its words."""
    assert is_notice(SystemMessage(text="n", meta={NOTICE_KEY: "hidden"}))
    assert not is_notice(SystemMessage(text="n"))
    assert not is_notice(prompt(meta={NOTICE_KEY: "hidden"}))


# Whatever the conversation

KINDS = st.sampled_from(["turn", "round", "read", "write", "note", "think", "pending", "header", "attach"])


def made_of(kinds: list[str], tokens: int) -> list[Block]:
    """Return blocks of these kinds, each with a response of its own."""
    made: list[Block] = [prompt(tokens)]
    for n, kind in enumerate(kinds):
        of: dict[str, Any] = {"response_id": f"r{n}"}
        blocks: dict[str, list[Block]] = {
            "turn": [prompt(tokens), answer(tokens, **of)],
            "round": exchange(f"c{n}", tokens, **of),
            "read": exchange(f"c{n}", tokens, name="Read", arguments={"file_path": f"{n % 2}.py"}, **of),
            "write": exchange(
                f"c{n}", 3, name="Write", arguments={"file_path": "0.py", "content": words(tokens)}, **of
            ),
            "note": [Note(text=words(tokens))],
            "think": [Reasoning(text=words(tokens), **of), answer(3, **of)],
            "pending": [call(f"c{n}", arguments={"x": words(tokens)}, pending=True, **of)],
            "header": [TurnHeader(text=words(tokens))],
            "attach": [Attachment(text=words(tokens), meta={"file": "a.txt"})],
        }
        made += blocks[kind]
    return made


@given(
    st.lists(KINDS, max_size=25),
    st.integers(1, 300),
    st.builds(
        Hiding,
        unit=st.sampled_from(["rounds", "turns"]),
        intact=st.integers(1, 4),
        old=st.integers(1, 6),
        files=st.integers(1, 8),
        replacement_tokens=st.integers(20, 60),
    ),
    st.integers(0, 500),
    st.sampled_from([0.0, 0.1]),
)
def test_a_batch_keeps_every_rule(kinds: list[str], tokens: int, hiding: Hiding, least: int, margin: float) -> None:
    """Ages, kinds, minimum and gain, for any conversation; a second batch right after it finds nothing."""
    policy = small_policy(margin=margin)
    fold = fold_of(*made_of(kinds, tokens))
    window = fold.window
    made = plan_hide(window, policy, hiding, COUNTER, least=least)
    if made is None:
        return
    of = dict(zip((item.version for item in window.items), ages(window.items, hiding.unit), strict=True))
    items = {item.version: item for item in window.items}
    open_calls = {item.version for item in window.open_calls()}
    for replacement in made.replacements:
        item = items[replacement.version]
        assert of[item.version] >= hiding.intact
        assert item.block.type not in {"turn.header", "conv.range.summary", "note", "stage.digest"}
        assert item.version not in open_calls
        assert 2 * replacement.tokens <= item.tokens
        assert replacement.tokens <= hiding.replacement_tokens
    prompts = [item.version for item in window.items if item.block.type == "user.prompt"]
    assert prompts[-1] not in {r.version for r in made.replacements}
    apply(fold, fold.version + 1, BlocksHidden(reason="cold", blocks=made.replacements))
    before, after = (account_of(items, FixedPart(), policy).messages for items in (window.items, fold.window.items))
    assert before - after == made.freed >= max(1, least)
    assert plan(fold.window, hiding) is None
