"""Previews of what is too large to keep whole (design, section 6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.scenes import COUNTER, answer, apply, call, fold_of, prompt, result, window_of, words
from timeline.blocks import Attachment, Block, CustomBlock, Note, Reasoning, SystemMessage, TurnHeader
from timeline.events import BlockRedacted, BlocksHidden, Replacement
from timeline.frozen import canonical_json
from timeline.planning.replacements import can_preview, preview_of

if TYPE_CHECKING:
    from timeline.fold.window import Item


def item_of(block: Block) -> Item:
    """Return the item of a single block."""
    return window_of(block).items[0]


def preview(item: Item, most: int, address: str = "@152") -> Replacement:
    """Return the preview of an item."""
    return preview_of(item, most, COUNTER, address=address)


def lines(tokens: int) -> str:
    """Return numbered lines of four tokens each."""
    return "".join(f"line {n:010d}\n" for n in range(tokens // 4))


@pytest.mark.parametrize(
    "block",
    [
        prompt(500),
        result("a", 500),
        call("a", arguments={"x": words(500)}),
        Attachment(text=words(500)),
        Note(text=words(500)),
        SystemMessage(text=words(500)),
        CustomBlock(type="app.x", text=words(500)),
    ],
    ids=lambda block: block.type,
)
def test_what_was_pasted_called_or_returned_can_be_previewed(block: Block) -> None:
    """Results, arguments, prompts, attachments, notes and messages of the runtime have previews."""
    assert can_preview(item_of(block), 400)


@pytest.mark.parametrize(
    "block", [answer(500), Reasoning(text=words(500)), TurnHeader(text=words(500))], ids=lambda block: block.type
)
def test_the_models_own_words_are_never_previewed(block: Block) -> None:
    """What the model said or thought stays whole, and so do headers."""
    assert not can_preview(item_of(block), 400)


def test_a_block_of_the_previews_own_size_is_not_previewed() -> None:
    """A preview that saves nothing is not made."""
    assert not can_preview(item_of(result("a", 400)), 400)
    assert can_preview(item_of(result("a", 401)), 400)


def test_what_is_hidden_or_redacted_is_not_previewed_again() -> None:
    """A decision about a block stands."""
    fold = fold_of(result("a", 500), result("b", 500), result("d", 500))
    apply(fold, 5, BlocksHidden(reason="spill", blocks=(Replacement(version=2, text="x", tokens=1),)))
    apply(fold, 6, BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=3),)))
    apply(fold, 7, BlockRedacted(version=4))
    assert [can_preview(item, 400) for item in fold.window.items] == [False, False, False]


def test_a_preview_shows_head_and_tail_and_says_where_the_rest_is() -> None:
    """It fits its cap, keeps more of the head than of the tail, names the full size and ends no path early."""
    item = item_of(result("a", text=lines(8_000)))
    replacement = preview(item, 400)
    assert replacement.tokens == COUNTER.count(replacement.text) <= 400
    head, rest = replacement.text.split("\n[… preview: ")
    frame, tail = rest.split(" …]\n")
    assert item.block.text.startswith(head)
    assert item.block.text.endswith(tail)
    assert len(head) > len(tail) > 200
    assert "8000 tokens" in frame
    assert frame.endswith("; all of it: @152")


def test_a_preview_counts_the_pictures_that_it_leaves_out() -> None:
    """Data is not shown in a preview, so its pictures are told."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    replacement = preview(item_of(result("a", 500, data=[picture, picture])), 400)
    assert "2 pictures and the middle" in replacement.text


def test_a_small_cap_still_leaves_the_address() -> None:
    """Where the frame alone takes the cap, the address is shown all the same."""
    replacement = preview(item_of(result("a", 500)), 50)
    assert "@152" in replacement.text


def test_the_longest_arguments_are_shortened_and_the_rest_stays() -> None:
    """The result is a JSON object with the same keys; what was cut says so with the address."""
    item = item_of(
        call("w", "write", arguments={"path": "src/a.py", "content": words(5_000), "mode": 420, "flags": ["x"]})
    )
    replacement = preview(item, 400)
    arguments = replacement.arguments
    assert arguments is not None
    assert set(arguments) == {"path", "content", "mode", "flags"}
    assert (arguments["path"], arguments["mode"], arguments["flags"]) == ("src/a.py", 420, ["x"])
    assert str(arguments["content"]).endswith("[… left out; all arguments: @152]")
    assert COUNTER.count(f"write{canonical_json(arguments)}") == replacement.tokens <= 400


def test_a_nested_argument_is_shortened_as_text() -> None:
    """A long list or object becomes the beginning of its JSON, inside an object that still parses."""
    item = item_of(call("e", "edit", arguments={"edits": [{"old": words(300), "new": words(300)}] * 10}))
    replacement = preview(item, 400)
    assert replacement.arguments is not None
    assert str(replacement.arguments["edits"]).startswith('[{"new":"abc abc')
    assert json.loads(canonical_json(replacement.arguments)) == replacement.arguments


def test_an_object_of_very_many_small_values_keeps_its_beginning_and_its_address() -> None:
    """Where shortening values is not enough, the object is replaced by a preview of its JSON."""
    item = item_of(call("m", "many", arguments={f"key_{n:04d}": n for n in range(2_000)}))
    replacement = preview(item, 400)
    assert replacement.arguments is not None
    assert set(replacement.arguments) == {"_preview", "_all"}
    assert str(replacement.arguments["_preview"]).startswith('{"key_0000":0')
    assert "@152" in str(replacement.arguments["_all"])
    assert replacement.tokens <= 400


def test_raw_arguments_become_an_object_with_their_beginning() -> None:
    """What the model wrote as broken JSON is shown as a JSON object all the same."""
    item = item_of(call("r", "run", arguments='{"content": "' + words(5_000)))
    replacement = preview(item, 400)
    assert replacement.arguments is not None
    assert str(replacement.arguments["_preview"]).startswith('{"content": "abc')
    assert replacement.tokens <= 400


def test_where_nothing_can_be_read_back_a_preview_promises_nothing() -> None:
    """A list of messages has no log behind it."""
    text = preview(item_of(result("a", text=lines(8_000))), 400, address="").text
    assert "\n[… preview: the middle of 8000 tokens left out …]\n" in text
    arguments = preview(item_of(call("w", "write", arguments={"content": words(5_000)})), 400, address="").arguments
    assert arguments is not None
    assert str(arguments["content"]).endswith("[… left out]")
