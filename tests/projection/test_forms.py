"""How each kind of block looks to the model (design, section 6, forms)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import answer, apply, call, compact_fold, exchange, fold_of, grow, prompt, result, window_of, words
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Note,
    Reasoning,
    StageDigest,
    SystemMessage,
    TurnHeader,
    UserPrompt,
)
from timeline.events import BlockRedacted, BlocksHidden, Replacement
from timeline.policy.model import CachePointRule
from timeline.projection.forms import role_of
from timeline.projection.project import Projector

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.wire.neutral import Entry

PICTURE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def entries(window: Window) -> list[Entry]:
    """Project a window and return its entries."""
    return list(Projector().project(window, CachePointRule()).entries)


def entry(block: Block) -> Entry:
    """Return the entry of a single block."""
    [only] = entries(window_of(block))
    return only


@pytest.mark.parametrize(
    ("block", "role", "text"),
    [
        (UserPrompt(text="hi"), "user", "hi"),
        (UserPrompt(text="hi", author="alice"), "user", "hi"),
        (AssistantCompletion(text="yes"), "assistant", "yes"),
        (TurnHeader(text="Monday"), "user", "Monday"),
        (Note(text="French only"), "user", "[pinned note] French only"),
        (StageDigest(text="outline done"), "user", "[stage digest] outline done"),
        (SystemMessage(text="hurry"), "system", "hurry"),
        (CustomBlock(type="app.x", text="rain", author="assistant"), "assistant", "rain"),
        (CustomBlock(type="app.x", text="rain", author="planner"), "user", "rain"),
        (Attachment(text="a,b", data=[PICTURE], mime="text/csv"), "user", "a,b"),
        (Reasoning(text="hm"), "assistant", "hm"),
    ],
    ids=lambda value: value.type if isinstance(value, Block) else "",
)
def test_each_type_has_its_role_and_text(block: Block, role: str, text: str) -> None:
    """Who speaks is a wish that each wire lowers; labels tell the runtime's own texts."""
    shown = entry(block)
    assert (shown.type, shown.role, shown.text) == (block.type, role, text)


def test_a_call_shows_its_name_id_and_arguments() -> None:
    """As they were made."""
    shown = entry(call("c1", "run", arguments={"x": 1}))
    assert (shown.role, shown.name, shown.call_id, shown.arguments) == ("assistant", "run", "c1", {"x": 1})


def test_a_result_shows_whether_it_is_an_error_and_its_parts() -> None:
    """Content parts go out as they came in."""
    shown = entries(window_of(call("c1"), result("c1", text="no", is_error=True, data=[PICTURE])))[1]
    assert (shown.role, shown.call_id, shown.is_error, shown.data, shown.loose) == (
        "tool",
        "c1",
        True,
        [PICTURE],
        False,
    )


def test_meta_is_never_shown() -> None:
    """What an application keeps beside a block stays there."""
    assert "secret" not in entry(UserPrompt(text="hi", meta={"k": "secret"})).canonical


def test_a_block_that_shows_nothing_has_no_entry() -> None:
    """An empty header or completion is left out; an empty result is not, since its call needs it."""
    window = window_of(TurnHeader(), prompt(), answer(text=""), call("a"), result("a", text=""))
    assert [e.type for e in entries(window)] == ["user.prompt", "react.tool.call", "react.tool.result"]


def test_a_hidden_block_shows_its_replacement() -> None:
    """The recorded text stands for text and data both."""
    fold = fold_of(prompt(), call("a"), result("a", 500, data=[PICTURE]))
    apply(fold, 5, BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[a hidden]", tokens=3),)))
    shown = entries(fold.window)[-1]
    assert (shown.text, shown.data, shown.call_id, shown.type) == ("[a hidden]", None, "a", "react.tool.result")


def test_a_hidden_call_shows_its_replaced_arguments() -> None:
    """Still an object, still the same call."""
    fold = fold_of(prompt(), call("a", arguments={"x": words(500)}), result("a"))
    apply(fold, 5, BlocksHidden(reason="spill", blocks=(Replacement(version=3, arguments={"x": "abc …"}, tokens=3),)))
    shown = entries(fold.window)[1]
    assert (shown.arguments, shown.name, shown.call_id) == ({"x": "abc …"}, "run", "a")


def test_an_omitted_block_is_not_shown() -> None:
    """Omitted is hidden without a replacement."""
    fold = fold_of(prompt(), answer())
    apply(fold, 4, BlocksHidden(mode="omit", reason="chitchat", blocks=(Replacement(version=2),)))
    assert [e.path for e in entries(fold.window)] == ["ar:turn_1.assistant.completion"]


def test_a_redacted_block_shows_its_tombstone() -> None:
    """The model sees that something was there."""
    fold = fold_of(prompt(text="my password is x"), answer())
    apply(fold, 4, BlockRedacted(version=2))
    assert entries(fold.window)[0].text == "[redacted]"


def test_an_orphan_result_is_loose() -> None:
    """A result without a call goes out as user text with its path; the wire needs to know."""
    assert entries(window_of(prompt(), result("lost")))[1].loose


def test_the_late_result_of_a_covered_call_is_loose() -> None:
    """Its call is not in this context any more."""
    fold = fold_of(prompt(), call("a", pending=True), answer(response_id="m2"))
    compact_fold(fold, 3)
    grow(fold, result("a"))
    assert entries(fold.window)[-1].loose


def test_a_result_whose_call_is_omitted_is_loose() -> None:
    """No result is shown as the answer to a call that is not."""
    fold = fold_of(prompt(), *exchange("a"))
    apply(fold, 5, BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=3),)))
    assert [e.loose for e in entries(fold.window)] == [False, True]


def test_reasoning_keeps_its_opaque_data() -> None:
    """The provider's own part, signature included."""
    data: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    shown = entry(Reasoning(text="hm", data=data))
    assert (shown.data, shown.rewritten) == (data, False)


def test_reasoning_from_before_a_compaction_is_marked() -> None:
    """Its prefix was rewritten since it was signed, so a wire may have to drop it; newer reasoning is not marked."""
    data: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    fold = fold_of(*[prompt(), answer()], prompt(), Reasoning(data=data), *exchange("a"))
    compact_fold(fold, 3)
    grow(fold, Reasoning(data=data, response_id="m2"))
    marked = [e.rewritten for e in entries(fold.window) if e.type == "assistant.reasoning"]
    assert marked == [True, False]


def test_reasoning_behind_a_later_hide_is_marked() -> None:
    """A replacement before it rewrites its prefix as a summary does; one behind it does not."""
    data: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    fold = fold_of(prompt(), *exchange("a"), Reasoning(data=data, response_id="m2"), *exchange("b"))
    apply(fold, 8, BlocksHidden(reason="ttl", blocks=(Replacement(version=7, text="[b]", tokens=1),)))
    assert not any(e.rewritten for e in entries(fold.window))
    apply(fold, 9, BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[a]", tokens=1),)))
    assert [e.type for e in entries(fold.window) if e.rewritten] == ["assistant.reasoning"]


def test_a_summary_speaks_as_the_user() -> None:
    """Text from the conversation never becomes a system message."""
    fold = fold_of(*[prompt(), answer()], prompt())
    compact_fold(fold, 3)
    assert entries(fold.window)[0].role == "user"
    assert role_of(fold.window.items[0].block) == "user"


def test_blocks_of_a_response_share_their_group() -> None:
    """A wire keeps a group's calls and results together."""
    shown = entries(window_of(prompt(), call("a"), call("b"), result("a"), result("b"), answer()))
    assert [e.group for e in shown] == [0, 1, 1, 1, 1, 2]
