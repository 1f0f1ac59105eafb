"""What is different between two calls, in the form that they were sent in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from playwright.sync_api import expect

from tests.inspector.looking import change, looking, served
from tests.scenes import after, prompt, small_policy
from timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

    from timeline.ports import EventStore

ASKED: Final = """async () => {
    const answer = await fetch("v1/conversations/cards/diff?a=call:1&b=call:2&wire=openai_chat");
    return (await answer.json()).difference.prefixes[1];
}"""


def test_the_first_byte_that_differs_is_that_of_the_form_that_was_sent(browser: Browser, tmp_path: Path) -> None:
    """Of calls to OpenAI it is not that of Anthropic's form."""

    async def tell(store: EventStore) -> None:
        timeline = await Timeline.open(store, "cards", policy=small_policy(), now=after(0))
        await timeline.append(prompt(60), prompt(60), now=after(1))
        await call(timeline, 2)
        await timeline.hide("@2", now=after(3))
        await call(timeline, 4)

    async def call(timeline: Timeline, second: int) -> None:
        context = await timeline.render(now=after(second))
        await timeline.record_model_call(request=context.request("openai_chat", model="gpt-5"), now=after(second))

    change(tmp_path / "agent.db", tell)
    with served(tmp_path / "agent.db") as running, looking(browser, running.base) as seen:
        seen.go("/c/cards/diff")
        found = seen.page.evaluate(ASKED)
        said = f"broke after {found['common_bytes']} of {found['before_bytes']} bytes of openai chat"
        expect(seen.page.locator(".lead")).to_contain_text(said)
