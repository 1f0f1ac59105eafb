"""What the client of the Claude Agent SDK does with a session, for the SDK to run: its program is 380 MB, and not here.

It speaks the SDK's protocol on its standard streams, and Anthropic's on the wire. What it does was seen in the client
of version 2.1.330 at work:

- a session is read from its newest boundary on, and found at no row in front of it;
- resumed at a row, it has nothing that was written behind that row, and writes on behind it in the same file;
- a call without a result is answered by a text of the client's;
- a request that is refused for its size makes it compact by itself, and go on: with a summary of its own, and the
  newest messages word for word, which the boundary names;
- each row goes to the SDK as soon as it is written.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from uuid import uuid4

Row = dict[str, Any]

MISSING: Final = "[Tool result missing due to internal error]"
SUMMARY: Final = "This session is being continued from a previous conversation that ran out of context."
KEPT: Final = 6
"""Rows that a compaction of the client's keeps at most."""
TOOL: Final = {"name": "work", "input_schema": {"type": "object", "properties": {"step": {"type": "string"}}}}
SERVER: Final = "app"


class TooLong(Exception):
    """The provider refused a request for its size."""


class Host:
    """The SDK, at the other end of the standard streams."""

    def send(self, **frame: Any) -> None:
        """Send a frame."""
        sys.stdout.write(json.dumps(frame) + "\n")
        sys.stdout.flush()

    def read(self) -> Row:
        """Return the next frame; the client ends where the SDK has gone."""
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        frame: Row = json.loads(line)
        return frame

    def prompt(self) -> str:
        """Wait for a prompt, and greet the SDK first."""
        while True:
            frame = self.read()
            if frame["type"] == "control_request":
                told = {"subtype": "success", "request_id": frame["request_id"], "response": {}}
                self.send(type="control_response", response=told)
            elif frame["type"] == "user":
                return str(frame["message"]["content"])

    def call(self, number: int, method: str, parameters: Row) -> Row:
        """Call the application's MCP server, which is in the process of the SDK."""
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        request = {"subtype": "mcp_message", "server_name": SERVER, "message": message}
        self.send(type="control_request", request_id=f"mcp-{number}", request=request)
        while (frame := self.read())["type"] != "control_response":
            pass
        result: Row = frame["response"]["response"]["mcp_response"]["result"]
        return result


class Session:
    """The rows of a session, in its file and in the context."""

    def __init__(self, host: Host, file: Path, at: str | None) -> None:
        self._host = host
        self._file = file
        written = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        self._by_id: dict[str, Row] = {row["uuid"]: row for row in written if "parentUuid" in row}
        boundaries = [number for number, row in enumerate(written) if row.get("subtype") == "compact_boundary"]
        known = [row["uuid"] for row in written[boundaries[-1] if boundaries else 0 :] if "parentUuid" in row]
        if known:
            known = [*self._kept(known[0]), *known]
        if at is not None and at not in known:
            sys.exit(f"No message found with message.uuid of: {at}")
        self._known = known[: known.index(at) + 1] if at is not None else known
        self._newest: str | None = self._known[-1] if known else None

    def messages(self) -> list[Row]:
        """Return the context as messages."""
        rows: list[Row] = []
        uuid = self._newest
        while uuid is not None:
            row = self._by_id[uuid]
            if row.get("isCompactSummary"):  # behind it are the rows that its boundary names
                rows += [self._by_id[kept] for kept in reversed(self._kept(row["parentUuid"]))]
            rows.append(row)
            uuid = row["parentUuid"]
        said = [row["message"] for row in reversed(rows) if "message" in row]
        # Links lead past all results but one of calls that were made at a time.
        all_said = [self._message(uuid) for uuid in self._known]
        parts = [part for message in all_said if message for part in _parts(message)]
        results = {part["tool_use_id"]: part for part in parts if part["type"] == "tool_result"}
        return [message for one in _joined(said) for message in _answered(one, results)]

    def write(self, type_: str, *, parent: str | None = None, **fields: Any) -> str:
        """Write a row behind the newest one, and hand it to the SDK."""
        common = {"isSidechain": False, "sessionId": self._file.stem, "version": "2.1.330", "cwd": str(Path.cwd())}
        at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        uuid = str(uuid4())
        row = {"parentUuid": parent or self._newest, **common, "type": type_, "uuid": uuid, "timestamp": at, **fields}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._host.send(type="transcript_mirror", filePath=str(self._file), entries=[row])
        self._by_id[uuid] = row
        self._known.append(uuid)
        self._newest = uuid
        return uuid

    def compact(self) -> None:
        """Put a summary in the place of the context, but for its newest messages."""
        rows: list[str] = []
        uuid = self._newest
        while uuid is not None and len(rows) < KEPT and not self._by_id[uuid].get("isCompactSummary"):
            rows.insert(0, uuid)
            uuid = self._by_id[uuid]["parentUuid"]
        prompts = [n for n, kept in enumerate(rows) if isinstance(self._message(kept).get("content"), str)]
        kept = rows[prompts[0] :] if prompts else []
        metadata = {"trigger": "auto", "preTokens": 1_000, "preservedMessages": {"uuids": kept}}
        self._newest = None
        self.write("system", subtype="compact_boundary", compactMetadata=metadata)
        self.write("user", isCompactSummary=True, message={"role": "user", "content": SUMMARY})

    def _kept(self, boundary: str) -> list[str]:
        """Return the rows that a boundary names and that are in the file: the SDK's forks give rows other names."""
        named = self._by_id[boundary].get("compactMetadata", {}).get("preservedMessages", {}).get("uuids", [])
        return [uuid for uuid in named if uuid in self._by_id]

    def _message(self, uuid: str) -> Row:
        message: Row = self._by_id[uuid].get("message", {})
        return message


def _parts(message: Row) -> list[Row]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _joined(said: list[Row]) -> list[Row]:
    """Join the rows of a response, and drop the results: they are put behind their calls."""
    found: list[Row] = []
    for message in said:
        parts = [part for part in _parts(message) if part["type"] != "tool_result"]
        if found and message.get("id") and found[-1].get("id") == message.get("id"):
            found[-1] = {**found[-1], "content": [*found[-1]["content"], *parts]}
        elif parts:
            found.append({"role": message["role"], "id": message.get("id"), "content": parts})
    return found


def _answered(message: Row, results: dict[str, Row]) -> list[Row]:
    """Return a message with the results of its calls behind it."""
    calls = [part["id"] for part in message["content"] if part["type"] == "tool_use"]
    missing = {"type": "tool_result", "content": MISSING}
    answers = [results.get(call, {**missing, "tool_use_id": call}) for call in calls]
    said = {"role": message["role"], "content": message["content"]}
    return [said, *([{"role": "user", "content": answers}] if answers else [])]


def ask(messages: list[Row]) -> Row:
    """Send a request; the client ends where the provider has no answer."""
    body = {"model": "claude-opus-5", "max_tokens": 1_000, "messages": messages, "tools": [TOOL]}
    request = urllib.request.Request(  # noqa: S310 - the test's own server
        f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json", "anthropic-version": "2023-06-01"},
    )
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - the test's own server
            reply: Row = json.load(answer)
            return reply
    except HTTPError as refused:
        told = refused.read().decode()
        if "prompt is too long" in told:
            raise TooLong from None
        sys.exit(told)


def main() -> None:
    """Play the client for one prompt."""
    options = dict(one[2:].split("=", 1) for one in sys.argv[1:] if one.startswith("--") and "=" in one)
    named = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    id_ = options.get("resume") or named.get("--resume") or options["session-id"]
    host = Host()
    project = re.sub(r"[^a-zA-Z0-9]", "-", str(Path.cwd()))  # the SDK's own import would take longer than a turn
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"]) / "projects" / project
    session = Session(host, folder / f"{id_}.jsonl", options.get("resume-session-at"))
    session.write("user", message={"role": "user", "content": host.prompt()})
    version = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "client", "version": "1"}}
    host.call(0, "initialize", version)
    calls = 0
    while True:
        try:
            reply = ask(session.messages())
        except TooLong:
            session.compact()
            continue
        parts = reply["content"]
        rows = {part.get("id"): session.write("assistant", message={**reply, "content": [part]}) for part in parts}
        for part in parts:
            if part["type"] == "tool_use":
                calls += 1
                told = host.call(calls, "tools/call", {"name": "work", "arguments": part["input"]})
                result = {"type": "tool_result", "tool_use_id": part["id"], "content": told["content"]}
                session.write("user", parent=rows[part["id"]], message={"role": "user", "content": [result]})
        if reply["stop_reason"] != "tool_use":
            break
    figures = {"duration_ms": 1, "duration_api_ms": 1, "is_error": False, "num_turns": calls + 1}
    said = "".join(part.get("text", "") for part in reply["content"])
    host.send(type="result", subtype="success", session_id=id_, result=said, **figures)
    while True:
        host.read()


if __name__ == "__main__":
    main()
