"""Lines of the log: what others said, an id or an error, makes no second line and steers no terminal."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from tests.scenes import FULL, Mute, opened, small_policy
from timeline.display.logs import logger_of
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    import pytest

FORGED: Final = "refused\nCRITICAL timeline: \x1b[31mforged\r\u202e"


class Unreadable(Exception):
    """An error of an application whose message fails."""

    def __str__(self) -> str:
        raise ValueError("no message")


async def test_a_line_about_a_summary_that_failed_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """A provider's error may quote a conversation, and an id is the application's."""
    timeline = await opened(
        MemoryStore(), FORGED, policy=small_policy(max_tokens=4_000), summarizer=Mute(problem=RuntimeError(FORGED))
    )
    await timeline.append(*FULL)
    with caplog.at_level(logging.INFO, "timeline"):
        await timeline.compact()
    warned, done = caplog.messages
    assert "RuntimeError: refused␊CRITICAL timeline: ␛[31mforged␍\ufffd" in warned
    assert not {"\n", "\r", "\x1b", "\u202e"} & {*warned, *done}


def test_numbers_and_errors_of_every_class_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """A line that is logged never fails, and keeps the form of its figures."""
    logger = logger_of("timeline.test")
    logger.warning("%d tokens, %.1f s, %s, %s", 7, 0.5, OSError("a\nb"), Unreadable())
    logger_of("timeline.test").warning("nothing named\n")
    assert caplog.messages == ["7 tokens, 0.5 s, a␊b, its message cannot be read (ValueError)", "nothing named\n"]
