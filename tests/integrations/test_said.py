"""Which of a framework's own messages a context goes out with."""

from __future__ import annotations

from tests.scenes import answer, call, prompt, result
from tests.wire import entries as told
from tests.wire.entries import PICTURE
from timeline.blocks import Attachment, CustomBlock, Reasoning, UserPrompt
from timeline.integrations.said import Prompted, block_says, originals, said_in
from timeline.wire.groups import Response
from timeline.wire.neutral import Entry, NeutralContext


def test_a_prompt_and_its_attachments_are_one_message() -> None:
    """A turn begins with one message, however many parts it has; the next turn's prompt is another."""
    first = told.prompt("look", path="ar:turn_1.user.prompt")
    picture = Entry(path="fi:turn_1.a", type="user.attachment", role="user", data=PICTURE)
    second = told.prompt("and?", path="ar:turn_2.user.prompt")
    items = list(said_in(NeutralContext(entries=(first, picture, second, told.answer("It is red.")))))
    assert [item.entries for item in items if isinstance(item, Prompted)] == [(first, picture), (second,)]
    assert isinstance(items[-1], Response)


def test_what_no_context_shows_says_nothing() -> None:
    """An empty thought, and a part that only its provider understands."""
    hidden = [CustomBlock(type="assistant.part", author="assistant", data={"type": "search"}), Reasoning()]
    assert block_says([*hidden, answer(3)]) == block_says([answer(3)])
    assert len(block_says([call("a"), result("a"), Attachment(data=PICTURE)])) == 3


def test_the_newer_one_of_two_equal_messages_is_meant() -> None:
    """A context is the end of a conversation."""
    yes, no, long = (block_says([UserPrompt(text=text)]) for text in ("yes", "no", "long"))
    assert originals([yes, no], [yes, long, yes, no]) == [2, 3]


def test_a_message_that_nobody_gave_has_no_original() -> None:
    """Neither a summary, nor a message that says nothing of the caller's, takes the place of another."""
    yes, summary = block_says([prompt(3)]), block_says([UserPrompt(text="what was before")])
    assert originals([summary, (), yes], [yes]) == [None, None, 0]
    assert originals([yes, yes], [yes]) == [None, 0]


def test_a_dropped_message_does_not_take_the_place_of_an_earlier_one_that_says_the_same() -> None:
    """A context has what the application dropped; what stands in front of that is sent as the framework has it."""
    yes, no, long = (block_says([UserPrompt(text=text)]) for text in ("yes", "no", "long"))
    assert originals([yes, no, yes, long], [yes, no, long]) == [0, 1, None, 2]
