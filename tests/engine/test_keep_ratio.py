"""Seed 003 from outside: its budget, its split, what it leaves and in which order, on a log under the preset.

Its figures: a limit of 200,000 tokens of which 16,384 are for the answer, a message at its characters / 4 and four
tokens more, a compaction above a utilization of 80 %, and 40 % of the messages kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
import pytest

from tests.agent.test_length_stop import anthropic_reply
from tests.invariants.wires import check_anthropic, check_openai_chat
from tests.scenes import AT, Mute, Scribe, answer, call, log_of, opened, prompt, result, turn, words
from timeline import Hooks, compact_messages, policies
from timeline.blocks import ToolResult, UserPrompt
from timeline.errors import BudgetImpossible, CompactionRefused, ContextOverflow, SummarizerFailed
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from timeline import RenderedContext, Timeline
    from timeline.blocks import Block

SYSTEM: Final = words(3_616)
"""A system prompt that leaves 180,000 tokens for messages; 80 % of them are 144,000."""
NOTICE: Final = "[COMPACT SUMMARY]\n[Context truncated. Earlier conversation contained 6 messages about: "


async def talking(*blocks: Block, **options: Any) -> Timeline:
    """Return a conversation of these blocks under the preset."""
    stands = {"policy": policies.keep_ratio(), "summarizer": Scribe(), **options}
    timeline = await opened(MemoryStore(), **stands)
    await timeline.append(*blocks)
    return timeline


def ten_messages(tokens: int) -> list[Block]:
    """Return ten messages that count so many tokens together, the four of each message included."""
    each, rest = divmod(tokens - 40, 10)
    sizes = [each + (rest if number == 0 else 0) for number in range(10)]
    return [answer(size) if number % 2 else prompt(size) for number, size in enumerate(sizes)]


def shown(context: RenderedContext) -> list[str]:
    """Return the texts that a provider is sent as messages."""
    return [str(message["content"]) for message in context.to_openai_chat()["messages"]]


@pytest.mark.shows("003-1", "003-2", "003-10", "003-14", "003-31", "R-003-1")
@pytest.mark.parametrize(("tokens", "due"), [(144_000, False), (144_001, True)])
async def test_a_render_compacts_above_a_utilization_of_80_percent(tokens: int, *, due: bool) -> None:
    """Of what system prompt and answer leave of 200,000 tokens; at exactly 80 % the call is made as it is."""
    timeline = await talking(*ten_messages(tokens))
    context = await timeline.render(system=SYSTEM)
    account = context.account
    assert (account.limit, account.fixed.system, account.fixed.reserved) == (200_000, 3_616, 16_384)
    assert [taken.kind for taken in context.decisions] == (["compacted"] if due else [])
    assert (account.messages < 144_000) is due
    if not due:
        assert account.utilization == 0.8


@pytest.mark.shows("003-2", "003-24", "003-30", "R-003-10")
async def test_a_compaction_is_made_however_little_it_frees() -> None:
    """Six short messages and four long ones need 201,224 tokens; with 6,006 less the request fits."""
    sizes = [1_000] * 6 + [44_700] * 4
    timeline = await talking(*[answer(size) if n % 2 else prompt(size) for n, size in enumerate(sizes)])
    context = await timeline.render()
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    assert (context.account.sent, context.account.available > 0) == (178_834, True)


@pytest.mark.shows("003-11", "R-003-1")
async def test_with_the_beta_flag_the_limit_is_a_million() -> None:
    """What was due at 200,000 is not due then."""
    policy = policies.keep_ratio(long_context=True)
    context = await (await talking(*ten_messages(150_000), policy=policy)).render(system=SYSTEM)
    assert (context.account.limit, context.decisions) == (1_000_000, ())
    assert context.account.available == 1_000_000 - 3_616 - 150_000 - 16_384


@pytest.mark.shows("003-12", "003-13", "R-003-2")
@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (7, 2), (8, 2), (401, 101)])
async def test_characters_are_counted_in_fours(characters: int, tokens: int) -> None:
    """Rounded up, text by text, so that no context is larger than it is counted; a message costs four more."""
    timeline = await talking(UserPrompt(text="x" * characters), answer(10))
    account = (await timeline.render(system="s" * characters or None)).account
    assert account.fixed.system == tokens
    assert account.messages == tokens + 10 + 2 * 4


@pytest.mark.shows("003-12", "003-13", "R-003-2")
async def test_characters_are_counted_and_not_bytes() -> None:
    """A text of 4,000 characters of three bytes each costs 1,000 tokens, and a message's four."""
    timeline = await talking(UserPrompt(text="\N{CJK UNIFIED IDEOGRAPH-5B57}" * 4_000))
    account = (await timeline.render(system="\N{CJK UNIFIED IDEOGRAPH-5B57}" * 4_000)).account
    assert (account.fixed.system, account.messages) == (1_000, 1_004)


@pytest.mark.shows("003-13", "R-003-2")
async def test_the_summary_and_the_reply_to_it_count_as_two_messages() -> None:
    """Each costs its characters over four, and four."""
    timeline = await talking(*ten_messages(150_000))
    account = (await timeline.render(system=SYSTEM)).account
    summary = -(-len("[COMPACT SUMMARY]\nhistory 1") // 4) + 4
    assert account.by_category["summaries"] == summary + -(-len("Understood.") // 4) + 4
    [compaction] = timeline.window.summaries
    assert account.messages == timeline.window.tokens + (2 + 4) * 4
    assert compaction.block.text == "[COMPACT SUMMARY]\nhistory 1"


@pytest.mark.shows("003-15", "003-16", "003-17", "R-003-3")
async def test_the_budget_of_a_request() -> None:
    """Limit, system, messages, output, what is available, and the utilization of what is left for messages."""
    timeline = await talking(*turn(1_000, asked=100))
    account = (await timeline.render(system=words(500))).account
    assert account.facts() | {"utilization": account.utilization} == {
        "limit": 200_000,
        "trigger": 500 + 16_384 + int(0.8 * (200_000 - 500 - 16_384)),
        "target": 500 + 16_384 + int(0.8 * (200_000 - 500 - 16_384)),
        "total": 500 + 1_108 + 16_384,
        "fixed": 500 + 16_384,
        "system": 500,
        "tools": 0,
        "memory_digest": 0,
        "stage_data": 0,
        "ephemeral": 0,
        "reserved": 16_384,
        "messages": 1_108,
        "available": 200_000 - 500 - 1_108 - 16_384,
        "prompts": 104,
        "completions": 1_004,
        "utilization": 1_108 / (200_000 - 500 - 16_384),
    }


@pytest.mark.shows("003-15", "003-17")
async def test_tools_and_the_callers_tail_leave_less_room() -> None:
    """They are sent with every request, so they count beside the system prompt."""
    timeline = await talking(*turn(1_000, asked=100))
    context = await timeline.render(system=words(500), tools=[{"name": "x" * 4_000}], ephemeral=["e" * 400])
    account = context.account
    assert (account.fixed.tools > 1_000, account.fixed.ephemeral) == (True, 100)
    room = 200_000 - 500 - account.fixed.tools - 100 - 16_384
    assert (account.available, account.utilization) == (room - 1_108, 1_108 / room)


@pytest.mark.shows("003-15", "003-16", "R-003-3")
async def test_available_may_be_negative() -> None:
    """Where nothing makes room, the account of the refusal says how much is missing."""
    timeline = await talking(prompt(200_000))
    with pytest.raises(ContextOverflow) as refused:
        await timeline.render(system=words(500))
    assert refused.value.account["available"] == 200_000 - 500 - 200_004 - 16_384 == -16_888


@pytest.mark.shows("003-19", "R-003-4")
@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize(("number", "kept"), [(2, 1), (3, 1), (5, 2), (10, 4), (14, 5), (20, 8), (24, 9)])
async def test_the_newest_40_percent_of_the_messages_are_kept(number: int, kept: int, *, forced: bool) -> None:
    """The split is at n - floor(0.4 n), whether asked for or due: before it all is summarised, behind it all stays.

    The newest message stays even where that is none of them: of two messages one is kept.
    """
    scribe = Scribe()
    texts = [f"m{n:02} " * (150_000 // number) for n in range(number)]
    said = [answer(text=text) if n % 2 else prompt(text=text) for n, text in enumerate(texts)]
    timeline = await talking(*said, summarizer=scribe)
    if forced:
        await timeline.compact()
    else:
        await timeline.render()
    [request] = scribe.asked
    assert [block.text for block in request.blocks] == [block.text for block in said[: number - kept]]
    assert shown(await timeline.render()) == [
        "[COMPACT SUMMARY]\nhistory 1",
        "Understood.",
        *[block.text for block in said[number - kept :]],
    ]


@pytest.mark.shows("003-19", "R-003-4")
async def test_a_single_message_is_never_summarised() -> None:
    """Neither where it is asked for nor where it is due: the message stays, and the refusal says so."""
    timeline = await talking(prompt(150_000))
    with pytest.raises(CompactionRefused, match="nothing_to_cover"):
        await timeline.compact()
    context = await timeline.render()
    assert [(done.kind, done.reason) for done in context.decisions] == [("refused", "nothing_to_cover")]
    assert shown(context) == [words(150_000)]


@pytest.mark.shows("003-19", "R-003-4")
async def test_at_the_next_split_the_summary_and_its_reply_are_two_of_the_messages() -> None:
    """Fifteen messages are sent, those two among them: six stay."""
    timeline = await talking(*[answer(500) if n % 2 else prompt(500) for n in range(10)])
    await timeline.compact()
    await timeline.append(*[answer(500) if n % 2 else prompt(500) for n in range(9)])
    assert len(shown(await timeline.render())) == 2 + 4 + 9
    await timeline.compact()
    assert len(shown(await timeline.render())) == 2 + 6


@pytest.mark.shows("003-19", "R-003-4")
async def test_a_list_of_messages_is_split_at_the_same_place() -> None:
    """The summary at its head was written by an earlier call, and counts as what it is: two messages."""
    said = [{"role": "assistant" if n % 2 else "user", "content": words(500)} for n in range(10)]
    policy = policies.keep_ratio(max_tokens=20_000)
    once = await compact_messages(said, policy, summarizer=Scribe())
    again = await compact_messages([*once.messages, *said[:9]], policy, summarizer=Scribe())
    assert (len(once.messages), len(again.messages)) == (2 + 4, 2 + 6)
    assert [message["content"] for message in again.messages[:2]] == ["[COMPACT SUMMARY]\nhistory 1", "Understood."]


@pytest.mark.shows("003-20", "R-003-4")
async def test_the_split_is_moved_to_divide_no_pair() -> None:
    """At ten messages it is behind the sixth; that is a call, so the call is kept with its result: five stay."""
    said = [prompt(500), answer(500), prompt(500), answer(500), prompt(500), call("a"), result("a", 500), answer(500)]
    timeline = await talking(*said, prompt(500), answer(500))
    await timeline.compact()
    context = await timeline.render()
    assert [entry.type for entry in context.neutral.entries[2:]] == [
        "react.tool.call",
        "react.tool.result",
        "assistant.completion",
        "user.prompt",
        "assistant.completion",
    ]


@pytest.mark.shows("003-22", "R-003-11")
@pytest.mark.parametrize("client", ["the agent's own", "a cheaper one"])
async def test_whichever_client_the_caller_names_is_asked_with_a_prompt(client: str) -> None:
    """The prompt holds the old messages and none of the kept ones; its answer is the summary."""
    prompts: list[str] = []

    async def ask(text: str) -> str:
        prompts.append(text)
        return f"Summary of {client}."

    said = [answer(text=f"m{n} " * 1_000) if n % 2 else prompt(text=f"m{n} " * 1_000) for n in range(10)]
    timeline = await talking(*said, summarizer=CallableSummarizer(ask))
    await timeline.compact()
    [asked] = prompts
    assert [f"m{n} m{n}" in asked for n in range(10)] == [True] * 6 + [False] * 4
    assert shown(await timeline.render())[0] == f"[COMPACT SUMMARY]\nSummary of {client}."


@pytest.mark.shows("003-21", "003-22")
async def test_the_model_sees_the_old_messages_whole() -> None:
    """From end to end, long messages and tool results as well."""
    prompts: list[str] = []

    async def ask(text: str) -> str:
        prompts.append(text)
        return "Summary."

    said = [
        UserPrompt(text="a" * 3_000 + " MIDDLE " + "b" * 3_000),
        call("c"),
        ToolResult(call_id="c", text="d " * 400 + "INSIDE " + "e " * 400),
        answer(text="f" * 5_000 + " END"),
    ]
    timeline = await talking(*said, *turn(500) * 4, summarizer=CallableSummarizer(ask))
    await timeline.compact()
    [asked] = prompts
    assert all(block.text.strip() in asked for block in said if block.type != "react.tool.call")


@pytest.mark.shows("003-22", "003-24", "003-28", "R-003-9")
@pytest.mark.parametrize("tokens", [801, 1_601, 20_000])
@pytest.mark.parametrize("own", [True, False])
async def test_a_long_summary_is_cut_and_is_no_failure(tokens: int, *, own: bool) -> None:
    """Above 800 tokens, from a summarizer of the application's own and from a function that asks a model."""

    async def ask(_: str) -> str:
        return words(tokens)

    summarizer = Scribe(answers=[words(tokens)]) if own else CallableSummarizer(ask)
    timeline = await talking(*ten_messages(150_000), summarizer=summarizer)
    context = await timeline.render(system=SYSTEM)
    heading, _, text = shown(context)[1].partition("\n")
    assert heading == "[COMPACT SUMMARY]"
    assert text.strip() == words(800).strip()
    [compaction] = timeline.window.summaries
    assert "was cut to" in str(compaction.written_by.fallback_reason)


@pytest.mark.shows("003-28", "R-003-9")
@pytest.mark.parametrize("nothing", ["", " \n"])
async def test_nothing_from_a_summarizer_of_the_applications_own_is_a_failure(nothing: str) -> None:
    """Blanks alone are no answer: the notice takes the summary's place, and the newest 40 % stay."""
    timeline = await talking(*ten_messages(150_000), summarizer=Scribe(answers=[nothing]))
    context = await timeline.render(system=SYSTEM)
    assert shown(context)[1].startswith(NOTICE)
    assert len(context.neutral.entries) == 2 + 4


@pytest.mark.shows("003-3", "003-4", "003-5", "003-18", "003-25", "R-003-8")
@pytest.mark.parametrize("reactive", [False, True], ids=["proactive", "reactive"])
@pytest.mark.parametrize("fails", [False, True], ids=["summary", "notice"])
async def test_everything_comes_in_the_order_of_the_design(*, reactive: bool, fails: bool) -> None:
    """Hook, split, summary, build, session start with its source, boundary message, return; where it fails as well."""
    order: list[str] = []

    class Watched(Scribe):
        async def summarize(self, request: Any) -> Any:
            order.append(f"summarise {len(request.blocks)}")
            if fails:
                raise SummarizerFailed(["out of service"])
            return await super().summarize(request)

    async def before(_: dict[str, Any]) -> None:
        order.append("before")

    async def started(facts: dict[str, Any]) -> None:
        order.append(f"session start: {facts['source']}")

    hooks = Hooks(on_before_compaction=before, on_session_start=started)
    timeline = await talking(*ten_messages(150_000), summarizer=Watched(), hooks=hooks)
    if reactive:
        await timeline.after_length_stop(anthropic_reply(), system=SYSTEM, now=AT)
        order.append("return")
    context = await timeline.render(system=SYSTEM)
    order.append("return")
    number = 7 if reactive else 6  # of eleven messages, the half answer among them
    assert order[:4] == ["before", f"summarise {number}", "session start: compact", "return"]
    assert order[4:] == ["return"] * reactive
    written = [event.type for event in await log_of(timeline._store)]
    told = ("compaction.completed", "compaction.boundary", "context.rendered")
    assert [each for each in written if each in told] == list(told)
    text = NOTICE if fails else "[COMPACT SUMMARY]\nhistory 1"
    assert shown(context)[0] == SYSTEM
    assert shown(context)[1].startswith(text.replace("6 messages", f"{number} messages"))
    assert shown(context)[2] == "Understood."


@pytest.mark.shows("003-23", "003-28", "003-29", "003-30", "R-003-9", "R-003-10")
async def test_a_failing_model_leaves_messages_that_every_provider_takes() -> None:
    """The notice names how many messages went and what they were about; the newest 40 % stay; nothing is raised."""
    timeline = await talking(*ten_messages(150_000), summarizer=Mute())
    context = await timeline.render(system=SYSTEM)
    assert [taken.kind for taken in context.decisions] == ["compacted"]
    assert shown(context)[1].startswith(NOTICE)
    assert len(context.neutral.entries) == 2 + 4
    check_anthropic(context.to_anthropic())
    check_openai_chat(context.to_openai_chat())
    await timeline.append(*turn(100))
    assert (await timeline.render(system=SYSTEM)).decisions == ()


@pytest.mark.shows("003-23")
async def test_after_two_failures_both_notices_stay() -> None:
    """The second says how many messages it is about; what the first said is not lost."""
    timeline = await talking(*ten_messages(150_000), summarizer=Mute())
    await timeline.render(system=SYSTEM)
    await timeline.append(*ten_messages(150_000))
    context = await timeline.render(system=SYSTEM)
    notices = shown(context)[1].removeprefix("[COMPACT SUMMARY]\n").split("\n\n")
    assert [notice.partition(" about: ")[0] for notice in notices] == [
        "[Context truncated. Earlier conversation contained 6 messages",
        "[Context truncated. Earlier conversation contained 8 messages",
    ]


@pytest.mark.shows("003-23")
@pytest.mark.parametrize(("tokens", "stays"), [(700, True), (736, True), (737, False), (760, False)])
async def test_an_earlier_text_stays_beside_the_notice_as_far_as_both_fit_800_tokens(
    tokens: int, *, stays: bool
) -> None:
    """The notice takes at least 64 of them."""

    class Once(Scribe):
        async def summarize(self, request: Any) -> Any:
            if self.asked:
                raise SummarizerFailed(["out of service"])
            return await super().summarize(request)

    timeline = await talking(*ten_messages(150_000), summarizer=Once(answers=[words(tokens).strip()]))
    await timeline.render(system=SYSTEM)
    await timeline.append(*ten_messages(150_000))
    context = await timeline.render(system=SYSTEM)
    text = shown(context)[1].removeprefix("[COMPACT SUMMARY]\n")
    assert text.startswith(words(tokens).strip()) is stays
    assert "[Context truncated. Earlier conversation contained 8 messages about: " in text
    assert -(-len(text) // 4) <= 800


@pytest.mark.shows("003-30", "R-003-10")
async def test_what_no_compaction_can_make_fit_is_a_typed_error() -> None:
    """A request that does not fit beside the answer's reserve, and a fixed part that leaves no room at all."""
    with pytest.raises(ContextOverflow):
        await (await talking(prompt(184_000))).render()
    assert (await (await talking(prompt(183_000))).render()).account.available > 0
    with pytest.raises(BudgetImpossible):
        await (await talking(prompt(10))).render(system=words(183_616))


@pytest.mark.shows("003-28", "R-003-9")
@pytest.mark.parametrize(("own", "summarizers"), [(0.01, 60.0), (None, 0.01)])
async def test_a_model_that_does_not_answer_in_time_is_a_failure(own: float | None, summarizers: float) -> None:
    """By either's timeout: the notice takes the summary's place, and the newest 40 % stay."""

    async def slow(_: str) -> str:
        with anyio.fail_after(own):
            await anyio.sleep_forever()
        return "too late"

    timeline = await talking(*ten_messages(150_000), summarizer=CallableSummarizer(slow, timeout=summarizers))
    context = await timeline.render(system=SYSTEM)
    assert shown(context)[1].startswith(NOTICE)
    assert len(context.neutral.entries) == 2 + 4


@pytest.mark.shows("003-28", "R-003-9")
@pytest.mark.parametrize("answer", ["", " \n"])
async def test_an_empty_answer_is_a_failure(answer: str) -> None:
    """White space alone too: the notice takes the summary's place, and the newest 40 % stay."""

    async def silent(_: str) -> str:
        return answer

    timeline = await talking(*ten_messages(150_000), summarizer=CallableSummarizer(silent))
    context = await timeline.render(system=SYSTEM)
    assert shown(context)[1].startswith(NOTICE)
    assert len(context.neutral.entries) == 2 + 4


@pytest.mark.shows("003-6", "003-7", "003-8", "003-9", "003-32", "R-003-6", "R-003-7")
@pytest.mark.parametrize(("system", "ends"), [(words(3_616), "max_tokens"), (words(23_616), None)])
async def test_at_a_length_stop_the_budget_decides(system: str, ends: str | None) -> None:
    """At 140,000 tokens nothing is due beside a short system prompt, and something beside a long one."""
    timeline = await talking(*ten_messages(140_000), prompt(10))
    stop = await timeline.after_length_stop(anthropic_reply(), system=system, now=AT)
    assert (stop.exit, [call["call_id"] for call in stop.discarded]) == (ends, ["toolu_1"])
    assert [taken.kind for taken in stop.decisions] == ([] if ends else ["compacted"])
    sent = (await timeline.render(system=system)).neutral.entries
    assert not any(entry.call_id == "toolu_1" for entry in sent)
    assert stop.account.utilization < 0.8


@pytest.mark.shows("003-6", "003-7", "R-003-7")
async def test_the_budget_is_worked_out_without_the_call_that_was_cut() -> None:
    """At 140,000 of the 144,000 tokens that are not due, a call of 20,000 would be over; it is discarded first."""
    timeline = await talking(*ten_messages(140_000))
    made = {"type": "tool_use", "id": "toolu_9", "name": "write", "input": {"text": "x" * 80_000}}
    stop = await timeline.after_length_stop(anthropic_reply(content=[made]), system=SYSTEM, now=AT)
    assert (stop.exit, stop.decisions, stop.calls) == ("max_tokens", (), ())
    assert [call["call_id"] for call in stop.discarded] == ["toolu_9"]
    assert stop.account.messages < 144_000
