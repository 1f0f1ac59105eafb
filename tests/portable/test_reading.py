from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

from timeline import Timeline
from timeline.blocks import AssistantCompletion, Note, ToolCall, ToolResult, UserPrompt
from timeline.events.encoding import checksum
from timeline.portable import export_log, read_copies
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.portable import LogCopy


async def exported() -> list[str]:
    """Return the lines of a log with blocks of several types, a context and a call."""
    async with MemoryStore() as store:
        timeline = await Timeline.open(store, "cärds")
        await timeline.append(
            UserPrompt(text="Build \u2028 it.\n"),
            ToolCall(call_id="c1", name="bash", arguments={"command": "ls\\"}),
            ToolResult(call_id="c1", text="a\tb\x7f"),
            AssistantCompletion(text="Dönê. 👍"),
            Note(text="kept"),
            Note(text="nested", meta={"deep": [1, {"a": None}]}),
        )
        await timeline.render(system="Be brief.")
        return [line async for line in export_log(store, ["cärds"])]


def read(folder: Path, lines: list[str]) -> LogCopy:
    """Read lines as a file with one conversation."""
    file = folder / "log.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    [copy] = read_copies(file) or []
    return copy


async def test_a_line_that_is_read_at_once_says_what_it_says_with_care(tmp_path: Path) -> None:
    """Spaces between its first fields make an export's line one that is parsed as JSON: the event is the same."""
    lines = await exported()
    at_once, careful = (
        read(tmp_path, found) for found in (lines, [line.replace('"event",', '"event", ') for line in lines])
    )
    assert at_once.report.records == careful.report.records == len(lines)
    assert len(at_once.events) == at_once.version
    assert not careful.report.findings
    assert any(event.columns is not None for event in at_once.events.values())
    for version, one in at_once.events.items():
        other = careful.events[version]
        assert other.columns is None
        assert one._replace(columns=None, read=one.payload) == other
        assert (one.event().id, one.event().at, one.event().payload) == (
            other.event().id,
            other.event().at,
            other.payload,
        )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"tokens":', '"tokens": '),
        ('"text":"kept"', '"text":"\\u006bept"'),
        ('"type":"note"', '"type":"note","author":"system"'),
        ('{"block":', '{"tokens":1,"block":'),
    ],
)
async def test_a_payload_that_would_be_stored_as_another_text_is_put_aside(tmp_path: Path, old: str, new: str) -> None:
    """Also where the checksum is that of the text as it is there."""
    lines = await exported()
    number, line = next((n, line) for n, line in enumerate(lines) if '"kept"' in line)
    head, _, payload = line.partition(',"payload":')
    payload = payload[:-1].replace(old, new)
    told: dict[str, Any] = json.loads(f"{head}}}")
    told = {name: value for name, value in told.items() if name not in {"salt", "c", "link"}}
    parts = (told["conversation"], told["version"], told["id"], told["type"], told["schema_version"])
    told["checksum"] = checksum(*parts, told["at"], payload)
    changed = json.dumps(told, separators=(",", ":"), ensure_ascii=False)[:-1] + f',"payload":{payload}}}'
    copy = read(tmp_path, [*lines[:number], changed, *lines[number + 1 :]])
    assert told["version"] not in copy.events
    assert copy.report.counts["quarantined"] == 1


@pytest.mark.parametrize("name", ["checksum", "salt", "c", "link"])
async def test_a_line_whose_hash_is_no_hexadecimal_is_put_aside(tmp_path: Path, name: str) -> None:
    """Quick reading takes hashes by their length."""
    lines = await exported()
    number, line = next((n, line) for n, line in enumerate(lines) if '"kept"' in line)
    kept: str = json.loads(line)[name]
    copy = read(tmp_path, [*lines[:number], line.replace(kept, f"x{kept[1:]}"), *lines[number + 1 :]])
    assert json.loads(line)["version"] not in copy.events
    assert copy.report.counts["quarantined"] == 1


async def test_no_garbage_is_looked_for_while_a_file_is_read(tmp_path: Path) -> None:
    """All that is made of its lines stays. One search may be due behind the reading."""
    async with MemoryStore() as store:
        timeline = await Timeline.open(store, "long")
        await timeline.append(*[Note(text=str(number)) for number in range(1_000)])
        lines = [line async for line in export_log(store, ["long"])]
    file = tmp_path / "log.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    phases: list[str] = []
    gc.callbacks.append(lambda phase, _: phases.append(phase))
    try:
        read_copies(file)
    finally:
        gc.callbacks.pop()
    assert phases.count("start") <= 1
