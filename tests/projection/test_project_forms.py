"""How each kind of block looks to the model (design, section 6, forms)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.invariants.wires import check_anthropic, check_grown, check_openai_chat
from tests.scenes import (
    COUNTER,
    Scribe,
    answer,
    apply,
    call,
    compact_fold,
    exchange,
    fold_of,
    grow,
    opened,
    prompt,
    result,
    turn,
    window_of,
    words,
)
from timeline import Timeline, policies
from timeline.blocks import (
    BEHIND_KEY,
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Note,
    Reasoning,
    StageDigest,
    SystemMessage,
    TurnHeader,
    UserPrompt,
)
from timeline.events import BlockRedacted, BlocksHidden, Replacement
from timeline.planning.summary_block import HEADING
from timeline.policy.model import CachePointRule
from timeline.projection.project import Projector, said_as
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.fold.window import Window
    from timeline.wire.neutral import Entry

PICTURE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def entries(window: Window) -> list[Entry]:
    """Project a window and return its entries."""
    return list(Projector().project(window, CachePointRule()).entries)


def entry(block: Block) -> Entry:
    """Return the entry of a single block."""
    [only] = entries(window_of(block))
    return only


@pytest.mark.shows("004-81")
@pytest.mark.parametrize(
    ("block", "role", "text"),
    [
        (UserPrompt(text="hi"), "user", "hi"),
        (UserPrompt(text="hi", author="alice"), "user", "hi"),
        (AssistantCompletion(text="yes"), "assistant", "yes"),
        (TurnHeader(text="Monday"), "user", "Monday"),
        (Note(text="French only"), "user", "[pinned note] French only"),
        (StageDigest(text="outline done"), "user", "[stage digest] outline done"),
        (SystemMessage(text="hurry"), "system", "hurry"),
        (CustomBlock(type="app.x", text="rain", author="assistant"), "assistant", "rain"),
        (CustomBlock(type="app.x", text="rain", author="planner"), "user", "rain"),
        (Attachment(text="a,b", data=[PICTURE], mime="text/csv"), "user", "a,b"),
        (Reasoning(text="hm"), "assistant", "hm"),
    ],
    ids=lambda value: value.type if isinstance(value, Block) else "",
)
def test_each_type_has_its_role_and_text(block: Block, role: str, text: str) -> None:
    """Who speaks is a wish that each wire lowers; labels tell the runtime's own texts."""
    shown = entry(block)
    assert (shown.type, shown.role, shown.text) == (block.type, role, text)


def test_a_call_shows_its_name_id_and_arguments() -> None:
    """As they were made."""
    shown = entry(call("c1", "run", arguments={"x": 1}))
    assert (shown.role, shown.name, shown.call_id, shown.arguments) == ("assistant", "run", "c1", {"x": 1})


def test_a_result_shows_whether_it_is_an_error_and_its_parts() -> None:
    """Content parts go out as they came in."""
    shown = entries(window_of(call("c1"), result("c1", text="no", is_error=True, data=[PICTURE])))[1]
    assert (shown.role, shown.call_id, shown.is_error, shown.data, shown.loose) == (
        "tool",
        "c1",
        True,
        [PICTURE],
        False,
    )


def test_meta_is_never_shown() -> None:
    """What an application keeps beside a block stays there."""
    assert "secret" not in entry(UserPrompt(text="hi", meta={"k": "secret"})).canonical


@pytest.mark.shows("004-81")
def test_a_block_that_shows_nothing_has_no_entry() -> None:
    """An empty header or completion is left out; an empty result is not, since its call needs it."""
    window = window_of(TurnHeader(), prompt(), answer(text=""), call("a"), result("a", text=""))
    assert [e.type for e in entries(window)] == ["user.prompt", "react.tool.call", "react.tool.result"]


@pytest.mark.shows("002-9", "004-60")
def test_a_hidden_block_shows_its_replacement() -> None:
    """The recorded text stands for text and data both."""
    fold = fold_of(prompt(), call("a"), result("a", 500, data=[PICTURE]))
    apply(fold, 5, BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[a hidden]", tokens=3),)))
    shown = entries(fold.window)[-1]
    assert (shown.text, shown.data, shown.call_id, shown.type) == ("[a hidden]", None, "a", "react.tool.result")


def test_a_hidden_call_shows_its_replaced_arguments() -> None:
    """Still an object, still the same call."""
    fold = fold_of(prompt(), call("a", arguments={"x": words(500)}), result("a"))
    apply(fold, 5, BlocksHidden(reason="spill", blocks=(Replacement(version=3, arguments={"x": "abc …"}, tokens=3),)))
    shown = entries(fold.window)[1]
    assert (shown.arguments, shown.name, shown.call_id) == ({"x": "abc …"}, "run", "a")


def test_an_omitted_block_is_not_shown() -> None:
    """Omitted is hidden without a replacement."""
    fold = fold_of(prompt(), answer())
    apply(fold, 4, BlocksHidden(mode="omit", reason="chitchat", blocks=(Replacement(version=2),)))
    assert [e.path for e in entries(fold.window)] == ["ar:turn_1.assistant.completion"]


def test_a_redacted_block_shows_its_tombstone() -> None:
    """The model sees that something was there."""
    fold = fold_of(prompt(text="my password is x"), answer())
    apply(fold, 4, BlockRedacted(version=2))
    assert entries(fold.window)[0].text == "[redacted]"


def test_an_orphan_result_is_loose() -> None:
    """A result without a call goes out as user text with its path; the wire needs to know."""
    assert entries(window_of(prompt(), result("lost")))[1].loose


def test_the_late_result_of_a_covered_call_is_loose() -> None:
    """Its call is not in this context any more."""
    fold = fold_of(prompt(), call("a", pending=True), answer(response_id="m2"))
    compact_fold(fold, 3)
    grow(fold, result("a"))
    assert entries(fold.window)[-1].loose


def test_a_result_whose_call_is_omitted_is_loose() -> None:
    """No result is shown as the answer to a call that is not."""
    fold = fold_of(prompt(), *exchange("a"))
    apply(fold, 5, BlocksHidden(mode="omit", reason="ttl", blocks=(Replacement(version=3),)))
    assert [e.loose for e in entries(fold.window)] == [False, True]


def test_reasoning_keeps_its_opaque_data() -> None:
    """The provider's own part, signature included."""
    data: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    shown = entry(Reasoning(text="hm", data=data))
    assert (shown.data, shown.rewritten) == (data, False)


def test_reasoning_from_before_a_compaction_is_marked() -> None:
    """Its prefix was rewritten since it was signed, so a wire may have to drop it; newer reasoning is not marked."""
    data: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    fold = fold_of(*[prompt(), answer()], prompt(), Reasoning(data=data), *exchange("a"))
    compact_fold(fold, 3)
    grow(fold, Reasoning(data=data, response_id="m2"))
    marked = [e.rewritten for e in entries(fold.window) if e.type == "assistant.reasoning"]
    assert marked == [True, False]


def test_reasoning_behind_a_later_hide_is_marked() -> None:
    """A replacement before it rewrites its prefix as a summary does; one behind it does not."""
    data: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    fold = fold_of(prompt(), *exchange("a"), Reasoning(data=data, response_id="m2"), *exchange("b"))
    apply(fold, 8, BlocksHidden(reason="ttl", blocks=(Replacement(version=7, text="[b]", tokens=1),)))
    assert not any(e.rewritten for e in entries(fold.window))
    apply(fold, 9, BlocksHidden(reason="ttl", blocks=(Replacement(version=4, text="[a]", tokens=1),)))
    assert [e.type for e in entries(fold.window) if e.rewritten] == ["assistant.reasoning"]


def test_a_summary_speaks_as_the_user() -> None:
    """Text from the conversation never becomes a system message."""
    fold = fold_of(*[prompt(), answer()], prompt())
    compact_fold(fold, 3)
    assert entries(fold.window)[0].role == "user"
    assert said_as(fold.window.items[0].block) == "user"


def test_a_summary_behind_its_prompt_leaves_what_stands_before_its_range_where_it_is() -> None:
    """It moves behind the carried prompt that its compaction names, and nothing else moves or goes."""
    fold = fold_of(*turn(), prompt(), *exchange("a"), *exchange("b"))
    compact_fold(fold, 6, since=4, carried=(4,), meta={BEHIND_KEY: [4]})
    assert [e.path.split(":")[1] for e in entries(fold.window)] == [
        "turn_1.user.prompt",
        "turn_1.assistant.completion",
        "turn_2.user.prompt",
        "c.conv.range.summary",
        "turn_2.b.call",
        "turn_2.b.result",
    ]


def test_blocks_of_a_response_share_their_group() -> None:
    """A wire keeps a group's calls and results together."""
    shown = entries(window_of(prompt(), call("a"), call("b"), result("a"), result("b"), answer()))
    assert [e.group for e in shown] == [0, 1, 1, 1, 1, 2]


# Summaries in the form of each published design, as the wires send them


OPENING: Final = "[The conversation goes on from here.]"
QUESTION: Final = (
    "What have we accomplished in our conversation so far? Summarize our progress, current state, and next steps."
)
TOLD: Final[dict[str, list[tuple[str, str]]]] = {
    "priority_chain": [("user", "[system message] [RINGKASAN DISKUSI SEBELUMNYA]\nhistory 1")],
    "keep_last": [("user", OPENING), ("assistant", "## Session Summary (Round 1)\n\nhistory 1")],
    "keep_ratio": [("user", "[COMPACT SUMMARY]\nhistory 1"), ("assistant", "Understood.")],
    "prune_then_summarize": [("user", QUESTION), ("assistant", "history 1")],
    "cut_point": [("user", f"{HEADING}\n\nhistory 1")],
}
"""What stands before the kept messages, by preset: who says what."""
SMALL_KEEP: Final[dict[str, dict[str, Any]]] = {"cut_point": {"keep_recent_tokens": 500, "digest_tokens": 0}}
"""What a preset needs besides, so that there is something to cover."""


async def compacted(name: str, *blocks: Block, **changes: Any) -> Timeline:
    """Return a conversation that was compacted once by a preset."""
    policy = policies.by_name(name, counter="chars4", **changes)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Scribe())
    await timeline.render(system="You help.")
    await timeline.append(*blocks)
    await timeline.compact()
    assert timeline.window.compactions == 1
    return timeline


def discussion() -> list[Block]:
    """Return twenty turns of a question and an answer."""
    return [block for _ in range(20) for block in turn(200, asked=50)]


def agent_run() -> list[Block]:
    """Return turns of an agent with its tools; the newest messages are a call and its result."""
    return [block for n in range(12) for block in (prompt(), *exchange(f"a{n}", 200), *exchange(f"b{n}", 200))]


def told_to_anthropic(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return who says what in a request to Anthropic, a pair for each text part."""
    return [
        (message["role"], part["text"])
        for message in body["messages"]
        for part in message["content"]
        if part["type"] == "text"
    ]


@pytest.mark.parametrize("name", TOLD)
async def test_a_summary_is_told_in_its_designs_form(name: str) -> None:
    """Labelled text, an assistant's message behind the user's line that a wire needs, or a pair, on both wires."""
    timeline = await compacted(name, *discussion(), **SMALL_KEEP.get(name, {}))
    context = await timeline.render()
    anthropic, openai = context.to_anthropic(), context.to_openai_chat()
    check_anthropic(anthropic)
    check_openai_chat(openai)
    count = len(TOLD[name])
    assert told_to_anthropic(anthropic)[:count] == TOLD[name]
    assert [(m["role"], m["content"]) for m in openai["messages"]][:count] == TOLD[name]
    assert "system" not in anthropic
    assert all(message["role"] != "system" for message in openai["messages"])


@pytest.mark.parametrize("name", TOLD)
async def test_every_form_stands_before_a_tool_loop_without_breaking_it(name: str) -> None:
    """Roles alternate, each call has its result, and the summary is no part of the response behind it."""
    timeline = await compacted(name, *agent_run(), **SMALL_KEEP.get(name, {}))
    context = await timeline.render()
    check_anthropic(context.to_anthropic())
    check_openai_chat(context.to_openai_chat())
    assert not timeline.window.items[0].response
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("name", TOLD)
async def test_no_form_changes_what_was_sent_before(name: str) -> None:
    """What is appended later leaves the request's beginning, and a new process renders the same bytes."""
    timeline = await compacted(name, *agent_run(), **SMALL_KEEP.get(name, {}))
    before = await timeline.render()
    await timeline.append(answer(30), *turn(20))
    after = await timeline.render()
    check_grown(before, after)
    again = await Timeline.open(timeline._store, timeline.id, policy=timeline.policy, summarizer=Scribe())
    assert (await again.render()).neutral == after.neutral


@pytest.mark.parametrize("name", TOLD)
async def test_cache_points_stand_on_what_they_name_in_every_form(name: str) -> None:
    """A form of two entries moves the points by one; each stands on an entry of its own item."""
    timeline = await compacted(name, *agent_run(), **SMALL_KEEP.get(name, {}))
    context = await timeline.render()
    entries = context.neutral.entries
    points = {point.kind: entries[point.index] for point in context.cache_points}
    assert points["tail"] is entries[-1]
    assert points["previous_turn"].path.split(".")[0] != entries[-1].path.split(".")[0]
    following = entries[context.cache_points[[p.kind for p in context.cache_points].index("previous_turn")].index + 1]
    assert following.type == "user.prompt"


async def test_an_answer_behind_a_summary_is_said_after_it() -> None:
    """Seed 003: the pair, then the kept messages, whose first one is the user's."""
    timeline = await compacted("keep_ratio", *discussion())
    roles = [message["role"] for message in (await timeline.render()).to_anthropic()["messages"]]
    assert roles[:3] == ["user", "assistant", "user"]


async def test_a_form_is_recorded_with_its_compaction() -> None:
    """Under another policy the summary is told as it was when it was made."""
    timeline = await compacted("keep_ratio", *discussion())
    other = await Timeline.open(timeline._store, timeline.id, policy=policies.none(counter="chars4"))
    entries_then = (await timeline.render()).neutral.entries
    assert (await other.render()).neutral.entries == entries_then


async def test_the_heading_has_the_number_of_its_round() -> None:
    """Seed 001: every summary says which round it is."""
    timeline = await compacted("keep_last", *discussion())
    await timeline.append(*discussion())
    await timeline.compact()
    texts = [e.text for e in (await timeline.render()).neutral.entries if e.type == "conv.range.summary"]
    assert texts == ["## Session Summary (Round 2)\n\nhistory 2"]


@pytest.mark.parametrize("name", TOLD)
async def test_what_a_form_says_around_a_summary_is_counted(name: str) -> None:
    """Question, heading and answer are part of the summary's tokens."""
    timeline = await compacted(name, *discussion(), **SMALL_KEEP.get(name, {}))
    context = await timeline.render()
    said = [e for e in context.neutral.entries if e.path.startswith("su:")]
    assert timeline.window.items[0].tokens == sum(COUNTER.count(entry.text) for entry in said)


@pytest.mark.parametrize("known", [True, False])
def test_a_call_that_was_sent_goes_with_its_result_that_is_omitted_before_the_next_context(known: bool) -> None:  # noqa: FBT001 - a table
    """Sent as an interrupted call, it would be called again."""
    fold, projector = fold_of(prompt(), call("a")), Projector()
    if known:
        projector.project(fold.window, CachePointRule())
    grow(fold, result("a"), prompt())
    apply(fold, fold.version + 1, BlocksHidden(mode="omit", reason="manual", blocks=(Replacement(version=4),)))
    sent = projector.project(fold.window, CachePointRule()).entries
    assert [entry.type for entry in sent] == ["user.prompt", "user.prompt"]
