"""What the page reads of the answers: each key that it asks for is there, and what it says is what they say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import pytest
from playwright.sync_api import expect

from tests.inspector.looking import change, looking, served
from tests.inspector.story import FORGETFUL, tell_forgetful
from timeline import Timeline, policies
from timeline.blocks import UserPrompt
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.inspector.looking import Served
    from timeline.ports import EventStore

_AT: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
UNRENDERED: Final = "unrendered"
"""A conversation whose calls answer no recorded context, as those of an imported recording."""
SENT: Final = 23_456
PINNED: Final = 130
VIEWS: Final = ("", "/context", "/compactions", "/diff", "/family", "/cache", "/live", "/export")
NOTING: Final = """
window.unknown = {};
const wrapped = (value, path) => value === null || typeof value !== "object" ? value : new Proxy(value, {
  get(held, key, receiver) {
    const found = Reflect.get(held, key, receiver);
    const name = Array.isArray(held) ? path : `${path}.${String(key)}`;
    if (typeof key === "string" && !(key in held) && !Array.isArray(held) && key !== "then" && key !== "toJSON") window.unknown[name] = true;
    const fixed = Object.getOwnPropertyDescriptor(held, key)?.configurable === false;
    return fixed ? found : wrapped(found, name);
  },
});
const read = Response.prototype.json;
Response.prototype.json = async function () {
  const path = new URL(this.url).pathname.split("/v1/")[1].replace(/conversations\\/[^/]+/, "").replace(/\\/(\\d+|%40\\d+)/g, "");
  return wrapped(await read.call(this), path);
};
"""  # noqa: E501 - a script
EITHER: Final = {
    f"/diff.difference.{rows}.{key}"
    for rows, keys in (
        ("entered", ("before", "reason", "after_tokens", "after")),
        ("left", ("before", "reason", "covered_by", "after_tokens", "after")),
        ("changed", ("shown_tokens", "state", "covered_by", "reason")),
    )
    for key in keys
} | {"/state.fixed"}
"""Keys that one form of an answer has and another has not: rows of a difference, and the state of a notebook's page."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the conversations to a file."""
    made = tmp_path_factory.mktemp("answers") / "told.db"

    async def tell(store: EventStore) -> None:
        await tell_forgetful(store)
        timeline = await Timeline.open(store, UNRENDERED)
        await timeline.append(UserPrompt(text="Look at it. " * 50), now=_AT)
        await timeline.record_model_call(Usage(input_tokens=SENT, output_tokens=3), model="claude-opus-4-5", now=_AT)
        pinned = await Timeline.open(store, "pinned", policy=policies.cut_point(max_tokens=30_000))
        for number in range(PINNED):
            [rule] = await pinned.append(UserPrompt(text=f"Rule {number}: keep to it."), now=_AT)
            await pinned.pin(rule.path, now=_AT)
        await pinned.append(*(UserPrompt(text=f"Step {number}. " + "Go on. " * 200) for number in range(40)), now=_AT)
        await pinned.compact(now=_AT + timedelta(hours=1))

    change(made, tell)
    return made


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[Served]:
    """Serve them."""
    with served(file) as running:
        yield running


def test_each_key_that_the_page_asks_for_is_in_the_answer(browser: Browser, server: Served) -> None:
    """In all views, at two versions, and with blocks that are sent, covered and hidden."""
    addresses = [f"/c/{name}{view}{at}" for name in (FORGETFUL, UNRENDERED) for view in VIEWS for at in ("", "?at=340")]
    addresses += [f"/c/{FORGETFUL}?at={at}&block=%40{block}" for at in (300, 424) for block in (2, 323, 420)]
    with looking(browser, server.base) as seen:
        seen.page.add_init_script(NOTING)
        seen.page.reload()
        asked: dict[str, str] = {}
        for address in addresses:
            seen.go(address)
            seen.page.locator(".view > *").first.wait_for()
            expect(seen.page.locator(".loading")).to_have_count(0)
            seen.page.wait_for_timeout(150)  # the chart is asked for behind the rest
            for key in seen.page.evaluate("Object.keys(window.unknown)"):
                asked.setdefault(key, address)
        named = {key for key in asked if ".digest." in key or ".left_out." in key}  # what has an entry, the log decides
        assert asked.keys() - EITHER - named == set(), asked


def test_the_panel_names_the_version_that_its_answer_is_about(browser: Browser, server: Served) -> None:
    """Now, or the version that the slider stands at."""
    with looking(browser, server.base) as seen:
        seen.go(f"/c/{FORGETFUL}?at=340&block=%402")
        expect(seen.page.locator(".verdict")).to_contain_text("at version 340")
        seen.go(f"/c/{FORGETFUL}?block=%402")
        expect(seen.page.locator(".verdict")).to_contain_text("now")


def test_a_call_without_a_context_is_as_large_as_its_provider_said(browser: Browser, server: Served) -> None:
    """On the page of its conversation as in the list."""
    with looking(browser, server.base) as seen:
        expect(seen.page.locator(".talk", has_text=UNRENDERED).locator(".talk-fill")).to_contain_text("23k of")
        seen.go(f"/c/{UNRENDERED}")
        expect(seen.page.locator(".strip .figure").first).to_contain_text("23k of")


def test_a_compaction_counts_all_that_it_carries(browser: Browser, server: Served) -> None:
    """Its row names the newest hundred alone."""
    with looking(browser, server.base) as seen:
        seen.go("/c/pinned/compactions")
        expect(seen.page.locator(".compaction .pairs")).to_contain_text(f"{PINNED} blocks, word for word")
        expect(seen.page.get_by_label("pinned blocks at version 3").first).to_be_attached()
        expect(seen.page.get_by_label("blocks.pinned")).to_have_count(0)


def test_a_damaged_conversation_says_so_in_the_list(browser: Browser, file: Path, tmp_path: Path) -> None:
    """Without figures that its log does not give."""
    damaged = tmp_path / "damaged.db"
    with closing(sqlite3.connect(file)) as held, closing(sqlite3.connect(damaged)) as copy:
        held.backup(copy)
        copy.execute("UPDATE events SET payload = '{', packed = NULL WHERE type = 'model.called'")
        copy.commit()
    with served(damaged) as server, looking(browser, server.base) as seen:
        row = seen.page.locator(".talk", has_text=UNRENDERED)
        expect(row).to_contain_text("damaged")
        expect(row).not_to_contain_text("not compacted")
