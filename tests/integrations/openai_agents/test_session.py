"""The session's protocol, as users of the SDK's own sessions rely on it, and what a log adds to it."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from agents import RunContextWrapper, SessionSettings, SQLiteSession
from agents.memory import Session, is_openai_responses_compaction_aware_session
from hypothesis import given
from hypothesis import strategies as st

from tests.log.counted import Counted
from tests.scenes import AT, opened, small_policy, turn
from timeline import open_store
from timeline.blocks import UserPrompt
from timeline.errors import InvalidArgument
from timeline.events import BlockRedacted, event_id
from timeline.integrations.openai_agents import TimelineSession, history
from timeline.integrations.openai_agents.history import key_of
from timeline.integrations.openai_agents.items import items_of, read_items
from timeline.integrations.openai_agents.known import Known
from timeline.retention import scavenge
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

    from timeline.ports import EventStore


def user(text: str) -> Any:
    """Return what a user says, as the SDK writes it."""
    return {"role": "user", "content": text}


def said(text: str, id_: str = "msg_1") -> Any:
    """Return what a model says, as the SDK stores it."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": id_, "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def thought(id_: str = "rs_1") -> Any:
    """Return a thought."""
    return {"id": id_, "type": "reasoning", "summary": [], "encrypted_content": "gAAA" * 30}


def call(call_id: str, arguments: str = '{"path": "src/a.py", "why": "because it was asked for"}') -> Any:
    """Return a call."""
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "call_id": call_id,
        "name": "read",
        "arguments": arguments,
        "status": "completed",
    }


def output(call_id: str, printed: Any = "x = 1\n" * 20) -> Any:
    """Return its output."""
    return {"type": "function_call_output", "call_id": call_id, "output": printed}


ITEMS: list[Any] = [
    user("Mend src/a.py"),
    thought(),
    call("c1"),
    call("c2", '{"path":"src/b.py","and_more":"words that make it longer"}'),
    output("c1"),
    output("c2", [{"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}]),
    said("Both are mended. " * 10),
    {"role": "user", "content": [{"type": "input_text", "text": "And "}, {"type": "input_text", "text": "now?"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "uuid7"}},
    {"type": "shell_call", "id": "sh_1", "call_id": "s1", "action": {"commands": ["ls"]}, "status": "completed"},
    {
        "type": "shell_call_output",
        "call_id": "s1",
        "output": [{"stdout": "a.py", "stderr": "", "outcome": {"type": "exit"}}],
    },
    said("", "msg_2"),
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
]


async def session_in(store: EventStore, **options: Any) -> TimelineSession:
    """Open a session."""
    return await TimelineSession.open(store, "s", **{"policy": small_policy(), **options})


async def test_it_is_a_session_of_the_sdk_and_not_one_that_compacts_by_itself() -> None:
    """The SDK looks for methods, and would call a method of a certain name after each turn."""
    session = await session_in(MemoryStore())
    assert isinstance(session, Session)
    assert not is_openai_responses_compaction_aware_session(session)
    assert session.session_id == "s"


async def test_items_come_back_as_they_were_added_in_order(tmp_path: Path) -> None:
    """Every kind of item, in another process too."""
    async with open_store(tmp_path / "a.db") as store:
        session = await session_in(store)
        await session.add_items(ITEMS[:4])
        await session.add_items([])
        await session.add_items(ITEMS[4:])
        assert await session.get_items() == ITEMS
    async with open_store(tmp_path / "a.db") as store:
        assert await (await session_in(store)).get_items() == ITEMS


async def test_an_empty_session_has_nothing_to_give() -> None:
    """Neither items nor a newest one."""
    session = await session_in(MemoryStore())
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.clear_session()
    assert session.timeline.id == "s"


@pytest.mark.parametrize(("limit", "first"), [(1, 9), (4, 6), (10, 0), (50, 0), (0, 10)])
async def test_a_limit_gives_the_newest_in_order(limit: int, first: int) -> None:
    """As many as are asked for, or all that there are."""
    session = await session_in(MemoryStore())
    items = [user(f"Number {number}") for number in range(10)]
    await session.add_items(items)
    assert await session.get_items(limit) == items[first:]


async def test_the_settings_limit_holds_where_a_call_gives_none() -> None:
    """And a call's own goes before it."""
    session = await session_in(MemoryStore(), session_settings=SessionSettings(limit=2))
    await session.add_items([user(f"Number {number}") for number in range(5)])
    assert len(await session.get_items()) == 2
    assert len(await session.get_items(4)) == 4


@pytest.mark.parametrize("limit", range(8))
async def test_a_limit_gives_what_the_sdks_own_sessions_give(limit: int) -> None:
    """Also where it divides a call from its output: the SDK compares the newest items with those that it added."""
    theirs = SQLiteSession("s")
    ours = await session_in(MemoryStore())
    items = [user("Go"), thought(), call("c1"), output("c1"), output("c2"), said("Done")]
    for session in (theirs, ours):
        await session.add_items(items)
    assert await ours.get_items(limit) == await theirs.get_items(limit)
    theirs.close()


async def test_settings_may_come_as_a_dictionary() -> None:
    """As the SDK's own sessions take them."""
    session = await session_in(MemoryStore(), session_settings={"limit": 1})
    await session.add_items([user("One"), user("Two")])
    assert await session.get_items() == [user("Two")]


async def test_settings_that_are_none_are_refused_when_the_session_is_opened() -> None:
    """With an error of this library."""
    with pytest.raises(InvalidArgument, match="session_settings"):
        await session_in(MemoryStore(), session_settings={"limt": 1})


async def test_an_item_that_no_json_can_hold_is_refused_and_nothing_is_written() -> None:
    """With an error of this library that says where it is."""
    session = await session_in(MemoryStore())
    unwritable: Any = {"role": "user", "content": object()}
    with pytest.raises(InvalidArgument, match=r"items.*content"):
        await session.add_items([user("One"), unwritable])
    assert await session.get_items() == []


async def test_a_run_is_given_what_its_contexts_may_show_and_the_application_every_item() -> None:
    """What a summary stands for is not read for each run: its cost is that of the window."""
    store = MemoryStore()
    session = await session_in(store, policy=small_policy(max_tokens=4_000))
    for number in range(30):
        await session.add_items([user(f"Question {number}"), said("words " * 300, f"msg_{number}")])
        await session.timeline.render()
    assert session.timeline.compaction_state().count >= 3
    of_run: list[Any] = await session.get_items(wrapper=RunContextWrapper(context=None))
    assert len(await session.get_items()) == 60
    assert 0 < len(of_run) <= 16
    assert of_run[-1]["id"] == "msg_29"


async def test_what_is_popped_is_gone_from_items_and_context_but_not_from_the_log() -> None:
    """One by one from the end; what is added afterwards stands where it stood."""
    session = await session_in(MemoryStore())
    await session.add_items([user("One"), said("Two"), user("Three")])
    assert await session.pop_item() == user("Three")
    assert await session.pop_item() == said("Two")
    await session.add_items([said("Other")])
    assert await session.get_items() == [user("One"), said("Other")]
    context = await session.timeline.render()
    assert [entry.text for entry in context.neutral.entries] == ["One", "Other"]
    assert (await session.timeline.read("ar:turn_1.assistant.completion")).text == "Two"
    assert (await session.timeline.verify()).ok


async def test_popping_all_items_reads_each_event_a_few_times() -> None:
    """What is popped stays in the log with its decision; reading from the end each time would read all of it again."""
    store = Counted()
    session = await session_in(store)
    await session.add_items([user(f"Number {number}") for number in range(100)])
    before = store.events
    assert [await session.pop_item() for _ in range(100)] == [user(f"Number {n}") for n in reversed(range(100))]
    assert await session.pop_item() is None
    assert store.events - before < 12 * 100


async def test_two_processes_never_pop_the_same_item(tmp_path: Path) -> None:
    """Each item is given once."""
    async with open_store(tmp_path / "a.db") as store, open_store(tmp_path / "a.db") as other:
        one, two = await session_in(store), await session_in(other)
        await one.add_items([user(f"Number {number}") for number in range(12)])
        popped: list[Any] = []

        async def pop(session: TimelineSession) -> None:
            while (item := await session.pop_item()) is not None:
                popped.append(dict(item)["content"])

        async with anyio.create_task_group() as group:
            group.start_soon(pop, one)
            group.start_soon(pop, two)
    assert sorted(popped) == sorted(f"Number {number}" for number in range(12))


async def test_a_cleared_session_begins_anew_and_nothing_is_lost(tmp_path: Path) -> None:
    """Sessions that are open elsewhere follow; what was said stays in the log, where nothing shows it."""
    async with open_store(tmp_path / "a.db") as store, open_store(tmp_path / "a.db") as other:
        session, elsewhere = await session_in(store), await session_in(other)
        await session.add_items(ITEMS)
        await session.clear_session()
        assert await session.get_items() == await elsewhere.get_items() == []
        await elsewhere.add_items([user("Anew")])
        assert await session.get_items() == [user("Anew")]
        await session.clear_session()
        assert (session.timeline.id, session.session_id) == ("s", "s")
        assert await (await session_in(store)).get_items() == []
        assert (await session.timeline.read("ar:turn_1.user.prompt")).text == "Mend src/a.py"


async def test_a_session_whose_beginning_was_scavenged_is_cleared_into_a_conversation_of_its_own(
    tmp_path: Path,
) -> None:
    """There a summary cannot be taken back, and it must not be shown."""
    async with open_store(tmp_path / "a.db") as store, open_store(tmp_path / "a.db") as other:
        session = await session_in(store, policy=small_policy(max_tokens=4_000))
        elsewhere = await session_in(other, policy=small_policy(max_tokens=4_000))
        for number in range(30):
            await session.add_items([user(f"Question {number}"), said("words " * 300, f"msg_{number}")])
            await session.timeline.render()
        await session.timeline.set_retention("window")
        await scavenge(store)
        await session.clear_session()
        assert await session.get_items() == await elsewhere.get_items() == []
        assert (session.timeline.id, elsewhere.timeline.id, session.session_id) == ("s~2", "s~2", "s")
        assert [info.parent.conversation async for info in store.conversations() if info.parent] == ["s"]
        assert (await session.timeline.render()).neutral.entries == ()


async def test_items_that_are_added_at_once_all_arrive() -> None:
    """From any number of tasks; those of one call stay together."""
    session = await session_in(MemoryStore())
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(session.add_items, [user(f"Number {number}"), said(f"Answer {number}")])
    items: list[Any] = await session.get_items()
    assert sorted(item["content"] for item in items[::2]) == sorted(f"Number {number}" for number in range(20))
    pairs = zip(items[::2], items[1::2], strict=True)
    assert all(b["content"][0]["text"] == a["content"].replace("Number", "Answer") for a, b in pairs)


async def test_the_same_words_again_are_another_item() -> None:
    """What the SDK adds is new by its word."""
    session = await session_in(MemoryStore())
    for _ in range(3):
        await session.add_items([user("Continue")])
    assert await session.get_items() == [user("Continue")] * 3


async def test_an_erased_block_gives_an_item_without_its_content() -> None:
    """Redaction holds here too."""
    session = await session_in(MemoryStore())
    await session.add_items([user("My password is hunter2")])
    await session.timeline.decide(
        [BlockRedacted(version=session.timeline.version, reason="a password")], at=AT, ids=[event_id(AT)]
    )
    assert await session.get_items() == [user("[redacted]")]


async def test_a_conversation_that_began_in_another_way_goes_on_as_a_session() -> None:
    """Its blocks are given as the items that say the same; a summary is none."""
    store = MemoryStore()
    timeline = await opened(store, "s", policy=small_policy(max_tokens=4_000))
    await timeline.append(*(block for _ in range(8) for block in turn(500, 30)))
    await timeline.append(UserPrompt(text="And now?"))
    await timeline.render()
    assert timeline.window.summaries
    items: list[Any] = await (await session_in(store)).get_items()
    assert [item["role"] for item in items] == ["user", "assistant"] * 8 + ["user"]
    assert items[-1] == user("And now?")


async def test_a_recorded_call_of_a_namespace_is_an_item_with_it() -> None:
    """OpenAI refuses each later request without it."""
    store = MemoryStore()
    timeline = await opened(store, "s")
    called = {"type": "function_call", "call_id": "c1", "name": "ls", "namespace": "crm", "arguments": "{}"}
    await timeline.record({"object": "response", "id": "r1", "model": "gpt-5.6", "output": [called]})
    assert await (await session_in(store)).get_items() == [called]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(st.text(max_size=12), JSON, max_size=4)
        | st.sampled_from(ITEMS)
        | st.builds(user, st.text(max_size=80)),
        max_size=5,
    )
)
def test_whatever_an_item_holds_it_comes_back(items: list[Any]) -> None:
    """Through its blocks and their JSON; only what no JSON can hold is repaired."""
    blocks = [block for own in read_items(items, "batch") for block in own]
    assert [item for item, _ in items_of(blocks)] == items


def test_nothing_large_is_stored_twice() -> None:
    """A block's text stands for the item's, its arguments for the call's."""
    text = "words " * 5_000
    arguments = '{"content": "' + text + '"}'
    items = [user(text), said(text), call("c1", arguments), output("c1", text), thought()]
    for (block,) in read_items(items, "batch"):
        assert len(str(block.meta)) < 400


def test_without_the_sdk_the_error_names_the_extra() -> None:
    """In a process where it is not installed; the package of adapters can be imported all the same."""
    program = (
        "import sys; sys.modules['agents'] = None; import timeline.integrations\n"
        "from timeline.errors import MissingExtra\n"
        "try:\n    import timeline.integrations.openai_agents\nexcept MissingExtra as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == (
        "openai-agents is not installed. Install it with: pip install 'timeline-engine[openai-agents]'"
    ), done.stderr


@pytest.mark.parametrize("lacking", [1, 10])
async def test_a_list_without_items_that_the_log_has_is_known_from_the_end_of_the_log(lacking: int) -> None:
    """The SDK leaves out a call whose output was popped: the list then reaches further back than its length says."""
    store = Counted()
    session = await TimelineSession.open(store, "s")
    await session.add_items([user(f"Step {number}") for number in range(2_000)])
    keys = [key_of(read_items([user(f"Step {number}")], "listed")[0]) for number in range(1_980, 2_000)]
    store.events = 0
    assert await Known(store, "s").missing(keys[: -lacking - 1] + keys[-1:]) == []
    assert 0 < store.events < 500
    assert await Known(store, "s").missing([*keys, "of no item"]) == [len(keys)]


async def test_the_items_of_a_long_log_are_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop serves other sessions meanwhile."""
    session = await TimelineSession.open(MemoryStore(), "s")
    items = [user(f"Step {number}") for number in range(1_000)]
    await session.add_items(items)
    threads: list[threading.Thread] = []

    def noted(*args: Any) -> Any:
        threads.append(threading.current_thread())
        return items_of(*args)

    monkeypatch.setattr(history, "items_of", noted)
    assert await session.get_items() == items
    assert threads
    assert threading.current_thread() not in threads
