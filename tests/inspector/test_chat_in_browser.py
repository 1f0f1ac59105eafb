"""The test points of seed 004 (7.10), by name: timeline-ui on a chat page, with a real server and a real store."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import expect

from tests.inspector.chatting import SUMMARY, Chat, chat, visiting
from tests.scenes import answer, prompt
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import ContextOverflow, SummarizerFailed
from timeline.lifecycle import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from timeline import Timeline
    from timeline.blocks import Block

NAMES: Final = (f"talk {number}" for number in count(1))


@pytest.fixture(scope="module")
def served() -> Iterator[Chat]:
    """Serve the chat once for all tests; each has a conversation of its own."""
    with chat() as one:
        yield one


@pytest.fixture
def talk(served: Chat) -> Timeline:
    """Begin a conversation that holds 4,000 of the 5,000 tokens that make it compact: outputs to clear among them."""
    served.summarizer.may.clear()
    served.summarizer.fails = False
    timeline = served.timeline(next(NAMES))
    served.do(timeline.append(*_looked(1, 800), *_looked(2, 800), *_looked(3, 800), *_looked(4, 800)))
    served.do(timeline.render())
    return timeline


@pytest.fixture
def page(browser: Browser, served: Chat, talk: Timeline) -> Iterator[Page]:
    """Open the page at the conversation."""
    with visiting(browser, served, talk.id) as page:
        yield page


def _looked(number: int, tokens: int) -> list[Block]:
    """Return a turn with a call; half of its tokens are the tool's."""
    call = ToolCall(call_id=f"call_{number}", name="bash", arguments={"command": "ls"})
    return [
        UserPrompt(text=f"Look {number}. " + "abc " * (tokens // 4)),
        call,
        ToolResult(call_id=call.call_id, text="abc " * (tokens // 2)),
        AssistantCompletion(text="abc " * (tokens // 4)),
    ]


def _told(served: Chat, talk: Timeline) -> list[Any]:
    async def read() -> list[Any]:
        return [event async for event in recorded(served.store, talk.id)]

    events: list[Any] = served.do(read())
    return events


def _fill(served: Chat, talk: Timeline) -> None:
    """Append what makes the next render prune, which is not enough, and summarise."""
    served.do(talk.append(*_looked(5, 1_200), *_looked(6, 2_600)))


def _say(page: Page, text: str = "And now?") -> None:
    page.fill("textarea", text)
    page.click("form button")


_SPY: Final = """element => {
  window.seen = [];
  const note = () => {
    const line = element.shadowRoot.querySelector(".line");
    const text = line.hidden ? "" : line.innerText.replace(/\\s+/g, " ").trim();
    if (text !== window.seen.at(-1)) window.seen.push(text);
  };
  const show = element._show.bind(element);
  element._show = (...given) => { show(...given); note(); };
}"""


def _compacted(page: Page, served: Chat, talk: Timeline) -> None:
    """Let the conversation be compacted to its end."""
    served.summarizer.may.set()
    _fill(served, talk)
    _say(page)
    expect(page.locator("#messages .assistant").last).to_contain_text("You said 2 words.")


def _fail(served: Chat, talk: Timeline) -> None:
    """Try a compaction whose summary fails; hiding what it may hide may succeed."""
    served.summarizer.fails = True
    with suppress(SummarizerFailed):
        served.do(talk.compact())


@pytest.mark.shows("004-129", "004-136", "R-004-36")
def test_compaction_indicator_appears_during_compaction(page: Page, served: Chat, talk: Timeline) -> None:
    """It is there while the summary is written, says so to screen readers, and goes."""
    line = page.locator("tl-compaction-indicator").locator(".line")
    expect(line).to_be_hidden()
    page.locator("tl-compaction-indicator").evaluate("element => element.setAttribute('linger', '0.3')")
    _fill(served, talk)
    _say(page)
    expect(line).to_be_visible()
    expect(page.locator("tl-compaction-indicator[compacting]")).to_have_count(1)
    expect(page.locator("tl-compaction-indicator").get_by_role("status")).to_contain_text("Summarizing context…")
    served.summarizer.may.set()
    expect(line).to_contain_text("Conversation optimized")
    expect(page.locator("tl-compaction-indicator[compacting]")).to_have_count(0)
    expect(line).to_be_hidden()


@pytest.mark.shows("004-129", "004-136", "R-004-36")
def test_progress_shows_pruning_vs_summarizing_phase(page: Page, served: Chat, talk: Timeline) -> None:
    """Each phase has its text, and the share that is saved so far."""
    page.locator("tl-compaction-indicator").evaluate(_SPY)
    _compacted(page, served, talk)
    expect(page.locator("tl-compaction-indicator").locator(".line")).to_contain_text("Conversation optimized")
    seen = [re.sub(r"\d+%", "N%", text) for text in page.evaluate("window.seen")]
    assert [text.replace("✓ ", "✓") for text in seen if text] == [
        "Optimizing conversation…",
        "Optimizing conversation… N% reduced",
        "Summarizing context… N% reduced",
        "✓Conversation optimized N% reduced",
    ]
    percent = [int(found.group(1)) for text in page.evaluate("window.seen") if (found := re.search(r"(\d+)%", text))]
    assert 0 < percent[0] < percent[-1]


@pytest.mark.shows("004-130", "004-136", "R-004-36")
def test_context_usage_bar_updates_in_real_time(page: Page, served: Chat, talk: Timeline) -> None:
    """It moves with each append and each render, changes its colour at 80 and 95 %, and never leaves its frame."""
    usage = page.locator("tl-context-usage")
    bar, meter = usage.locator(".bar"), usage.get_by_role("meter")
    expect(usage).to_have_attribute("level", "ok")
    begun = float(meter.get_attribute("aria-valuenow") or 0)
    shown: list[tuple[str | None, str]] = []
    for tokens, level in ((20, "ok"), (900, "warning"), (900, "critical"), (5_000, "critical")):
        served.do(talk.append(answer(tokens)))
        now = begun + 100 * tokens / 6_000
        expect(meter).to_have_attribute(
            "aria-valuenow", re.compile(rf"^{min(round(now), 100)}$|^{min(int(now), 100)}$")
        )
        expect(usage).to_have_attribute("level", level)
        begun = now
        shown.append(
            (
                level,
                bar.evaluate("bar => getComputedStyle(bar).backgroundColor + getComputedStyle(bar).backgroundImage"),
            )
        )
    assert bar.evaluate("bar => bar.style.width") == "100%"
    assert bar.evaluate("bar => bar.getBoundingClientRect().width <= bar.parentNode.getBoundingClientRect().width")
    colours = dict(shown)
    assert "rgb(34, 197, 94)" in colours["ok"]
    assert "rgb(234, 179, 8)" in colours["warning"]
    assert "rgb(239, 68, 68)" in colours["critical"]
    expect(usage.locator(".label")).to_have_text("■ ~100 %")
    expect(meter).to_have_attribute("aria-valuetext", "100 % of 6,000 tokens, above 95 %")


@pytest.mark.shows("004-131", "004-136", "R-004-36")
def test_error_banner_shows_with_correct_actions(page: Page, served: Chat, talk: Timeline) -> None:
    """A failure by chance can be tried again, and dismissed; a new session is not suggested."""
    served.summarizer.may.set()
    _fail(served, talk)
    banner = page.locator("tl-compaction-error").get_by_role("alert")
    expect(banner).to_contain_text("the model is overloaded")
    expect(banner.get_by_role("button")).to_have_text(["Retry", "✕"])
    served.summarizer.fails = False
    banner.get_by_role("button", name="Retry").click()
    expect(page.locator("#messages tl-compaction-summary")).to_have_count(1)
    expect(banner.get_by_role("button")).to_have_count(0)
    served.do(talk.append(*_looked(7, 900), *_looked(8, 900), *_looked(9, 900)))
    _fail(served, talk)
    banner.get_by_role("button", name="Dismiss").click()
    expect(banner.get_by_role("button")).to_have_count(0)


def test_an_error_is_seen_by_whom_reads_the_newest_message(page: Page, served: Chat, talk: Timeline) -> None:
    """The bar and the banner stay where they are while the messages are scrolled."""
    served.summarizer.may.set()
    page.locator("form button").scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 0
    _fail(served, talk)
    expect(page.locator("tl-compaction-error").get_by_role("alert")).to_be_in_viewport()
    expect(page.locator("tl-context-usage")).to_be_in_viewport()


@pytest.mark.shows("004-131", "004-136", "R-004-36")
def test_start_new_session_button_works_when_suggested(page: Page, served: Chat, talk: Timeline) -> None:
    """What nothing makes fit goes on in a new conversation, which begins with the summary."""
    served.summarizer.may.set()
    served.do(talk.append(prompt(20), answer(9_000)))
    with pytest.raises(ContextOverflow):
        served.do(talk.render())
    banner = page.locator("tl-compaction-error").get_by_role("alert")
    expect(banner.get_by_role("button")).to_have_text(["Start New Session", "✕"])
    banner.get_by_role("button", name="Start New Session").click()
    expect(page.locator("#title")).to_have_text(f"{talk.id}.next")
    expect(page.locator("#messages .assistant")).to_have_text([SUMMARY])
    expect(banner.get_by_role("button")).to_have_count(0)
    _say(page, "Go on, please.")
    expect(page.locator("#messages .assistant").last).to_contain_text("You said 3 words.")


@pytest.mark.shows("004-132", "004-133", "004-136", "R-004-36")
def test_compaction_summary_appears_in_chat_history(page: Page, served: Chat, talk: Timeline) -> None:
    """When it is written, at its place between the messages, and again when the page is loaded anew."""
    _compacted(page, served, talk)
    card = page.locator("#messages tl-compaction-summary")
    expect(card).to_have_count(1)
    expect(card).to_contain_text("Conversation Summarized")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("#messages tl-compaction-summary")).to_have_count(1)
    expect(page.locator("#messages > li").last).to_contain_text("You said 2 words.")
    listed = page.evaluate("id => fetch(`/sessions/${encodeURIComponent(id)}/messages`).then(a => a.json())", talk.id)
    [message] = [one for one in listed if one["role"] == "compaction"]
    assert {"tokensBefore", "tokensAfter", "messagesCompacted", "at"} <= message["event"].keys()


@pytest.mark.shows("004-132", "004-136", "R-004-36")
def test_summary_can_be_expanded_and_collapsed(page: Page, served: Chat, talk: Timeline) -> None:
    """With the mouse and the keyboard; the text is text, whatever it looks like."""
    _compacted(page, served, talk)
    card = page.locator("#messages tl-compaction-summary")
    head, text = card.get_by_role("button"), card.locator(".text")
    expect(head).to_have_attribute("aria-expanded", "false")
    expect(text).to_have_count(0)
    head.click()
    expect(head).to_have_attribute("aria-expanded", "true")
    expect(text).to_contain_text("We looked at <b>every</b> file, and line 2")
    assert card.locator("b").count() == 0
    expect(card.locator("dl")).to_contain_text("Before")
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-expanded", "false")
    expect(text).to_have_count(0)


@pytest.mark.shows("004-127", "004-135", "004-136", "R-004-36")
def test_debug_panel_shows_all_compaction_events(page: Page, served: Chat, talk: Timeline) -> None:
    """Six kinds with the seed's labels and colours, the newest last, also those from before the page was opened."""
    _compacted(page, served, talk)
    served.do(talk.append(*_looked(7, 800), *_looked(8, 800), *_looked(9, 800)))
    _fail(served, talk)
    served.do(talk.append(prompt(20), answer(9_000)))
    with pytest.raises(ContextOverflow):
        served.do(talk.render())
    page.reload()
    page.wait_for_selector("body[data-ready]")
    page.click("details summary")
    panel = page.locator("tl-context-debug")
    expect(panel.get_by_role("heading")).to_have_text("Context Management")
    told = [event.type for event in _told(served, talk) if event.type != "context-usage"]
    expect(panel.locator("li")).to_have_count(len(told))
    assert panel.locator("li").evaluate_all("rows => rows.map(row => row.dataset.type)") == told
    looks = dict(
        panel.locator(".kind").evaluate_all(
            "kinds => kinds.map(k => [k.lastChild.data, getComputedStyle(k).backgroundColor])"
        )
    )
    assert looks == {
        "Compacting": "rgb(234, 179, 8)",
        "Pruning": "rgb(250, 204, 21)",
        "Summarizing": "rgb(253, 224, 71)",
        "Compacted": "rgb(34, 197, 94)",
        "Compact Fail": "rgb(239, 68, 68)",
        "Overflow": "rgb(220, 38, 38)",
    }


@pytest.mark.shows("004-135", "004-136", "R-004-36")
def test_compaction_metrics_are_accurate(page: Page, served: Chat, talk: Timeline) -> None:
    """Tokens, share and time in card and panel are the log's own."""
    page.click("details summary")
    _compacted(page, served, talk)
    complete = next(event for event in _told(served, talk) if event.type == "compaction-complete")
    pruned = next(event for event in _told(served, talk) if event.type == "compaction-prune")
    before, after = f"{complete.tokens_before:,}", f"{complete.tokens_after:,}"
    share = f"{complete.percent_saved:.0f}%"
    took = complete.duration
    shown = f"{1000 * took:.0f} ms" if took < 1 else f"{took:.1f} s"
    row = page.locator("tl-context-debug li[data-type=compaction-complete]")
    for text in (f"Before: {before} tokens", f"After: {after} tokens", f"Saved: {share}", shown):
        expect(row).to_contain_text(text)
    expect(page.locator("tl-context-debug li[data-type=compaction-prune]")).to_contain_text(
        f"Pruned {pruned.outputs_pruned} tool outputs ({pruned.tokens_saved:,} tokens)"
    )
    card = page.locator("#messages tl-compaction-summary")
    card.get_by_role("button").click()
    figures = card.locator("dl div").all_inner_texts()
    assert [re.sub(r"\s+", " ", text) for text in figures] == [
        f"Before {before} tokens",
        f"After {after} tokens",
        f"Saved {share}",
        f"Replaced {complete.messages_compacted} messages",
        f"Took {shown}",
    ]


@pytest.mark.shows("004-134", "004-136", "R-004-36")
def test_session_list_shows_compaction_count(page: Page, served: Chat, talk: Timeline) -> None:
    """It counts while one watches; a session without a compaction shows none."""
    entry = page.locator("#sessions [aria-current]")
    expect(entry).to_have_text(talk.id)
    _compacted(page, served, talk)
    expect(entry).to_contain_text("✦ 1 compaction")
    served.do(talk.append(*_looked(7, 800), *_looked(8, 800), *_looked(9, 800)))
    served.do(talk.compact())
    expect(entry).to_contain_text("✦ 2 compactions")


@pytest.mark.shows("004-119", "004-136", "R-004-36")
def test_sse_events_are_properly_parsed_and_dispatched(page: Page, served: Chat, talk: Timeline) -> None:
    """What the elements were given is what the log tells, event for event, also over a cut connection."""
    page.evaluate(
        """async id => {
      const { take } = await import("/timeline-ui/timeline-ui.js");
      window.given = [];
      const feed = take(`/timeline/${encodeURIComponent(id)}/events?test=1`, "0");
      feed.addEventListener("change", ({ detail }) => detail && window.given.push(detail));
    }""",
        talk.id,
    )
    _compacted(page, served, talk)
    page.context.set_offline(True)
    served.do(talk.append(*_looked(7, 800), *_looked(8, 800), *_looked(9, 800)))
    served.do(talk.compact())
    page.context.set_offline(False)
    told = [json.loads(json.dumps(event.payload())) for event in _told(served, talk)]
    page.wait_for_function("n => window.given.filter(one => !one.estimated).length >= n", arg=len(told))
    given = [one for one in page.evaluate("window.given") if not one.get("estimated")]
    assert given == told


@pytest.mark.shows("004-137", "R-004-36")
def test_nothing_can_be_sent_while_compacting(page: Page, served: Chat, talk: Timeline) -> None:
    """The button is disabled, Enter does nothing, and the page says why; afterwards all is as before."""
    _fill(served, talk)
    _say(page)
    button = page.locator("form button")
    expect(button).to_be_disabled()
    expect(page.locator("tl-compaction-guard").get_by_role("status")).to_have_text(
        "The conversation is being optimized, please wait."
    )
    page.fill("textarea", "Too early")
    page.press("textarea", "Enter")
    page.evaluate("document.querySelector('form').requestSubmit()")
    assert page.input_value("textarea") == "Too early"
    served.summarizer.may.set()
    expect(button).to_be_enabled()
    page.press("textarea", "Enter")
    expect(page.locator("#messages .user").last).to_have_text("Too early")
