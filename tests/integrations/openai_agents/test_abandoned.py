"""What an application of the SDK goes back behind is abandoned: it stays in the log, and no model sees it again."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, RunConfig, RunContextWrapper, Runner, RunState, SQLiteSession, function_tool
from hypothesis import given
from hypothesis import strategies as st

from tests.integrations.openai_agents.test_run import QUIET, blocks_of, model_of, opened, read_file, reading, run
from tests.integrations.openai_agents.test_session import call, output, said, session_in, thought, user
from tests.providers import Answer, Call, FakeProvider
from tests.scenes import AT, payloads_of, small_policy
from timeline import Timeline, open_store
from timeline.events import BlocksHidden, ParentLink, Replacement, event_id
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer
from timeline.wire.neutral import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.providers import Asked
    from timeline.integrations.openai_agents import TimelineSession

HISTORY: list[Any] = [
    user("one"),
    thought("rs_1"),
    call("c1"),
    output("c1"),
    said("answer 1", "msg_1"),
    user("two"),
    said("answer 2", "msg_2"),
    user("three"),
    said("answer 3", "msg_3"),
]


def parroting(asked: Asked) -> str:
    """Return an answer that names its request."""
    return f"answer {asked.number}"


def given_back(choose: Callable[[list[Any]], list[Any]]) -> RunConfig:
    """Return a configuration whose callback gives back what it chooses of the history, and what is new."""
    return RunConfig(tracing_disabled=True, session_input_callback=lambda history, new: [*choose(history), *new])


async def states(session: TimelineSession) -> dict[str, str]:
    """Return each text of the window with its state, or the reason why it is omitted."""
    await session.timeline.catch_up()
    items = session.timeline.window.items
    return {item.block.text: item.hide.reason if item.omitted and item.hide else item.state for item in items}


async def shown(session: TimelineSession) -> list[str]:
    """Return the texts of a context that is rendered now."""
    return [entry.text for entry in (await session.timeline.render()).neutral.entries]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0)])
async def test_what_is_put_back_with_a_call_that_was_never_answered_keeps_its_ids(order: tuple[int, ...]) -> None:
    """Items of one addition are one response, as the API has no name for it; the call alone is told as given up."""
    put_back = [[call("c0"), thought("rs_1"), said("answer 1", "msg_1")][number] for number in order]
    with FakeProvider(parroting) as provider:
        session = await opened(MemoryStore())
        await session.add_items([user("one"), *put_back])
        await run(session, Agent(name="a", model=model_of("responses", provider)), "two")
    assert provider.refused == []
    asked, *response, given_up, new = provider.asked[0].body["input"]
    assert (asked["content"], new["content"]) == ("one", "two")
    assert [item["id"] for item in response] == [item["id"] for item in put_back]
    assert (given_up["type"], given_up["call_id"], given_up["output"]) == ("function_call_output", "c0", INTERRUPTED)


async def test_a_popped_answer_and_its_question_are_abandoned_and_another_question_takes_their_place() -> None:
    """In the same conversation, in sight of people."""
    with FakeProvider(parroting) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider))
        await run(session, agent, "one")
        await run(session, agent, "two")
        await session.pop_item()
        await session.pop_item()
        await run(session, agent, "two, but other")
        assert (await session.timeline.verify()).ok
    assert provider.refused == []
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0", "two, but other"]
    assert await states(session) == {
        "one": "visible",
        "answer 0": "visible",
        "two": "abandoned",
        "answer 1": "abandoned",
        "two, but other": "visible",
        "answer 2": "visible",
    }


@pytest.mark.parametrize("popped", [1, 2], ids=["answer", "answer_and_question"])
async def test_an_answer_that_is_written_again_belongs_to_its_question(popped: int) -> None:
    """Whether the question is asked again or only its answer was taken back: it is stored once, in its turn."""
    with FakeProvider(parroting) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider))
        await run(session, agent, "one")
        await run(session, agent, "two")
        for _ in range(popped):
            await session.pop_item()
        await run(session, agent, "two" if popped == 2 else [])
        blocks = await blocks_of(session, session._store)
    assert provider.refused == []
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0", "two"]
    assert [(block.text, block.turn_id) for block in blocks] == [
        ("one", "turn_1"),
        ("answer 0", "turn_1"),
        ("two", "turn_2"),
        ("answer 1", "turn_2"),
        ("answer 2", "turn_2"),
    ]


async def test_a_compaction_over_what_was_popped_is_undone_without_a_hold(tmp_path: Path) -> None:
    """No summary speaks of it, and the next render may compact what is left."""
    with FakeProvider(reading(14)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file])
            await run(session, agent, "Look at zirconium")
            assert session.timeline.compaction_state().count >= 1
            while (await session.get_items()) != []:
                await session.pop_item()
            reverted = await payloads_of(store, "compaction.reverted", "work")
            sent = len(provider.asked)
            await run(session, agent, "Look at copper")
            report = await session.timeline.verify()
            held = session.timeline.window.is_held
    assert provider.refused == []
    assert reverted
    assert not held
    assert report.ok
    assert not [asked for asked in provider.asked[sent:] if "zirconium" in asked.text]
    assert not [asked for asked in provider.asked[sent:] if any(f"src/{n}_" in asked.text for n in range(14))]


@pytest.mark.parametrize("way", ["popped", "cleared", "given_back"])
async def test_no_summary_and_no_summarizer_learns_of_what_was_abandoned(way: str) -> None:
    """Neither by its words, nor as the task, nor in the record of what was done; a person still finds all of it."""
    store, told = MemoryStore(), list[str]()
    secret = Answer("SECRET.", calls=(Call("read_file", {"path": "SECRET_FILE.py"}, "s1"),))
    work = reading(14)

    def answer(asked: Asked) -> Any:
        early: list[Any] = ["Hello.", secret, "SECRET done."]
        return early[asked.number] if asked.number < 3 else work(asked)

    async def summarizer(prompt: str) -> str:
        told.append(prompt)
        return "Work was done."

    with FakeProvider(answer) as provider:
        session = await opened(store, summarizer=CallableSummarizer(summarizer))
        agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file])
        await run(session, agent, "Hi")
        await run(session, agent, "Read SECRET_FILE.py, and never say SECRET again.")
        config = given_back(lambda history: history[:2]) if way == "given_back" else QUIET
        if way == "popped":
            for _ in range(5):
                await session.pop_item()
        elif way == "cleared":
            await session.clear_session()
        await run(session, agent, "Fix it.", config=config)
        window = session.timeline.window
        assert (await session.timeline.verify()).ok
        read = await session.timeline.read(window.summaries[-1].block.path)
    assert provider.refused == []
    assert told
    assert not any("SECRET" in prompt for prompt in told)
    assert not any("SECRET" in asked.text for asked in provider.asked[3:])
    assert "SECRET" not in str(read)
    assert [fact async for fact in store.facts(conversation="work", kind="request") if "SECRET" in fact.subject]


async def test_one_block_brings_back_all_that_was_popped_in_a_row() -> None:
    """An application pops item by item, and means all of them."""
    session = await session_in(MemoryStore())
    await session.add_items(HISTORY)
    for _ in range(4):
        await session.pop_item()
    gone = next(item for item in session.timeline.window.items if item.block.text == "answer 2")
    await session.timeline.reveal(gone.block.path)
    assert await session.get_items() == HISTORY
    assert set((await states(session)).values()) == {"visible"}


async def test_a_history_that_is_put_back_shortened_leaves_its_tail(tmp_path: Path) -> None:
    """`clear_session`, then the items to keep: in the same conversation, in another process too, each stored once."""
    async with open_store(tmp_path / "a.db") as store:
        session = await session_in(store)
        await session.add_items(HISTORY)
        await session.clear_session()
        assert await session.get_items() == []
        assert await shown(session) == []
    async with open_store(tmp_path / "a.db") as store:
        session = await session_in(store)
        await session.add_items([*HISTORY[:7], user("three, but other")])
        assert session.timeline.id == "s"
        assert await session.get_items() == [*HISTORY[:7], user("three, but other")]
        told = await states(session)
        assert (await session.timeline.verify()).ok
        assert len(await blocks_of(session, store)) == len(HISTORY) + 1
    assert (told["three"], told["answer 3"], told["two"]) == ("abandoned", "abandoned", "visible")


async def test_what_is_put_back_behind_something_new_is_appended_behind_it() -> None:
    """The order is that of the session, whatever the log had before."""
    session = await session_in(MemoryStore())
    await session.add_items(HISTORY)
    await session.clear_session()
    anew = [user("zero"), *HISTORY[5:7], call("c9"), output("c9", "nine"), *HISTORY[1:5]]
    for item in anew:
        await session.add_items([item])
    assert await session.get_items() == anew
    assert (await session.timeline.verify()).ok
    texts = [text for text in await shown(session) if text]
    assert texts[0] == "zero"
    assert "nine" in texts
    assert not any("interrupted" in text for text in texts)


async def test_a_cleared_session_of_much_work_shows_no_summary_of_it(tmp_path: Path) -> None:
    """What it begins with is the next prompt, and its runs do not read what was cleared."""
    with FakeProvider(reading(14)) as provider:
        async with open_store(tmp_path / "agent.db") as store:
            session = await opened(store)
            agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file])
            await run(session, agent, "Look at zirconium")
            assert session.timeline.compaction_state().count >= 1
            await session.clear_session()
            assert await shown(session) == []
            await session.add_items([user("Hello")])
            assert await shown(session) == ["Hello"]
            assert await session.get_items(wrapper=RunContextWrapper(context=None)) == [user("Hello")]
            assert (await session.timeline.verify()).ok
    assert provider.refused == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_callback_that_gives_back_an_earlier_history_goes_on_from_there(*, stream: bool) -> None:
    """The tail is seen by no later run either, whose callback gives back everything."""
    with FakeProvider(parroting) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider))
        for prompt in ("one", "two", "three"):
            await run(session, agent, prompt, stream=stream)
        await run(session, agent, "two, but other", stream=stream, config=given_back(lambda history: history[:2]))
        await run(session, agent, "four", stream=stream)
        assert (await session.timeline.verify()).ok
    assert provider.refused == []
    assert [text for _, text in provider.asked[3].said] == ["one", "answer 0", "two, but other"]
    assert [text for _, text in provider.asked[4].said] == ["one", "answer 0", "two, but other", "answer 3", "four"]
    assert {text for text, state in (await states(session)).items() if state == "abandoned"} == {
        "two",
        "answer 1",
        "three",
        "answer 2",
    }


@pytest.mark.parametrize(
    "choose",
    [
        lambda history: history[-2:],
        lambda history: [*history[:1], *history[-1:]],
        lambda history: [item for item in history if item["role"] == "user"],
        lambda history: [item for item in history if item["role"] != "user"],
        lambda history: history[::-1],
        lambda _: [],
        lambda history: [{"role": "user", "content": "Be brief."}, *history],
    ],
    ids=["newest", "first_and_newest", "prompts", "answers", "reversed", "none", "reminded"],
)
async def test_a_callback_that_trims_the_history_leaves_nothing(choose: Callable[[list[Any]], list[Any]]) -> None:
    """The log is the better judge of what to save."""
    with FakeProvider(parroting) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider))
        for prompt in ("one", "two"):
            await run(session, agent, prompt)
        for prompt in ("three", "four"):
            await run(session, agent, prompt, config=given_back(choose))
        assert (await session.timeline.verify()).ok
    assert provider.refused == []
    assert set((await states(session)).values()) == {"visible"}
    told = provider.asked[-1].text
    assert [
        word for word in ("one", "answer 0", "two", "answer 1", "three", "answer 2", "four") if word not in told
    ] == []


async def test_a_callback_may_give_back_copies_of_an_earlier_history() -> None:
    """They are known by their ids, and what has none by its place behind them."""
    with FakeProvider(parroting) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider))
        for prompt in ("one", "two", "three"):
            await run(session, agent, prompt)
        config = given_back(lambda history: [{**item} for item in history[:4]])
        await run(session, agent, "three, but other", config=config)
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0", "two", "answer 1", "three, but other"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_run_state_that_is_resumed_again_otherwise_leaves_what_came_of_it_before(*, stream: bool) -> None:
    """The call was approved and is rejected now: one output, and nothing of the first answer."""

    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "zirconium is out"

    @function_tool
    def look() -> str:
        """Look."""
        return "all green"

    steps: list[Any] = [
        Answer("Going.", calls=(Call("look", {}, "k1"), Call("deploy", {}, "k2"))),
        "Deployed zirconium.",
        "And zirconium it stays.",
        "Not deployed.",
        "Fine.",
    ]
    with FakeProvider(steps) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider), tools=[look, deploy])
        kept = (await run(session, agent, "Ship it", stream=stream)).to_state().to_json()
        for approve in (True, False):
            state: Any = await RunState.from_json(agent, kept)
            waiting = state.get_interruptions()[0]
            state.approve(waiting) if approve else state.reject(waiting)
            await run(session, agent, state, stream=stream)
            if approve:
                await run(session, agent, "Sure?", stream=stream)
        await run(session, agent, "And now?", stream=stream)
        items: list[Any] = await session.get_items()
        assert (await session.timeline.verify()).ok
    assert provider.refused == []
    assert not [asked for asked in provider.asked[3:] if "zirconium" in asked.text]
    assert "all green" in provider.asked[3].text
    assert [item.get("type") or item["role"] for item in items] == [
        "user",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
        "user",
        "message",
    ]


async def test_a_run_state_of_before_a_compaction_is_resumed_again(tmp_path: Path) -> None:
    """In another process, from its JSON: what was read since is in no request, nor in a summary of it."""

    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "deployed"

    work = reading(18)

    def answer(asked: Asked) -> Any:
        return Answer("Going.", calls=(Call("deploy", {}, "k1"),)) if asked.number == 0 else work(asked)

    with FakeProvider(answer) as provider:
        agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file, deploy])
        async with open_store(tmp_path / "a.db") as store:
            session = await opened(store)
            kept = (await run(session, agent, "Ship it")).to_state().to_json()
            state: Any = await RunState.from_json(agent, kept)
            state.approve(state.get_interruptions()[0])
            await run(session, agent, state)
            assert session.timeline.compaction_state().count >= 1
            sent = len(provider.asked)
        async with open_store(tmp_path / "a.db") as store:
            session = await opened(store)
            state = await RunState.from_json(agent, kept)
            state.reject(state.get_interruptions()[0])
            await run(session, agent, state)
            assert session.timeline.compaction_state().count >= 1
            assert not session.timeline.window.is_held
            assert (await session.timeline.verify()).ok
    assert provider.refused == []
    again = "\n".join(asked.text for asked in provider.asked[sent:])
    assert [number for number in range(1, sent) if f"src/{number}_0" in again] == []
    assert "not approved" in provider.asked[sent].text


async def test_a_run_state_of_a_branch_that_was_left_takes_that_branch_up_again() -> None:
    """Its question and call are shown again; what was said in the other branch is not."""

    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "copper is out"

    steps: list[Any] = ["Hello.", Answer(calls=(Call("deploy", {}, "k1"),)), "zirconium", "Deployed copper.", "Fine."]
    with FakeProvider(steps) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider), tools=[deploy])
        await run(session, agent, "Hi")
        kept = (await run(session, agent, "Ship copper")).to_state().to_json()
        await session.pop_item()
        await session.pop_item()
        await run(session, agent, "Something else")
        state: Any = await RunState.from_json(agent, kept)
        state.approve(state.get_interruptions()[0])
        await run(session, agent, state)
        await run(session, agent, "And now?")
        assert (await session.timeline.verify()).ok
    assert provider.refused == []
    for asked in provider.asked[3:]:
        assert "zirconium" not in asked.text
        assert "Something else" not in asked.text
        assert "Ship copper" in asked.text
        assert "copper is out" in asked.text


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "another_process"])
@pytest.mark.parametrize("more", [False, True], ids=["as_it_was", "with_input"])
async def test_a_run_state_between_two_calls_is_gone_back_to(tmp_path: Path, *, more: bool, elsewhere: bool) -> None:
    """It was cancelled behind a step, went on and ended, and is resumed once more; then the other branch again."""

    def answer(asked: Asked) -> Any:
        if asked.number == 0:
            return Answer(calls=(Call("read_file", {"path": "a.py"}, "k1"),))
        return f"zirconium {asked.number}"

    with FakeProvider(answer) as provider:
        agent = Agent(name="a", model=model_of("responses", provider), tools=[read_file])
        async with open_store(tmp_path / "a.db") as store:
            session = await opened(store)
            config = session.run_config(QUIET)
            first = Runner.run_streamed(agent, "Look", session=session, run_config=config, hooks=session.hooks())
            async for event in first.stream_events():
                if getattr(event, "name", "") == "tool_called":
                    first.cancel(mode="after_turn")
            kept = first.to_state().to_json()
            await run(session, agent, await RunState.from_json(agent, kept))
            await run(session, agent, "More of it")
            if not elsewhere:
                await _resumed_twice(session, agent, kept, more=more)
        if elsewhere:
            async with open_store(tmp_path / "a.db") as store:
                await asyncio.create_task(_resumed_twice(await opened(store), agent, kept, more=more))
    assert provider.refused == []
    again, last = provider.asked[3:]
    assert "zirconium" not in again.text
    assert [word for word in ("zirconium 1", "More of it", "zirconium 2") if word in last.text] == []
    assert "a.py: some words" in last.text
    assert "zirconium 3" in last.text
    assert ("And b.py" in again.text) == more


async def _resumed_twice(session: TimelineSession, agent: Agent[Any], kept: dict[str, Any], *, more: bool) -> None:
    state: Any = await RunState.from_json(agent, kept)
    if more:
        state.add_input("And b.py")
    await run(session, agent, state)
    await run(session, agent, "And now?")
    assert (await session.timeline.verify()).ok


async def test_an_output_in_the_place_of_a_popped_one_answers_the_call() -> None:
    """An application edits what a tool said; the model is sent the call with that."""
    with FakeProvider(["I see."]) as provider:
        session = await session_in(MemoryStore())
        await session.add_items([user("Go"), call("c1"), output("c1", "zirconium")])
        await session.pop_item()
        await session.add_items([output("c1", "copper")])
        await run(session, Agent(name="a", model=model_of("responses", provider)), "And?")
    assert provider.refused == []
    sent = provider.asked[0].body["input"]
    assert [item.get("type", item.get("role")) for item in sent] == [
        "user",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert sent[2]["output"] == "copper"


async def test_an_output_that_the_sdk_adds_twice_is_stored_once() -> None:
    """A resumed run saves the outputs of its interrupted turn again."""
    session = await session_in(MemoryStore())
    await session.add_items([user("Go"), call("c1"), call("c2"), output("c1")])
    await session.add_items([output("c1"), output("c2", "late")])
    assert await session.get_items() == [user("Go"), call("c1"), call("c2"), output("c1"), output("c2", "late")]


async def test_a_history_with_an_output_of_no_call_is_put_back_as_it_is() -> None:
    """Trimming took the call away; the SDK's own session keeps whatever it is given."""
    items = [
        user("one"),
        call("c1"),
        output("c1"),
        output("gone"),
        user("two"),
        call("c2"),
        output("c2"),
        said("Done."),
    ]
    for kept in (items, items[1:], [*items[4:], *items[:4]]):
        session = await session_in(MemoryStore())
        with closing(SQLiteSession("s")) as theirs:
            for one in (session, theirs):
                await one.add_items(items)
                await one.clear_session()
                await one.add_items(kept)
            assert await session.get_items() == await theirs.get_items() == kept
        assert (await session.timeline.verify()).ok


async def test_an_approval_that_comes_late_leaves_nothing_of_what_was_said_meanwhile() -> None:
    """The user asked something else before the call was approved: all of it happened."""

    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploy."""
        return "copper is out"

    with FakeProvider([Answer(calls=(Call("deploy", {}, "k1"),)), "It puts it out.", "Deployed."]) as provider:
        session = await opened(MemoryStore())
        agent = Agent(name="a", model=model_of("responses", provider), tools=[deploy])
        kept = (await run(session, agent, "Ship copper")).to_state().to_json()
        await run(session, agent, "What does it do?")
        state: Any = await RunState.from_json(agent, kept)
        state.approve(state.get_interruptions()[0])
        await run(session, agent, state)
    assert provider.refused == []
    assert "What does it do?" in provider.asked[-1].text
    assert "copper is out" in provider.asked[-1].text


async def test_a_session_that_an_earlier_release_cleared_goes_on_where_it_went(tmp_path: Path) -> None:
    """There a cleared session had a conversation of its own, and popped items another reason."""
    async with open_store(tmp_path / "a.db") as store:
        session = await session_in(store)
        await session.add_items([user("one")])
        link = ParentLink(conversation="s", relation="fork")
        following = await Timeline.open(store, "s~2", policy=small_policy(), parent=link)
        session = await session_in(store)
        assert session.timeline.id == "s~2"
        await session.add_items([user("two"), said("answer")])
        popped = BlocksHidden(
            mode="omit", reason="session.popped", blocks=(Replacement(version=following.version + 2),)
        )
        await session.timeline.decide([popped], at=AT, ids=[event_id(AT)])
        assert await session.get_items() == [user("two")]
        await session.add_items([said("another")])
        assert await session.get_items() == [user("two"), said("another")]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 3)),
        st.tuples(st.just("pop"), st.integers(1, 9)),
        st.tuples(st.just("pop_and_put_back"), st.integers(1, 9)),
        st.tuples(st.just("put_back_earlier"), st.integers(0, 30)),
        st.tuples(st.just("put_back_one_by_one"), st.integers(0, 30)),
        st.tuples(st.just("render"), st.just(0)),
    ),
    max_size=14,
)


def turn_of(number: int, calls: int) -> list[Any]:
    """Return the items of a turn that no other turn has, with a word in each."""
    filler = "words " * 120
    called = [call(f"c{number}_{n}", f'{{"path": "zinc{number}x"}}') for n in range(calls)]
    outputs = [output(f"c{number}_{n}", f"lead{number}x {filler}") for n in range(calls)]
    return [user(f"copper{number}x {filler}"), *called, *outputs, said(f"iron{number}x {filler}", f"msg_{number}")]


@given(OPERATIONS)
def test_whatever_is_popped_cleared_and_put_back_the_session_has_and_shows_what_a_list_would(
    operations: list[tuple[str, int]],
) -> None:
    """Held to a plain list of items; no context, and no summary in it, has a word of what is not in the list."""
    asyncio.run(_play(operations))


async def _play(operations: list[tuple[str, int]]) -> None:
    session = await session_in(MemoryStore(), policy=small_policy(max_tokens=2_500, counter="chars4"))
    held: list[Any] = []
    ever: list[list[Any]] = [[]]
    for number, (operation, count) in enumerate(operations):
        match operation:
            case "ask":
                held += turn_of(number, count)
                await session.add_items(turn_of(number, count))
            case "pop" | "pop_and_put_back":
                gone = [held.pop() for _ in range(min(count, len(held)))][::-1]
                assert [await session.pop_item() for _ in gone][::-1] == gone
                if operation == "pop_and_put_back":
                    back = gone[: count // 2]
                    held += back
                    await session.add_items(back)
            case "put_back_earlier" | "put_back_one_by_one":
                earlier = ever[count % len(ever)]
                held = earlier[: count % (len(earlier) + 1)]
                await session.clear_session()
                for items in [[item] for item in held] if operation == "put_back_one_by_one" else [held]:
                    await session.add_items(items)
            case _:
                await session.timeline.render()
        ever.append(list(held))
        assert await session.get_items() == held
    shown = json.dumps([entry.text for entry in (await session.timeline.render()).neutral.entries])
    said_ever = {word for items in ever for item in items for word in re.findall(r"[a-z]+\d+x", json.dumps(item))}
    held_words = set(re.findall(r"[a-z]+\d+x", json.dumps(held)))
    assert [word for word in said_ever - held_words if word in shown] == []
    assert "interrupted" not in shown
    assert (await session.timeline.verify()).ok
