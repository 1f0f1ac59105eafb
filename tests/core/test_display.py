from __future__ import annotations

import json
import sys
from html.parser import HTMLParser

import pytest

from timeline import Timeline, open_store, policies, sync
from timeline.blocks import ToolCall, ToolResult, UserPrompt
from timeline.display.controls import escape_controls, show_controls
from timeline.errors import ImportFailed

HOSTILE = "<script>alert(1)</script>&\x1b[31m\x9b\u202e\u2066\x07"
"""A text that a page must escape, and that must not steer a terminal or reorder a page."""


async def filled(turns: int, text: str = "word ") -> Timeline:
    """Return a conversation of four blocks a turn."""
    store = await open_store("memory://")
    timeline = await Timeline.open(store, f"c{text}", policy=policies.none(max_tokens=10_000_000))
    for n in range(turns):
        call = ToolCall(call_id=f"c{n}{text}", name="bash", arguments={"command": "ls"}, response_id=f"m{n}")
        answered = ToolResult(call_id=call.call_id, text=text)
        await timeline.append(UserPrompt(text=text * 50), call, answered, UserPrompt(text=text))
    return timeline


def test_control_characters_are_made_visible_or_escaped_one_for_one() -> None:
    """Line ends and tabs stay; the length of a shown text stays; what reads an escaped JSON gets every character."""
    every = "".join(map(chr, range(0x2100)))
    shown = show_controls(every)
    assert len(shown) == len(every)
    assert [c for c in shown if not c.isprintable() and ord(c) < 0xA0] == ["\t", "\n"]
    assert not {*"\u061c\u200e\u200f\u202a\u202e\u2066\u2069"} & {*show_controls("\u2066\u2069" + every)}
    assert json.loads(escape_controls(json.dumps(every, ensure_ascii=False))) == every


def test_the_message_of_an_error_cannot_steer_a_terminal() -> None:
    """A traceback and a log line show the controls of a name that a message repeats."""
    assert str(ImportFailed("a\x1b[31m.jsonl", "no")) == "a␛[31m.jsonl: no"


async def test_values_that_grow_with_a_conversation_have_a_short_repr() -> None:
    """Of 4,000 blocks a debugger, a log line or a formatted task shows some words, in every way that Python writes."""
    timeline = await filled(1_000)
    context = await timeline.render(system="s" * 100_000)
    shown = [timeline, await timeline.at(4_000), timeline.window, context, context.neutral, context.explanation]
    assert [type(value).__name__ for value in shown if len(repr(value)) > 1_200 or len(str(value)) > 1_200] == []
    assert repr(timeline) == "<Timeline 'cword ': version 4002, 4000 blocks, 61,000 tokens, policy 'none'>"
    assert f"version={context.version}, entries=4000, tokens={context.account.total}" in repr(context)
    assert len(timeline._repr_html_()) < 500_000
    assert len(context._repr_html_()) < 500_000


class _Tags(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the tag."""
        self.tags.add(tag)
        assert {name for name, _ in attrs} <= {"colspan"}

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += data


@pytest.fixture
def without_inspector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the inspector be one that cannot be imported."""
    monkeypatch.setitem(sys.modules, "timeline.inspector.notebook", None)


@pytest.mark.usefixtures("without_inspector")
async def test_a_notebook_without_the_inspector_shows_the_newest_blocks_as_text() -> None:
    """Of a timeline and of a context: a table without script, in which a conversation's text is only text."""
    timeline = await filled(8, HOSTILE)
    for value in (timeline, await timeline.render()):
        page = _Tags(value._repr_html_())
        assert page.tags == {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
        assert "<script>alert(1)</script>&␛[31m" in page.text
        assert "… 12 earlier blocks" in page.text
        assert show_controls(page.text) == page.text


async def test_a_notebook_with_the_inspector_shows_its_page_in_a_frame() -> None:
    """Whose scripts have no origin; what stands around it holds none of the conversation's text as markup."""
    timeline = await filled(8, HOSTILE)
    for value in (timeline, await timeline.at(20), await timeline.render()):
        frame = value._repr_html_()
        assert frame.startswith('<iframe sandbox="allow-scripts" style=')
        assert frame.count("<") == 2
        assert show_controls(frame) == frame


@pytest.mark.usefixtures("without_inspector")
def test_the_library_without_await_shows_the_same() -> None:
    """A twin has the short repr and the table of what it wraps."""
    with sync.open_store("memory://") as store:
        timeline = sync.Timeline.open(store, "c")
        assert repr(timeline).startswith("<Timeline 'c': version 1, 0 blocks")
        assert timeline._repr_html_().startswith("<div><strong>Timeline</strong> c · version 1")


@pytest.mark.parametrize("text", ["", "plain", "\n\t"])
def test_a_text_without_controls_stays_as_it_is(text: str) -> None:
    """Nothing else is replaced."""
    assert show_controls(text) == escape_controls(text) == text
