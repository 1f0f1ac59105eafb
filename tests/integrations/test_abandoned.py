"""What a user went back behind is abandoned: it stays in the log, and no model sees it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic_ai import ModelMessagesTypeAdapter

from tests.integrations import test_langchain as langchain
from tests.integrations import test_pydantic_ai as pydantic_ai
from tests.integrations.working import ROUNDS, all_fine, blocks_in, compactions_in, small, working
from tests.providers import Answer, Asked, Call, FakeProvider
from timeline import Timeline
from timeline.integrations.langchain import TimelineMiddleware
from timeline.store.memory import MemoryStore
from timeline.summarizers import CallableSummarizer

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from timeline.ports import EventStore

THREAD: RunnableConfig = {"configurable": {"thread_id": "c1"}, "recursion_limit": 200}


def parroting(asked: Asked) -> str:
    """Return an answer that names its request, and what it answers."""
    return f"answer {asked.number} to {asked.said[-1][1]}"


def human(text: str) -> dict[str, Any]:
    """Return the input of a run of LangChain's."""
    return {"messages": [HumanMessage(text)]}


async def states(store: EventStore, conversation: str = "c1") -> dict[str, str]:
    """Return each block's text and its state in the window."""
    opened = await Timeline.open(store, conversation, create=False)
    reasons = {item.version: item.hide.reason for item in opened.window.items if item.hide is not None}
    return {item.block.text: reasons.get(item.version, item.state) for item in opened.window.items}


async def fine(store: EventStore, provider: FakeProvider) -> bool:
    """Return whether the log holds what it promises, and each request was one that the provider takes."""
    return all_fine(await (await Timeline.open(store, "c1", create=False)).verify(), provider)


def chatting(provider: FakeProvider, store: EventStore) -> Any:
    """Return an agent of LangChain's that keeps its threads."""
    return langchain.agent_of(provider, TimelineMiddleware(store, policy=small()), checkpointer=InMemorySaver())


async def test_going_on_from_an_earlier_checkpoint_leaves_what_came_behind_it() -> None:
    """The second question is asked again, otherwise; its first answer is seen by no model."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        await agent.ainvoke(human("two"), THREAD)
        history = [state async for state in agent.aget_state_history(THREAD)]
        before = next(s for s in history if len(s.values["messages"]) == 2 and not s.next)
        await agent.ainvoke(human("two, but other"), before.config)
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0 to one", "two, but other"]
    assert await states(store) == {
        "one": "visible",
        "answer 0 to one": "visible",
        "two": "abandoned",
        "answer 1 to two": "abandoned",
        "two, but other": "visible",
        "answer 2 to two, but other": "visible",
    }


async def test_an_edited_first_message_leaves_everything() -> None:
    """The state of before the first message is gone back to."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        before = [state async for state in agent.aget_state_history(THREAD)][-1]
        await agent.ainvoke(human("another"), before.config)
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[-1].said] == ["another"]


async def test_a_message_that_was_replaced_under_its_id_is_abandoned_with_what_came_behind_it() -> None:
    """`update_state` with the id of the question, at the state in which it was asked."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        history = [state async for state in agent.aget_state_history(THREAD)]
        asked = next(s for s in history if s.next == ("model",))
        edited = HumanMessage("uno", id=asked.values["messages"][0].id)
        config = await agent.aupdate_state(asked.config, {"messages": [edited]})
        await agent.ainvoke(None, config)
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[-1].said] == ["uno"]


@pytest.mark.parametrize("removed", [1, 2])
async def test_removed_messages_at_the_end_are_abandoned(removed: int) -> None:
    """`RemoveMessage` of the last answer, or of question and answer, then the next question."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        reply = await agent.ainvoke(human("two"), THREAD)
        gone = [RemoveMessage(id=message.id) for message in reply["messages"][-removed:]]
        await agent.aupdate_state(THREAD, {"messages": gone})
        await agent.ainvoke(human("three"), THREAD)
        assert await fine(store, provider)
    left = ["one", "answer 0 to one", "two"][: 4 - removed]
    assert [text for _, text in provider.asked[-1].said] in (
        [*left, "three"],
        [*left[:-1], f"{left[-1]}\nthree"],  # two prompts in a row are one message to some encoders
    )


async def test_the_tools_of_an_earlier_checkpoint_run_again() -> None:
    """What they return the second time is what the model sees."""
    store = MemoryStore()
    told = iter(["first result", "second result"])

    def look() -> str:
        """Look."""
        return next(told)

    with FakeProvider([Answer("Looking.", calls=(Call("look", {}, "k1"),)), "Seen.", "Seen again."]) as provider:
        middleware = TimelineMiddleware(store, policy=small())
        agent = langchain.agent_of(provider, middleware, tools=[look], checkpointer=InMemorySaver())
        await agent.ainvoke(human("one"), THREAD)
        history = [state async for state in agent.aget_state_history(THREAD)]
        await agent.ainvoke(None, next(s.config for s in history if s.next == ("tools",)))
        assert await fine(store, provider)
    assert "second result" in provider.asked[-1].text
    assert "first result" not in provider.asked[-1].text
    assert (await states(store))["first result"] == "abandoned"


async def test_a_branch_that_is_taken_up_again_is_shown_again_and_not_stored_twice() -> None:
    """Back to the first branch: its blocks return, and those of the second are abandoned."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        root = (await agent.aget_state(THREAD)).config
        await agent.ainvoke(human("two"), root)
        first = (await agent.aget_state(THREAD)).config
        await agent.ainvoke(human("due"), root)
        await agent.ainvoke(human("three"), first)
        await agent.ainvoke(human("quattro"), root)
        assert await fine(store, provider)
    said = [text for _, text in provider.asked[-2].said]
    assert said == ["one", "answer 0 to one", "two", "answer 1 to two", "three"]
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0 to one", "quattro"]
    assert len(await blocks_in(store, "c1")) == 10


async def test_what_was_hidden_in_a_branch_is_hidden_when_it_is_taken_up_again() -> None:
    """By hand, before another checkpoint left the branch: the model is not sent it after all."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        root = (await agent.aget_state(THREAD)).config
        await agent.ainvoke(human("two"), root)
        first = (await agent.aget_state(THREAD)).config
        timeline = await Timeline.open(store, "c1", create=False)
        secret = next(item.block.path for item in timeline.window.items if item.block.text == "answer 1 to two")
        await timeline.hide(secret, text="kept from the model")
        await agent.ainvoke(human("due"), root)
        await agent.ainvoke(human("three"), first)
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[-1].said] == [
        "one",
        "answer 0 to one",
        "two",
        "kept from the model",
        "three",
    ]


async def test_messages_in_another_order_are_sent_in_that_order_and_each_once() -> None:
    """The application sorts its history: two answers stand in each other's place, with their calls and results."""
    store = MemoryStore()
    call = Answer("Looking.", calls=(Call("bash", {"command": "ls"}, "k1"),))
    with FakeProvider([call, "Seen.", "Yes.", "Good."]) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        reply = await agent.ainvoke(human("two"), THREAD)
        first, second = reply["messages"][:4], reply["messages"][4:]
        emptied = RemoveMessage(id=REMOVE_ALL_MESSAGES)
        reply = await agent.ainvoke({"messages": [emptied, *second, *first, HumanMessage("three")]}, THREAD)
        assert await fine(store, provider)
    texts = [text for _, text in provider.asked[-1].said if '"k1"' not in text]  # the call is behind its words
    ran = next(message.content for message in first if message.type == "tool")
    assert texts == ["two", "Yes.", "one", "Looking.", ran, "Seen.", "three"]


async def test_what_was_abandoned_can_be_taken_back() -> None:
    """Any of its blocks brings all of them back, and the next call of the model shows them."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke(human("one"), THREAD)
        root = (await agent.aget_state(THREAD)).config
        await agent.ainvoke(human("two"), THREAD)
        await agent.ainvoke(human("due"), root)
        opened = await Timeline.open(store, "c1", create=False)
        gone = next(item for item in opened.window.items if item.block.text == "answer 1 to two")
        await opened.reveal(gone.block.path)
        await agent.ainvoke(human("three"), THREAD)
        assert await fine(store, provider)
    assert {*(await states(store)).values()} == {"visible"}
    assert "answer 1 to two" in provider.asked[-1].text


@pytest.mark.parametrize("stored", [False, True])
async def test_an_earlier_message_history_of_pydantic_ai_leaves_what_came_behind_it(*, stored: bool) -> None:
    """As the objects, or stored and loaded."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = pydantic_ai.agent_of(provider, store)
        first = await agent.run("one", conversation_id="c1")
        history = first.all_messages()
        await agent.run("two", message_history=history, conversation_id="c1")
        if stored:
            history = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(history))
        await agent.run("two, but other", message_history=history, conversation_id="c1")
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0 to one", "two, but other"]
    assert (await states(store))["answer 1 to two"] == "abandoned"


async def test_an_answer_of_pydantic_ai_is_asked_for_again() -> None:
    """The history without its answer: the first one is seen no more."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = pydantic_ai.agent_of(provider, store)
        first = await agent.run("one", conversation_id="c1")
        second = await agent.run(message_history=first.all_messages()[:-1], conversation_id="c1")
        await agent.run("two", message_history=second.all_messages(), conversation_id="c1")
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[1].said] == ["one"]
    assert [text for _, text in provider.asked[2].said] == ["one", "answer 1 to one", "two"]


@pytest.mark.parametrize("framework", ["langchain", "pydantic_ai"])
async def test_a_compaction_that_covers_what_is_abandoned_is_taken_back(framework: str) -> None:
    """Its summary knows what no model is to see; the next render may compact again."""
    store = MemoryStore()
    work = working(14)
    with FakeProvider(
        lambda asked: parroting(asked) if asked.number in {0, 15} else work(asked), limit=4_500
    ) as provider:
        if framework == "langchain":
            agent = chatting(provider, store)
            await agent.ainvoke(human("one"), THREAD)
            root = (await agent.aget_state(THREAD)).config
            await agent.ainvoke(human("SECRET work"), THREAD)
            made = await compactions_in(store, "c1")
            await agent.ainvoke(human("three"), root)
        else:
            of = pydantic_ai.agent_of(provider, store)
            first = await of.run("one", conversation_id="c1")
            history = first.all_messages()
            await of.run("SECRET work", message_history=history, conversation_id="c1")
            made = await compactions_in(store, "c1")
            await of.run("three", message_history=history, conversation_id="c1")
        opened = await Timeline.open(store, "c1", create=False)
        assert await fine(store, provider)
    assert made >= 2
    assert opened.window.summaries == ()
    assert not opened.window.is_held
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0 to one", "three"]


async def test_a_list_without_ids_is_followed_by_its_items_and_their_order() -> None:
    """The words of a later question are asked earlier: neither that question nor what led to it is seen."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = langchain.agent_of(provider, TimelineMiddleware(store, policy=small()))
        said: list[Any] = []
        for text in ("one", "two", "go"):
            said.append({"role": "user", "content": text})
            reply = await agent.ainvoke({"messages": said}, THREAD)
            said.append({"role": "assistant", "content": reply["messages"][-1].content})
        await agent.ainvoke({"messages": [*said[:2], {"role": "user", "content": "go"}]}, THREAD)
        assert await fine(store, provider)
    assert [text for _, text in provider.asked[-1].said] == ["one", "answer 0 to one", "go"]


@pytest.mark.parametrize("kept", [slice(-3, None), slice(-1, None)])
async def test_a_history_that_the_application_trims_is_whole_in_the_log_and_nothing_is_abandoned(kept: slice) -> None:
    """What the model is shown is decided by the log's policy."""
    store = MemoryStore()
    with FakeProvider(parroting) as provider:
        agent = langchain.agent_of(provider, TimelineMiddleware(store, policy=small()))
        said: list[Any] = []
        for text in ("one", "two", "three"):
            said.append(HumanMessage(text))
            reply = await agent.ainvoke({"messages": said[kept]}, THREAD)
            said.append(reply["messages"][-1])
        first_and_last = [said[0], *said[-1:], HumanMessage("four")]
        await agent.ainvoke({"messages": first_and_last}, THREAD)
        assert await fine(store, provider)
    assert isinstance(said[-1], AIMessage)
    assert [text for _, text in provider.asked[-1].said][::2] == ["one", "two", "three", "four"]
    assert {*(await states(store)).values()} == {"visible"}


@pytest.mark.parametrize("whole", [False, True])
async def test_no_summary_and_no_summarizer_learns_of_what_was_abandoned(*, whole: bool) -> None:
    """Neither by its words, nor as the task, nor in the record of what was done; a person still finds all of it.

    The branch is left by its first message, or with a question and an answer kept in front.
    """
    store, shown = MemoryStore(), list[str]()
    work = working(ROUNDS)
    begun = 0 if whole else 1
    secret = Answer(calls=(Call("bash", {"command": "make SECRET_FILE.py"}, "s1"),))

    def answer(asked: Asked) -> Answer | str:
        if asked.number < begun:
            return "Hello."
        if asked.number == begun:
            return secret
        return "SECRET done." if asked.number == begun + 1 else work(asked)

    async def summarizer(prompt: str) -> str:
        shown.append(prompt)
        return "Work was done."

    with FakeProvider(answer, limit=4_500) as provider:
        middleware = TimelineMiddleware(store, policy=small(), summarizer=CallableSummarizer(summarizer))
        agent = langchain.agent_of(provider, middleware, checkpointer=InMemorySaver())
        if not whole:
            await agent.ainvoke(human("Hello."), THREAD)
        await agent.ainvoke(human("Write SECRET_FILE.py, and never say SECRET again."), THREAD)
        states_ = [state async for state in agent.aget_state_history(THREAD)]
        root = states_[-1] if whole else next(s for s in states_ if len(s.values["messages"]) == 2 and not s.next)
        await agent.ainvoke(human("Fix it."), root.config)
        opened = await Timeline.open(store, "c1", create=False)
        assert await fine(store, provider)
    assert opened.window.summaries
    assert shown
    assert not any("SECRET" in told for told in shown)
    assert not any("SECRET" in asked.text for asked in provider.asked[begun + 2 :])
    read = await opened.read(opened.window.summaries[-1].block.path)
    assert "SECRET" not in str(read)
    assert any("SECRET" in str(block) for block in await blocks_in(store, "c1"))
    assert [fact async for fact in store.facts(conversation="c1", kind="command") if "SECRET" in fact.subject]


@pytest.mark.parametrize("change", ["rewritten", "emptied"])
async def test_no_model_sees_what_was_rewritten_in_its_place_or_removed_with_all_else(change: str) -> None:
    """It was summarised by then: the application takes a number out of a message, or empties the thread."""
    store = MemoryStore()
    given: dict[str, list[Any]] = {
        "rewritten": [HumanMessage("Fix it, my number is gone.", id="m1"), HumanMessage("And now?")],
        "emptied": [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("And now?")],
    }
    with FakeProvider(working(12)) as provider:
        agent = chatting(provider, store)
        await agent.ainvoke({"messages": [HumanMessage("Fix it, my number is 555.", id="m1")]}, THREAD)
        assert await compactions_in(store, "c1") >= 1
        before = len(provider.asked)
        await agent.ainvoke({"messages": given[change]}, THREAD)
        assert await fine(store, provider)
    assert all("555" in asked.text for asked in provider.asked[:before])
    later = [asked.text for asked in provider.asked[before:]]
    assert later
    assert not any("555" in text for text in later)
    assert all("And now?" in text for text in later)
    hidden: list[Any] = [event.payload async for event in store.read("c1", types=["blocks.hidden"])]
    appended = [event.version async for event in store.read("c1", types=["block.appended"])]
    assert appended[0] in [block.version for own in hidden if own.reason == "abandoned" for block in own.blocks]
