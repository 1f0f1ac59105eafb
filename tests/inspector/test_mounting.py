"""One ASGI application: in others, under prefixes, behind proxies, without a lifespan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from tests.inspector.asking import ask, segment
from timeline.inspector import inspector
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from tests.inspector.sent import Sent
    from timeline.ports import EventStore


@pytest.mark.parametrize("framework", [Starlette, FastAPI])
async def test_an_application_mounts_it_under_a_path(framework: Any, store: EventStore, sent: Sent) -> None:
    """An id with a slash is one segment there too."""
    outer = framework()
    outer.mount("/debug/timeline", inspector(store))
    listed = await ask(outer, "/debug/timeline/v1/conversations")
    assert [row["id"] for row in listed.json["conversations"]] == [sent.id]
    assert (await ask(outer, f"/debug/timeline/v1/conversations/{segment(sent.id)}/calls/3")).status == 200
    assert (await ask(outer, "/debug/timeline/nowhere")).json["type"] == "no-such-address"


@pytest.mark.parametrize("prefix", ["/proxy", "/a b/ü"])
async def test_a_proxy_may_have_it_under_a_prefix(store: EventStore, sent: Sent, prefix: str) -> None:
    """The server names it as root_path, and passes it on in the path or strips it."""
    app = inspector(store)
    path = f"/v1/conversations/{segment(sent.id)}"
    assert (await ask(app, path, root_path=prefix)).json["conversation"]["id"] == sent.id
    assert (await ask(app, path)).json["conversation"]["id"] == sent.id


async def test_without_the_slash_behind_its_place_it_leads_to_it(store: EventStore) -> None:
    """Or the relative addresses of the page would miss it; the redirect is relative too."""
    answer = await ask(inspector(store), "", root_path="/debug/timeline")
    assert (answer.status, answer.headers["location"]) == (307, "./timeline/")


async def test_two_inspectors_share_nothing(sent: Sent, store: EventStore) -> None:
    """Neither of a process nor of a conversation that has the same id in another store."""
    async with open_store("memory://") as other:
        first, second = inspector(store), inspector(other)
        assert (await ask(first, "/v1/conversations")).json["total"] == 1
        assert (await ask(second, "/v1/conversations")).json["total"] == 0
        assert (await ask(second, f"/v1/conversations/{segment(sent.id)}")).status == 404


async def test_a_websocket_is_closed(store: EventStore) -> None:
    """There is nothing to say over one."""
    said: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    scope = {"type": "websocket", "path": "/", "headers": [], "server": ("127.0.0.1", 8000)}
    await inspector(store)(scope, receive, send)
    assert said == [{"type": "websocket.close", "code": 1008}]


async def test_the_stream_of_a_conversation_goes_through_its_doors(store: EventStore, sent: Sent) -> None:
    """Behind Last-Event-ID, with the headers that every answer has; a foreign origin gets none of it."""
    said: list[MutableMapping[str, Any]] = []
    begun = anyio.Event()

    async def receive() -> dict[str, Any]:
        if not given:
            given.append(True)
            return {"type": "http.request", "body": b"", "more_body": False}
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)
        if b"event: " in message.get("body", b""):
            begun.set()

    given: list[bool] = []
    path = f"/v1/conversations/{segment(sent.id)}/events"
    headers = [(b"host", b"127.0.0.1:8000"), (b"last-event-id", b"3")]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": headers}
    app = inspector(store)
    with anyio.fail_after(20):
        await app({**scope, "query_string": b"", "server": ("127.0.0.1", 8000), "root_path": ""}, receive, send)
    start = dict(said[0]["headers"])
    assert (said[0]["status"], start[b"content-type"]) == (200, b"text/event-stream; charset=utf-8")
    assert start[b"content-security-policy"].startswith(b"default-src 'none'")
    assert b"event: context-usage" in b"".join(message.get("body", b"") for message in said)
    foreign = await ask(app, path, headers={"origin": "http://evil.example"})
    assert foreign.status == 403
