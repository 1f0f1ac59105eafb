"""The one error tree: facts as attributes, the cure in the message."""

from __future__ import annotations

import inspect

import pytest

from timeline import errors
from timeline.errors import (
    BlockNotFound,
    BudgetImpossible,
    CompactionRefused,
    ContextOverflow,
    ConversationNotFound,
    InvalidBlock,
    MissingExtra,
    StageNotFound,
    SummarizerFailed,
    TimelineError,
    UnknownResponse,
    VersionConflict,
)
from timeline.ports import Expected
from timeline.wire.responses import read_response

ALL = [value for _, value in inspect.getmembers(errors, inspect.isclass) if value.__module__ == errors.__name__]


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_is_in_the_one_tree_and_in_its_picture(error: type[Exception]) -> None:
    """One ``except`` catches all that the library raises on purpose; the module's docstring draws each of them."""
    assert issubclass(error, TimelineError)
    assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (InvalidBlock("text", "is no text"), ValueError),
        (BlockNotFound("c", "ar:t.user.prompt"), LookupError),
        (ConversationNotFound("c"), LookupError),
        (MissingExtra("toktok-rs", "fast"), ImportError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_where_a_builtin_says_the_same_the_error_is_one(error: Exception, builtin: type[Exception]) -> None:
    """Callers who catch the builtin are served too."""
    assert isinstance(error, builtin)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (VersionConflict("c", 3, 5), ["'c'", "version 5, not 3", "append again"]),
        (VersionConflict("c", Expected.NO_STREAM, 5), ["'c'", "exists already, at version 5", "another id"]),
        (VersionConflict("c", Expected.STREAM_EXISTS, 0), ["'c'", "does not exist", "begin it"]),
        (
            CompactionRefused("no_progress", {"would_free": 3}),
            ["no_progress", "would_free 3", "unchanged", "has grown"],
        ),
        (CompactionRefused("nothing_to_cover", {"groups": 1}), ["nothing_to_cover", "groups 1", "try again after"]),
        (
            ContextOverflow({"total": 9, "limit": 5}, [("ar:t.user.prompt", 8)]),
            ["9", "5", "ar:t.user.prompt (8)", "Raise"],
        ),
        (BudgetImpossible({"fixed": 9, "limit": 5}), ["9 of 5", "Raise max_tokens"]),
        (SummarizerFailed(["a: timeout", "b: empty"]), ["a: timeout; b: empty", "fix the summarizer"]),
        (MissingExtra("toktok-rs", "fast"), ["pip install 'timeline-engine[fast]'"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_message_says_what_happened_and_what_to_do(error: Exception, said: list[str]) -> None:
    """In one text, without the traceback."""
    for part in said:
        assert part in str(error)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "error",
    [
        BlockNotFound("c", "x" * 1_000_000),
        ConversationNotFound("x" * 1_000_000),
        StageNotFound("c", "x" * 1_000_000, []),
    ],
)
def test_a_whole_text_in_place_of_a_name_is_not_repeated_whole(error: TimelineError) -> None:
    """A message goes into logs; the attribute keeps the value."""
    assert len(str(error)) < 1_000
    assert "(1,000,000 characters)" in str(error)


def test_a_reply_with_a_whole_text_for_a_key_is_not_repeated_whole() -> None:
    """The keys of what is no reply are named, and cut."""
    with pytest.raises(UnknownResponse) as caught:
        read_response({"x" * 1_000_000: 1}, unnamed="a")
    assert len(str(caught.value)) < 5_000
