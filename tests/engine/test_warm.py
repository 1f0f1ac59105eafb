"""When a summary is asked for in the context that the provider has in its cache, and why else it is asked for alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.warming import CACHED, MODEL, SYSTEM, TOOLS, asked, author, begun, called, in_cache, reply
from tests.scenes import AT, Scribe, after, call, opened, prompt, small_policy, turn
from timeline.events import BlockRedacted, BlocksHidden, Replacement
from timeline.policy.model import Hiding, Policy
from timeline.ports import Summary
from timeline.store.memory import MemoryStore
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.ports import SummaryRequest


class Insider(Scribe):
    """A summarizer that asks in the cached context wherever it gets one."""

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Answer, and say where it was asked."""
        self.asked.append(request)
        return Summary("noted", "insider", model=MODEL, asked="in_cache" if request.warm else "alone")


async def test_a_summary_is_asked_for_in_the_context_that_was_sent_last() -> None:
    """The summarizer gets that context, and the compaction says that it was used."""
    insider = Insider()
    timeline = await begun(summarizer=insider)
    request = await called(timeline)
    who = await author(timeline)
    assert (who.asked, who.alone_because) == ("in_cache", None)
    [needed] = insider.asked
    assert needed.warm is not None
    assert (needed.warm.wire, needed.warm.model) == ("anthropic", MODEL)
    assert 2_900 < needed.warm.tokens < 3_100
    told = needed.warm.arguments("What was done?", 50)
    sent = request.body
    assert (told["system"], told["tools"], told["max_tokens"]) == (sent["system"], sent["tools"], 50)
    assert told["messages"][:-1] == sent["messages"][:-1]
    question = {"type": "text", "text": "What was done?"}
    assert told["messages"][-1]["content"] == [*sent["messages"][-1]["content"], question]


async def test_the_question_is_in_no_log() -> None:
    """The log has the summary, and no prompt that asked for it."""
    timeline = await begun(summarizer=Insider())
    await called(timeline)
    await author(timeline)
    assert [item.block.type for item in timeline.window.items].count("user.prompt") == 2
    assert "What" not in (await timeline.render(system=SYSTEM, tools=TOOLS)).fingerprint


async def test_by_default_a_summary_is_asked_for_alone_and_nothing_is_said_of_it() -> None:
    """The policy has it so."""
    insider = Insider()
    timeline = await begun(small_policy(max_tokens=4_000, keep_recent_tokens=800), summarizer=insider)
    await called(timeline)
    who = await author(timeline)
    assert (who.asked, who.alone_because, insider.asked[0].warm) == ("alone", None, None)


def test_a_policy_that_asks_alone_keeps_its_hash() -> None:
    """Hashes in logs stay what they were; the other way of asking is another policy."""
    alone = small_policy(max_tokens=4_000, keep_recent_tokens=800)
    assert '"asked"' not in alone.canonical()
    assert in_cache().hash() != alone.hash()
    assert Policy.parse(in_cache().canonical()) == in_cache()


async def test_a_summarizer_that_leaves_the_context_unused_is_named_as_the_reason() -> None:
    """It asks its model about the blocks that it is given."""
    timeline = await begun(summarizer=Scribe())
    await called(timeline)
    who = await author(timeline)
    assert (who.summarizer, who.asked, who.alone_because) == ("scribe", "alone", "summarizer")


async def test_where_no_model_is_asked_no_reason_is_recorded() -> None:
    """The extractive summarizer reads the blocks that it is given."""
    timeline = await begun()
    await called(timeline)
    who = await author(timeline)
    assert (who.summarizer, who.asked, who.alone_because) == ("extractive", "alone", None)


async def reason(timeline: Timeline, **options: Any) -> str | None:
    """Compact, and return why the summary was asked for alone."""
    who = await author(timeline, **options)
    assert who.asked == "alone"
    return who.alone_because


async def test_without_a_request_on_record_there_is_no_context_to_ask_in() -> None:
    """Nobody knows what the provider was sent."""
    timeline = await begun(summarizer=Insider())
    await asked(timeline)
    await timeline.record(reply(), now=AT)
    await timeline.append(prompt(400))
    assert await reason(timeline) == "not_sent"


async def test_a_request_of_an_older_context_is_not_the_newest_one() -> None:
    """A context that was recorded since replaces it."""
    timeline = await begun(summarizer=Insider())
    old = await asked(timeline)
    await timeline.append(prompt(5))
    await asked(timeline)
    await timeline.record(reply(), request=old, now=AT)
    await timeline.append(prompt(400))
    assert await reason(timeline) == "not_sent"


async def test_a_failed_call_leaves_the_context_before_it() -> None:
    """The provider has in its cache what it answered."""
    timeline = await begun(summarizer=Insider())
    request = await called(timeline)
    await timeline.record_model_call(error="overloaded", request=request)
    assert (await author(timeline)).asked == "in_cache"


async def test_a_body_that_a_framework_wrote_is_not_known_byte_for_byte() -> None:
    """What its cache holds cannot be repeated."""
    timeline = await begun(summarizer=Insider())
    request = (await asked(timeline)).by_framework()
    await timeline.record(reply(), request=request, now=AT)
    await timeline.append(prompt(400))
    assert await reason(timeline) == "not_ours"


async def test_a_request_that_demands_a_call_cannot_be_answered_in_words() -> None:
    """Another tool choice would lose the cache."""
    timeline = await begun(summarizer=Insider())
    await called(timeline, tool_choice={"type": "any"})
    assert await reason(timeline) == "parameters"


@pytest.mark.parametrize("usage", [{"input_tokens": 3_000, "output_tokens": 9}, {**CACHED, "input_tokens": 3_100}])
async def test_a_provider_that_cached_less_than_half_is_asked_alone(usage: dict[str, int]) -> None:
    """Reading the context would cost more than reading its range."""
    timeline = await begun(summarizer=Insider())
    await called(timeline, usage=usage)
    assert await reason(timeline) == "uncached"


@pytest.mark.parametrize(("seconds", "where"), [(299, "in_cache"), (300, "alone")])
async def test_a_cache_is_warm_for_the_lifetime_in_force_and_not_a_second_longer(seconds: float, where: str) -> None:
    """Five minutes here, without the grace that hiding has."""
    timeline = await begun(in_cache(hiding=Hiding(grace=3_600)), summarizer=Insider())
    await called(timeline)
    who = await author(timeline, now=after(seconds))
    assert (who.asked, who.alone_because) == (where, None if where == "in_cache" else "cold")


async def test_a_reported_lifetime_of_an_hour_counts() -> None:
    """The usage says for how long the provider caches."""
    timeline = await begun(summarizer=Insider())
    written = {"ephemeral_1h_input_tokens": 3_000, "ephemeral_5m_input_tokens": 0}
    usage: dict[str, Any] = {**CACHED, "cache_creation_input_tokens": 3_000, "cache_creation": written}
    await called(timeline, usage=usage)
    assert (await author(timeline, now=after(3_599))).asked == "in_cache"


async def test_another_model_has_a_cache_of_its_own() -> None:
    """Another handle called it since, which counts like a call of this one."""
    store = MemoryStore()
    timeline = await begun(store=store, summarizer=Insider())
    await called(timeline)
    other = await opened(store)
    await other.record_model_call(Usage(input_tokens=1), model="big-2")
    assert await reason(timeline) == "model"


@pytest.mark.parametrize("changed", [{"system": "You write."}, {"tools": []}])
async def test_another_system_prompt_or_other_tools_ask_alone(changed: dict[str, Any]) -> None:
    """What the application took away is not sent again."""
    timeline = await begun(summarizer=Insider())
    await called(timeline)
    assert await reason(timeline, **changed) == "prefix"


@pytest.mark.parametrize("how", ["redacted", "hidden", "omitted"])
async def test_what_was_taken_out_by_hand_since_is_not_sent_again(how: str) -> None:
    """Redacted, hidden or omitted, inside the range or behind it."""
    timeline = await begun(in_cache("original"), summarizer=Insider())
    await called(timeline)
    item = timeline.window.items[4]
    if how == "redacted":
        await timeline._log.commit([BlockRedacted(version=item.version)], at=AT)
    else:
        await timeline.hide(item.block.path, mode="omit" if how == "omitted" else "replace")
    assert await reason(timeline) == "changed"


async def test_what_was_hidden_automatically_since_may_be_asked_about() -> None:
    """The model was shown it a moment ago, and the provider has it in its cache."""
    timeline = await begun(in_cache("original"), summarizer=Insider())
    await called(timeline)
    item = timeline.window.items[1]
    hidden = BlocksHidden(reason="pressure", blocks=(Replacement(version=item.version, text="[hidden]", tokens=1_450),))
    await timeline._log.commit([hidden], at=AT)
    assert (await author(timeline)).asked == "in_cache"


@pytest.mark.parametrize(
    ("source", "by", "where"),
    [
        ("original", "pressure", "hidden"),
        ("shown", "pressure", None),
        ("original", "manual", "hidden"),
        ("shown", "manual", "hidden"),
    ],
)
async def test_a_range_that_was_sent_as_stand_ins_is_given_as_it_was_said(
    source: str, by: str, where: str | None
) -> None:
    """A policy that has summaries written from originals gets no stand-in; no policy goes behind a hide by hand."""
    timeline = await begun(in_cache(source), summarizer=Insider())
    item = timeline.window.items[1]
    hidden = BlocksHidden(reason=by, blocks=(Replacement(version=item.version, text="[hidden]", tokens=1_450),))
    await timeline._log.commit([hidden], at=AT)
    await called(timeline)
    assert (await author(timeline)).alone_because == where


async def test_a_context_that_ends_in_a_call_without_a_result_is_not_gone_on_with() -> None:
    """A provider wants the result next, and a question in its place would be sent behind a made-up one."""
    timeline = await begun(summarizer=Insider())
    await timeline.append(call("a"))
    await called(timeline)
    assert await reason(timeline) == "pending"


async def test_a_range_that_ends_behind_the_sent_context_is_asked_about_alone() -> None:
    """The model of the cached context has not seen its end."""
    timeline = await begun(in_cache(keep_recent_tokens=40), summarizer=Insider())
    request = await asked(timeline)
    await timeline.record(reply(), request=request, now=AT)
    await timeline.append(prompt(10), *turn(350), prompt(30))
    assert await reason(timeline) == "unsent"


async def test_another_handle_knows_no_context_that_it_did_not_send() -> None:
    """What was sent is in no log; after a restart the first compaction asks alone."""
    store = MemoryStore()
    await called(await begun(store=store))
    again = await opened(store, policy=in_cache(), summarizer=Insider())
    assert await reason(again) == "not_sent"


async def test_a_dry_run_asks_where_the_real_one_would() -> None:
    """Both see the same call."""
    timeline = await begun(summarizer=Insider())
    await called(timeline)
    dry = await timeline.render(system=SYSTEM, tools=TOOLS, record=False)
    compaction = dry.window.compaction
    assert compaction is not None
    assert compaction.written_by.asked == "in_cache"


async def test_a_forced_compaction_asks_in_the_cache_too() -> None:
    """It needs no render before."""
    timeline = await begun(summarizer=Insider())
    await called(timeline)
    await timeline.compact()
    compaction = timeline.window.compaction
    assert compaction is not None
    assert compaction.written_by.asked == "in_cache"


async def test_an_explanation_says_where_a_summary_was_asked_for() -> None:
    """In the cache, or alone with the reason."""
    timeline = await begun(summarizer=Insider())
    await called(timeline)
    assert "asked in the cached context" in (await timeline.render(system=SYSTEM, tools=TOOLS)).explain()
    timeline = await begun(summarizer=Scribe())
    await called(timeline)
    assert "asked alone: summarizer" in (await timeline.render(system=SYSTEM, tools=TOOLS)).explain()
