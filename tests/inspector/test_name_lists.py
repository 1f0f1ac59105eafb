"""The lists of everything before a summary: the API and the page open what the summary's text names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from playwright.sync_api import expect

from tests.inspector.asking import ask
from tests.inspector.looking import change, looking, served
from tests.scenes import small_policy
from timeline import Timeline
from timeline.blocks import UserPrompt
from timeline.events import BlockRedacted, CompactionCompleted, NewEvent, event_id
from timeline.frozen import sha256_hex

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.inspector.sent import Sent
    from timeline.ports import EventStore


async def _summaries(store: EventStore, conversation: str) -> list[tuple[int, str]]:
    events = [event async for event in store.read(conversation, types=["compaction.completed"])]
    return [(e.version, e.payload.block.path) for e in events if isinstance(e.payload, CompactionCompleted)]


async def _read(app: Any, sent: Sent, address: str, query: dict[str, object] | None = None) -> Any:
    return await ask(app, f"/v1/conversations/{quote(sent.id, safe='')}/blocks/{quote(address, safe='')}", query)


async def test_a_list_is_the_one_that_the_library_reads(app: Any, store: EventStore, sent: Sent) -> None:
    """By the summary's path and by its address, in pieces too; a checksum of its own, since it may change."""
    timeline = await Timeline.open(store, sent.id)
    for version, path in (await _summaries(store, sent.id))[-2:]:
        for summary in (path, f"@{version}"):
            for name in (await _read(app, sent, summary)).json["lists"]:
                wanted = (await timeline.read(name)).text
                answer = (await _read(app, sent, name)).json
                assert (answer["text"], answer["list_of"], answer["address"]) == (wanted, summary, name)
                assert answer["checksum"] == sha256_hex(wanted)
                piece = (await _read(app, sent, name, {"offset": 3, "limit": 5})).json
                assert (piece["text"], piece["next_offset"]) == (wanted[3:8], 8)


async def test_only_a_summary_has_lists(app: Any, sent: Sent) -> None:
    """Behind any other block there is none, nor behind what is not there."""
    assert (await _read(app, sent, "@2")).json["lists"] == []
    for name in ("@2.paths", "@99999.names", "nothing.paths"):
        assert (await _read(app, sent, name)).status == 404


async def test_a_redacted_summary_has_no_list(app: Any, store: EventStore, sent: Sent) -> None:
    """What is forgotten is in no list, and is not offered."""
    version, _ = (await _summaries(store, sent.id))[-1]
    at = datetime(2026, 1, 1, tzinfo=UTC)  # an earlier release wrote such an event
    await store.append(sent.id, [NewEvent(id=event_id(at), at=at, payload=BlockRedacted(version=version))])
    assert (await _read(app, sent, f"@{version}")).json["lists"] == []
    assert (await _read(app, sent, f"@{version}.paths")).status == 404


def test_the_panel_of_a_summary_leads_to_its_lists_and_these_to_blocks(browser: Browser, tmp_path: Path) -> None:
    """Each line begins with the block that has its names."""
    file = tmp_path / "files.db"
    compacted: list[int] = []

    async def tell(store: EventStore) -> None:
        timeline = await Timeline.open(store, "files", policy=small_policy(max_tokens=9_000))
        for number in range(12):
            await timeline.append(UserPrompt(text=f"Look at src/part_{number}.py. " + "It is long. " * 160))
        await timeline.compact()
        compacted.append((await _summaries(store, "files"))[-1][0])

    change(file, tell)
    with served(file) as server, looking(browser, server.base) as seen:
        seen.go(f"/c/files?block=%40{compacted[0]}")
        seen.page.get_by_role("button", name="all paths").click()
        listed = seen.page.get_by_role("region", name="List of names")
        expect(listed).to_contain_text("most used first")
        expect(seen.page.locator(".because")).to_have_count(0)
        button = listed.get_by_role("button").first
        address = button.inner_text()
        button.click()
        expect(seen.page.locator("#panel-title")).to_contain_text(address)
        expect(seen.page.locator(".because")).to_be_visible()
