from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.importers.session import blocks, kinds
from tests.recorded import needs_recordings, recorded
from timeline import open_store, policies
from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult
from timeline.errors import ImportFailed
from timeline.events import ModelCalled
from timeline.importers import Recording, read_recording
from timeline.importers.gemini_cli import read_gemini_cli
from timeline.lab.simulate import simulate
from timeline.portable.recordings import import_recording
from timeline.usage import Usage

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = {"inlineData": {"mimeType": "image/png", "data": "aGk=", "displayName": "plan.png"}}
SENT_PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


class Chat:
    """Collects messages; each method adds one and returns it, so that a test may spoil it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.more: dict[str, Any] = {}

    def message(self, type_: str, content: Any, **fields: Any) -> dict[str, Any]:
        """Add a message, ten seconds after the one before it."""
        number = len(self.messages) + 1
        at = f"2026-01-10T02:{number // 6:02}:{number % 6}0.500Z"
        self.messages.append({"id": f"m{number}", "timestamp": at, "type": type_, "content": content, **fields})
        return self.messages[-1]

    def user(self, content: Any = "Add a line.") -> dict[str, Any]:
        """Add what the user says."""
        return self.message("user", content)

    def gemini(self, content: Any = "", *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Add a response with its calls."""
        tokens = {"input": 1200, "output": 10, "cached": 1000, "thoughts": 5, "tool": 2, "total": 1217}
        answer = self.message("gemini", content, **{"tokens": tokens, "model": "gemini-2.5-flash", **fields})
        ran = answer["timestamp"].replace("0.500Z", "5.000Z")
        if calls:
            answer["toolCalls"] = [{"timestamp": ran, **told} if isinstance(told, dict) else told for told in calls]
        return answer

    def document(self) -> dict[str, Any]:
        """Return the session as one document."""
        head = {"sessionId": "session-1", "projectHash": "7e89", "startTime": "2026-01-10T02:00:00.000Z"}
        return {**head, "messages": self.messages, **self.more}

    def read(self) -> Recording:
        """Read the session without a file."""
        return read_gemini_cli(self.document(), "file")[0]


def call(id_: str, output: Any = "done", name: str = "read_file", **fields: Any) -> dict[str, Any]:
    """Make a call with its result."""
    response = output if isinstance(output, dict) else {"output": output}
    answer = {"functionResponse": {"id": id_, "name": name, "response": response}}
    told = {"id": id_, "name": name, "args": {"file_path": "a.txt"}, "status": "success", "result": [answer]}
    return {**told, **fields}


def thought(subject: str, description: str) -> dict[str, Any]:
    """Make a thought."""
    return {"subject": subject, "description": description, "timestamp": "2026-01-10T02:00:15.000Z"}


def called(recording: Recording) -> list[ModelCalled]:
    """Return the model calls of a recording."""
    return [e.payload for e in recording.events if isinstance(e.payload, ModelCalled)]


def results(recording: Recording) -> list[ToolResult]:
    """Return the results of a recording."""
    return [b for b in blocks(recording) if isinstance(b, ToolResult)]


def test_a_message_of_the_model_becomes_its_thoughts_text_calls_and_results(tmp_path: Path) -> None:
    """All of one response stand before its model call, its results behind it, and prompts open turns."""
    chat = Chat()
    chat.user()
    chat.gemini("I read it.", call("a"), call("b"), thoughts=[thought("Reading", "First the file.")])
    chat.gemini("Done.")
    chat.user("Thanks.")
    path = tmp_path / "odd-name.jsonl"
    path.write_text(json.dumps(chat.document(), indent=2), encoding="utf-8")
    (recording,) = read_recording(path)
    assert kinds(recording) == [
        "user.prompt",
        "assistant.reasoning",
        "assistant.completion",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
        "assistant.completion",
        "ModelCalled",
        "user.prompt",
    ]
    assert [b.turn_id for b in blocks(recording)] == ["turn_1"] * 8 + ["turn_2"]
    assert (recording.id, recording.title, recording.report.format) == ("session-1", "Add a line.", "gemini-cli")
    assert recording.report.counts == Counter()


def test_times_are_those_of_the_thoughts_the_message_and_the_calls() -> None:
    """A thought came before its message was written, a result when its call had run."""
    chat = Chat()
    chat.user()
    chat.gemini("", call("a"), thoughts=[thought("Reading", "First the file.")])
    recording = chat.read()
    assert [(e.at.second, e.at.microsecond) for e in recording.events] == [
        (10, 500_000),
        (15, 0),
        (20, 500_000),
        (20, 500_000),
        (25, 0),
    ]
    (told,) = called(recording)
    assert told.started_at == recording.events[0].at


def test_a_thought_is_put_together_again() -> None:
    """The client divides the model's text into a subject and the rest."""
    chat = Chat()
    chat.gemini("", thoughts=[thought("Reading", "First the file."), thought("", "Then."), thought("Last", "")])
    assert [b.text for b in blocks(chat.read())] == ["**Reading**\nFirst the file.", "Then.", "**Last**"]


def test_usage_counts_what_the_cache_answered_once_and_thoughts_as_output() -> None:
    """``cached`` is inside ``input``; the tokens of tool use are input beside it."""
    chat = Chat()
    chat.gemini("Hello.")
    (told,) = called(chat.read())
    assert (told.model, told.response_id) == ("gemini-2.5-flash", "m1")
    assert told.usage == Usage(input_tokens=202, output_tokens=15, cache_read_tokens=1000)


def test_a_result_says_how_its_call_went() -> None:
    """Its text is the output or the error; a state, an answer and a shell's exit code tell how it went."""
    chat = Chat()
    shell = "Command: make\nOutput: Exit Code: 7\nError: (none)\nExit Code: 2\nSignal: 0"
    chat.gemini(
        "",
        call("a", {"error": "no such file"}),
        call("b", {"error": "[Operation Cancelled] by the user"}, status="cancelled"),
        call("c", shell, "run_shell_command"),
        call("d", {"rows": [1]}, "mcp_query"),
        call("e", "partly", status="error"),
    )
    assert [(r.name, r.text, r.is_error, r.exit_status) for r in results(chat.read())] == [
        ("read_file", "no such file", True, None),
        ("read_file", "[Operation Cancelled] by the user", True, None),
        ("run_shell_command", shell, False, 2),
        ("mcp_query", '{"rows":[1]}', False, None),
        ("read_file", "partly", True, None),
    ]


def test_the_answers_of_parallel_calls_that_stand_side_by_side_are_told_apart() -> None:
    """Newer versions give each call all parts of the message that answered; a picture belongs to the answer before."""
    first, second = call("a", "one"), call("b", "two")
    both = [*first["result"], PICTURE, *second["result"]]
    chat = Chat()
    chat.gemini("", {**first, "result": both}, {**second, "result": both})
    one, two = results(chat.read())
    assert (one.text, one.data) == ("one", [{"type": "text", "text": "one"}, SENT_PICTURE])
    assert (two.text, two.data) == ("two", None)


def test_calls_and_answers_that_are_told_twice_are_read_once() -> None:
    """Newer versions keep the API's own parts beside the list of calls."""
    chat = Chat()
    asked = {"functionCall": {"id": "a", "name": "read_file", "args": {}}}
    alone = {"functionCall": {"id": "b", "name": "glob", "args": {"pattern": "*"}}}
    chat.gemini(
        [{"text": "Both.", "thoughtSignature": "c2ln"}, {"text": "hm", "thought": True}, asked, alone], call("a")
    )
    chat.user([*call("a")["result"], *call("b", "a.txt", "glob")["result"]])
    recording = chat.read()
    assert kinds(recording) == [
        "assistant.completion",
        "assistant.reasoning",
        "react.tool.call",
        "react.tool.call",
        "ModelCalled",
        "react.tool.result",
        "react.tool.result",
    ]
    assert [r.text for r in results(recording)] == ["done", "a.txt"]
    assert recording.report.counts == {"skipped": 1}


def test_a_response_that_a_notice_divided_is_one_response() -> None:
    """The calls behind the notice come without figures; they belong to the response before it."""
    nothing = dict.fromkeys(("input", "output", "cached", "thoughts", "tool", "total"), 0)
    chat = Chat()
    chat.user()
    chat.gemini("I remove it.")
    chat.message("info", "Update available!")
    chat.gemini("", call("a"), tokens=nothing, thoughts=[])
    chat.user("!ls")
    chat.gemini("", call("b"), tokens=None)
    recording = chat.read()
    assert [c.response_id for c in called(recording)] == ["m2"]
    assert [b.response_id for b in blocks(recording) if isinstance(b, ToolCall)] == ["m2", "m6"]
    assert recording.report.counts == {"skipped": 1}


def test_what_the_client_says_opens_no_turn() -> None:
    """The message that sets a session up is the client's, and an error is one that the summarizer need not read."""
    chat = Chat()
    chat.user([{"text": "<session_context>\nThis is the Gemini CLI."}])
    chat.user()
    chat.message("error", "[API Error: quota]")
    setup, prompt, failed = blocks(chat.read())
    assert [(b.type, b.turn_id) for b in (setup, prompt)] == [("client.message", "turn_1"), ("user.prompt", "turn_1")]
    assert (failed.type, failed.text, failed.meta) == ("client.message", "[API Error: quota]", {"error": True})


def test_pictures_and_files_of_a_prompt_are_its_attachments() -> None:
    """What a wire can send takes its form; a file that is only named is kept as it is."""
    named = {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://a/b"}}
    chat = Chat()
    chat.user([PICTURE, "What is this?", named])
    picture, prompt, film = blocks(chat.read())
    assert isinstance(picture, Attachment)
    assert (picture.data, picture.mime, picture.meta) == (SENT_PICTURE, "image/png", {"file": "plan.png"})
    assert (film.data, film.mime) == ({"type": "fileData", **named}, "video/mp4")
    assert {b.turn_id for b in (picture, prompt, film)} == {"turn_1"}


def test_the_clients_own_title_goes_before_the_first_prompt() -> None:
    """Newer versions summarise a session in a line."""
    chat = Chat()
    chat.user()
    chat.more["summary"] = "A line for the file"
    assert chat.read().title == "A line for the file"


def test_what_is_damaged_inside_a_document_is_reported_and_costs_nothing_else() -> None:
    """Messages without content, of no known type or with odd fields are findings with their numbers."""
    chat = Chat()
    del chat.user()["content"]
    chat.messages.append({"id": "x"})
    chat.messages.append("torn")  # type: ignore[arg-type]
    chat.gemini("")["tokens"] = "many"
    odd = chat.gemini("", {"args": "{broken"}, call("a", result=None), thoughts=["hm", thought("", "so")], tokens=None)
    del odd["id"], odd["timestamp"]
    chat.messages.append(chat.user("again"))
    recording = chat.read()
    assert recording.report.counts == Counter(
        invalid=3, unknown_record=2, unanswered_call=2, missing_time=3, duplicate_record=1
    )
    reasoning, first, second, _ = blocks(recording)
    assert isinstance(reasoning, Reasoning)
    assert isinstance(first, ToolCall)
    assert (first.name, first.arguments, first.response_id) == ("unknown", "{broken", "message-5")
    assert second.call_id == "a"


async def test_snapshots_of_a_session_are_one_conversation() -> None:
    """A file that was written later adds what is new, and an earlier one nothing."""
    chat = Chat()
    chat.user()
    chat.gemini("I read it.", call("a"))
    early = chat.read()
    chat.gemini("Done.")
    late = chat.read()
    async with open_store("memory://") as store:
        added = [(await import_recording(store, recording)).events for recording in (early, late, early, late)]
    assert added == [len(early.events), 2, 0, 0]


async def test_a_chat_is_simulated_without_loose_ends() -> None:
    """Calls are paired, every block is in a state and no context is above the limit, also when it is compacted."""
    chat = Chat()
    for number in range(12):
        chat.user(f"Step {number}")
        chat.gemini(f"I read {number}.", call(f"c{number}", f"line {number} " * 120))
        chat.gemini("Read.")
    async with open_store("memory://") as store:
        run = await simulate(store, chat.read(), policies.cut_point(max_tokens=2_000))
    assert run.compactions > 0
    assert (run.orphans, run.uncovered, run.over_limit, run.typed_errors) == (0, 0, 0, 0)


@pytest.mark.parametrize("size", [0.3, 0.9])
def test_a_torn_document_is_refused_with_the_place(tmp_path: Path, size: float) -> None:
    """The error says where the file breaks."""
    chat = Chat()
    chat.user()
    text = json.dumps(chat.document(), indent=1)
    path = tmp_path / "session.json"
    path.write_text(text[: int(len(text) * size)], encoding="utf-8")
    with pytest.raises(ImportFailed, match=r"format is not known; as one JSON document it breaks in line \d"):
        read_recording(path)


def test_a_session_in_which_nothing_was_said_is_refused(tmp_path: Path) -> None:
    """A notice alone is no conversation."""
    chat = Chat()
    chat.message("info", "Welcome!")
    path = tmp_path / "session.json"
    path.write_text(json.dumps(chat.document()), encoding="utf-8")
    with pytest.raises(ImportFailed, match="no message is in it"):
        read_recording(path)


_odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["text", "id", "name", "response", "functionResponse", "functionCall", "inlineData", "type"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
_fields = st.sampled_from(["id", "timestamp", "type", "content", "thoughts", "tokens", "model", "toolCalls"])


@given(st.lists(st.tuples(st.integers(0, 2), _fields, _odd), max_size=6), st.lists(_odd, max_size=2))
def test_fields_of_any_shape_are_imported_or_refused(
    tmp_path_factory: pytest.TempPathFactory, spoilt: list[tuple[int, str, Any]], calls: list[Any]
) -> None:
    """No value in any field raises anything but an import error, and keys stay unique."""
    chat = Chat()
    chat.user()
    chat.gemini("I read it.", call("a"), *calls, call("b", result=calls))
    chat.gemini("Done.")
    for place, key, value in spoilt:
        chat.messages[place][key] = value
    path = tmp_path_factory.getbasetemp() / "odd-gemini.json"
    path.write_text(json.dumps(chat.document()), encoding="utf-8")
    try:
        (recording,) = read_recording(path)
    except ImportFailed:
        return
    assert len({e.key for e in recording.events}) == len(recording.events)
    json.dumps(recording.report.dump())


def count_simply(document: dict[str, Any]) -> Counter[str]:
    """Count a recorded document without the importer."""
    counts: Counter[str] = Counter()
    for message in document["messages"]:
        counts["prompts"] += message["type"] == "user"
        counts["texts"] += message["type"] == "gemini" and bool(message["content"])
        counts["thoughts"] += len(message.get("thoughts") or [])
        counts["calls"] += len(message.get("toolCalls") or [])
        counts["responses"] += bool((message.get("tokens") or {}).get("total"))
        counts["output"] += sum((message.get("tokens") or {}).get(key, 0) for key in ("output", "thoughts"))
        counts["input"] += (message.get("tokens") or {}).get("input", 0)
    return counts


@needs_recordings
def test_recorded_chats_hold_what_a_simple_count_finds() -> None:
    """Prompts, texts, thoughts, calls, results and tokens of every real file are all imported."""
    paths = recorded("gemini-cli/*.json")
    assert paths
    for path in paths:
        recording = read_recording(path)[0]
        found = Counter(kinds(recording))
        usages = [c.usage for c in called(recording)]
        assert found["react.tool.result"] == found["react.tool.call"]
        assert count_simply(json.loads(path.read_text(encoding="utf-8"))) == Counter(
            prompts=found["user.prompt"],
            texts=found["assistant.completion"],
            thoughts=found["assistant.reasoning"],
            calls=found["react.tool.call"],
            responses=found["ModelCalled"],
            output=sum(u.output_tokens for u in usages),
            input=sum(u.input_tokens + u.cache_read_tokens for u in usages),
        )
        assert set(recording.report.counts) <= {"skipped"}
