"""What the extractive summarizer answers in the shapes of the published designs (seeds 000, 001 and 004)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.summarizers.test_extractive import HOSTILE, JUNK
from timeline.blocks import AssistantCompletion, Block, ToolCall, ToolResult, UserPrompt
from timeline.ports import SummaryRequest
from timeline.summarizers.extractive import extract
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.ports import PromptName

CHAINED: Final = "This summary incorporates context from {} previous compaction rounds."
CAPS: Final[dict[PromptName, int]] = {"sections": 1_000, "continuation": 2_000, "bullets": 200}


def request(blocks: Sequence[Block], prompt: PromptName = "sections", **fields: Any) -> SummaryRequest:
    """Ask for a summary of a shape, with the cap of its preset."""
    plain = SummaryRequest("history", tuple(blocks), None, None, CAPS[prompt], get_counter("o200k_base"))
    return replace(plain, **{"prompt": prompt, "original_task": "Build a flashcard app", **fields})


def call(id_: str, name: str, /, **arguments: Any) -> ToolCall:
    """Return a call."""
    return ToolCall(call_id=id_, name=name, arguments=arguments)


def result(id_: str, text: str = "ok", **fields: Any) -> ToolResult:
    """Return its result."""
    return ToolResult(call_id=id_, text=text, **fields)


def headings(summary: str) -> list[str]:
    """Return the headings of a summary, in order."""
    return [line for line in summary.splitlines() if line.startswith("#")]


def under(summary: str, heading: str) -> list[str]:
    """Return the lines under a heading."""
    rest = summary.split(f"{heading}\n", 1)[1]
    return [line for line in rest.split("\n#", 1)[0].splitlines() if line]


FIRST: Final[tuple[Block, ...]] = (
    UserPrompt(text="Build a flashcard app"),
    call("a", "Write", file_path="src/db.ts"),
    result("a"),
    AssistantCompletion(text="Created src/db.ts with the schema of flashcards. We chose SQLite instead of a server."),
    call("b", "Bash", command="bun install"),
    result("b", "error: network down", exit_status=1),
    AssistantCompletion(text="The review command still needs to be written."),
)
SECOND: Final[tuple[Block, ...]] = (
    call("c", "Bash", command="bun install"),
    result("c"),
    call("d", "Edit", file_path="src/db.ts"),
    result("d"),
    call("e", "Write", file_path="src/sm2.ts"),
    result("e"),
    call("f", "Edit", file_path="src/lost.ts"),
    result("f", "no such file", is_error=True),
    AssistantCompletion(text="Added the SM-2 algorithm in src/sm2.ts. We decided to store the ease factor as a float."),
)


# Seed 001


@pytest.mark.shows("001-22", "001-23", "001-24", "001-58")
def test_the_sections_are_seed_001s() -> None:
    """Task verbatim, table, decisions, state, checklist; errors only where there were any."""
    summary = extract(request(FIRST))
    assert headings(summary) == [
        "### Original Task",
        "### Completed Work",
        "### Key Technical Decisions",
        "### Current State",
        "### Pending Work",
        "### Errors & Resolutions",
    ]
    assert under(summary, "### Original Task") == ["Build a flashcard app"]
    assert under(summary, "### Completed Work") == [
        "| File/Component | Action | Description |",
        "|----------------|--------|-------------|",
        "| src/db.ts | Created | Created src/db.ts with the schema of flashcards. |",
    ]
    assert under(summary, "### Key Technical Decisions") == ["- We chose SQLite instead of a server."]
    assert under(summary, "### Current State") == [
        "- Working on: Build a flashcard app",
        "- Last completed: Created src/db.ts with the schema of flashcards.",
    ]
    assert under(summary, "### Pending Work") == ["- [ ] The review command still needs to be written."]
    assert under(summary, "### Errors & Resolutions") == [
        "- Bash bun install (exit 1): error: network down → not resolved yet"
    ]


@pytest.mark.shows("001-41")
def test_without_any_prompt_the_task_is_unknown() -> None:
    """A log that nobody asked anything in says so (seed 001, extractOriginalTask)."""
    summary = extract(request([AssistantCompletion(text="Created src/db.ts.")], original_task=None))
    assert under(summary, "### Original Task") == ["Unknown task"]


@pytest.mark.shows("001-25", "R-001-11")
def test_without_errors_there_is_no_section_for_them() -> None:
    """Only if errors were met."""
    assert "Errors" not in extract(request(FIRST[:4]))


@pytest.mark.shows("001-25")
def test_an_error_that_was_overcome_has_its_resolution() -> None:
    """Written as error → resolution."""
    [told] = under(extract(request([*FIRST, *SECOND[:2]])), "### Errors & Resolutions")
    assert told == "- Bash bun install (exit 1): error: network down → the same call worked later"


@pytest.mark.shows("001-37", "R-001-14")
def test_the_first_round_incorporates_nothing_and_the_third_two() -> None:
    """The line is there from the second round on."""
    assert "incorporates" not in extract(request(FIRST))
    assert extract(request(FIRST, compaction_number=3)).endswith(CHAINED.format(2))


def test_the_next_round_integrates_the_summary_before_it_without_repeating_it() -> None:
    """One row a file with what was done since the beginning, all decisions, what is settled is settled."""
    before = extract(request(FIRST))
    summary = extract(request(SECOND, previous=before, compaction_number=2))
    assert under(summary, "### Completed Work")[2:] == [
        "| src/db.ts | Created | Created src/db.ts with the schema of flashcards. |",
        "| src/sm2.ts | Created | Added the SM-2 algorithm in src/sm2.ts. |",
    ]
    assert under(summary, "### Key Technical Decisions") == [
        "- We chose SQLite instead of a server.",
        "- We decided to store the ease factor as a float.",
    ]
    assert under(summary, "### Pending Work") == ["- [ ] The review command still needs to be written."]
    assert "network down" not in summary
    assert headings(summary).count("### Completed Work") == 1
    assert summary.count("incorporates context") == 1


def test_a_file_that_a_failed_call_was_to_change_is_in_no_row() -> None:
    """What did not happen is an error, not completed work."""
    summary = extract(request(SECOND))
    assert not any("src/lost.ts" in row for row in under(summary, "### Completed Work"))
    assert "src/lost.ts" in summary.split("### Errors & Resolutions")[1]


def test_a_file_that_was_there_before_is_modified() -> None:
    """Read first, then written: it was not created."""
    blocks = [call("r", "Read", file_path="a.py"), result("r"), call("w", "Write", file_path="a.py"), result("w")]
    assert under(extract(request(blocks)), "### Completed Work")[2] == "| a.py | Modified | by Write |"


@pytest.mark.parametrize("shape", ["sections", "continuation", "bullets", "generic"])
def test_a_file_whose_write_failed_is_in_no_list_of_changed_files(shape: PromptName) -> None:
    """It is a failure, as in the record; a write that worked, before or after, counts."""
    answer = AssistantCompletion(text="The review command still needs to be written.")
    blocks = [UserPrompt(text="Go"), call("w", "Write", file_path="lib/a.py"), result("w", is_error=True), answer]
    worked = [call("x", "Write", file_path="lib/a.py"), result("x")]
    for done, listed in ((blocks, False), ([*worked, *blocks], True), ([*blocks, *worked], True)):
        asked = replace(request(done, original_task="Go", max_tokens=2_000), prompt=shape)
        assert bool(_lists("lib/a.py", extract(asked))) is listed


def _lists(file: str, summary: str) -> list[str]:
    """Return the lines that list a file as changed: a row of the table, or a point about the file alone."""
    return [line for line in summary.splitlines() if line.startswith((f"| {file}", f"- File: {file}", f"- {file}"))]


SHAPES: Final[tuple[PromptName, ...]] = ("sections", "bullets")
PATCH: Final = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Delete File: b.py\n*** End Patch"


@pytest.mark.parametrize(
    ("made", "listed"),
    [
        (call("e", "apply_patch", input=PATCH), ["| a.py | Modified | by apply_patch |"]),
        (ToolCall(call_id="e", name="apply_patch", arguments=PATCH), ["| a.py | Modified | by apply_patch |"]),
        (call("e", "edit", filePath="a.py", oldString="x", newString="y"), ["| a.py | Modified | by edit |"]),
        (
            call("e", "str_replace_editor", command="insert", path="a.py"),
            ["| a.py | Modified | by str_replace_editor |"],
        ),
        (call("e", "str_replace_editor", command="view", path="a.py"), []),
        (call("e", "create_directory", path="lib"), []),
        (call("e", "insert_breakpoint", file="a.py", line=3), []),
    ],
)
def test_a_file_is_changed_where_the_facts_say_that_a_call_wrote_it(made: ToolCall, listed: list[str]) -> None:
    """An editor's view changes nothing, though "replace" is in its name; a patch names its files in its text."""
    answer = AssistantCompletion(text="The review command still needs to be written.")
    blocks = [UserPrompt(text="Go"), made, result("e"), answer]
    table, bullets = (extract(request(blocks, shape, original_task="Go")).splitlines() for shape in SHAPES)
    assert [line for line in table if line.startswith(("| a.py", "| lib"))] == listed
    assert [line for line in bullets if line.startswith("- File: ")] == ["- File: a.py"] * len(listed)


@pytest.mark.shows("001-21")
def test_the_task_is_kept_word_for_word_over_its_lines() -> None:
    """As the user wrote it; a line that could pose as a heading is quoted."""
    task = "Build a **flashcard** app:\n\n- SM-2\n## Pending Work\n| x |"
    told = extract(request(FIRST, original_task=task)).split("### Completed Work")[0]
    assert told.strip().endswith("Build a **flashcard** app:\n\n- SM-2\n> ## Pending Work\n> | x |")


def test_a_task_that_is_too_long_is_shortened_and_says_so() -> None:
    """A share of the cap at the most."""
    told = under(extract(request(FIRST, original_task="word " * 5_000)), "### Original Task")[0]
    assert told.endswith("…")
    assert get_counter("o200k_base").count(told) <= 300


def test_a_models_summary_of_these_sections_is_read_back() -> None:
    """Rows, decisions and what is pending are found by their headings."""
    before = (
        "### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n"
        "| package.json | Modified | Added drizzle-orm |\n"
        "\n### Key Technical Decisions\n- Using UUID for flashcard IDs\n"
        "\n### Pending Work\n- [ ] Review session CLI command\n"
    )
    summary = extract(request(SECOND[2:4], previous=before, compaction_number=2))
    assert "| package.json | Modified | Added drizzle-orm |" in under(summary, "### Completed Work")
    assert "- Using UUID for flashcard IDs" in under(summary, "### Key Technical Decisions")
    assert under(summary, "### Pending Work")[0] == "- [ ] Review session CLI command"


# Seed 004


@pytest.mark.shows("004-61", "004-62", "004-96", "R-004-15")
def test_a_summary_to_continue_from_has_seed_004s_five_headings() -> None:
    """Accomplished, state, the user's wishes and refusals, what is next, technical context."""
    blocks = [
        UserPrompt(text="I want the header of page_42 in blue. Do not use red anywhere."),
        AssistantCompletion(text="Updated page_42 to a blue header. The footer still needs to be done."),
        *FIRST[4:6],
    ]
    summary = extract(request(blocks, "continuation"))
    assert headings(summary) == [
        "## What Was Accomplished",
        "## Current State",
        "## User Preferences (Critical)",
        "## What Comes Next",
        "## Technical Context",
    ]
    assert "- Updated page_42 to a blue header." in under(summary, "## What Was Accomplished")
    assert "- The user's goal: Build a flashcard app" in under(summary, "## Current State")
    assert under(summary, "## User Preferences (Critical)") == [
        "- I want the header of page_42 in blue.",
        "- Rejected: Do not use red anywhere.",
    ]
    assert under(summary, "## What Comes Next") == ["- The footer still needs to be done."]
    assert under(summary, "## Technical Context") == ["- Error: Bash bun install (exit 1): error: network down"]


@pytest.mark.shows("004-63")
def test_the_next_summary_to_continue_from_keeps_what_was_wished_and_rejected() -> None:
    """Preferences, files and errors of the summary before are found under their headings again."""
    blocks = [UserPrompt(text="Never use red."), *FIRST]
    before = extract(request(blocks, "continuation"))
    summary = extract(request(SECOND[2:], "continuation", previous=before, compaction_number=2))
    assert "- Rejected: Never use red." in under(summary, "## User Preferences (Critical)")
    assert "- File: src/db.ts" in under(summary, "## What Was Accomplished")
    assert "- Error: Bash bun install (exit 1): error: network down" in under(summary, "## Technical Context")
    assert summary.count("Rejected:") == 1


# Seed 000


@pytest.mark.shows("000-30")
def test_a_discussion_becomes_three_to_five_bullets_with_indonesian_labels() -> None:
    """The labels are in the preset's language; what stands behind them is in the discussion's own words."""
    summary = extract(request(FIRST, "bullets", language="Indonesian", original_task=None))
    lines = summary.splitlines()
    assert 3 <= len(lines) <= 5
    assert all(line.startswith("- ") for line in lines)
    assert "- Topik: Build a flashcard app" in lines
    assert "- Keputusan: We chose SQLite instead of a server." in lines


@pytest.mark.shows("000-30")
@pytest.mark.parametrize(
    ("blocks", "bullets"),
    [
        ([UserPrompt(text="Tea"), AssistantCompletion(text="It rains. It snows. It thaws.")], 3),
        ([UserPrompt(text=f"Write chapter {name}") for name in ("one", "two", "three", "four", "five", "six")], 5),
    ],
    ids=["little", "much"],
)
def test_there_are_three_bullets_of_little_and_five_of_much(blocks: list[Block], bullets: int) -> None:
    """Sentences that say little fill the points up to three; of six tasks one has no place."""
    summary = extract(request(blocks, "bullets", language="Indonesian", original_task=None))
    assert len(summary.splitlines()) == bullets


@pytest.mark.shows("R-000-15")
def test_bullets_of_another_language_have_english_labels() -> None:
    """There are no others."""
    assert "- Topic: Build a flashcard app" in extract(request(FIRST, "bullets", language="French")).splitlines()


def test_the_next_bullets_integrate_those_before_without_doubling_labels() -> None:
    """Three to five again, an earlier decision among them."""
    before = extract(request(FIRST, "bullets", language="Indonesian", original_task=None))
    blocks = [UserPrompt(text="ok"), AssistantCompletion(text="Renamed the table to cards.")]
    summary = extract(request(blocks, "bullets", language="Indonesian", original_task=None, previous=before))
    assert 3 <= len(summary.splitlines()) <= 5
    assert "- Keputusan: We chose SQLite instead of a server." in summary.splitlines()
    assert "Keputusan: Keputusan:" not in summary


# All


@pytest.mark.parametrize("prompt", CAPS)
@pytest.mark.parametrize("text", HOSTILE)
def test_content_cannot_pose_as_structure_in_any_shape(text: str, prompt: PromptName) -> None:
    """What the conversation says adds no heading, no row and no role tag, not even as the task itself."""
    blocks = [UserPrompt(text=text), AssistantCompletion(text=text), result("x", text, is_error=True)]
    harmless = extract(request([UserPrompt(text="Fix it")], prompt))
    summary = extract(request(blocks, prompt, original_task=text, previous=text))
    assert set(headings(summary)) <= {*headings(harmless), "### Errors & Resolutions"}
    for tag in ("system>", "<|", "[INST]", "<<SYS", "system-reminder>", "system\uff1e"):
        assert tag not in summary


ROWS: Final = {"an open row": "|" + " " * 50_000, "rows": "| a | b | c |\n" * 5_000, "bars": "|" * 50_000}


@pytest.mark.parametrize("prompt", CAPS)
@pytest.mark.parametrize("text", [*JUNK.values(), *ROWS.values()], ids=[*JUNK, *ROWS])
def test_junk_is_borne_in_every_shape(text: str, prompt: PromptName) -> None:
    """Whatever a conversation, its task and its earlier summary hold, the cap is kept and something is said."""
    blocks = [
        UserPrompt(text=text),
        AssistantCompletion(text=text),
        call("a", "Write", file_path=text),
        result("a", text),
    ]
    summary = extract(request(blocks, prompt, original_task=text, previous=text, compaction_number=2))
    assert summary.strip()
    assert get_counter("o200k_base").count(summary) <= CAPS[prompt]


@pytest.mark.parametrize("prompt", CAPS)
def test_a_small_cap_is_kept_in_every_shape(prompt: PromptName) -> None:
    """Headings with nothing under them go first; something is always said."""
    for most in (1, 8, 20, 64, 120):
        summary = extract(request([*FIRST, *SECOND], prompt, max_tokens=most, compaction_number=2))
        assert summary.strip()
        assert get_counter("o200k_base").count(summary) <= most
