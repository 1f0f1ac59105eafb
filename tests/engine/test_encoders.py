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
from timeline.wire import WIRES, encoder
from timeline.wire.anthropic import encode
from timeline.wire.read_only import read_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.wire.neutral import NeutralContext

WIRE = "anthropic"
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


@given(conversations())
@settings(max_examples=examples(300))
def test_a_context_behind_others_is_encoded_in_the_bytes_of_one_alone(conversation: list[NeutralContext]) -> None:
    """Also where a late result belongs to an old call, where entries change, and for an earlier context."""
    encoders = Encoders()
    for context in conversation:
        assert json.dumps(encoders.encode(WIRE, context)) == json.dumps(encode(context))


@given(conversations())
def test_what_a_caller_changes_in_a_body_never_reaches_the_next_one(conversation: list[NeutralContext]) -> None:
    """Whatever can be changed is changed, everywhere in the body; the rest refuses."""
    encoders = Encoders()
    expected = [json.dumps(encode(context)) for context in conversation]
    for context, body in zip(conversation, expected, strict=True):
        made = encoders.encode(WIRE, context)
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


async def test_a_timeline_encodes_only_what_is_new_and_shares_the_rest() -> None:
    """Two renders of one conversation hold the same objects for what was said long ago."""
    timeline = await opened(MemoryStore())
    for number in range(30):
        await timeline.append(prompt(number + 1), answer())
    before = (await timeline.render()).to_anthropic()["messages"]
    await timeline.append(prompt())
    after = (await timeline.render()).to_anthropic()["messages"]
    assert before[3] is after[3]
    assert after == encoder(WIRE)((await timeline.render()).neutral)["messages"]


async def test_encoders_of_two_models_do_not_share() -> None:
    """One takes back reasoning that another refuses."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(), call("a"), result("a"), answer())
    neutral = (await timeline.render()).neutral
    encoders = Encoders()
    one, other = (encoders.encode(WIRE, neutral.model_copy(update={"model": name})) for name in ("old", "new"))
    assert one == other
    assert one["messages"][0] is not other["messages"][0]
