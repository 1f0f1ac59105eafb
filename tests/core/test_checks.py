"""Arguments that cannot be used: one typed error with the cure, before anything is written."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from tests.scenes import AT, opened, turn
from timeline import Hooks, Timeline, compact_messages, policies, summarizers, sync
from timeline.blocks import UserPrompt
from timeline.errors import InvalidArgument, InvalidBlock, TimelineError
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

PROMPT = "ar:turn_1.user.prompt"
MESSAGE = {"role": "user", "content": "x"}


async def nothing(context: Any) -> None:
    """Call no model."""
    del context


async def no_events() -> AsyncIterator[Any]:
    """Stream nothing."""
    return
    yield


WAITED_FOR: Final = nothing(None)
"""What a call gives whose ``await`` was forgotten."""
WAITED_FOR.close()
STATED: Final = re.compile(r"': (is|are|has|have) .*\bnot ")
"""What a message says of a wrong argument as if it were so: "'at': is a version, not '3'"."""


class NaiveClock:
    """A clock whose time has no zone, as ``datetime.now()`` gives it."""

    def now(self) -> datetime:
        """Return a moment without a zone."""
        return AT.replace(tzinfo=None)


METHODS: list[tuple[str, str, Callable[[Any], Awaitable[Any]]]] = [
    ("record", "'full', 'hash', 'overlapped', True or False, not 'maybe'", lambda t: t.render(record="maybe")),
    ("record", "not None", lambda t: t.render(record=None)),
    ("record", "not False", lambda t: t.retry_with_compaction(nothing, record=False)),
    ("system", "a list, not an object of type int", lambda t: t.render(system=5)),
    ("tools", "brackets", lambda t: t.render(tools={"name": "run"})),
    ("tools", "brackets", lambda t: t.render(tools="run")),
    ("ephemeral", "not 'noon'; put a single one into brackets", lambda t: t.render(ephemeral="noon")),
    ("ephemeral", "type int", lambda t: t.render(ephemeral=[5])),
    ("ephemeral", "brackets", lambda t: t.retry_with_compaction(nothing, ephemeral="noon")),
    ("now", "datetime.now", lambda t: t.render(now="today")),
    ("now", "time zone", lambda t: t.render(now=AT.replace(tzinfo=None))),
    ("version", "such as 120, not 'x'", lambda t: t.at("x")),
    ("version", "not None", lambda t: t.at(None)),
    ("version", "not 1.5", lambda t: t.at(1.5)),
    ("version", "not True", lambda t: t.at(True)),
    ("at", "not '3'", lambda t: t.fork(at="3")),
    ("conversation", "a text", lambda t: t.fork(conversation=5)),
    ("title", "a text", lambda t: t.fork(title=5)),
    ("mode", "'replace' or 'omit', not 'gone'", lambda t: t.hide(PROMPT, mode="gone")),
    ("text", "a text", lambda t: t.hide(PROMPT, text=5)),
    ("version", "not 'last'", lambda t: t.undo_compaction("last")),
    ("instructions", "a text", lambda t: t.compact(instructions=5)),
    ("text", "a text", lambda t: t.inject(5)),
    ("question", "a text", lambda t: t.inject("So.", keep="pair", question=5)),
    ("messages", "a list", lambda t: t.append_messages(None)),
    ("messages", "brackets", lambda t: t.append_messages(MESSAGE)),
    ("keys", "brackets", lambda t: t.append_messages([MESSAGE], keys="a")),
    ("keys", "type int", lambda t: t.append_messages([MESSAGE], keys=[5])),
    ("wire", "there are anthropic", lambda t: t.append_messages([MESSAGE], wire="morse")),
    ("started_at", "datetime.now", lambda t: t.record_model_call(started_at="now")),
    ("usage", "Usage", lambda t: t.record_model_call("many")),
    ("model", "string", lambda t: t.record_model_call(model=5)),
    ("wires", "brackets", lambda t: t.diff(wires="anthropic")),
    ("path", "an address such as '@152', not 152", lambda t: t.read(152)),
    ("path", "not an object of type list", lambda t: t.hide([PROMPT])),
    ("path", "such as '@152', not 152", lambda t: t.why(152)),
    ("before", "such as '@2', not 2", lambda t: t.diff_summaries(2, 3)),
    ("path", "such as '@2', not 2", lambda t: t.redact(2, "asked for")),
    ("path", "such as '@2', not 2", lambda t: t.redact([PROMPT, 2], "asked for")),
    ("call", "not '1'", lambda t: t.fork(call="1")),
    ("call", "not True", lambda t: t.fork(call=True)),
    ("conversation", "needs an id", lambda t: t.hand_over(conversation="")),
    ("call", "async function of a context", lambda t: t.retry_with_compaction(None)),
    ("call", "not an object of type coroutine", lambda t: t.retry_with_compaction(WAITED_FOR)),
    ("messages", "list(…)", lambda t: t.append_messages(each for each in [MESSAGE])),
    ("keys", "list(…)", lambda t: t.append_messages([MESSAGE], keys=iter("a"))),
    ("wire", "there are anthropic", lambda t: t.append_messages([MESSAGE], wire=["anthropic"])),
    ("wire", "'openai_chat'", lambda t: t.step_hook("morse")),
    ("model", "a text", lambda t: t.step_hook("anthropic", model=5)),
    ("wire", "there are anthropic", lambda t: t.recall_tool(["anthropic"])),
    ("messages", "list(…)", lambda t: t.step_hook("anthropic").prepare_step(messages=iter([MESSAGE]))),
    ("stream", "asynchronous client", lambda t: t.record_stream([{"type": "message_start"}])),
    ("stream", "write `await` before", lambda t: t.record_stream(WAITED_FOR)),
    ("on_event", "function of an event", lambda t: t.record_stream(no_events(), on_event="print")),
    ("tools", "brackets", lambda t: t.still_used("bash")),
    ("blocks", "brackets", lambda t: t.count("Hello.")),
    ("blocks", "such as UserPrompt(text='…'), not 'Hello.'", lambda t: t.count(["Hello."])),
    ("blocks", "append_messages([…]) takes these", lambda t: t.append(MESSAGE)),
    ("blocks", "append(*blocks)", lambda t: t.append([UserPrompt(text="x")])),
    ("blocks", "such as UserPrompt(text='…'), not 'Hello.'", lambda t: t.append("Hello.")),
]


@pytest.mark.parametrize(("field", "cure", "method"), METHODS, ids=[f"{n}-{m[0]}" for n, m in enumerate(METHODS)])
async def test_an_argument_that_cannot_be_used_is_refused_with_the_cure(
    field: str, cure: str, method: Callable[[Any], Awaitable[Any]]
) -> None:
    """The error names the argument and what it should be, and nothing was written."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    version = timeline.version
    with pytest.raises(InvalidArgument) as caught:
        await method(timeline)
    assert caught.value.field == field
    assert cure in str(caught.value)
    assert STATED.search(str(caught.value)) is None
    assert timeline.version == version


@pytest.mark.parametrize(
    ("field", "cure", "given"),
    [
        ("store", "open_store", {"store": "agent.db"}),
        ("policy", "policies.cut_point()", {"policy": "cut_point"}),
        ("summarizer", "CallableSummarizer(function)", {"summarizer": nothing}),
        ("summarizer", "call it", {"summarizer": summarizers.ExtractiveSummarizer}),
        ("hooks", "Hooks(", {"hooks": {}}),
        ("clock", "SystemClock()", {"clock": datetime.now}),
        ("clock", "call it", {"clock": NaiveClock}),
        ("clock", "needs a time zone", {"clock": NaiveClock()}),
        ("counter", "get_counter", {"counter": "o200k_base"}),
        ("conversation", "a text", {"conversation": 5}),
        ("title", "a text", {"title": 5}),
        ("parent", "ParentLink(conversation=", {"parent": "other"}),
    ],
    ids=[
        *("store", "policy", "summarizer", "summarizer-class", "hooks", "clock-type", "clock-class", "clock-naive"),
        *("counter", "conversation", "title", "parent"),
    ],
)
async def test_a_name_in_place_of_the_thing_is_refused_when_opening(field: str, cure: str, given: Any) -> None:
    """A path is no store and a preset's name no policy; the message says how to get one."""
    store = MemoryStore()
    with pytest.raises(InvalidArgument) as caught:
        await Timeline.open(**{"store": store, "conversation": "c", **given})
    assert caught.value.field == field
    assert cure in str(caught.value)
    assert [info async for info in store.conversations()] == []


async def test_a_store_of_the_other_kind_is_refused_before_anything_is_written() -> None:
    """The first append of an awaited timeline was written, and then awaited: a TypeError that helped nobody."""
    with sync.open_store("memory://") as store:
        with pytest.raises(InvalidArgument, match=r"one of timeline\.sync.*take timeline\.open_store"):
            await Timeline.open(cast("Any", store), "c")
        assert list(store.conversations()) == []
    with pytest.raises(InvalidArgument, match=r"sync\.open_store\('agent\.db'\)"):
        sync.Timeline.open(cast("Any", MemoryStore()), "c")


@pytest.mark.parametrize("tokens", [0, -1, "many", True])
async def test_a_recall_answer_has_a_size(tokens: Any) -> None:
    """At least one token."""
    timeline = await opened(MemoryStore())
    with pytest.raises(InvalidArgument, match="from 1 on"):
        timeline.recall_tool("anthropic", max_tokens=tokens)


def test_an_invalid_argument_is_what_was_called_an_invalid_block() -> None:
    """Whoever catches the general one goes on doing so."""
    error = InvalidArgument("at", "must be a version")
    assert isinstance(error, InvalidBlock | TimelineError)
    assert str(error) == "Invalid argument 'at': must be a version. Nothing was written."


async def test_a_clock_that_loses_its_zone_is_named_by_the_append() -> None:
    """It was pydantic's error about an event; nothing was written, and the handle goes on with the clock mended."""

    class Clock:
        zone: Any = UTC

        def now(self) -> datetime:
            return AT.replace(tzinfo=self.zone)

    clock = Clock()
    timeline = await Timeline.open(MemoryStore(), "c", clock=clock)
    clock.zone = None
    with pytest.raises(InvalidArgument, match="'clock': gives a moment that needs a time zone"):
        await timeline.append(UserPrompt(text="x"))
    clock.zone = UTC
    await timeline.append(UserPrompt(text="x"))
    assert timeline.version == 2


async def test_a_plain_function_in_place_of_an_async_one_says_so() -> None:
    """The model was asked, and the error was about a dict in an ``await``."""
    timeline = await opened(MemoryStore())
    with pytest.raises(TypeError, match="not an async function"):
        await timeline.retry_with_compaction(cast("Any", lambda context: {"sent": context}))


def test_the_blocking_face_refuses_what_only_the_other_one_takes() -> None:
    """An async function's answer came back as a coroutine that nobody awaits, and as a success."""
    with sync.open_store("memory://") as store:
        timeline = sync.Timeline.open(store, "c")
        with pytest.raises(TypeError, match="takes an ordinary function here"):
            cast("Any", timeline).retry_with_compaction(nothing)
        with pytest.raises(InvalidArgument, match="function of a context"):
            timeline.retry_with_compaction(cast("Any", None))
        with pytest.raises(InvalidArgument, match="blocking client"):
            timeline.record_stream(cast("Any", no_events()))


@pytest.mark.parametrize("messages", [iter([MESSAGE]), {}, None, "x"])
async def test_a_list_to_compact_is_a_list(messages: Any) -> None:
    """A generator came back as the list to send, empty by then."""
    with pytest.raises(InvalidArgument, match="'messages': must be a list of messages"):
        await compact_messages(messages, policies.keep_last())


async def test_what_cannot_be_called_is_no_hook_and_no_summarizer() -> None:
    """It failed in the first compaction, and the application's part was left out with a warning."""
    with pytest.raises(InvalidArgument, match="'on_before_compaction': must be a function"):
        Hooks(on_before_compaction=cast("Any", "veto"))
    with pytest.raises(InvalidArgument, match="'call': must be an async function of a prompt"):
        summarizers.CallableSummarizer(cast("Any", "gpt-4o"))
    with pytest.raises(InvalidArgument, match="'summarizers': must have a method summarize"):
        summarizers.FallbackSummarizer(cast("Any", nothing))
    with pytest.raises(InvalidArgument, match="'summarizer': must have a method summarize"):
        await compact_messages([MESSAGE], policies.keep_last(), summarizer=cast("Any", nothing))
