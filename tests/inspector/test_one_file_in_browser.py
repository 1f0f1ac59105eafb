"""A conversation as one HTML file: opened from disk, in the browser that people have, without any request."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.inspector.exporting import ID, SECRET, TRAP, apart, write
from tests.scenes import small_policy
from timeline import Timeline, open_store, sync
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.inspector.notebook import show
from timeline.inspector.onefile.collecting import Wish
from timeline.inspector.onefile.page import one_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    from timeline.blocks import Block
from timeline.inspector.onefile.collecting import Carried

T = TypeVar("T")


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[[Path], Page]]:
    """Give a function that opens a file; at the end it has asked nobody for anything, and run nothing that it shows."""
    pages: list[tuple[Page, list[str]]] = []

    def open_(file: Path, fragment: str = "") -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        heard: list[str] = []
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(("data:", file.as_uri())) else heard.append(r.url))
        page.goto(file.as_uri() + fragment)
        page.wait_for_selector("html[data-ready]")
        pages.append((page, heard))
        return page

    yield open_
    for page, heard in pages:
        assert heard == []
        assert page.title() != "owned"
        page.context.close()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Carried]:
    """Write a file with everything in it."""
    return write(tmp_path_factory.mktemp("file"), Wish(contexts="all"))


def _place(file: Path) -> str:
    return f"{file.as_uri()}#/c/{quote(ID, safe='')}"


def test_it_opens_from_disk_with_the_views_of_the_inspector(
    written: tuple[Path, Carried], opened: Callable[[Path], Page]
) -> None:
    """The log with its states, a block in full, a compaction's summary, the context of a call, the search."""
    file, carried = written
    page = opened(file)
    expect(page.locator("h1")).to_have_text(TRAP.strip())
    expect(page.get_by_text("Looked at 11.").first).to_be_visible()
    assert page.locator("img").count() == 0
    page.goto(f"{_place(file)}/compactions")
    expect(page.get_by_text("Compactions").first).to_be_visible()
    newest = carried.answers["compactions"]["compactions"][-1]
    expect(page.get_by_text(f"{newest['version']}").first).to_be_visible()
    page.goto(f"{_place(file)}/context?call=12")
    expect(page.get_by_text("Byte for byte what was sent.").first).to_be_visible()
    expect(page).to_have_url(re.compile("at="))  # the view says in the address which version it shows
    page.goto(f"{_place(file)}/live")
    expect(page.get_by_text("This is a file")).to_be_visible()


def test_what_was_left_out_is_said(written: tuple[Path, Carried], opened: Callable[[Path], Page]) -> None:
    """At the top of the page, and where it is asked for."""
    file, carried = written
    page = opened(file)
    page.click(".file-note summary")
    for line in carried.left_out:
        expect(page.locator(".file-note li", has_text=line)).to_be_visible()
    page.goto(f"{_place(file)}/diff")
    expect(page.get_by_text("`timeline diff` shows them").first).to_be_visible()


def test_nothing_that_was_to_be_taken_out_is_in_the_file(tmp_path: Path, opened: Callable[[Path], Page]) -> None:
    """Neither a credential, nor its beginning at a cut end, nor a home folder; the list counts its places."""
    _, open_text = write(tmp_path, Wish(contexts="all"))
    assert SECRET in str(open_text.texts)
    file, carried = write(tmp_path, Wish(contexts="all", redact=True))
    everything = str((carried.rows, carried.texts, carried.answers, carried.contexts, carried.pool))
    assert "ghp_" not in everything
    assert "/home/ada" not in everything
    assert "~/11.txt" in everything
    assert carried.cleaner is not None
    taken = carried.cleaner.taken
    assert {one.kind for one in taken} == {"github", "home folder"}
    assert all(SECRET not in one.excerpt for one in taken)
    assert sum(one.places for one in taken) >= 24
    page = opened(file)
    page.click(".file-note summary")
    expect(page.locator(".file-note")).to_contain_text("of the kind 'github', taken out before it was shared")
    expect(page.get_by_text("token=[github").first).to_be_visible()


def test_the_chat_alone_has_no_text_of_a_tool(tmp_path: Path, opened: Callable[[Path], Page]) -> None:
    """Calls and results are rows without their texts, and the page says how many."""
    file, carried = write(tmp_path, Wish(mode="chat", contexts="all"))
    assert "line 3" not in str(carried.texts)
    assert "Look at 3" in str(carried.texts)
    assert carried.contexts == {}
    results = [row for row in carried.rows if row["type"] == "react.tool.result"]
    assert {row["text"] for row in results} == {""}
    page = opened(file)
    page.click(".file-note summary")
    expect(page.locator(".file-note")).to_contain_text("The texts of 24 calls, results and thoughts")


def test_five_thousand_blocks_can_be_used_within_two_seconds(tmp_path: Path, browser: Browser) -> None:
    """From the moment at which the file is opened until a row is there; elsewhere in the log as quickly."""

    async def work() -> str:
        async with open_store("memory://") as store:
            timeline = await Timeline.open(store, "long", policy=small_policy(max_tokens=50_000))
            blocks: list[Block] = []
            for number in range(1_250):
                call = ToolCall(call_id=f"c{number}", name="bash", arguments={"command": f"ls {number}"})
                blocks += [
                    UserPrompt(text=f"Look at {number}. " + "please " * 30),
                    call,
                    ToolResult(call_id=call.call_id, text=f"line {number} " * 60),
                    AssistantCompletion(text="done " * 30),
                ]
            await timeline.append(*blocks)
            await timeline.render()
            return (await one_file(store, "long", Wish()))[0]

    file = tmp_path / "long.html"
    file.write_text(apart(work()), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_text(re.compile(r"^Look at 12\d\d\.")).first).to_be_visible()
    took = page.evaluate("performance.now()")
    assert page.evaluate("document.querySelectorAll('*').length") < 1_500
    page.close()
    assert took < 4_000, "two seconds on a machine of its own"


def test_a_notebook_shows_it_in_a_frame_without_a_server(tmp_path: Path, browser: Browser) -> None:
    """The newest rows; its links stay in the frame, and its scripts reach nothing around it."""

    def shown() -> str:
        with sync.open_store("memory://") as store:
            timeline = sync.Timeline.open(store, ID, policy=small_policy(max_tokens=2_000))
            for number in range(10):
                timeline.append(
                    UserPrompt(text=f"Look at {number}. {TRAP}" + "x " * 700), AssistantCompletion(text="y")
                )
                timeline.render()
            context = timeline.render()
            return "".join((show(store, ID, newest=12)._repr_html_(), timeline._repr_html_(), context._repr_html_()))

    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><title>notebook</title>{apart(_called(shown))}", encoding="utf-8")
    page = browser.new_page()
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.goto(file.as_uri())
    frame = page.frame_locator("iframe").nth(0)
    expect(frame.get_by_text("Look at 9.").first).to_be_visible()
    expect(frame.locator(".file-note")).to_contain_text("only the newest 12 are here")
    frame.get_by_role("tab", name="Compactions").or_(frame.get_by_role("link", name="Compactions")).last.click()
    expect(frame.get_by_text("Summary, in full").first).to_be_visible()
    for place in (1, 2):  # a timeline and a context by themselves: their window, in the same page
        window = page.frame_locator("iframe").nth(place)
        expect(window.get_by_text("Look at 9.").first).to_be_visible()
        expect(window.get_by_role("tab")).to_have_text([re.compile("^Log"), re.compile("^Compactions")])
        expect(window.locator(".strip .gauge .share").first).to_be_visible()
        expect(window.locator(".file-note")).to_contain_text("earlier versions, model calls and their requests")
        window.get_by_text("Look at 9.").last.click()
        expect(window.locator(".panel .content")).to_contain_text("x x x")
        window.get_by_role("tab", name="Compactions").click()
        expect(window.get_by_text("Summary, in full").first).to_be_visible()
    assert (page.title(), heard) == ("notebook", [])
    page.close()


async def _called(function: Callable[[], T]) -> T:
    return await asyncio.to_thread(function)
