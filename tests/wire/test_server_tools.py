"""Tools that Anthropic's server runs: what goes back of their calls and results, and when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from tests.invariants.wires import check_anthropic
from tests.providers import anthropic
from tests.wire.entries import SERVER_CALL, SERVER_RESULT, answer, call, prompt, result
from timeline import Timeline
from timeline.blocks import CustomBlock, UserPrompt
from timeline.content.media_tokens import with_media
from timeline.engine.encoders import Encoders
from timeline.store.memory import MemoryStore
from timeline.wire import WIRES, encoder
from timeline.wire.neutral import INTERRUPTED, Entry, NeutralContext


def part(data: Any, **more: Any) -> Entry:
    """Make the entry of a part of a response."""
    fields = {"path": "bl:p", "type": "assistant.part", "role": "assistant", "data": data, "response_id": "r", **more}
    return Entry(**fields)


def sent(*entries: Entry) -> list[list[str]]:
    """Return the types of the parts of each message, of a request that Anthropic takes."""
    body = encoder("anthropic")(NeutralContext(entries=(prompt("go"), *entries)))
    check_anthropic(body)
    anthropic.WIRE.check({"model": "claude-opus-5", "max_tokens": 9, **body})
    return [[part["type"] for part in message["content"]] for message in body["messages"]][1:]


CALLED, FOUND = part(SERVER_CALL), part(SERVER_RESULT)


def test_a_text_in_the_tail_waits_until_a_turn_that_paused_has_gone_on() -> None:
    """Behind the call it would end the turn: the server would never run the tool, and the model call it again."""
    tail = (prompt("remember", type="ephemeral", path=""),)
    paused = NeutralContext(entries=(prompt("go"), CALLED), ephemeral=tail)
    assert encoder("anthropic")(paused)["messages"][-1]["content"] == [SERVER_CALL]
    gone_on = NeutralContext(entries=(prompt("go"), CALLED, FOUND), ephemeral=tail)
    assert encoder("anthropic")(gone_on)["messages"][-1]["content"] == [{"type": "text", "text": "remember"}]


def test_a_call_and_what_it_found_go_back_as_they_came() -> None:
    """In the order of the response."""
    entries = (prompt("go"), CALLED, FOUND, answer("So.", response_id="r"), prompt("and?"))
    parts = encoder("anthropic")(NeutralContext(entries=entries))["messages"][1]["content"]
    assert parts[:2] == [SERVER_CALL, SERVER_RESULT]
    assert sent(*entries[1:]) == [["server_tool_use", "web_search_tool_result", "text"], ["text"]]


def test_a_turn_that_paused_ends_with_its_call_and_goes_on_behind_it() -> None:
    """The next response begins with what the call found."""
    assert sent(answer("I look.", response_id="r"), CALLED) == [["text", "server_tool_use"]]
    found = (FOUND.model_copy(update={"response_id": "s"}), answer("So.", response_id="s"))
    assert sent(CALLED, *found) == [["server_tool_use", "web_search_tool_result", "text"]]


def test_a_call_beside_those_of_the_client_waits_for_their_results() -> None:
    """The server runs it with the next request, and the response after that has its result."""
    waiting = (CALLED, call("c", response_id="r"), result("c"))
    assert sent(*waiting) == [["server_tool_use", "tool_use"], ["tool_result"]]
    assert sent(*waiting, FOUND.model_copy(update={"response_id": "s"}))[2] == ["web_search_tool_result"]


def test_a_user_who_goes_on_ends_a_turn_that_paused() -> None:
    """The API refuses a call without its result; the words say that nothing came of it."""
    body = encoder("anthropic")(NeutralContext(entries=(prompt("go"), CALLED, prompt("stop"))))
    assert body["messages"][1]["content"] == [{"type": "text", "text": INTERRUPTED}]
    assert sent(CALLED, prompt("stop")) == [["text"], ["text"]]


def test_a_text_behind_the_clients_results_ends_the_turn_too() -> None:
    """The API takes results alone for a turn that goes on; what it finds later is no result of a call that waits."""
    waiting = (CALLED, call("c", response_id="r"), result("c"))
    steered = (*waiting, prompt("steer"))
    assert sent(*steered) == [["text", "tool_use"], ["tool_result", "text"]]
    late = FOUND.model_copy(update={"response_id": "s"})
    assert sent(*steered, late) == [["text", "tool_use"], ["tool_result", "text"], ["text"]]


@pytest.mark.parametrize("behind", [(), (call("c", response_id="r"), result("c"))])
def test_a_call_whose_result_in_the_next_response_is_hidden_is_not_sent(behind: tuple[Entry, ...]) -> None:
    """Nor one that the next response says nothing of: the API refuses each request with it from then on."""
    hidden = FOUND.model_copy(update={"response_id": "s", "data": None, "text": "[hidden]"})
    for later in ([hidden], []):
        kinds = sent(CALLED, *behind, *later, answer("So.", response_id="s"), prompt("and?"))
        assert "server_tool_use" not in kinds[0]


@pytest.mark.parametrize("hidden", [0, 1])
def test_one_whose_other_half_is_hidden_is_not_sent(hidden: int) -> None:
    """A result alone has a line that names its path."""
    entries = [CALLED, FOUND, answer("So.", response_id="r")]
    entries[hidden] = entries[hidden].model_copy(update={"data": None, "text": "[hidden]"})
    assert sent(*entries, prompt("and?")) == [["text"] * (3 if hidden == 0 else 2), ["text"]]


def test_a_result_whose_call_a_summary_covers_is_a_line_with_its_path() -> None:
    """It can be read there."""
    body = encoder("anthropic")(NeutralContext(entries=(prompt("go"), FOUND)))
    assert body["messages"][1]["content"][0]["text"] == "[not shown here: web_search_tool_result, text/plain, bl:p]"


@st.composite
def histories(draw: st.DrawFn) -> list[Entry]:
    """Draw prompts and responses with calls of the server and of the client, whose results come, or never, or late.

    Some calls of the client are a program's, which runs on over several responses, or does not.
    """
    entries: list[Entry] = []
    waiting: list[str] = []
    programs: list[str] = []
    for number in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 3)) == 0:
            entries.append(prompt(f"prompt {number}"))
            continue
        shared = {"response_id": f"r{number}"}
        data = [{**SERVER_RESULT, "tool_use_id": id_} for id_ in waiting if draw(st.integers(0, 5))]
        called = [f"s{number}{n}" for n in range(draw(st.integers(0, 2)))]
        data += [{**SERVER_CALL, "id": id_} for id_ in called]
        waiting = [id_ for id_ in called if draw(st.booleans())]
        data += [{**SERVER_RESULT, "tool_use_id": id_} for id_ in called if id_ not in waiting]
        hidden: dict[str, Any] = {"data": None, "text": "[hidden]"}
        entries += [part(each, **shared).model_copy(update={} if draw(st.integers(0, 9)) else hidden) for each in data]
        if draw(st.booleans()):
            programs += called
            of_program: dict[str, Any] = {"type": "code_execution_20260120", "tool_id": (programs or ["s0"])[-1]}
            form: Any = {"type": "tool_use", "caller": of_program, "container": "k"} if draw(st.booleans()) else None
            entries += [
                call(f"c{number}", **shared, data=form),
                *([] if draw(st.integers(0, 3)) else [prompt("steer")]),
            ]
            entries.append(result(f"c{number}"))
    return entries


@given(histories(), st.sampled_from([1, 3]))
@settings(max_examples=examples(60))
def test_whatever_is_answered_or_not_the_api_takes_each_request_of_a_conversation(
    history: list[Entry], left_open: int
) -> None:
    """The encoder that goes on from the last context writes what one that begins anew does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("timeline.engine.encoders._OPEN_ITEMS", left_open)
        patched.setattr("timeline.engine.encoders._MARKED_ITEMS", 2)
        encoders = Encoders()
        changed = [entry.model_copy(update={"text": "changed", "data": None}) for entry in history[-2:]]
        for entries in (*(history[:end] for end in range(len(history) + 1)), [*history[:-2], *changed]):
            context = NeutralContext(entries=(prompt("go"), *entries))
            sent(*entries)
            assert encoders.encode("anthropic", context) == encoder("anthropic")(context)


@pytest.mark.parametrize("wire", [wire for wire in WIRES if wire != "anthropic"])
def test_other_wires_name_what_was_found_by_its_path(wire: str) -> None:
    """Only Anthropic's server reads it."""
    body = str(encoder(wire)(NeutralContext(entries=(prompt("go"), CALLED, FOUND, answer("So.", response_id="r")))))
    assert ("web_search_tool_result" in body, "bl:p" in body, "srvtoolu" in body) == (True, True, False)


def test_what_a_servers_tool_found_counts_by_its_size() -> None:
    """What is encrypted counts as base64 does; no other part of a response counts beside its text."""
    found: dict[str, Any] = {
        **SERVER_RESULT,
        "content": [{"type": "web_search_result", "encrypted_content": "A" * 1_600}],
    }
    block = CustomBlock(type="assistant.part", author="assistant", data=found)
    assert 300 < with_media(block, 0) < 350
    other = CustomBlock(type="assistant.part", author="assistant", data={"type": "other", "text": "x" * 999})
    assert with_media(other, 0) == 0


CITED: dict[str, Any] = {
    "type": "web_search_result_location",
    "url": "https://x",
    "title": "X",
    "cited_text": "So.",
    "encrypted_index": "QUJD",
}


@pytest.mark.parametrize("hidden", [False, True])
async def test_what_a_text_cites_of_a_search_goes_back_with_the_search(hidden: bool) -> None:  # noqa: FBT001
    """Anthropic asks for it; a document is cited by its place in another request, so that stays in the log."""
    of_document = {"type": "char_location", "cited_text": "a", "document_index": 0}
    answered = {"type": "text", "text": "So.", "citations": [CITED, of_document]}
    content = [SERVER_CALL, SERVER_RESULT, answered]
    timeline = await Timeline.open(MemoryStore(), "c")
    await timeline.append(UserPrompt(text="go"))
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5", "stop_reason": "end_turn"}
    await timeline.record({**head, "content": content, "usage": {"input_tokens": 9, "output_tokens": 1}})
    if hidden:
        for item in timeline.window.items[1:3]:
            await timeline.hide(item.block.path)
    body = (await timeline.render()).to_anthropic()
    anthropic.WIRE.check({"model": "claude-opus-5", "max_tokens": 9, **body})
    assert body["messages"][1]["content"][-1].get("citations") == (None if hidden else [CITED])
