"""Lists of messages without a log: the same engine, chained over any number of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.wires import check_anthropic, check_openai_chat
from tests.scenes import AT, Mute, Scribe
from timeline import compact_messages, policies, sync
from timeline.agent.messages import read_messages
from timeline.errors import BudgetImpossible, ContextOverflow, InvalidArgument, InvalidBlock
from timeline.message_lists import earlier_summary

if TYPE_CHECKING:
    from timeline.policy.model import Policy

SYSTEM = {"role": "system", "content": "You code."}
UNDERSTOOD = [{"role": "user", "content": ""}, {"role": "assistant", "content": "Understood."}]


def talk(number: int, words: int = 60) -> list[Any]:
    """Return a question and its answer."""
    return [
        {"role": "user", "content": f"question {number} " * words, "name": "ann"},
        {"role": "assistant", "content": f"answer {number} " * words},
    ]


def tools(number: int, words: int = 60) -> list[Any]:
    """Return a call and its result, as OpenAI's chat has them."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": f"file {number} " * words},
    ]


def anthropic_talk(number: int, words: int = 60) -> list[Any]:
    """Return a question, a call, its result and an answer, as Anthropic's messages."""
    use = {"type": "tool_use", "id": f"toolu_{number}", "name": "ls", "input": {"n": number}}
    told = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"file {number} " * words}
    return [
        {"role": "user", "content": [{"type": "text", "text": f"question {number} " * words}]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [told]},
        {"role": "assistant", "content": [{"type": "text", "text": f"answer {number} " * words}]},
    ]


def long(policy_tokens: int) -> list[Any]:
    """Return a list of some more tokens than a policy takes."""
    return [message for number in range(policy_tokens // 250) for message in talk(number)]


async def test_below_the_trigger_the_very_same_list_comes_back() -> None:
    """Nothing was done, and nothing is copied."""
    messages = [SYSTEM, *talk(1)]
    result = await compact_messages(messages, policies.keep_last())
    assert result.messages is messages
    assert (result.changed, result.compaction_number, result.decisions) == (False, 0, ())
    assert result.before_tokens == result.after_tokens > 0


async def test_the_newest_messages_stay_as_they_were_given() -> None:
    """System prompt first, then the summary, then the last ten: the very objects, with fields of their own."""
    scribe = Scribe(answers=["All is well."])
    messages = [SYSTEM, *long(9_000)]
    result = await compact_messages(messages, policies.keep_last(max_tokens=20_000), summarizer=scribe, now=AT)
    assert result.messages[0] is SYSTEM
    assert result.messages[-10:] == messages[-10:]
    assert all(kept is given for kept, given in zip(result.messages[-10:], messages[-10:], strict=True))
    summary = next(m for m in result.messages if "Session Summary" in m["content"])
    assert summary["content"].startswith("## Session Summary (Round 1)")
    assert summary["role"] == "assistant"
    assert (result.compaction_number, [taken.kind for taken in result.decisions]) == (1, ["compacted"])
    assert result.after_tokens < result.before_tokens


@pytest.mark.shows("001-40", "001-44", "R-001-19")
async def test_three_chained_rounds_integrate_each_other() -> None:
    """Each round is told the summary before it, and counts on (seed 001, chaining)."""
    scribe = Scribe(answers=["First.", "First, second.", "First, second, third."])
    policy = policies.keep_last(max_tokens=20_000)
    messages: list[Any] = [SYSTEM]
    for number in range(1, 4):
        result = await compact_messages([*messages, *long(9_000)], policy, summarizer=scribe)
        messages = result.messages
        assert result.compaction_number == number
        assert sum("Session Summary" in str(m["content"]) for m in messages) == 1
    assert [request.previous for request in scribe.asked] == [None, "First.", "First, second."]
    assert [request.compaction_number for request in scribe.asked] == [1, 2, 3]
    assert any(m["content"] == "## Session Summary (Round 3)\n\nFirst, second, third." for m in messages)


@pytest.mark.parametrize("dialect", [talk, anthropic_talk], ids=["openai_chat", "anthropic"])
@pytest.mark.parametrize(
    "policy",
    [
        policies.cut_point(max_tokens=8_000, counter="chars4"),
        policies.priority_chain(max_tokens=8_000),
        policies.keep_last(max_tokens=20_000),
        policies.keep_ratio(max_tokens=26_000),
        policies.prune_then_summarize(max_tokens=12_000),
    ],
    ids=lambda policy: policy.name,
)
async def test_every_preset_knows_its_own_summaries_again(policy: Policy, dialect: Any) -> None:
    """Call after call there is one summary, it integrates the one before, and every list can be sent."""
    check = check_anthropic if dialect is anthropic_talk else check_openai_chat
    scribe = Scribe()
    messages: list[Any] = []
    number = 0
    for _ in range(3):
        compacted = False
        while not compacted:
            number += 1
            messages = [*messages, *dialect(number)]
            result = await compact_messages(messages, policy, summarizer=scribe)
            messages, compacted = result.messages, any(taken.kind == "compacted" for taken in result.decisions)
            check({"messages": messages})
    assert [bool(request.previous) for request in scribe.asked if request.kind == "history"][:3] == [False, True, True]


@pytest.mark.parametrize(
    ("messages", "body", "round_"),
    [
        ([{"role": "assistant", "content": "## Session Summary (Compaction Round 4)\n\nDone."}], "Done.", 4),
        ([{"role": "assistant", "content": "### Session Summary (Compaction Round 2)\n\nDone."}], "Done.", 2),
        ([{"role": "assistant", "content": "## Session Summary: Round 7\n\nDone."}], "Done.", 7),
        ([UNDERSTOOD[0] | {"content": "[COMPACT SUMMARY]\nDone."}, UNDERSTOOD[1]], "Done.", 1),
        ([{"role": "user", "content": "[system message] [RINGKASAN DISKUSI SEBELUMNYA]\nSelesai."}], "Selesai.", 1),
        ([{"role": "user", "content": policies.cut_point().form.heading + "\n\nDone."}], "Done.", 1),
        (
            [
                {"role": "user", "content": policies.prune_then_summarize().form.question},
                {"role": "assistant", "content": "Done."},
            ],
            "Done.",
            1,
        ),
    ],
)
def test_a_summary_is_known_by_its_form(messages: list[Any], body: str, round_: int) -> None:
    """Whichever policy is in force now; what is said around it goes with it."""
    behind = talk(1)
    read = read_messages([*messages, *behind], wire="openai_chat", names=[str(n) for n in range(len(messages) + 2)])
    found = earlier_summary(read, policies.none().form)
    assert found is not None
    assert (found.body, found.compaction_number) == (body, round_)
    assert [block.text for blocks in found.rest for block in blocks] == [message["content"] for message in behind]


def test_what_only_mentions_a_summary_is_none() -> None:
    """A heading counts at the head of the list alone."""
    mentioned = [*talk(1), {"role": "user", "content": "[COMPACT SUMMARY]\nx"}]
    read = read_messages(mentioned, wire="openai_chat", names=["1", "2", "3"])
    assert earlier_summary(read, policies.keep_ratio().form) is None
    assert earlier_summary([], policies.keep_ratio().form) is None


async def test_a_tool_pair_is_never_divided() -> None:
    """Neither by the cut nor by what is put in the place of the messages."""
    messages = [SYSTEM, *talk(0), *(m for n in range(40) for m in tools(n))]
    result = await compact_messages(messages, policies.keep_ratio(max_tokens=21_000))
    assert result.changed
    check_openai_chat({"messages": result.messages})


async def test_a_failing_summarizer_leaves_the_list_or_truncates_it() -> None:
    """As the policy says: seed 001 leaves it, seed 003 puts a notice in the summary's place."""
    messages = [SYSTEM, *long(6_500)]
    left = await compact_messages(messages, policies.keep_last(max_tokens=20_000), summarizer=Mute())
    assert left.messages is messages
    assert [taken.kind for taken in left.decisions] == ["failed"]
    cut = await compact_messages(messages, policies.keep_ratio(max_tokens=25_000), summarizer=Mute())
    assert "[Context truncated. Earlier conversation contained" in str(cut.messages[1]["content"])


async def test_no_path_is_printed_that_nobody_can_read() -> None:
    """There is no log behind a list: its summary ends without the exact record, and nothing names an address."""
    result = await compact_messages([SYSTEM, *long(9_000)], policies.cut_point(max_tokens=8_000, counter="chars4"))
    assert result.changed
    assert "Exact record" not in str(result.messages)
    assert "@" not in str(result.messages)


async def test_prompt_and_tools_beside_the_messages_count() -> None:
    """They are sent too; they come back nowhere."""
    messages = anthropic_talk(1)
    bare = await compact_messages(messages, policies.keep_last())
    told = await compact_messages(messages, policies.keep_last(), system="You code. " * 100, tools=[{"name": "ls"}])
    assert told.before_tokens - bare.before_tokens >= 250
    assert told.messages is messages


async def test_what_does_not_fit_is_a_typed_error() -> None:
    """As for a render."""
    with pytest.raises(ContextOverflow):
        await compact_messages(long(9_000), policies.none(max_tokens=2_000))
    with pytest.raises(BudgetImpossible):
        await compact_messages(talk(1), policies.cut_point(max_tokens=1_000), system="word " * 2_000)


async def test_what_is_no_list_of_messages_is_refused() -> None:
    """The error says where."""
    with pytest.raises(InvalidBlock, match=r"messages\[1\]"):
        await compact_messages([SYSTEM, 3], policies.keep_last())
    name: Any = "keep_last"
    with pytest.raises(InvalidArgument, match="policy"):
        await compact_messages([SYSTEM], name)


def test_the_blocking_twin_gives_the_same() -> None:
    """From a program without an event loop."""
    messages = [SYSTEM, *long(9_000)]
    result = sync.compact_messages(messages, policies.keep_last(max_tokens=20_000), now=AT)
    assert result.compaction_number == 1
    assert len(result.messages) < len(messages)
