"""The user's first message: what it is made of, and where it ends."""

from __future__ import annotations

from timeline.blocks import CONTINUES_KEY, AssistantCompletion, Attachment, Block, Note, UserPrompt
from timeline.log.first_message import FirstMessage

PART = {CONTINUES_KEY: True}


def said(text: str, turn_id: str = "t1", **fields: object) -> UserPrompt:
    """Return a prompt of a turn."""
    return UserPrompt.model_validate({"text": text, "turn_id": turn_id, **fields})


def taken(*blocks: Block) -> FirstMessage:
    """Return the first message of blocks."""
    message = FirstMessage()
    for version, block in enumerate(blocks, start=2):
        message.take(version, block)
    return message


def test_it_is_all_prompts_of_the_message() -> None:
    """A picture between them is a part, too, and says nothing."""
    picture = Attachment(turn_id="t1", meta=PART)
    message = taken(Note(text="n"), said(" "), said("rules", meta=PART), picture, said("task", meta=PART))
    assert (message.text, message.versions, message.is_over) == ("rules\n\ntask", (4, 6), False)


def test_it_ends_before_the_first_block_that_is_no_part_of_it() -> None:
    """An answer, another message, and a further part of a message of another turn."""
    for behind in (AssistantCompletion(text="a", turn_id="t1"), said("more"), said("more", "t2", meta=PART)):
        message = taken(said("task"), behind, said("late", meta=PART))
        assert (message.text, message.is_over) == ("task", True)


def test_without_words_there_is_none() -> None:
    """A prompt of a picture alone is no task."""
    assert taken().text is None
    assert taken(said(" "), AssistantCompletion(text="a")).text is None
