"""What every format of lines survives: each importer reads around the damage, and says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.importers.codex_rollout import Rollout
from tests.importers.pi_session import PiSession, call
from tests.importers.session import Session, blocks, said, use
from timeline.errors import ImportFailed
from timeline.importers import Recording, read_recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HUGE: Final = 50_000_000


def claude_code(text: str, call_ids: str = "a", result_ids: str = "a") -> list[dict[str, Any]]:
    """Make a session of Claude Code: a prompt, calls, results and an answer."""
    session = Session()
    session.user(text)
    for call_id in call_ids:
        session.answer(f"msg_{len(session.rows)}", use(call_id))
    for call_id in result_ids:
        session.result(call_id, "ok")
    session.answer("msg_last", said("done"))
    return session.rows


def pi(text: str, call_ids: str = "a", result_ids: str = "a") -> list[dict[str, Any]]:
    """Make the same of pi."""
    session = PiSession()
    session.user(text)
    for call_id in call_ids:
        session.answer(call(call_id, command="ls"), stop="toolUse")
    for call_id in result_ids:
        session.result(call_id, "ok")
    session.answer({"type": "text", "text": "done"})
    return session.entries


def codex(text: str, call_ids: str = "a", result_ids: str = "a") -> list[dict[str, Any]]:
    """Make the same of Codex."""
    rollout = Rollout()
    rollout.user(text)
    for call_id in call_ids:
        rollout.call(call_id)
        rollout.count()
    for call_id in result_ids:
        rollout.result(call_id, "ok")
    rollout.answer("done")
    return rollout.rows


def ai_sdk(text: str, call_ids: str = "a", result_ids: str = "a") -> list[dict[str, Any]]:
    """Make the same of a program with the AI SDK, which keeps its model messages with the time of each."""
    told: list[tuple[str, Any]] = [("user", text)]
    for call_id in call_ids:
        part = {"type": "tool-call", "toolCallId": call_id, "toolName": "bash", "input": {"command": "ls"}}
        told.append(("assistant", [part]))
    for call_id in result_ids:
        output = {"type": "text", "value": "ok"}
        told.append(("tool", [{"type": "tool-result", "toolCallId": call_id, "toolName": "bash", "output": output}]))
    told.append(("assistant", [{"type": "text", "text": "done"}]))
    return [
        {"id": f"m{n}", "role": role, "content": content, "createdAt": f"2026-01-10T02:00:{n:02}Z"}
        for n, (role, content) in enumerate(told)
    ]


FORMATS: Final = {"ai-sdk": ai_sdk, "claude-code": claude_code, "codex": codex, "pi": pi}


@pytest.fixture(params=sorted(FORMATS))
def make(request: pytest.FixtureRequest) -> Callable[..., list[dict[str, Any]]]:
    """Give each format's own session."""
    return FORMATS[request.param]


def lines(rows: list[dict[str, Any]]) -> list[bytes]:
    """Write rows as lines."""
    return [json.dumps(row, separators=(",", ":")).encode() for row in rows]


def read(folder: Path, data: bytes) -> Recording:
    """Read a file's main conversation."""
    file = folder / "session.jsonl"
    file.write_bytes(data)
    return read_recording(file)[0]


def texts(recording: Recording) -> list[str]:
    """Return what the blocks say, and the calls' names."""
    return [block.countable() for block in blocks(recording)]


def test_a_torn_last_line_is_reported_and_costs_nothing_else(
    tmp_path: Path, make: Callable[..., list[dict[str, Any]]]
) -> None:
    """A crash in mid-write loses what it tore."""
    whole = lines(make("Hi"))
    recording = read(tmp_path, b"\n".join([*whole, whole[-1][:-9]]))
    assert recording.report.counts["torn"] == 1
    assert texts(recording) == texts(read(tmp_path, b"\n".join(whole) + b"\n"))


def test_glued_lines_are_both_read(tmp_path: Path, make: Callable[..., list[dict[str, Any]]]) -> None:
    """Two records on each line are all there."""
    whole = lines(make("Hi"))
    pairs = [b"".join(whole[n : n + 2]) for n in range(0, len(whole), 2)]
    recording = read(tmp_path, b"\n".join(pairs) + b"\n")
    assert recording.report.counts["glued"] == len(whole) // 2
    assert texts(recording) == texts(read(tmp_path, b"\n".join(whole)))


def test_a_record_that_a_line_break_tore_in_two_is_put_together(
    tmp_path: Path, make: Callable[..., list[dict[str, Any]]]
) -> None:
    """A raw line break inside a string is a part of it."""
    data = b"\n".join(lines(make("Hi there"))).replace(b"Hi there", b"Hi\nthere", 1)
    recording = read(tmp_path, data)
    assert recording.report.counts["split"] == 1
    assert "Hi\nthere" in texts(recording)


def test_bytes_that_are_no_utf_8_are_replaced(tmp_path: Path, make: Callable[..., list[dict[str, Any]]]) -> None:
    """The rest of the line is read."""
    recording = read(tmp_path, b"\n".join(lines(make("Hi"))).replace(b'"Hi"', b'"H\xff"'))
    assert recording.report.counts["encoding"] >= 1
    assert "H\ufffd" in texts(recording)


def test_junk_between_the_lines_is_put_aside(tmp_path: Path, make: Callable[..., list[dict[str, Any]]]) -> None:
    """What is no record is kept in the report, with its line."""
    whole = lines(make("Hi"))
    recording = read(tmp_path, b"\n".join([*whole[:3], b"\x00\x00junk", b"[1, 2]", *whole[3:]]))
    assert recording.report.counts["quarantined"] == 2
    assert {f["line"] for f in recording.report.findings if f["kind"] == "quarantined"} == {4, 5}
    assert "done" in texts(recording)


def test_a_huge_line_is_read(tmp_path: Path, make: Callable[..., list[dict[str, Any]]]) -> None:
    """Fifty million characters on one line are one prompt."""
    recording = read(tmp_path, b"\n".join(lines(make("x" * HUGE))))
    assert max(len(block.text) for block in blocks(recording)) == HUGE


@pytest.mark.parametrize("data", [b"", b"\n \r\n", b"\xef\xbb\xbf"], ids=["nothing", "space", "mark"])
def test_an_empty_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """Nothing is in it, whichever format it was to be."""
    with pytest.raises(ImportFailed, match="empty"):
        read(tmp_path, data)


@pytest.mark.parametrize(
    ("calls", "results", "finding"),
    [("aa", "aa", "duplicate_call"), ("a", "ab", "orphan_result"), ("ab", "a", "unanswered_call")],
    ids=["twice", "orphan", "unanswered"],
)
def test_calls_and_results_that_do_not_match_are_kept_and_reported(
    tmp_path: Path, make: Callable[..., list[dict[str, Any]]], calls: str, results: str, finding: str
) -> None:
    """Nothing is dropped for want of its other half."""
    recording = read(tmp_path, b"\n".join(lines(make("Hi", calls, results))))
    assert recording.report.counts[finding] >= 1
    types = [block.type for block in blocks(recording)]
    assert types.count("react.tool.call") == len(calls)
    assert types.count("react.tool.result") == len(results)


def test_a_clock_that_goes_back_is_reported_and_the_files_order_stays(
    tmp_path: Path, make: Callable[..., list[dict[str, Any]]]
) -> None:
    """File order is the order."""
    rows = make("Hi")
    whole = texts(read(tmp_path, b"\n".join(lines(rows))))
    for row in rows[len(rows) // 2 :]:
        row["createdAt" if "createdAt" in row else "timestamp"] = "2020-01-01T00:00:00.000Z"
        if isinstance(message := row.get("message"), dict) and "timestamp" in message:
            message["timestamp"] = 1_577_836_800_000
    recording = read(tmp_path, b"\n".join(lines(rows)))
    assert recording.report.counts["clock_back"] >= 1
    assert texts(recording) == whole
