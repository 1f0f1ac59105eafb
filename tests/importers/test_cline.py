from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.importers.session import blocks, kinds, read_document, said, use
from timeline.blocks import Attachment, ToolCall, ToolResult, UserPrompt
from timeline.events import ModelCalled
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.importers import Recording

Fields = dict[str, Any]

BEGAN = 1_777_000_000_000
STATE = said("<environment_details>\n# Current Mode\nACT MODE\n</environment_details>")
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


def user(second: int, *parts: Fields) -> Fields:
    """Return a message in the user's role."""
    return {"role": "user", "content": [*parts, STATE], "ts": BEGAN + second * 1000}


def answer(second: int, *parts: Fields, **tokens: int) -> Fields:
    """Return a message of the model."""
    added = {"modelInfo": {"modelId": "claude-sonnet-4-5", "providerId": "anthropic", "mode": "act"}}
    figures = {"metrics": {"tokens": {"prompt": 10, "completion": 20, "cached": 0, **tokens}}}
    return {"role": "assistant", "content": list(parts), "ts": BEGAN + second * 1000, **added, **figures}


def read(folder: Path, *messages: Fields) -> Recording:
    """Read the history of a task."""
    return read_document(folder, list(messages), "api_conversation_history.json")


def results(recording: Recording) -> list[ToolResult]:
    """Return the results of a recording."""
    return [block for block in blocks(recording) if isinstance(block, ToolResult)]


def test_texts_under_the_name_of_a_tool_are_results_of_the_calls_in_their_order(tmp_path: Path) -> None:
    """Cline answers calls in texts; two of one tool are answered in turn."""
    recording = read(
        tmp_path,
        user(0, said("<task>\nBuild flashcards.\n</task>")),
        answer(5, use("c1", "read_file", path="a[1].py"), use("c2", "read_file", path="b.py")),
        user(7, said("[read_file for 'a[1].py'] Result:\na = 1"), said("[read_file for 'b.py'] Result:\nb = 2")),
    )
    assert kinds(recording) == [
        "user.prompt",
        "client.message",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "client.message",
    ]
    assert [(result.call_id, result.text) for result in results(recording)] == [("c1", "a = 1"), ("c2", "b = 2")]
    assert (recording.id, recording.title) == (f"cline-{BEGAN}", "Build flashcards.")
    assert not recording.report.counts


def test_a_result_under_another_name_answers_the_open_call(tmp_path: Path) -> None:
    """A tool is not always called what the client writes over its result."""
    recording = read(
        tmp_path,
        user(0, said("<task>\nLook.\n</task>")),
        answer(1, use("c1", "use_subagents", prompt_1="Look.")),
        user(2, said("[subagents] Result:\nTotal: 1")),
    )
    assert [(result.call_id, result.text) for result in results(recording)] == [("c1", "Total: 1")]


def test_a_call_that_is_written_into_a_text_is_a_call(tmp_path: Path) -> None:
    """The message behind it names its tool, and has the result as a part of its own."""
    written = "I run it.\n\n<execute_command>\n<command>make cards</command>\n</execute_command>"
    recording = read(
        tmp_path,
        user(0, said("<task>\nBuild.\n</task>")),
        answer(1, said(written)),
        user(2, said("[execute_command for 'make cards'] Result:"), said("Command executed.\nOutput:\nok")),
    )
    call = next(block for block in blocks(recording) if isinstance(block, ToolCall))
    assert (call.name, call.arguments) == ("execute_command", {"command": "make cards"})
    assert [(result.call_id, result.text) for result in results(recording)] == [
        (call.call_id, "Command executed.\nOutput:\nok")
    ]
    assert "I run it." in [block.text for block in blocks(recording)]


def test_what_the_user_says_in_a_result_opens_a_turn(tmp_path: Path) -> None:
    """Feedback on what was done is the next request; the client's words around it are the result."""
    recording = read(
        tmp_path,
        user(0, said("<task>\nBuild.\n</task>")),
        answer(1, use("c1", "attempt_completion", result="Built.")),
        user(
            2,
            said(
                "[attempt_completion] Result:\nThe user has provided feedback.\n<feedback>\nBlue, please.\n</feedback>"
            ),
        ),
        answer(3, use("c2", "plan_mode_respond", response="A plan.")),
        user(4, said("[plan_mode_respond] Result:\n<user_message>\nGood.\n</user_message>")),
    )
    prompts = [(b.turn_id, b.text) for b in blocks(recording) if isinstance(b, UserPrompt)]
    assert prompts == [("turn_1", "Build."), ("turn_2", "Blue, please."), ("turn_3", "Good.")]
    assert [result.text for result in results(recording)] == ["The user has provided feedback.", ""]


def test_tags_in_a_file_that_was_read_are_no_words_of_the_user(tmp_path: Path) -> None:
    """A result may end like something that the user says."""
    page = "<form>\n<answer>\n42\n</answer>"
    recording = read(
        tmp_path,
        user(0, said("<task>\nRead.\n</task>")),
        answer(1, use("c1", "read_file", path="form.html")),
        user(2, said(f"[read_file for 'form.html'] Result:\n{page}")),
    )
    assert [result.text for result in results(recording)] == [page]


def test_pictures_of_a_result_open_no_turn(tmp_path: Path) -> None:
    """A screenshot comes beside the result, in the user's role; one in a prompt is the user's."""
    recording = read(
        tmp_path,
        user(0, said("<task>\nLook.\n</task>"), PICTURE),
        answer(1, use("c1", "browser_action", action="launch")),
        user(2, said("[browser_action for 'launch'] Result:\nLaunched."), PICTURE),
    )
    pictures = [block for block in blocks(recording) if isinstance(block, Attachment)]
    assert [(picture.author, picture.turn_id) for picture in pictures] == [("user", "turn_1"), ("client", "turn_1")]


def test_times_and_usage_are_those_of_the_messages(tmp_path: Path) -> None:
    """What is cached counts as read: the file does not say what of it was written."""
    recording = read(tmp_path, user(0, said("<task>\nGo.\n</task>")), answer(5, said("Done."), cached=9_573))
    [called] = [event for event in recording.events if isinstance(event.payload, ModelCalled)]
    assert called.payload == ModelCalled(
        model="claude-sonnet-4-5",
        response_id=f"message-{BEGAN + 5000}",
        usage=Usage(input_tokens=10, output_tokens=20, cache_read_tokens=9_573),
    )
    assert int(called.at.timestamp() * 1000) == BEGAN + 5000


def test_a_task_of_an_older_version_has_the_order_of_its_messages_for_times(tmp_path: Path) -> None:
    """Its messages have no times."""
    messages = [user(0, said("<task>\nGo.\n</task>")), answer(5, said("Done."))]
    for message in messages:
        del message["ts"]
    recording = read(tmp_path, *messages)
    assert recording.id.startswith("api_conversation_history-")
    assert recording.report.counts["missing_time"] == 1
    assert [event.at.second for event in recording.events] == [1, 1, 2, 2]
