from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.importers.session import blocks, kinds
from timeline.blocks import AssistantCompletion, Reasoning, UserPrompt
from timeline.errors import ImportFailed
from timeline.events import ModelCalled
from timeline.importers import Recording, read_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

BEGINS = """
# aider chat started at 2026-03-04 09:08:07

> You can skip this check with --no-gitignore  
> /home/me/bin/aider --message Build cards.
      Small ones.  
> Aider v0.86.2  
> Main model: gpt-4o with architect edit format  
> Git repo: .git with 198 files  
"""  # noqa: W291  a line of aider ends with two spaces
TOKENS = "> Tokens: 12k sent, 3.1k cache write, 1.2k cache hit, 742 received. Cost: $0.01 message, $0.02 session.  \n"


def own(*lines: str, mark: str = ">") -> str:
    """Return lines as aider writes them, with a blank line before them."""
    return "\n" + "".join(f"{mark} {line}  \n" for line in lines)


def asked(*lines: str) -> str:
    """Return a prompt as aider writes it."""
    return own(*lines, mark="####")


def answered(text: str) -> str:
    """Return an answer as aider writes it."""
    return f"\n{text}\n\n"


def read(folder: Path, *parts: str) -> list[Recording]:
    """Read a history."""
    file = folder / ".aider.chat.history.md"
    file.write_text("".join(parts), encoding="utf-8")
    return read_recording(file)


def prompts(recording: Recording) -> list[str]:
    """Return what the user asked."""
    return [block.text for block in blocks(recording) if isinstance(block, UserPrompt)]


def answers(recording: Recording) -> list[str]:
    """Return what the model said."""
    return [block.text for block in blocks(recording) if isinstance(block, AssistantCompletion)]


def test_a_prompt_opens_a_turn_and_its_answer_has_model_and_tokens(tmp_path: Path) -> None:
    """Aider rounds its figures, and counts what was cached as sent."""
    [recording] = read(tmp_path, BEGINS, asked("Build cards.", "", "  Small ones."), answered("Done."), TOKENS)
    assert (recording.id, recording.title) == ("aider.chat.history-20260304-090807", "Build cards.")
    assert kinds(recording) == ["user.prompt", "assistant.completion", "ModelCalled"]
    assert prompts(recording) == ["Build cards.\n\n  Small ones."]
    [called] = [event.payload for event in recording.events if isinstance(event.payload, ModelCalled)]
    usage = Usage(input_tokens=7700, output_tokens=742, cache_read_tokens=1200, cache_write_5m_tokens=3100)
    assert (called.model, called.usage) == ("gpt-4o", usage)


def test_headings_and_quotations_of_an_answer_stay_in_it(tmp_path: Path) -> None:
    """They have the marks of a prompt and of a notice, but not their line break."""
    said = "#### Plan\n\n> as you said\n\ncards.py\n<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE"
    [recording] = read(tmp_path, BEGINS, asked("Build cards."), answered(said), own("Applied edit to cards.py"))
    assert answers(recording) == [said]


def test_a_question_of_a_command_is_asked_once(tmp_path: Path) -> None:
    """Newer versions repeat it as a prompt, older ones do not; other commands ask the model nothing."""
    [recording] = read(
        tmp_path,
        BEGINS,
        asked("/add cards.py", "  deck.py"),
        own("Added cards.py to the chat"),
        asked("/ask Why red?"),
        asked("Why red?"),
        answered("It is warm."),
        asked("/ask Why not blue?"),
        answered("It is cold."),
        asked("/commit"),
    )
    assert prompts(recording) == ["Why red?", "Why not blue?"]
    assert answers(recording) == ["It is warm.", "It is cold."]


def test_an_answer_behind_a_question_of_aider_is_a_response_of_its_own(tmp_path: Path) -> None:
    """The model is called again once a file was added."""
    parts = (
        asked("Build."),
        answered("I need it."),
        TOKENS,
        own("deck.py", "Add file? (Y)es/(N)o [Yes]: y"),
        answered("Built."),
    )
    [recording] = read(tmp_path, BEGINS, *parts)
    assert kinds(recording) == [
        "user.prompt",
        "assistant.completion",
        "ModelCalled",
        "assistant.completion",
        "ModelCalled",
    ]


def test_a_notice_of_several_lines_is_no_answer(tmp_path: Path) -> None:
    """Its last line has the line break."""
    [recording] = read(tmp_path, BEGINS, asked("Build."), "> litellm.NotFoundError: no such model\nask another  \n")
    assert kinds(recording) == ["user.prompt"]


def test_thoughts_in_an_answer_are_thoughts(tmp_path: Path) -> None:
    """Aider writes them between tags of its own."""
    tag = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b"
    [recording] = read(tmp_path, BEGINS, asked("Build."), answered(f"<{tag}>\n\nHm.\n\n</{tag}>\n\nBuilt."))
    assert [block.text for block in blocks(recording) if isinstance(block, Reasoning)] == ["Hm."]
    assert answers(recording) == ["Built."]


def test_each_session_with_a_prompt_is_a_conversation_the_newest_first(tmp_path: Path) -> None:
    """A session that ended before anything was asked is none; two may begin in one second."""
    later = BEGINS.replace("2026-03-04", "2026-03-05")
    found = read(tmp_path, BEGINS, asked("One."), later, asked("/exit"), later, asked("Two."))
    assert [(recording.id[-17:], prompts(recording)) for recording in found] == [
        ("20260305-090807-2", ["Two."]),
        ("y-20260304-090807", ["One."]),
    ]


def test_a_history_that_has_grown_keeps_the_keys_of_its_messages(tmp_path: Path) -> None:
    """So that importing it again adds what is new."""
    [before] = read(tmp_path, BEGINS, asked("One."), answered("1."), TOKENS)
    [after] = read(tmp_path, BEGINS, asked("One."), answered("1."), TOKENS, asked("Two."))
    assert after.events[: len(before.events)] == before.events
    assert len(after.events) == len(before.events) + 1


def test_a_history_without_line_breaks_is_read_by_its_marks_alone(tmp_path: Path) -> None:
    """Tools that tidy a repository take the spaces at the ends of lines away."""
    parts = BEGINS, asked("Build."), answered("Built."), TOKENS, asked("Test.")
    [recording] = read(tmp_path, *(part.replace("  \n", "\n") for part in parts))
    assert prompts(recording) == ["Build.", "Test."]
    assert answers(recording) == ["Built."]


def test_a_history_whose_beginning_is_damaged_has_nothing_in_it(tmp_path: Path) -> None:
    """No time says when its session began."""
    with pytest.raises(ImportFailed, match="no message is in it"):
        read(tmp_path, "# aider chat started at some time\n")


def test_what_a_command_put_out_is_no_answer_across_its_blank_lines(tmp_path: Path) -> None:
    """Aider marks the first line of an output, and ends the last one with its spaces."""
    output = "> == test session starts ==\ncollected 2 items\n\ntest_cards.py .F\n\n1 failed, 1 passed  \n"
    [recording] = read(tmp_path, BEGINS, asked("Build cards."), answered("Done."), asked("/test"), output, TOKENS)
    assert answers(recording) == ["Done."]


def test_shell_commands_that_are_padded_to_one_width_are_no_answer(tmp_path: Path) -> None:
    """Aider asks whether to run a model's commands, and pads them: a line in the middle may end as a notice does."""
    suggested = "> date              \nmake all          \nopen out/index.htm  \n> Run shell commands? [Yes]: n  \n"
    [recording] = read(tmp_path, BEGINS, asked("Build cards."), answered("Run these."), suggested)
    assert answers(recording) == ["Run these."]


def test_an_answer_that_begins_with_a_quotation_is_the_models(tmp_path: Path) -> None:
    """A prompt and its answer have a blank line between them; aider's own lines stand right below the prompt."""
    quoted = "> Build cards.\n\nWhich ones?"
    [recording] = read(tmp_path, BEGINS, asked("Build cards."), answered(quoted), asked("All."))
    assert answers(recording) == [quoted]
    assert prompts(recording) == ["Build cards.", "All."]


def test_lines_before_the_first_session_do_not_hide_the_history(tmp_path: Path) -> None:
    """They may be an editor's, or the rest of a session whose beginning was cut off."""
    mode = "-*- mode: fundamental -*-\n"
    [recording] = read(tmp_path, mode, BEGINS, asked("Build cards."), answered("Done."))
    assert (recording.title, recording.report.counts["missing_time"]) == ("Build cards.", 1)
    [newest, rest] = read(tmp_path, asked("And now?"), answered("Ready."), BEGINS, asked("Build cards."))
    assert (newest.title, rest.title) == ("Build cards.", "And now?")
    assert rest.id == "aider.chat.history-19700101-000000"
