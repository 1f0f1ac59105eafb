"""A store in which secrets are planted wherever a session leaves a copy, and what looks for them in its bytes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from timeline import Timeline, policies
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.events import event_id, new_event
from timeline.events.other_payloads import FrameworkEntry
from timeline.store.packing import unpacked

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore

PLAIN: Final = "hunter-7f3a9c-kestrel"
UNICODE: Final = "пароль-Größe-7f3a-密码"
FOLDED: Final = "HUNTER-7F3A9C-KESTREL"
SECRETS: Final = (PLAIN, UNICODE, FOLDED)
LEAK: Final = f"token={PLAIN} and {UNICODE}"
SYSTEM: Final = f"You are a coding agent. Never print {PLAIN}."


def forms(secret: str) -> list[bytes]:
    """Return what a secret looks like in a file: as it is, as JSON escapes it, with its case folded, in UTF-16."""
    escaped = secret.encode("ascii", "backslashreplace")
    ways = (secret.encode(), escaped, secret.casefold().encode(), secret.upper().encode(), secret.encode("utf-16-le"))
    return list(dict.fromkeys(ways))


def left_in(data: bytes, secrets: tuple[str, ...] = SECRETS) -> int:
    """Return how often secrets are in bytes."""
    return sum(data.count(form) for form in {form for secret in secrets for form in forms(secret)})


def words_left(file: Path, secrets: tuple[str, ...] = SECRETS) -> int:
    """Return how often the parts of secrets are words of the full-text index, which cuts them at hyphens."""
    with closing(sqlite3.connect(file)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search_index'").fetchone():
            return 0
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, search_index, row)")
        terms = {term for (term,) in connection.execute("SELECT term FROM temp.terms")}
    return len(terms & {part.casefold() for secret in secrets for part in secret.split("-")})


def places_left(file: Path, secrets: tuple[str, ...] = SECRETS) -> dict[str, int]:
    """Return how often secrets are in a database, by place: columns, with packed payloads, and the raw files."""
    found: dict[str, int] = {}
    with closing(sqlite3.connect(file)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in tables:
            rows = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - a name of the schema
            names = [column[0] for column in rows.description]
            for row in rows:
                for name, value in zip(names, row, strict=True):
                    said = unpacked(value) if name == "packed" and isinstance(value, bytes) else value
                    data = said if isinstance(said, bytes) else str(said).encode()
                    if number := left_in(data, secrets):
                        found[f"{table}.{name}"] = found.get(f"{table}.{name}", 0) + number
    for suffix in ("", "-wal", "-shm"):
        beside = file.with_name(file.name + suffix)
        if beside.exists() and (number := left_in(beside.read_bytes(), secrets)):
            found[f"file{suffix}"] = number
    if number := words_left(file, secrets):
        found["words"] = number
    return found


async def plant(store: EventStore, id_: str = "cards") -> dict[str, Any]:
    """Run a session that handles secrets in every way; return its handles and what is to be redacted."""
    policy = policies.cut_point(max_tokens=4_000)
    timeline = await Timeline.open(store, id_, policy=policy, title=f"Deploy with {LEAK}")
    [prompt] = await timeline.append(UserPrompt(text=f"Deploy with {LEAK}. Do not ask."))
    call = ToolCall(
        call_id="c1",
        name="bash",
        arguments={"command": f"curl -H 'Bearer {PLAIN}' https://example.org/{FOLDED}", "note": UNICODE},
    )
    output = f"fatal: {LEAK}\n" + "ok\n" * 40
    [said, result] = await timeline.append(call, ToolResult(call_id="c1", text=output, is_error=True))
    read = ToolCall(call_id="c2", name="Read", arguments={"file_path": f"/srv/{PLAIN}.txt"})
    [opened, text] = await timeline.append(read, ToolResult(call_id="c2", text=f"{UNICODE}\nline\n"))
    at = (await store.load_window(id_)).info.updated_at
    entry = FrameworkEntry(
        framework="pydantic-ai", key="1", data={"parts": [{"content": f"Deploy with {LEAK}. Do not ask."}]}
    )
    await store.append(id_, [new_event(event_id(at), at, entry)])
    await timeline.catch_up()
    context = await timeline.render(system=SYSTEM, ephemeral=[f"Remember {LEAK}."])
    request = context.request("openai_chat", model="gpt-4o")
    reply = {"id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": "Deployed."}}]}
    await timeline.record(reply, request=request)
    await timeline.hide(result.path)
    recall = timeline.recall_tool("anthropic")
    asked = ToolCall(call_id="r1", name="recall", arguments={"path": prompt.path})
    again = await recall.handle({"path": prompt.path})
    [_, echo] = await timeline.append(asked, ToolResult(call_id="r1", text=again))
    fork = await timeline.fork(conversation=f"{id_}.early")
    for number in range(6):
        await timeline.append(UserPrompt(text=f"Write card {number}. " * 120))
        await timeline.render(system=SYSTEM)
    late = await timeline.fork(conversation=f"{id_}.late")
    for number in range(5):
        await fork.append(UserPrompt(text=f"Write note {number}. " * 120))
        await fork.render()
    await late.append(UserPrompt(text="Go on. " * 200))
    await late.render()
    found = [hit async for hit in store.search("kestrel")]
    facts = [fact async for fact in store.facts()]
    digests = [digest async for digest in store.digests()]
    return {
        "timeline": timeline,
        "fork": fork,
        "late": late,
        "paths": [prompt.path, said.path, result.path, opened.path, text.path],
        "echo": echo.path,
        "entry": entry,
        "before": (len(found), len(facts), len(digests)),
    }
