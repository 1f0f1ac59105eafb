"""Bad input and bad luck: each has a clear answer, and none stops the server."""

from __future__ import annotations

import json
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.inspector.asking import ask, endless_headers, segment
from tests.inspector.sent import SCRIPT
from tests.scenes import after, opened, prompt, small_policy, turn
from timeline import Timeline
from timeline.inspector import inspector
from timeline.inspector.routes import ROUTES
from timeline.inspector.serving import Place, serve
from timeline.retention import scavenge
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping
    from pathlib import Path

    from tests.inspector.sent import Sent
    from timeline.ports import EventStore

MOST = 16 * 2**20
"""Bytes of headers after which a server may be said to take any amount: what is on its way in the sockets is less."""
VIEWS = (
    "",
    "/blocks",
    "/blocks/%402",
    "/calls",
    "/calls/3",
    "/calls/3/context",
    "/calls/3/body",
    "/state",
    "/chart",
    "/compactions",
    "/family",
    "/status",
)


def one(id_: str, rest: str = "") -> str:
    """Return the address of something of a conversation."""
    return f"/v1/conversations/{segment(id_)}{rest}"


async def views(app: Any, id_: str) -> dict[str, int]:
    """Ask all views of a conversation; return their statuses."""
    return {view: (await ask(app, one(id_, view))).status for view in VIEWS}


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/web/../app.py",
        "/%2e%2e/app.py",
        "/index.html/../../app.py",
        "/app.py",
        "/C:%5CWindows%5Cwin.ini",
        "/index.html%00.js",
        "/v1",
        "/v1/",
        "/v1/conversations/",
        "/v1/conversations/x/blocks/",
        "/v1//conversations",
        "/v1/conversations//",
        "/v1/conversations//3",
    ],
)
async def test_a_path_outside_is_no_address(app: Any, path: str) -> None:
    """Files are known by name before any request: none is opened for one."""
    answer = await ask(app, path)
    assert answer.status in {400, 404}, answer.body
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("id_", [".", ".."])
async def test_an_id_of_dots_is_an_empty_segment_and_their_number(id_: str) -> None:
    """No browser sends such a segment, however it is encoded; a script may."""
    async with open_store("memory://") as store:
        await (await Timeline.open(store, id_)).append(prompt())
        app = inspector(store, allow=["pin"])
        place = f"/v1/conversations//{len(id_)}"
        assert await views(app, id_) == {view: (await ask(app, place + view)).status for view in VIEWS}
        assert (await ask(app, f"{place}/blocks")).json["conversation"] == id_
        headers, body = {"X-Timeline-Decision": "1"}, [b'{"decision": "pin", "block": "@2"}']
        done = await ask(app, f"{place}/decisions", method="POST", headers=headers, body=body)
        assert done.status == 200, done.body


DECIDING: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/v1/conversations/cards/decisions",
    "query_string": b"",
    "headers": [(b"host", b"127.0.0.1:8000"), (b"x-timeline-decision", b"1")],
    "server": ("127.0.0.1", 8000),
}
"""A request whose body is read."""


async def test_nothing_of_a_body_is_read_before_it_is_known_who_asks(store: EventStore) -> None:
    """Or a stranger could fill the memory with bodies that are refused in the end."""

    async def receive() -> dict[str, Any]:
        raise AssertionError

    statuses: list[int] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await inspector(store, auth=lambda _: False)(DECIDING, receive, send)
    await inspector(store)({**DECIDING, "headers": [(b"host", b"evil.example")]}, receive, send)
    assert statuses == [403, 403]


async def test_a_body_of_200_megabytes_is_refused_as_it_comes(app: Any) -> None:
    """Only its first megabytes are ever held."""
    given = 0

    def parts() -> Iterator[bytes]:
        nonlocal given
        for _ in range(200):
            given += 1
            yield b"x" * 1_000_000

    class Slowly:
        """Parts that are made when they are asked for."""

        def __init__(self) -> None:
            self._parts = parts()

        def __iter__(self) -> Iterator[bytes]:
            return self._parts

    sent = iter(Slowly())

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(sent), "more_body": True}

    statuses: list[int] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(DECIDING, receive, send)
    assert statuses == [413]
    assert given < 10


async def test_a_body_that_never_comes_is_given_up(store: EventStore) -> None:
    """After the deadline, whoever sends it."""

    async def receive() -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    statuses: list[int] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await inspector(store, deadline=0.05)(DECIDING, receive, send)
    assert statuses == [408]


async def test_headers_without_an_end_are_not_kept(store: EventStore) -> None:
    """They come before the token, so anybody of the machine may send them."""
    started = anyio.Event()
    async with anyio.create_task_group() as tasks:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        tasks.start_soon(serve, store, Place(port=port), lambda *_: started.set())
        await started.wait()
        with anyio.fail_after(30):
            assert await endless_headers(port, MOST) < MOST
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("view", ["/events", "/status"])
async def test_a_stream_with_a_body_that_is_too_long_is_refused_before_it_begins(
    app: Any, sent: Sent, view: str
) -> None:
    """It would end in the middle, with an error of the server."""
    answer = await ask(app, one(sent.id, view), body=[b"x" * 1_000_000] * 5)
    assert (answer.status, answer.json["type"]) == (413, "request-not-read")


async def test_an_answer_that_takes_too_long_is_given_up_with_the_cure(
    app: Any, sent: Sent, monkeypatch: pytest.MonkeyPatch, store: EventStore
) -> None:
    """The next one is not held up by it."""

    async def slow(*_: object) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(store, "info", slow)
    answer = await ask(inspector(store, deadline=0.05), one(sent.id))
    assert (answer.status, answer.json["type"]) == (408, "deadline")
    monkeypatch.undo()
    assert (await ask(app, one(sent.id))).status == 200


async def test_markup_in_every_text_comes_back_as_the_text_it_is(app: Any, sent: Sent) -> None:
    """As JSON, which no browser takes for a page."""
    for view in VIEWS:
        answer = await ask(app, one(sent.id, view))
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert json.loads(answer.body)
    row = (await ask(app, one(sent.id, "/blocks"), {"after": 1, "limit": 1})).json["rows"][0]
    assert SCRIPT in row["text"]


async def test_a_conversation_may_grow_compact_and_be_undone_between_two_looks(
    app: Any, store: EventStore, sent: Sent
) -> None:
    """What was kept of it before is brought up to date, and what was asked of a past version stays true."""
    await views(app, sent.id)
    past = (await ask(app, one(sent.id, "/blocks"), {"at": 30})).json["rows"]
    timeline = await Timeline.open(store, sent.id)
    for step in range(3):
        await timeline.append(*(prompt(40) for _ in range(9)), now=after(500 + 10 * step))
        await timeline.compact(now=after(501 + 10 * step))
        assert set((await views(app, sent.id)).values()) == {200}
        await timeline.undo_compaction(now=after(502 + 10 * step))
        assert set((await views(app, sent.id)).values()) == {200}
        fresh = inspector(store)
        for view in ("", "/blocks", "/state", "/chart", "/compactions"):
            assert (await ask(app, one(sent.id, view))).json == (await ask(fresh, one(sent.id, view))).json, view
    assert (await ask(app, one(sent.id, "/blocks"), {"at": 30})).json["rows"] == past


async def test_what_is_redacted_is_in_no_answer_any_more(app: Any, store: EventStore) -> None:
    """Not in a row, not in a block, not in a call, though all of them were asked for before."""
    word = "hunter2-of-ada"
    timeline = await Timeline.open(store, "c", policy=small_policy(), now=after(0))
    [block] = await timeline.append(prompt(text=f"The password is {word}."), now=after(1))
    context = await timeline.render(now=after(2))
    request = context.request("anthropic", model="claude-opus-5", max_tokens=9)
    await timeline.record_model_call(request=request, now=after(3))
    told = ("", "/blocks", "/blocks/%402", "/calls/1", "/calls/1/context", "/calls/1/body", "/state", "/chart", "/why?")
    paths = [one("c", view) for view in told if not view.endswith("?")] + ["/v1/conversations"]
    before = [(await ask(app, path)).body for path in paths]
    assert sum(word.encode() in body for body in before) >= 4
    await timeline.redact(block.path, reason="a password", now=after(4))
    for path in paths:
        answer = await ask(app, path)
        assert word.encode() not in answer.body, path
        assert answer.status in {200, 409}, path
    assert (await ask(app, one("c", "/why"), {"block": "@2"})).json["why"]["state"] == "redacted"
    assert (await ask(app, one("c", "/blocks"))).json["rows"][1]["state"] == "redacted"


async def test_sizes_and_texts_are_those_of_a_fresh_inspector_after_a_redaction(
    app: Any, store: EventStore, sent: Sent
) -> None:
    """A redaction writes earlier summaries and errors anew: what was kept of any version is stale."""
    timeline = await Timeline.open(store, sent.id)
    await timeline.append(prompt(text="Mind the password hunter2."), now=after(900))
    last = timeline.version
    await timeline.record_model_call(model="m", finish_reason="error", error="refused: hunter2", now=after(901))
    asked: list[tuple[str, dict[str, int]]] = [
        (view, {}) for view in ("", "/blocks", "/state", "/chart", "/compactions")
    ]
    asked += [(view, {"at": at}) for view in ("/state", "/blocks") for at in range(last // 3, last, 3)]
    before = [(await ask(app, one(sent.id, view), given)).json for view, given in asked]
    await timeline.redact(["@2", f"@{last}"], "a secret", now=after(902))
    fresh = inspector(store)
    found = [(await ask(app, one(sent.id, view), given)).json for view, given in asked]
    assert found == [(await ask(fresh, one(sent.id, view), given)).json for view, given in asked]
    assert found[3]["points"] != before[3]["points"]
    assert "hunter2" not in str(found)


async def test_an_erased_conversation_is_gone_from_every_view(app: Any, store: EventStore, sent: Sent) -> None:
    """The answer says when and that its id stays taken."""
    await views(app, sent.id)
    await store.erase(sent.id, reason="asked by its user")
    for route in ROUTES:
        if "{id}" not in route.path:
            continue
        names = {"id": segment(sent.id), "address": "%402", "number": "3", "version": "30"}
        answer = await ask(app, "/" + route.path.format(**names), {"block": "@2"} if route.path.endswith("why") else {})
        assert (answer.status, answer.json["type"]) == (410, "conversation-erased"), route.path
    assert (await ask(app, "/v1/conversations")).json["total"] == 0


async def test_a_block_of_fifty_megabytes_is_answered_in_pieces(app: Any, store: EventStore) -> None:
    """No answer has more than a piece of it, and each says what it leaves out."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=100_000_000), now=after(0))
    await timeline.append(prompt(text="x" * 50_000_000), now=after(1))
    rows = await ask(app, one("c", "/blocks"))
    assert rows.json["rows"][1]["left_out"] == 50_000_000 - 200
    piece = await ask(app, one("c", "/blocks/%402"), {"offset": 49_999_000})
    assert (len(piece.json["text"]), piece.json["next_offset"]) == (1_000, None)
    whole = await ask(app, one("c", "/blocks/%402"))
    assert len(whole.json["text"]) == 65_536
    assert max(len(answer.body) for answer in (rows, piece, whole)) < 100_000


async def test_a_damaged_event_is_named_and_what_is_sound_is_still_shown(tmp_path: Path) -> None:
    """A typed problem, not an error of the server."""
    file = tmp_path / "agent.db"
    async with open_store(file) as store:
        timeline = await Timeline.open(store, "cards", policy=small_policy(), now=after(0))
        await timeline.append(*(prompt(text=f"Question {number} about decks.") for number in range(9)), now=after(1))
    data = file.read_bytes()
    assert data.count(b"Question 7 about") >= 1
    file.write_bytes(data.replace(b"Question 7 about", b"Question 8 about"))
    async with open_store(file, readonly=True) as store:
        app = inspector(store)
        broken = await ask(app, one("cards", "/blocks"))
        assert (broken.status, broken.json["type"]) == (409, "store-corrupt")
        assert len((await ask(app, one("cards", "/blocks"), {"until": 6})).json["rows"]) == 6
        for view in ("", "/blocks", "/state", "/chart", "/calls", "/family"):
            assert (await ask(app, one("cards", view))).status in {200, 409}, view
        [row] = (await ask(app, "/v1/conversations")).json["conversations"]
        assert "cards" in row["problem"]
        assert (await ask(app, "/v1/digests")).status == 200


async def test_a_fault_of_ours_is_one_line_to_the_reader(
    app: Any, store: EventStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What happened is in the log of the server, and in nobody else's hands."""

    def broken(**_: object) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(store, "recent_conversations", broken)
    answer = await ask(app, "/v1/conversations")
    assert (answer.status, answer.json["type"]) == (500, "fault")
    assert b"secret detail" not in answer.body
    assert "secret detail" in caplog.text


async def test_a_call_that_was_scavenged_is_shown_no_longer(store: EventStore) -> None:
    """A scavenge appends nothing, so the newest version does not tell that the kept answer is of before."""
    timeline = await opened(store, policy=small_policy(max_tokens=4_000, keep_recent_tokens=400))
    for number in range(3):
        await timeline.append(*turn(1_500))
        context = await timeline.render()
        choice = {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
        await timeline.record(
            {"id": f"m{number}", "choices": [choice]}, request=context.request("openai_chat", model="m")
        )
    await timeline.set_retention("window")
    app = inspector(store)
    assert (await ask(app, "/v1/conversations/c/calls/2/body")).status == HTTPStatus.OK
    await scavenge(store)
    assert (await ask(app, "/v1/conversations/c/calls/2/body")).status == HTTPStatus.NOT_FOUND
