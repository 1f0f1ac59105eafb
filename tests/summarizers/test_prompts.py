"""What the prompts of the published designs say besides their headings (seeds 001 and 004)."""

from __future__ import annotations

import pytest

from timeline.summarizers.prompts import load_prompt


def said(version: str) -> str:
    """Return a prompt's text on one line."""
    return " ".join(load_prompt(version).split())


@pytest.mark.shows("001-35")
def test_sections_replace_the_messages() -> None:
    """The model knows what becomes of its answer, and how much to say."""
    prompt = said("sections.v1")
    assert "Your summary replaces the messages below" in prompt
    assert "everything that is needed to go on with the task" in prompt
    assert "thorough but concise" in prompt


@pytest.mark.shows("001-29", "R-001-11")
def test_sections_are_dense_and_exact_without_code_blocks() -> None:
    """Tables and bullets, exact paths, no code, the previous summary integrated."""
    prompt = said("sections.v1")
    for constraint in (
        "Tables and bullet points",
        "Exact file paths",
        "No code blocks, unless one is absolutely critical",
    ):
        assert constraint in prompt
    assert "integrate its content and do not repeat it" in prompt
    assert "- [ ]" in prompt
    assert "leave this section out unless there were errors" in prompt


@pytest.mark.shows("004-67", "004-69")
def test_what_continues_the_conversation_has_nothing_else() -> None:
    """The reader has no access to the messages; the request ends by asking for what it goes on from."""
    prompt = said("continuation.v1")
    assert "Whoever continues it has no access to the messages below" in prompt
    assert "actionable and specific" in prompt
    assert prompt.endswith("Provide the summary to continue from.")


@pytest.mark.shows("004-62")
@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("What Was Accomplished", ("created", "changed", "written", "uploaded", "id")),
        ("Current State", ("being worked on now", "trying to achieve", "partly done")),
        ("User Preferences (Critical)", ("content and style choices", "explicit wish", "said no to")),
        ("What Comes Next", ("original request", "follow-ups", "unresolved questions")),
        ("Technical Context", ("ids", "error states", "in progress")),
    ],
)
def test_each_of_the_five_headings_says_what_belongs_under_it(heading: str, words: tuple[str, ...]) -> None:
    """What the next context needs under each of them."""
    section = load_prompt("continuation.v1").partition(f"## {heading}\n")[2].partition("\n\n")[0]
    text = " ".join(section.split())
    assert [word for word in words if word not in text] == []
