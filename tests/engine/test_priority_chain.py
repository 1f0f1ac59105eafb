"""Seed 000's data flow examples, with its figures: a limit of 128,000 tokens, and a line at 85 % of it (108,800).

The seed frees some 200 to 400 tokens with each short message, which no count of its characters gives. So an example
charges that for every message (the policy's ``message_tokens``); the rest is characters / 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.scenes import AT, Mute, Scribe, answer, words
from timeline import Timeline, policies
from timeline.blocks import UserPrompt
from timeline.planning.messages import messages
from timeline.policy.steps import StageData
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.ports import Summarizer
    from timeline.projection.context import RenderedContext

CHITCHAT: Final = ("ok", "ya", "lanjut", "baik", "sip", "setuju")
NAMES: Final = ("Gagasan", "Topik", "Outline", "Abstrak", "Pendahuluan", "Literatur", "Metodologi", "Hasil", "Diskusi")
LABEL: Final = "[RINGKASAN DISKUSI SEBELUMNYA]"
NUMBERS: Final = (18, 17, 13, 24, 24, 24, 24, 25, 26)
"""Messages of each approved stage: msg1 to msg18, msg19 to msg35, msg36 to msg48 … msg170 to msg195."""
CURRENT: Final = 25
"""Messages of the current stage: msg196 to msg220."""


async def open_chain(each: int, summarizer: Summarizer | None = None, **changes: Any) -> Timeline:
    """Open a conversation under the preset, with so many tokens charged for each message."""
    policy = policies.priority_chain(message_tokens=each, **changes)
    return await Timeline.open(MemoryStore(), "c", policy=policy, summarizer=summarizer, now=AT)


async def talk(timeline: Timeline, number: int, tokens: int, short: int = 0) -> None:
    """Say so many messages of so many tokens each, user and assistant in turn; the user's first are short ones."""
    for position in range(number):
        if position % 2:
            await timeline.append(answer(tokens - timeline.policy.message_tokens), now=AT)
        elif position < 2 * short:
            await timeline.append(UserPrompt(text=CHITCHAT[position // 2 % len(CHITCHAT)]), now=AT)
        else:
            await timeline.append(UserPrompt(text=words(tokens - timeline.policy.message_tokens)), now=AT)


async def go_through_stages(timeline: Timeline, tokens: dict[str, int], short: dict[str, int]) -> None:
    """Approve nine stages and enter the tenth, with so many tokens for each message of a stage."""
    for name, number in zip(NAMES, NUMBERS, strict=True):
        await timeline.enter_stage(name.lower(), name)
        await talk(timeline, number, tokens.get(name, 400), short.get(name, 0))
        await timeline.approve_stage(decision=f"keputusan {name}", short=f"ringkasan {name}", now=AT)
    await timeline.enter_stage("kesimpulan", "Kesimpulan")


async def fill_up(timeline: Timeline, number: int, tokens: int) -> None:
    """Say the last messages, so that the whole context takes exactly so many tokens."""
    each = timeline.policy.message_tokens
    roomy = policies.priority_chain(message_tokens=each, max_tokens=10_000_000)
    measuring = await Timeline.open(timeline._store, "c", policy=roomy)
    left = tokens - (await measuring.render(record=False, now=AT)).account.total
    share, rest = divmod(left - number * each, number)
    for position in range(number):
        text = words(share + (rest if position == 0 else 0))
        await timeline.append(UserPrompt(text=text) if position % 2 == 0 else answer(share), now=AT)


async def at_92_percent(**changes: Any) -> Timeline:
    """Return nine approved stages and a tenth that goes on, in 117,800 tokens."""
    timeline = await open_chain(165, **changes)
    await go_through_stages(timeline, {"Gagasan": 221, "Topik": 236}, {"Outline": 4, "Hasil": 4, "Diskusi": 4})
    await fill_up(timeline, CURRENT, 117_800)
    return timeline


def said(context: RenderedContext) -> int:
    """Count the messages of the conversation that are shown: no digest, no summary."""
    apart = {"stage.digest", "conv.range.summary"}
    return len(messages([item for item in context.window.items if item.block.type not in apart]))


def percent(context: RenderedContext) -> float:
    """Return what a context takes of the limit."""
    return round(100 * context.account.total / context.account.limit, 1)


def done(context: RenderedContext) -> list[str]:
    """Return what a render decided: why it hid, or who wrote the summary."""
    writers = {summary.block.path: summary.written_by.summarizer for summary in context.window.summaries}
    return [writers.get(str(taken.facts.get("summary_path")), taken.reason) for taken in context.decisions]


@pytest.mark.shows("000-39", "000-46", "R-000-25")
async def test_under_the_line_nothing_happens_but_the_digest() -> None:
    """Stage 8 with 150 messages in 26,500 tokens: the full context, and with it what was decided."""
    timeline = await open_chain(0)
    for name in NAMES[:7]:
        await timeline.enter_stage(name.lower(), name)
        await talk(timeline, 18, 150, short=2)
        await timeline.approve_stage(decision=f"keputusan {name}", now=AT)
    await timeline.enter_stage("hasil", "Hasil")
    await fill_up(timeline, 24, 26_500)
    context = await timeline.render(now=AT)
    assert (context.decisions, context.account.total, said(context)) == ((), 26_500, 150)
    digest = context.neutral.ephemeral[0].text
    assert digest.startswith("MEMORY DIGEST (keputusan tersimpan per tahap):\n- Gagasan: keputusan Gagasan\n- Topik: ")


@pytest.mark.shows("000-16", "000-47", "000-56", "R-000-26")
async def test_at_87_percent_the_short_messages_are_enough() -> None:
    """220 messages, 111,000 tokens: twelve short ones go, which leaves 108,500 (85 %), and all else stays."""
    timeline = await open_chain(208)
    await go_through_stages(timeline, {}, {"Outline": 4, "Hasil": 4, "Diskusi": 4})
    await fill_up(timeline, CURRENT, 111_000)
    context = await timeline.render(now=AT)
    assert done(context) == ["chitchat"]
    assert (said(context), len(context.window.summaries)) == (220 - 12, 0)
    assert 108_450 <= context.account.total <= 108_550


@pytest.mark.shows("000-7", "000-54", "000-55", "R-000-5")
async def test_the_components_of_a_typical_session() -> None:
    """Stage 13: 150 messages of 500 characters, and all else that the design's table has, are 26,500 tokens.

    Of twelve stages, since ten within their caps cannot have 8,000 characters of data. The memory digest, which the
    table leaves out, is counted beside them.
    """
    timeline = await open_chain(0)
    for number in range(12):
        await timeline.enter_stage(f"s{number}", "L" * (199 if number < 3 else 198))
        await talk(timeline, 11, 125)
        await timeline.approve_stage(
            decision="d",
            short="s" * 280,
            detailed="t" * 1_000,
            references=["r" * 20] * 5,
            citations=["c" * 20] * 2 + ["c" * 19] * 3,
            artifacts=["a" * 486] if number >= 2 else [],
        )
    await timeline.enter_stage("kini", "Kini")
    await talk(timeline, 18, 125)
    prompts, instructions = "p" * 10_000, "i" * 5_000
    fixed: dict[str, int] = {}
    for name, artifacts in (("data", 0), ("artifacts", 10)):
        policy = policies.priority_chain(stage_data=StageData(artifacts=artifacts, references=0, citations=0))
        part = await Timeline.open(timeline._store, "c", policy=policy)
        fixed[name] = (await part.render(record=False, now=AT)).account.fixed.stage_data
    alone = (await timeline.render(record=False, system=prompts, now=AT)).account
    context = await timeline.render(system=prompts + instructions, now=AT)
    account = context.account
    assert {
        "system prompts": alone.fixed.system,
        "stage instructions": account.fixed.system - alone.fixed.system,
        "stage data": fixed["data"],
        "artifacts": fixed["artifacts"] - fixed["data"],
        "messages": account.messages,
        "references and citations": account.fixed.stage_data - fixed["artifacts"],
    } == {
        "system prompts": 2_500,
        "stage instructions": 1_250,
        "stage data": 2_000,
        "artifacts": 1_250,
        "messages": 18_750,
        "references and citations": 750,
    }
    assert account.total - account.fixed.memory_digest == 26_500
    assert (context.decisions, said(context)) == ((), 150)


@pytest.mark.shows("000-39", "000-48", "000-52", "R-000-27")
async def test_at_92_percent_the_two_oldest_stages_follow() -> None:
    """117,800 tokens: short messages leave 115,800, without Gagasan it is 112,000, without Topik 108,000: it stops.

    They give way to one line in one compaction, from the first message of Gagasan to the last of Topik.
    """
    timeline = await at_92_percent()
    context = await timeline.render(now=AT)
    assert done(context) == ["chitchat", "stage_digest"]
    [summary] = context.window.summaries
    stripped = summary.before_tokens + context.account.fixed.tokens
    assert (stripped, round(100 * stripped / 128_000, 1)) == (115_805, 90.5)
    assert summary.block.text.startswith("[The messages of these stages are out of view: Gagasan; Topik. ")
    assert said(context) == 220 - 12 - 18 - 17
    assert 107_900 <= context.account.total <= 108_100
    assert percent(context) == 84.4
    assert context.neutral.ephemeral[0].text.count("\n- ") == len(NAMES)
    first, second = (stage.approval for stage in context.window.stages[:2])
    assert first is not None
    assert second is not None
    [(start, end)] = summary.covers.ranges
    assert (first.first, first.count, second.count) == (start, 18, 17)
    assert second.last <= end < context.window.stages[2].entered
    assert (await timeline.verify()).ok


@pytest.mark.shows("000-48", "R-000-27")
async def test_without_the_oldest_stage_it_is_87_5_percent() -> None:
    """The figure between: with a line at 88 % the same conversation loses Gagasan alone."""
    timeline = await at_92_percent(trigger=0.88)
    context = await timeline.render(now=AT)
    assert done(context) == ["chitchat", "stage_digest"]
    [summary] = context.window.summaries
    assert summary.block.text.startswith("[The messages of these stages are out of view: Gagasan. ")
    assert 111_900 <= context.account.total <= 112_100
    assert percent(context) == 87.5


@pytest.mark.shows("000-16", "000-49", "000-51", "000-56", "R-000-28")
async def test_a_chat_of_80_messages_at_86_percent_loses_the_short_ones() -> None:
    """It has no stages; six short messages go, 74 stay, at 84 %."""
    timeline = await open_chain(426)
    await talk(timeline, 60, 1_300, short=6)
    await fill_up(timeline, 20, 110_080)
    context = await timeline.render(now=AT)
    assert done(context) == ["chitchat"]
    assert (said(context), percent(context)) == (74, 84.0)


@pytest.mark.shows("000-23", "000-29", "000-33", "000-50", "000-51", "000-56", "R-000-14", "R-000-29")
async def test_a_chat_of_120_messages_at_91_percent_is_summarised_at_its_beginning() -> None:
    """Without six short messages it is 88 %; the oldest 20 become one summary of three lines: 82 %, and 94 stay."""
    scribe = Scribe(answers=["- satu\n- dua\n- tiga"])
    timeline = await open_chain(440, scribe)
    await talk(timeline, 20, 450)
    await talk(timeline, 80, 1_000, short=6)
    await fill_up(timeline, 20, 115_900)
    context = await timeline.render(now=AT)
    assert done(context) == ["chitchat", "scribe"]
    assert context.window.items[0].block.text == f"{LABEL}\n- satu\n- dua\n- tiga"
    [compaction] = context.window.summaries
    assert [round(100 * tokens / 128_000) for tokens in (115_900, compaction.before_tokens)] == [91, 88]
    assert (said(context), round(percent(context))) == (94, 82)
    [request] = scribe.asked
    assert (request.prompt, request.language, request.max_tokens) == ("bullets", "Indonesian", 200)
    assert sum(block.text not in CHITCHAT for block in request.blocks) == 20


@pytest.mark.shows("000-28")
async def test_in_a_stage_the_oldest_messages_are_the_stages_own() -> None:
    """With recent stages alone behind it, P3 summarises what is oldest in the current one."""
    scribe = Scribe(answers=["- satu\n- dua\n- tiga"])
    timeline = await open_chain(0, scribe)
    await timeline.enter_stage("gagasan", "Gagasan")
    await talk(timeline, 10, 2_000)
    await timeline.approve_stage(decision="d", now=AT)
    await timeline.enter_stage("topik", "Topik")
    await fill_up(timeline, 60, 110_000)
    context = await timeline.render(now=AT)
    assert done(context) == ["scribe"]
    [summary] = context.window.summaries
    assert summary.covers.ranges[0][0] > timeline.window.stages[1].entered
    assert said(context) == 10 + 40


@pytest.mark.shows("000-35")
async def test_when_no_summary_can_be_written_recent_stages_give_way() -> None:
    """P3 fails, so P4 collapses what P2 spares, and the stages are given in short."""
    timeline = await open_chain(0, Mute())
    for name in ("Gagasan", "Topik"):
        await timeline.enter_stage(name.lower(), name)
        await talk(timeline, 10, 2_000)
        await timeline.approve_stage(decision="d", short=f"s {name}", detailed=f"t {name}", now=AT)
    await timeline.enter_stage("outline", "Outline")
    before = await timeline.render(record=False, now=AT)
    await fill_up(timeline, 60, 110_000)
    context = await timeline.render(now=AT)
    assert done(context)[0] == "stage_digest"
    assert said(context) == 10 + 60
    [summary] = context.window.summaries
    assert summary.parts.history.startswith("[The messages of these stages are out of view: Gagasan. ")
    (_, told), (_, detailed) = context.neutral.ephemeral, before.neutral.ephemeral
    assert "t Gagasan" in detailed.text
    assert "s Gagasan" in told.text
    assert "t Topik" not in told.text


@pytest.mark.shows("000-37", "R-000-20")
async def test_when_nothing_else_helps_the_newest_fifty_messages_stay() -> None:
    """P5: a notice replaces everything before them."""
    timeline = await open_chain(0, Mute())
    await fill_up(timeline, 120, 116_480)
    context = await timeline.render(now=AT)
    assert done(context)[0] == "notice"
    assert said(context) == 50
