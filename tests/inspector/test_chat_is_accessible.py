"""The elements of timeline-ui by the rules of axe-core: names, roles, contrast, in the light and in the dark."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.inspector.chatting import chat
from tests.inspector.looking import violations
from tests.scenes import answer, prompt
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import ContextOverflow, SummarizerFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

    from tests.inspector.chatting import Chat


@pytest.fixture(scope="module")
def served() -> Iterator[Chat]:
    """Serve a chat that was compacted, then failed to be, then overflowed, and is being compacted now."""
    with chat() as one:
        one.summarizer.may.set()
        timeline = one.timeline("chat")
        for number in range(8):
            call = ToolCall(call_id=f"call_{number}", name="bash", arguments={"command": "ls"})
            said = [UserPrompt(text="abc " * 300), call, ToolResult(call_id=call.call_id, text="abc " * 500)]
            one.do(timeline.append(*said, AssistantCompletion(text="abc " * 200)))
            one.do(timeline.render())
        one.summarizer.fails = True
        with suppress(SummarizerFailed):
            one.do(timeline.compact())
        one.do(timeline.append(prompt(20), answer(9_000)))
        with pytest.raises(ContextOverflow):
            one.do(timeline.render())
        yield one


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_rule_is_broken(browser: Browser, served: Chat, scheme: Any, width: int) -> None:
    """With every element in sight: usage, error, an open summary, the debug section, and the form."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    page = context.new_page()
    page.goto(served.url)
    page.wait_for_selector("body[data-ready]")
    page.click("details summary")
    page.locator("tl-compaction-summary button").first.click()
    expect(page.locator("tl-context-debug li").last).to_contain_text("Overflow")
    expect(page.locator("tl-compaction-error").get_by_role("alert")).to_contain_text("the model is overloaded")
    assert violations(page) == []
    context.close()
