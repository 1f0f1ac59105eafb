"""Contexts that are encoded one behind the other: the bytes of each alone, and nothing that a caller changes."""

from __future__ import annotations

import copy
import json
import pickle
from contextlib import suppress
from functools import partial
from operator import iadd, ior, setitem
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from tests.scenes import answer, call, opened, prompt, result
from tests.wire.entries import contexts, hostile_entries, legal_entries
from timeline.engine.encoders import Encoders
from timeline.store.memory import MemoryStore
from timeline.wire import SENT, WIRES, encoder, stepwise
from timeline.wire.read_only import read_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.wire.neutral import NeutralContext

WIRE = "anthropic"
CONTINUED = sorted(wire for wire in WIRES if stepwise(wire))
"""The wires whose encoders go on from the last context."""
ENTRIES = st.lists(st.one_of(hostile_entries(), legal_entries()), min_size=1, max_size=6).map(
    lambda lists: tuple(entry for entries in lists for entry in entries)
)


@st.composite
def conversations(draw: st.DrawFn) -> list[NeutralContext]:
    """Contexts of one conversation: most have more entries than the last one, some have other ones or fewer."""
    entries = draw(ENTRIES)
    beside = draw(contexts(hostile_entries()))
    ends = draw(st.lists(st.integers(0, len(entries)), min_size=1, max_size=8).map(sorted))
    shown = [entries[:end] for end in ends]
    if draw(st.booleans()):
        other = draw(ENTRIES)
        shown += [entries[: ends[0]] + other, other, entries]
    points = draw(contexts(legal_entries())).cache_points
    return [
        beside.model_copy(update={"entries": each, "cache_points": points if n % 2 else beside.cache_points})
        for n, each in enumerate(shown)
    ]


def test_every_wire_that_is_sent_goes_on_from_the_last_context() -> None:
    """And the AI SDK's, whose body is sent by its program."""
    assert {*SENT, "ai_sdk"} == {*CONTINUED}


@given(st.sampled_from(CONTINUED), conversations(), st.sampled_from([1, 3, 64]), st.sampled_from([1, 2, 16]))
@settings(max_examples=examples(150))
def test_a_context_behind_others_is_encoded_in_the_bytes_of_one_alone(
    wire: str, conversation: list[NeutralContext], marked: int, left_open: int
) -> None:
    """Also where a late result belongs to an old call, where entries change, and for an earlier context.

    However many items lie between two marks, and however few are left open; also if another thread writes ahead.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("timeline.engine.encoders._MARKED_ITEMS", marked)
        patched.setattr("timeline.engine.encoders._OPEN_ITEMS", left_open)
        encoders = Encoders()
        for number, context in enumerate(conversation):
            expected = json.dumps(encoder(wire)(context))
            if number % 3 == 2:
                earlier, encoders = encoders, encoders.ahead(context)
                assert json.dumps(earlier.encode(wire, context)) == expected
            assert json.dumps(encoders.encode(wire, context)) == expected


@given(st.sampled_from(CONTINUED), conversations())
def test_what_a_caller_changes_in_a_body_never_reaches_the_next_one(
    wire: str, conversation: list[NeutralContext]
) -> None:
    """Whatever can be changed is changed, everywhere in the body; the rest refuses."""
    encoders = Encoders()
    expected = [json.dumps(encoder(wire)(context)) for context in conversation]
    for context, body in zip(conversation, expected, strict=True):
        made = encoders.encode(wire, context)
        assert json.dumps(made) == body
        _spoil(made, {id(value) for value in _values_of(context)})


@pytest.mark.parametrize("wire", sorted(WIRES))
async def test_what_a_caller_changes_in_a_body_of_any_wire_never_reaches_the_log(wire: str) -> None:
    """Arguments and structured content of the log are copied into a body."""
    timeline = await opened(MemoryStore())
    asked = {"path": "a.py", "lines": [1, 2]}
    await timeline.append(prompt(), call("a", arguments=asked), result("a"), answer())
    context = await timeline.render()
    before = json.dumps(body := context.to_wire(wire))
    _spoil(body, set())
    assert json.dumps(context.to_wire(wire)) == before
    assert json.dumps((await timeline.render()).to_wire(wire)) == before


def _values_of(context: NeutralContext) -> list[Any]:
    """Return what a caller gave and may change at any time: its system prompt and tools."""
    waiting: list[Any] = [context.system, *context.tools]
    found: list[Any] = []
    while waiting:
        value = waiting.pop()
        found.append(value)
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return found


def _spoil(value: Any, spared: set[int]) -> None:
    if id(value) in spared:
        return
    inner = [*value.values()] if isinstance(value, dict) else [*value] if isinstance(value, list) else []
    for each in inner:
        _spoil(each, spared)
    with suppress(TypeError):  # what is shared refuses
        if isinstance(value, dict):
            value["spoiled"] = True
        elif isinstance(value, list):
            value.append("spoiled")


def test_shared_messages_are_dicts_and_lists_that_refuse_every_change() -> None:
    """An SDK reads them, and JSON is written of them; nobody changes what later requests share."""
    message = read_only({"role": "user", "content": [{"type": "text", "text": "hi"}]})
    assert json.loads(json.dumps(message)) == message == {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    inner = message["content"][0]
    changes: list[Callable[[], object]] = [
        partial(message.update, role="x"),
        partial(message.pop, "role"),
        partial(setitem, message, "role", "x"),
        partial(ior, message, {"role": "x"}),
        partial(message["content"].append, 1),
        partial(setitem, message["content"], 0, 1),
        partial(iadd, message["content"], [1]),
        inner.clear,
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"copy\.deepcopy"):
            change()


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - of a value made here


@pytest.mark.parametrize("copied", [copy.deepcopy, _pickled])
def test_a_copy_of_a_shared_message_is_plain(copied: Any) -> None:
    """Down to the last list in it."""
    twin = copied(read_only({"content": [{"text": "hi"}]}))
    twin["content"][0]["text"] = "changed"
    assert [type(twin), type(twin["content"]), type(twin["content"][0])] == [dict, list, dict]


@pytest.mark.parametrize("copied", [copy.deepcopy, _pickled])
async def test_a_context_is_copied_and_goes_to_another_process(copied: Any) -> None:
    """As a state of LangGraph's or an argument of a worker: the copy gives the same bodies."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), answer())
    context = await timeline.render()
    body = context.to_anthropic()
    twin = copied(context)
    assert (twin.fingerprint, twin.to_anthropic(), twin.explain()) == (context.fingerprint, body, context.explain())


@pytest.mark.parametrize("wire", CONTINUED)
async def test_a_timeline_encodes_only_what_is_new_and_shares_the_rest(wire: str) -> None:
    """Two renders of one conversation hold the same objects for what was said long ago."""
    timeline = await opened(MemoryStore())
    for number in range(30):
        await timeline.append(prompt(number + 1), answer())
    before = _messages((await timeline.render()).to_wire(wire))
    await timeline.append(prompt())
    after = _messages((await timeline.render()).to_wire(wire))
    assert before[3] is after[3]
    assert after == _messages(encoder(wire)((await timeline.render()).neutral))


@pytest.mark.parametrize("wire", CONTINUED)
async def test_an_earlier_context_is_encoded_as_well_and_the_next_goes_on_from_the_last(wire: str) -> None:
    """A caller that tries an old request again does not make the conversation begin anew."""
    timeline = await opened(MemoryStore())
    await timeline.append(*(block for number in range(20) for block in (prompt(number + 1), answer())))
    early = await timeline.render()
    await timeline.append(*(block for number in range(20) for block in (prompt(number + 1), answer())))
    before = _messages((await timeline.render()).to_wire(wire))
    assert early.to_wire(wire) == encoder(wire)(early.neutral)
    assert _messages((await timeline.render()).to_wire(wire))[3] is before[3]


@pytest.mark.parametrize("wire", CONTINUED)
async def test_a_hide_keeps_the_messages_before_the_first_one_that_it_changes(wire: str) -> None:
    """And so does a late result: written anew is only what lies behind the last mark before it."""
    timeline = await opened(MemoryStore())
    await timeline.append(*(block for number in range(100) for block in (prompt(number + 1), answer())))
    await timeline.append(call("late", pending=True))
    await timeline.append(*(block for number in range(100) for block in (prompt(number + 1), answer())))
    before = _messages((await timeline.render()).to_wire(wire))
    await timeline.append(result("late"))
    late = _messages((await timeline.render()).to_wire(wire))
    await timeline.hide(timeline.window.items[300].block.path)
    hidden = _messages((await timeline.render()).to_wire(wire))
    assert before[100] is late[100] is hidden[100]
    assert late[210] is hidden[210]
    assert hidden == _messages(encoder(wire)((await timeline.render()).neutral))


def _messages(body: dict[str, Any]) -> list[Any]:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


async def test_encoders_of_two_models_do_not_share() -> None:
    """One takes back reasoning that another refuses."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("a"), result("a"), answer())
    neutral = (await timeline.render()).neutral
    encoders = Encoders()
    one, other = (encoders.encode(WIRE, neutral.model_copy(update={"model": name})) for name in ("old", "new"))
    assert one == other
    assert one["messages"][0] is not other["messages"][0]
