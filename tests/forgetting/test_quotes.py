"""Words that are to go are taken out of whatever holds no block, in each form in which they are found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeline import Timeline, policies
from timeline.blocks import ToolCall, UserPrompt
from timeline.events import ContextRendered, ModelCalled, event_id, new_event
from timeline.events.other_payloads import FrameworkEntry
from timeline.forgetting import find_subject
from timeline.forgetting.quotes import Quotes
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from timeline.ports import EventStore

WHO: Final = "José Núñez (jane)"
REPLY: Final = {"id": "r1", "choices": [{"message": {"role": "assistant", "content": "Done."}}]}


def _wide(text: str) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) for letter in text)


async def _begun(store: EventStore) -> Timeline:
    timeline = await Timeline.open(store, "cards", policy=policies.balanced(max_tokens=4_000))
    await timeline.append(UserPrompt(text="Begin."))
    return timeline


async def _redacted(store: EventStore, text: str) -> list[str]:
    """Redact all places that say a text; return those that say it afterwards."""
    found = [place.place async for place in find_subject(store, text)]
    assert found
    timeline = await Timeline.open(store, "cards", create=False)
    await timeline.redact(found, "asked for", text=text)
    return [place.place async for place in find_subject(store, text)]


async def test_a_number_is_found_and_taken_out_as_words_are() -> None:
    """An account's or a phone's, which an application writes without quotes; versions and counts are none of it."""
    store = MemoryStore()
    timeline = await _begun(store)
    at = (await store.info("cards")).updated_at
    data: Any = {"account": 4711000815, "limit": 20, "paid": True}
    await store.append("cards", [new_event(event_id(at), at, FrameworkEntry(framework="app", key="1", data=data))])
    await timeline.append(ToolCall(call_id="c1", name="pay", arguments={"account": 4711000815}))
    assert len([place async for place in find_subject(store, "4711000815")]) == 2
    assert await _redacted(store, "4711000815") == []
    [entry] = [e.payload async for e in store.read("cards") if isinstance(e.payload, FrameworkEntry)]
    assert entry.data == {"account": "[redacted]", "limit": 20, "paid": True}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"source": WHO, "path": [WHO], "type": {"at": WHO}}, id="under a key that payloads use too"),
        pytest.param({"said": "by jose\u0301 NU\u0301N\u0303EZ (jane)."}, id="in letters and marks"),
        pytest.param({"said": f"by {_wide('Jos')}é Núñez ({_wide('jane')})"}, id="in wide letters"),
        pytest.param({"arguments": '{"to": "Jos\\u00e9 N\\u00fa\\u00f1ez (jane)"}'}, id="as JSON in a string"),
    ],
)
async def test_words_go_out_of_a_frameworks_entry_wherever_they_are_found(data: Any) -> None:
    """Else the report says that nothing is left, and the entry still has them."""
    store = MemoryStore()
    await _begun(store)
    at = (await store.info("cards")).updated_at
    await store.append("cards", [new_event(event_id(at), at, FrameworkEntry(framework="app", key="1", data=data))])
    assert await _redacted(store, WHO) == []


def test_only_the_words_go_where_their_letters_differ() -> None:
    """The letters around them stay as they are."""
    quotes = Quotes(("José",))
    assert quotes.out_of(f"ä {_wide('jos')}é, ß \ufb01 JOSE\u0301!") == "ä [redacted], ß \ufb01 [redacted]!"


async def test_a_call_whose_parameters_said_it_is_unverifiable_and_no_mismatch() -> None:
    """Its body cannot be built again, and a hash of it would let the words be guessed."""
    store = MemoryStore()
    timeline = await _begun(store)
    context = await timeline.render(system="Be brief.")
    await timeline.record(REPLY, request=context.request("openai_chat", model="m", user=WHO))
    assert await _redacted(store, WHO) == []
    report = await timeline.verify()
    assert report.ok, report.problems
    assert report.unverifiable == {"redacted": 1}


async def test_no_hash_is_left_over_a_system_prompt_that_said_it() -> None:
    """Neither of the context nor of the body that was made from it."""
    store = MemoryStore()
    timeline = await _begun(store)
    context = await timeline.render(system=f"You help {WHO}.")
    await timeline.record(REPLY, request=context.request("openai_chat", model="m"))
    assert await _redacted(store, WHO) == []
    payloads = [e.payload async for e in store.read("cards", types=["context.rendered", "model.called"])]
    hashes = [p.fingerprint for p in payloads if isinstance(p, ContextRendered)]
    hashes += [p.request.sha256 for p in payloads if isinstance(p, ModelCalled) and p.request is not None]
    assert hashes == ["", ""]


@pytest.mark.parametrize("text", ["expires", "trigger", "cut_point", "version"])
async def test_the_words_of_payloads_themselves_stay(text: str) -> None:
    """The names of their fields, reasons and policies are nobody's secret, and what is read needs them."""
    store = MemoryStore()
    timeline = await Timeline.open(store, "cards", policy=policies.cut_point(max_tokens=4_000))
    for number in range(6):
        await timeline.append(UserPrompt(text=f"The {text} of card {number}. " * 120))
        await timeline.render()
    assert timeline.window.compactions
    places = [place async for place in find_subject(store, text)]
    assert {place.kind for place in places} == {"block", "summary"}
    await timeline.redact([place.place for place in places], "asked for", text=text)
    assert (await timeline.verify()).ok
    assert [place async for place in find_subject(store, text)] == []


@pytest.mark.parametrize("escaped", [True, False])
def test_a_text_is_found_inside_a_string_of_json_however_its_letters_are_written(*, escaped: bool) -> None:
    """Arguments that a log has as text escape quotation marks always, and other letters or not."""
    said = 'the "Größe" is 7f3a9c'
    quotes = Quotes((said,))
    text = json.dumps({"command": f"print {said}"}, ensure_ascii=escaped)
    assert quotes.are_in(text)
    assert quotes.out_of(text) == '{"command": "print [redacted]"}'


_WORDS: Final = st.text(st.sampled_from("abAB ñé"), min_size=1, max_size=6)


@given(texts=st.lists(_WORDS, min_size=1, max_size=80), text=st.text(st.sampled_from("abAB ñé"), max_size=12))
def test_many_texts_are_found_together_wherever_one_of_them_is(texts: list[str], text: str) -> None:
    """A text that holds a shorter one is not looked for by itself; that changes no answer."""
    assert Quotes(tuple(texts)).are_in(text) == any(Quotes((each,)).are_in(text) for each in texts)
