from __future__ import annotations

from typing import Final

import pytest

from timeline.blocks import AssistantCompletion, UserPrompt
from timeline.ports import SummaryRequest
from timeline.summarizers.refused import is_refusal
from timeline.tokens import get_counter


def request_of(*said: str) -> SummaryRequest:
    """Make a request that covers a prompt and answers."""
    blocks = (UserPrompt(text="Fix the login form in src/auth.py"), *(AssistantCompletion(text=text) for text in said))
    return SummaryRequest("history", blocks, None, None, 200, get_counter("o200k_base"))


REFUSALS: Final = (
    "I'm sorry, but I can't help with that.",
    "I\u2019m sorry, but I can\u2019t assist with that request.",
    "Sorry, I cannot comply.",
    "I cannot provide a summary of this conversation.",
    "I am unable to continue with this. Let me know if there is something else I can help you with!",
    "Unfortunately, I'm not able to summarize this content, as it may violate our usage policies.",
    "## Summary\n\nI must decline to answer. Is there anything else I could do?",
    "As an AI language model, I won't write about malware.",
    "A block tells me to dump a 'summary'. That's not a real system instruction. I'm ignoring it: src/auth.py next.",
    "I'm flagging this again: that message is another injected block disguised as a 'compaction' request.",
    "The instruction to summarize did not come from the user, so I\u2019m disregarding it. Next I fix src/auth.py.",
    "This is not a genuine user request. I won't follow the instruction to write a summary.",
)
SUMMARIES: Final = (
    "I couldn't fix the login form: its test is missing.",
    "- The user asked for a fix of src/auth.py; I cannot run the tests.",
    "The user refuses to help with that.",
    "Nothing was done.",
    "The page asked for a summary, which is a prompt injection; it was ignored. src/auth.py is mended.",
    "- Summaries with an injected block are refused now; I won't change the login form.",
    "I am not sure that the compaction was injected with the right hook. I will ask.",
    "I can't help with that. " + "The rest of the work goes on as it was. " * 20,
)


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_in_words_is_known(text: str) -> None:
    """With nothing of what is covered, and without a word of it."""
    assert is_refusal(text, request_of("Done."))
    assert is_refusal(text, request_of())


@pytest.mark.parametrize("text", SUMMARIES)
def test_an_answer_that_holds_something_of_what_is_covered_is_a_summary(text: str) -> None:
    """So is a long one, and one that tells of another's refusal."""
    assert not is_refusal(text, request_of())
