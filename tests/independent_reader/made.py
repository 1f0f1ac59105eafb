"""Sessions to read that stand in for recordings: every client, each with what goes well, fails, and is left open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.importers.codex_rollout import Rollout
from tests.importers.pi_session import PiSession
from tests.importers.session import Session, use
from tests.independent_reader.acts import Act

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.independent_reader.acts import Kind

RAN: Final = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}
"""The client's own record of a command that ended."""
STEPS: Final = 120
REFUSED: Final = 10
"""How many writes are refused in the long session."""
PATCH: Final = (
    "*** Begin Patch\n*** Add File: new.py\n+x\n*** Update File: old.py\n*** Move to: moved.py\n-y\n"
    "*** Delete File: gone.py\n*** End Patch"
)


def act(id_: str, kind: Kind, subject: str, tool: str, status: int | None = None, *, failed: bool = False) -> Act:
    """Return an act of a call whose id is there once."""
    return Act((id_, 0), kind, subject, tool, status, failed)


def claude_code(folder: Path) -> tuple[Path, list[Act]]:
    """Write a session of Claude Code with a subagent; return the file and what the session itself did."""
    session = Session()
    session.user("Mend it")
    calls = [
        use("r", "Read", file_path="a.py"),
        use("missing", "Read", file_path="b.py"),
        use("w", "Write", file_path="a.py", content="x"),
        use("refused", "Edit", file_path="c.py", old_string="x", new_string="y"),
        use("ok", "Bash", command="make"),
        use("no", "Bash", command="make test"),
        use("beside", "Bash", command="make lint"),
        use("behind", "Bash", command="make serve"),
        use("none", "Bash", command="ls | grep x"),
        use("talk", "Bash", command="go test ./... | tail -2"),
        use("g", "Grep", pattern="x+", path="src"),
        use("web", "WebFetch", url="https://example.org", prompt="?"),
        use("list", "mcp__linear-server__list_projects", query="Troy"),
        use("look", "mcp__ide__getDiagnostics", uri="file:///a.py"),
        use("todo", "TodoWrite", todos=[]),
        use("open", "Bash", command="sleep 100"),
    ]
    session.answer("m1", *calls)
    for id_ in ("r", "g", "list", "look", "todo", "w"):
        session.result(id_)
    session.result("missing", "<tool_use_error>File does not exist.</tool_use_error>", is_error=True)
    session.result("refused", "The user doesn't want to proceed with this tool use.", is_error=True)
    session.result("web", "Request failed with status code 404", is_error=True)
    session.result("ok", "", is_error=False, toolUseResult=RAN)
    session.result("no", "Exit code 2\nFAILED", is_error=True, toolUseResult="Error: Exit code 2\nFAILED")
    session.result("beside", "<tool_use_error>Sibling tool call errored</tool_use_error>", is_error=True)
    session.result("behind", "Command running in background", toolUseResult={**RAN, "backgroundTaskId": "b1"})
    none = {**RAN, "returnCodeInterpretation": "No matches found"}
    session.result("none", "", is_error=False, toolUseResult=none)
    session.result("talk", "exit status 1\nFAIL", is_error=False, toolUseResult=RAN)
    session.answer("m2", {"type": "text", "text": "Done"})
    _subagent(session)
    acts = [
        act("r", "file_read", "a.py", "Read"),
        act("g", "search", "x+", "Grep"),
        act("list", "search", "Troy", "mcp__linear-server__list_projects"),
        act("w", "file_written", "a.py", "Write"),
        act("missing", "file_read", "b.py", "Read", failed=True),
        act("missing", "error", "", "Read", failed=True),
        act("refused", "file_written", "c.py", "Edit", failed=True),
        act("refused", "error", "", "Edit", failed=True),
        act("web", "error", "", "WebFetch", failed=True),
        act("ok", "command", "make", "Bash", 0),
        act("no", "command", "make test", "Bash", 2, failed=True),
        act("beside", "command", "make lint", "Bash", failed=True),
        act("behind", "command", "make serve", "Bash"),
        act("none", "command", "ls | grep x", "Bash"),
        act("talk", "command", "go test ./... | tail -2", "Bash", 0),
    ]
    return session.write(folder), acts


def _subagent(session: Session) -> None:
    """Add the steps of a subagent, whose results lack the client's own record."""
    call = use("agent-1", "Bash", command="go test ./... 2>&1 | tail -3")
    result = {
        "type": "tool_result",
        "tool_use_id": "agent-1",
        "content": "FAIL\nexit status 1\nFAIL x",
        "is_error": False,
    }
    for number, (type_, part) in enumerate((("assistant", call), ("user", result))):
        message = {"role": type_, "content": [part], "id": "m9", "model": "claude-opus-4-5", "usage": {}}
        told = {"type": type_, "uuid": f"agent-{number}", "timestamp": "2026-01-20T10:00:00.000Z", "message": message}
        session.row("progress", data={"type": "agent_progress", "agentId": "helper", "message": told, "prompt": ""})


def pi(folder: Path) -> tuple[Path, list[Act]]:
    """Write a session of pi; return the file and what it did."""
    session = PiSession(version=1)
    session.user([{"type": "text", "text": "Mend it"}])
    for id_, name, arguments in (
        ("r", "read", {"path": "a.py"}),
        ("e", "edit", {"path": "a.py", "oldText": "x", "newText": "y"}),
        ("ok", "bash", {"command": "make"}),
        ("no", "bash", {"command": "make test"}),
        ("cut", "bash", {"command": "make all"}),
    ):
        session.answer({"type": "toolCall", "id": id_, "name": name, "arguments": arguments}, stop="toolUse")
    session.result("r", "ENOENT: no such file", is_error=True, toolName="read")
    session.result("e", toolName="edit")
    session.result("ok")
    session.result("no", "(no output)\n\nCommand exited with code 2", is_error=True)
    session.result("cut", "Command aborted", is_error=True)
    acts = [
        act("r", "file_read", "a.py", "read", failed=True),
        act("r", "error", "", "read", failed=True),
        act("e", "file_written", "a.py", "edit"),
        act("ok", "command", "make", "bash", 0),
        act("no", "command", "make test", "bash", 2, failed=True),
        act("cut", "command", "make all", "bash", failed=True),
    ]
    return session.write(folder), acts


def gemini(folder: Path) -> tuple[Path, list[Act]]:
    """Write a chat of Gemini CLI; return the file and what it did."""
    form = "Command: {}\nDirectory: (root)\nOutput: Exit Code: 9\nError: (none)\nExit Code: {}\nSignal: 0"
    calls = [
        _gemini_call("r", "read_file", {"file_path": "a.txt"}, "hello"),
        _gemini_call("w", "write_file", {"file_path": "b.txt", "content": "x"}, "denied", status="error"),
        _gemini_call("ok", "run_shell_command", {"command": "make"}, form.format("make", 0)),
        _gemini_call("no", "run_shell_command", {"command": "make test"}, form.format("make test", 2)),
    ]
    at = "2026-01-10T02:08:26.108Z"
    messages = [
        {"id": "1", "timestamp": at, "type": "user", "content": "Mend it"},
        {"id": "2", "timestamp": at, "type": "gemini", "content": "", "toolCalls": calls, "model": "gemini-2.5-flash"},
    ]
    document = {"sessionId": "s", "projectHash": "h", "startTime": at, "lastUpdated": at, "messages": messages}
    acts = [
        act("r", "file_read", "a.txt", "read_file"),
        act("w", "file_written", "b.txt", "write_file", failed=True),
        act("w", "error", "", "write_file", failed=True),
        act("ok", "command", "make", "run_shell_command", 0),
        act("no", "command", "make test", "run_shell_command", 2, failed=True),
    ]
    return _written(folder / "chat.json", document), acts


def _gemini_call(id_: str, name: str, args: dict[str, Any], said: str, *, status: str = "success") -> dict[str, Any]:
    response = {"output" if status == "success" else "error": said}
    result = [{"functionResponse": {"id": id_, "name": name, "response": response}}]
    at = "2026-01-10T02:08:26.108Z"
    return {"id": id_, "name": name, "args": args, "status": status, "timestamp": at, "result": result}


def swe_agent(folder: Path) -> tuple[Path, list[Act]]:
    """Write a trajectory of SWE-agent with an id that is there twice; return the file and what it did."""
    calls = [
        ("a", "create", {"filename": "new.py"}),
        ("b", "edit", {"search": "x", "replace": "y"}),
        ("c", "bash", {"command": "make"}),
        ("c", "bash", {"command": "make test"}),
        ("d", "find_file", {"file_name": "a.py", "dir": "src"}),
        ("e", "open", {"path": "a.py", "line_number": 3}),
        ("f", "submit", {}),
    ]
    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You code.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "Mend it", "agent": "main", "message_type": "observation"},
    ]
    for id_, name, arguments in calls:
        call = {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        history.append({"role": "assistant", "content": "", "agent": "main", "action": name, "tool_calls": [call]})
        history.append({"role": "tool", "content": "exit status 1", "agent": "main", "tool_call_ids": [id_]})
    acts = [
        act("a", "file_written", "new.py", "create"),
        act("c", "command", "make", "bash"),
        Act(("c", 1), "command", "make test", "bash", None, failed=False),
        act("d", "search", "a.py", "find_file"),
        act("e", "file_read", "a.py", "open"),
    ]
    return _written(folder / "run.traj", {"history": history}), acts


def codex(folder: Path) -> tuple[Path, list[Act]]:
    """Write a rollout of Codex; return the file and what it did."""
    rollout = Rollout()
    rollout.user("Mend it")
    rollout.call("ok", command=["bash", "-lc", "make"])
    rollout.call("no", "exec_command", cmd="make test")
    rollout.item("custom_tool_call", call_id="p", name="apply_patch", input=PATCH, status="completed")
    rollout.item("custom_tool_call", call_id="bad", name="apply_patch", input=PATCH, status="completed")
    rollout.result("ok", '{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}')
    rollout.result("no", "Chunk ID: 1\nProcess exited with code 2\nOutput:\nno")
    done = '{"output":"Success","metadata":{"exit_code":0,"duration_seconds":0.1}}'
    rollout.item("custom_tool_call_output", call_id="p", output=done)
    failed = '{"output":"Failed to find expected lines","metadata":{"exit_code":1,"duration_seconds":0.1}}'
    rollout.item("custom_tool_call_output", call_id="bad", output=failed)
    acts = [
        act("ok", "command", "bash -lc make", "shell", 0),
        act("no", "command", "make test", "exec_command", 2, failed=True),
    ]
    for id_, status in (("p", 0), ("bad", 1)):
        acts += [act(id_, kind, file, "apply_patch", status, failed=bool(status)) for kind, file in _of_the_patch()]
    acts.append(act("bad", "error", "", "apply_patch", 1, failed=True))
    return rollout.write(folder), acts


def _of_the_patch() -> list[tuple[Kind, str]]:
    return [
        ("file_written", "new.py"),
        ("file_deleted", "old.py"),
        ("file_written", "moved.py"),
        ("file_deleted", "gone.py"),
    ]


def _written(file: Path, document: dict[str, Any]) -> Path:
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


SESSIONS: Final[dict[str, Callable[[Path], tuple[Path, list[Act]]]]] = {
    made.__name__: made for made in (claude_code, codex, gemini, pi, swe_agent)
}
"""A session of each client, by its name."""


def long_session(folder: Path) -> Path:
    """Write a session of many steps: files that are written, one that never is, commands that fail and work later."""
    session = Session()
    for step in range(STEPS):
        if step % 8 == 0:
            session.user(f"Make part {step // 8} work")
        name, file = f"s{step}", f"src/part_{step % 13}.py"
        match step % 4:
            case 0:
                call = use(name, "Read", file_path=file)
            case 1:
                call = use(name, "Write", file_path="/etc/hosts" if step % 3 == 0 else file, content="x = 1\n" * 30)
            case 2:
                call = use(name, "Bash", command=f"pytest tests/test_{step % 5}.py")
            case _:
                call = use(name, "Grep", pattern=f"part_{step}")
        session.answer(f"m{step}", {"type": "text", "text": f"Step {step}."}, call)
        if call["name"] == "Write" and step % 3 == 0:
            session.result(name, "EACCES: permission denied, open '/etc/hosts'", is_error=True)
        elif call["name"] == "Bash" and step < STEPS // 2:
            session.result(name, "Exit code 1\n" + f"E assert {step}\n" * 60, is_error=True)
        else:
            own = {"is_error": False, "toolUseResult": RAN} if call["name"] == "Bash" else {}
            session.result(name, f"line {step} of the output\n" * 40, **own)
    return session.write(folder, "long.jsonl")
