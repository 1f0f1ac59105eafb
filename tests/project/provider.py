"""A fake of Anthropic's messages endpoint on loopback: it checks each request as the provider would, then answers."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from anthropic.types import MessageParam
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterator

PRINTED = re.compile(r"tc:turn_1\.toolu_\d+\.call")
MESSAGES: TypeAdapter[Any] = TypeAdapter(list[MessageParam])


class Provider:
    """Answers with a call for a number of rounds, then with a text; keeps what it was asked.

    It runs ``bash``, writes files, and now and then recalls a path that it was shown. A request above its limit is
    refused, with the figures, as the provider does.

    Attributes:
        rounds: calls before the text.
        limit: most tokens that it takes; it counts four characters as one.
        requests: those that it answered.
        recalled: the paths that it asked for.
        refusals: how many requests were too long.
    """

    def __init__(self, rounds: int, *, limit: int) -> None:
        self.rounds = rounds
        self.limit = limit
        self.requests: list[dict[str, Any]] = []
        self.recalled: list[str] = []
        self.refusals = 0

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the next message, or the error that the provider would send for such a request."""
        tokens = len(json.dumps(request)) // 4
        problem = broken(request)
        if tokens > self.limit:
            self.refusals += 1
            problem = f"prompt is too long: {tokens} tokens > {self.limit} maximum"
        if problem is not None:
            return {"type": "error", "error": {"type": "invalid_request_error", "message": problem}}
        self.requests.append(request)
        number = len(self.requests)
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [self._content(request, number)],
            "stop_reason": "tool_use" if number <= self.rounds else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": tokens, "output_tokens": 10},
        }

    def _content(self, request: dict[str, Any], number: int) -> dict[str, Any]:
        if number > self.rounds:
            return {"type": "text", "text": "All tests pass."}
        printed = PRINTED.findall(json.dumps(request["messages"])) if number % 10 == 0 else []
        if printed:
            self.recalled.append(printed[0])
            return {"type": "tool_use", "id": f"toolu_{number}", "name": "recall", "input": {"path": printed[0]}}
        if number % 3 == 0:
            written = {"file_path": f"src/part_{number}.py", "content": "x = 1\n"}
            return {"type": "tool_use", "id": f"toolu_{number}", "name": "Write", "input": written}
        command = {"command": f"pytest tests/test_{number}.py"}
        return {"type": "tool_use", "id": f"toolu_{number}", "name": "bash", "input": command}

    def told(self, path: str) -> list[str]:
        """Return the answers of the recall tool that begin with a path."""
        results = (part for request in self.requests for m in request["messages"] for part in _parts(m))
        contents = (str(part.get("content")) for part in results if part["type"] == "tool_result")
        return [content for content in contents if content.startswith(f"[{path} · ")]


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return message["content"] if isinstance(message["content"], list) else []


def broken(request: dict[str, Any]) -> str | None:
    """Say what the provider would refuse: types, first role, alternation, unpaired calls, too many markers."""
    messages = MESSAGES.validate_python(request["messages"])
    if messages[0]["role"] != "user":
        return "the first message must be the user's"
    calls: set[str] = set()
    for before, message in zip([None, *request["messages"]], request["messages"], strict=False):
        if before is not None and before["role"] == message["role"]:
            return "roles must alternate"
        parts = _parts(message)
        if {part["tool_use_id"] for part in parts if part["type"] == "tool_result"} != calls:
            return "tool_use and tool_result do not match"
        calls = {part["id"] for part in parts if part["type"] == "tool_use"}
    return "too many cache markers" if json.dumps(request).count('"cache_control"') > 4 else None


@contextmanager
def serving(provider: Provider) -> Iterator[str]:
    """Serve a provider on a free loopback port; yield its base URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = provider.reply(request)
            body = json.dumps(answer).encode()
            self.send_response(400 if answer["type"] == "error" else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
            """Say nothing: a test's output is its failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
