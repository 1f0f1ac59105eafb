"""Of which prompts a hide leaves something unsaid, asked again and again as a loop of dry runs does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import window_of
from timeline.blocks import UserPrompt
from timeline.events import Replacement
from timeline.planning.hidden_requests import ReadPrompts, left_unsaid

WISHES = ("Use tabs.", "Never push to main.", "Add an export, please. It should be fast.")


def test_a_prompt_is_unsaid_until_its_replacement_says_it_all() -> None:
    """What was read of another replacement of the same block counts for nothing."""
    items, prompts = window_of(UserPrompt(text=WISHES[1])).items, ReadPrompts()
    version = items[0].version
    for text, unsaid in (("[a prompt]", (version,)), (WISHES[1], ()), ("[a prompt]", (version,))):
        assert left_unsaid(items, [Replacement(version=version, text=text)], prompts) == unsaid


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(WISHES), min_size=1, max_size=3),
            st.dictionaries(st.integers(0, 2), st.sampled_from((*WISHES, "[a prompt]"))),
        ),
        max_size=6,
    )
)
def test_what_was_read_before_changes_no_answer(asked: list[tuple[list[str], dict[int, str]]]) -> None:
    """Other prompts may have the same versions, as behind an undo, and other replacements the same prompts."""
    prompts = ReadPrompts()
    for texts, shown in asked:
        items = window_of(*(UserPrompt(text=text) for text in texts)).items
        replacements = [Replacement(version=items[n].version, text=text) for n, text in shown.items() if n < len(items)]
        assert left_unsaid(items, replacements, prompts) == left_unsaid(items, replacements)
