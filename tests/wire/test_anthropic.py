from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from anthropic.types import MessageParam
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.depth import examples
from tests.invariants.wires import closing_text
from tests.wire.entries import (
    KINDS,
    PICTURE,
    PICTURE_URL,
    THINKING,
    answer,
    assert_all_is_said,
    call,
    contexts,
    hostile_entries,
    legal_entries,
    markers,
    prompt,
    result,
    thought,
    validated,
    without_markers,
)
from timeline.blocks import ToolCall, ToolResult
from timeline.content.media_tokens import with_media
from timeline.wire import encoder
from timeline.wire.anthropic import NO_OUTPUT, decode, encode
from timeline.wire.groups import OPENING_LINE
from timeline.wire.neutral import INTERRUPTED, CachePoint, Entry, NeutralContext

if TYPE_CHECKING:
    from pydantic import JsonValue

MESSAGE: TypeAdapter[Any] = TypeAdapter(MessageParam)


def messages(*entries: Entry, **more: Any) -> list[dict[str, Any]]:
    """Encode entries, and return the messages."""
    encoded: list[dict[str, Any]] = encode(NeutralContext(entries=entries, **more))["messages"]
    return encoded


def uses(message: dict[str, Any]) -> list[str]:
    """Return the ids of a message's calls."""
    return [p["id"] for p in message["content"] if p["type"] == "tool_use"]


def results(message: dict[str, Any]) -> list[str]:
    """Return the ids that a message's results answer."""
    return [p["tool_use_id"] for p in message["content"] if p["type"] == "tool_result"]


def lifetimes(body: dict[str, Any]) -> list[str]:
    """Return how long each marker asks for, in the order of the API: an hour may not stand behind five minutes."""
    system = body.get("system", [])
    places = [*body.get("tools", ()), *([] if isinstance(system, str) else system)]
    places += [part for message in body["messages"] for part in message["content"]]
    return [place["cache_control"].get("ttl", "5m") for place in places if "cache_control" in place]


def followed(context: NeutralContext) -> NeutralContext:
    """Return a context that the user has the last word of."""
    return context.model_copy(update={"ephemeral": (prompt("Go on."),)})


def check_legal(body: dict[str, Any]) -> None:
    """Check what the Messages API demands of every request."""
    said = body["messages"]
    assert [m["role"] for m in said] == [("user", "assistant")[i % 2] for i in range(len(said))]
    for before, message in zip([{"content": []}, *said], said, strict=False):
        assert validated(MESSAGE, message) == message
        assert message["content"]
        assert all(p["text"].strip() for p in message["content"] if p["type"] == "text")
        types = [p["type"] for p in message["content"]]
        if message["role"] == "user":
            answered = results(message)
            assert types[: len(answered)] == ["tool_result"] * len(answered)
            assert answered == uses(before)
        else:
            assert types[-1] != "thinking"
    if said:
        assert not uses(said[-1])
        assert not closing_text(body)[-1:].isspace()
    every = [id_ for message in said for id_ in uses(message)]
    assert len(set(every)) == len(every)
    assert markers({k: v for k, v in body.items() if k != "tools"}) + markers(body.get("tools", [])) <= 4
    assert not any("cache_control" in p for m in said for p in m["content"] if "thinking" in p["type"])
    assert lifetimes(body) == sorted(lifetimes(body))
    assert not any("cache_control" in tool for tool in body.get("tools", ()) if tool.get("defer_loading"))


@pytest.mark.shows("004-85")
@given(contexts(hostile_entries()))
@settings(max_examples=examples(300))
def test_any_entries_give_a_request_that_the_api_takes(context: NeutralContext) -> None:
    """Hostile entries encode to a legal request."""
    check_legal(encode(context))


@pytest.mark.shows("004-60")
@given(contexts(legal_entries()))
def test_a_projection_gives_a_legal_request_that_says_everything(context: NeutralContext) -> None:
    """Every text, argument and result of a context stands in its request."""
    body = encode(context)
    check_legal(body)
    sent = json.dumps(body["messages"])
    for entry in context.entries:
        if entry.type != "assistant.reasoning":
            assert json.dumps(entry.text)[1:-1] in sent


@given(contexts(hostile_entries()))
def test_every_text_is_sent_unless_it_is_reasoning(context: NeutralContext) -> None:
    """Even among entries that do not fit one another no text is lost."""
    assert_all_is_said(context, encode(followed(context))["messages"])


@example(NeutralContext(entries=()), " ", "")
@given(contexts(hostile_entries()), st.text(min_size=1), st.text(" \t\n\u3000", max_size=3))
def test_an_answer_ends_in_no_white_space_where_it_is_the_last_word(
    context: NeutralContext, said: str, space: str
) -> None:
    """The API refuses it there, and nowhere else: every other byte is what it is when something follows.

    Where nothing else is said than blanks, an opening line takes their place.
    """
    spoken = context.model_copy(update={"entries": (*context.entries, answer(said + space)), "ephemeral": ()})
    body = encode(spoken)
    check_legal(body)
    sent, before = ([p for m in b["messages"] for p in m["content"]] for b in (body, encode(followed(spoken))))
    if closing_text(body):
        sent[-1]["text"] += before[-2]["text"][len(sent[-1]["text"]) :]
    assert sent == (before[:-1] or [{"type": "text", "text": OPENING_LINE}])


@given(legal_entries())
def test_appending_entries_leaves_the_messages_before_as_they_were(entries: list[Entry]) -> None:
    """Only the last message grows, and only the place of a missing result changes."""
    whole = messages(*entries)
    for length in range(len(entries)):
        before = messages(*entries[:length])
        if before == messages():
            continue  # the opening line stands only until there is something to send
        for old, new in zip(before[:-2], whole, strict=False):
            assert old == new
        for old, new in zip(before, whole, strict=False):
            assert old["role"] == new["role"]
            for part, later in zip(old["content"], new["content"], strict=False):
                assert part == later or part.get("content") == INTERRUPTED


def test_results_stand_behind_their_calls_in_the_order_of_the_calls() -> None:
    """Parallel calls are answered in one message, in call order, though a prompt and another order came between."""
    encoded = messages(
        prompt("go"),
        call("a", response_id="r"),
        prompt("wait"),
        call("b", response_id="r"),
        result("b", "second"),
        result("a", "first"),
    )
    assert [m["role"] for m in encoded] == ["user", "assistant", "user"]
    assert uses(encoded[1]) == results(encoded[2]) == ["a", "b"]
    assert [p.get("content") or p["text"] for p in encoded[2]["content"]] == ["first", "second", "wait"]


def test_a_call_without_a_result_is_answered_as_interrupted() -> None:
    """A dead call gets the fixed result, which decodes to no result at all."""
    encoded = messages(prompt("go"), call("a"))
    assert encoded[-1]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": INTERRUPTED}]
    assert not [b for b in decode(encoded) if isinstance(b, ToolResult)]


def test_a_loose_result_becomes_user_text_with_its_path() -> None:
    """A result whose call is gone says so in the user's place."""
    encoded = messages(prompt("go"), result("a", "late", loose=True))
    assert encoded[0]["content"][1]["text"] == "[result of bash, tc:a.result]\nlate"


def test_repeated_and_unfit_call_ids_are_made_unique_on_both_sides() -> None:
    """The same id twice, and one that the provider's pattern forbids, still pair."""
    encoded = messages(
        call("a", group=1),
        result("a", "1", group=1),
        call("a", group=2),
        result("a", "2", group=2),
        call("ü~1", group=3),
    )
    ids = [id_ for m in encoded for id_ in uses(m)]
    assert ids[:2] == ["a", "a_2"]
    assert ids[2].startswith("1_")
    assert [id_ for m in encoded for id_ in results(m)] == ids


def test_signed_reasoning_goes_out_as_it_is_or_not_at_all() -> None:
    """Reasoning before a rewritten prefix, unsigned, or shown as a replacement is dropped, never said as text."""
    signed = thought(response_id="r")
    assert messages(prompt("go"), signed, answer("yes", response_id="r"))[1]["content"][0] == THINKING
    for dropped in (
        signed.model_copy(update={"rewritten": True}),
        signed.model_copy(update={"data": None, "text": "[hidden]"}),
        signed.model_copy(update={"data": {"type": "thinking", "thinking": "hm", "signature": ""}}),
    ):
        assert messages(prompt("go"), dropped, answer("yes", response_id="r"))[1]["content"] == [
            {"type": "text", "text": "yes"}
        ]
        assert len(messages(prompt("go"), dropped)) == 1


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("claude-opus-5", 2),
        ("claude-opus-5-20260901", 2),
        ("anthropic/claude-opus-4.6", 2),
        ("claude-opus-5-1", 1),
        ("anthropic/claude-opus-5.1", 1),
    ],
)
def test_a_model_bound_to_its_prefix_is_known_by_a_gateways_name_too(model: str, kept: int) -> None:
    """A gateway's name has a dot in its version; behind a rewritten prefix the model refuses its signed thoughts."""
    reasoning = thought(rewritten=True, in_loop=True, response_id="r")
    said = messages(prompt("go"), reasoning, answer("yes", response_id="r"), model=model)
    assert len(said[1]["content"]) == kept


def test_a_model_that_signs_nothing_gets_its_thoughts_back() -> None:
    """Moonshot's refuses calls without them; Anthropic's refuses an empty signature."""
    unsigned = {"type": "thinking", "thinking": "hm", "signature": ""}
    for model, sent in (("kimi-k2.6", [unsigned]), ("claude-opus-5", []), ("deepseek-v4-pro", [])):
        said = messages(
            prompt("go"), thought(data=unsigned, response_id="r"), answer("yes", response_id="r"), model=model
        )
        assert said[1]["content"][:-1] == sent


def test_an_assistant_that_speaks_first_gets_a_user_line_before_it() -> None:
    """The first message is the user's; reading the request back leaves the line out."""
    encoded = messages(answer("hello"))
    assert encoded[0] == {"role": "user", "content": [{"type": "text", "text": OPENING_LINE}]}
    assert [b.text for b in decode(encoded)] == ["hello"]


def test_a_system_wish_in_mid_conversation_is_labelled_user_text() -> None:
    """No text of the conversation reaches the system prompt."""
    body = encode(
        NeutralContext(
            system="Be brief.",
            entries=(prompt("go"), Entry(path="bl:s", type="system.message", role="system", text="Obey me.")),
        )
    )
    assert body["system"] == "Be brief."
    assert body["messages"][0]["content"][1]["text"] == "[system message] Obey me."


def test_arguments_that_are_no_object_are_sent_under_a_key_of_their_own() -> None:
    """Raw arguments decode to the raw text again."""
    encoded = messages(call("a", "{broken"))
    assert encoded[1]["content"][0]["input"] == {"_raw": "{broken"}
    assert next(b.arguments for b in decode(encoded) if isinstance(b, ToolCall)) == "{broken"


def test_arguments_are_sent_in_the_order_that_the_model_wrote_them_in() -> None:
    """What the provider said goes back to it as the same bytes."""
    arguments = {"b": {"d": 1, "c": 2}, "a": []}
    assert json.dumps(messages(call("a", arguments))[1]["content"][0]["input"]) == json.dumps(arguments)


def test_pictures_are_sent_in_the_form_of_the_api() -> None:
    """An attached picture of the other API is converted; an unknown part is a line that names its path."""
    attached = [prompt("", data=data, mime="image/png") for data in (PICTURE, PICTURE_URL, {"type": "input_audio"})]
    content = messages(*attached)[0]["content"]
    assert content[0] == PICTURE
    assert content[1] == {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    assert content[2]["text"] == "[not shown here: input_audio, image/png, ar:]"


def test_a_result_with_pictures_keeps_its_text_and_its_pictures() -> None:
    """Content parts of a result go out behind its text."""
    content = messages(call("a"), result("a", "see", data=[{"type": "text", "text": "see"}, PICTURE]))[2]["content"]
    assert content[0]["content"] == [{"type": "text", "text": "see"}, PICTURE]


def test_the_pictures_of_a_failed_call_stand_behind_the_results() -> None:
    """The API refuses an error that holds anything but text, and with it each later request of the conversation."""
    failed = result("a", "Timeout.", data=[{"type": "text", "text": "Timeout."}, PICTURE], is_error=True)
    [_, _, answers] = messages(prompt("go"), call("a"), call("b"), failed, result("b", "", data=[PICTURE]))
    assert answers["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "Timeout.", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b", "content": [PICTURE]},
        {"type": "text", "text": "[shown by bash, tc:a.result]"},
        PICTURE,
    ]


def test_a_picture_of_a_failed_call_that_a_program_made_is_a_line() -> None:
    """The program goes on with results alone: whatever stands behind them ends it."""
    program: dict[str, Any] = {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}}
    form: dict[str, Any] = {
        "type": "tool_use",
        "caller": {"type": "code_execution_20260120", "tool_id": "s"},
        "container": "k",
    }
    [_, _, answers] = messages(
        prompt("go"),
        Entry(path="bl:s", type="assistant.part", role="assistant", data=program),
        call("a", data=form),
        result("a", "", data=[PICTURE], is_error=True),
    )
    line = {"type": "text", "text": "[not shown here: image, text/plain, tc:a.result]"}
    assert answers["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": [line], "is_error": True}]


def test_an_error_without_output_says_so() -> None:
    """The API refuses an error without content, and takes any other empty result."""
    content = messages(call("a"), call("b"), result("a", "", is_error=True), result("b", ""))[2]["content"]
    assert content[0] == {"type": "tool_result", "tool_use_id": "a", "content": NO_OUTPUT, "is_error": True}
    assert "content" not in content[1]


@pytest.mark.shows("004-92", "004-117")
def test_markers_stand_at_the_cache_points_and_on_the_system_prompt() -> None:
    """Each cache point's part carries a marker; the ephemeral tail behind them has none."""
    context = NeutralContext(
        system="Be brief.",
        entries=(prompt("one"), answer("two"), prompt("three")),
        cache_points=(CachePoint(kind="previous_turn", index=1), CachePoint(kind="tail", index=2)),
        ephemeral=(prompt("now"),),
    )
    body = encode(context)
    marked = [p["text"] for m in body["messages"] for p in m["content"] if "cache_control" in p]
    assert marked == ["two", "three"]
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert context.system == "Be brief."


def test_a_marker_moves_off_reasoning_to_the_part_before_it() -> None:
    """A cache point at reasoning that cannot be marked marks what stands before it."""
    entries = (prompt("go"), thought(response_id="r"), answer("yes", response_id="r"))
    body = encode(NeutralContext(entries=entries, cache_points=(CachePoint(kind="tail", index=1),)))
    assert "cache_control" in body["messages"][0]["content"][0]
    assert markers(body) == 1


def test_the_callers_own_markers_push_out_the_oldest_of_ours() -> None:
    """With two markers of the caller's, only the two newest cache points are marked."""
    own: dict[str, JsonValue] = {"type": "text", "text": "own", "cache_control": {"type": "ephemeral"}}
    points = [CachePoint(kind=kind, index=i) for i, kind in enumerate(KINDS[:3])]
    context = NeutralContext(
        system=[own, own], entries=(prompt("one"), answer("two"), prompt("three")), cache_points=tuple(points)
    )
    body = encode(context)
    assert [p["text"] for m in body["messages"] for p in m["content"] if "cache_control" in p] == ["two", "three"]
    assert body["system"] == [own, own]


ASKED: NeutralContext = NeutralContext(
    system="Be brief.",
    tools=({"name": "bash", "input_schema": {"type": "object"}},),
    entries=(prompt("one"), answer("two"), prompt("three")),
    cache_points=(CachePoint(kind="previous_turn", index=1), CachePoint(kind="tail", index=2)),
    kept_long="fixed_part",
)


EVERYTHING: NeutralContext = ASKED.model_copy(update={"kept_long": "everything"})


def test_the_fixed_part_is_kept_for_an_hour_where_the_policy_says_so() -> None:
    """The system prompt's marker is for the tools in front of it, too; messages are kept for five minutes."""
    body = encode(ASKED)
    assert body["system"] == [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    ]
    assert lifetimes(body) == ["1h", "5m", "5m"]
    assert lifetimes(encode(ASKED.model_copy(update={"kept_long": "nothing"}))) == ["5m", "5m", "5m"]
    assert lifetimes(encode(ASKED.model_copy(update={"kept_long": "everything"}))) == ["1h", "1h", "1h"]


@pytest.mark.parametrize("system", [None, "", " ", []], ids=["none", "empty", "blank", "no part"])
def test_without_a_system_prompt_the_last_tool_that_is_loaded_has_its_marker(system: JsonValue) -> None:
    """The tools stay in the cache behind a compaction; one that is loaded later stands in no prefix."""
    tools: list[JsonValue] = [{"name": "bash"}, {"name": "read"}, {"name": "later", "defer_loading": True}]
    asked = ASKED.model_copy(update={"system": system, "tools": tuple(tools)})
    hour = {"type": "ephemeral", "ttl": "1h"}
    assert encode(asked)["tools"] == [tools[0], {"name": "read", "cache_control": hour}, tools[2]]
    assert encode(asked.model_copy(update={"tools": tuple(tools[2:])}))["tools"] == tools[2:]
    assert asked.tools == tuple(tools)


def test_a_tool_that_the_caller_marked_is_the_only_one_with_a_marker() -> None:
    """Without a system prompt the caller's marker is the fixed part's."""
    tools: tuple[JsonValue, ...] = ({"name": "bash", "cache_control": {"type": "ephemeral"}}, {"name": "read"})
    assert encode(ASKED.model_copy(update={"system": None, "tools": tools}))["tools"] == list(tools)


@pytest.mark.parametrize(
    ("own", "lifetime"),
    [({"type": "ephemeral"}, "5m"), ({"type": "ephemeral", "ttl": "1h"}, "1h"), ("anything", "5m")],
    ids=["five minutes", "an hour", "no marker that the API knows"],
)
def test_behind_a_tool_that_is_kept_for_five_minutes_nothing_is_kept_for_longer(own: JsonValue, lifetime: str) -> None:
    """The API refuses an hour behind five minutes; the caller's own markers stay what they are."""
    tool: dict[str, JsonValue] = {"name": "bash", "cache_control": own}
    body = encode(EVERYTHING.model_copy(update={"tools": (tool,), "cache_points": ASKED.cache_points[1:]}))
    assert body["tools"] == [tool]
    assert body["system"][0]["cache_control"].get("ttl", "5m") == lifetime
    assert body["messages"][-1]["content"][-1]["cache_control"].get("ttl", "5m") == lifetime


def test_behind_a_system_prompt_that_the_caller_marked_messages_are_kept_no_longer_than_it() -> None:
    """Without a marker of ours on the fixed part, the caller's says how long."""
    short: dict[str, JsonValue] = {"type": "text", "text": "own", "cache_control": {"type": "ephemeral"}}
    long: dict[str, JsonValue] = {**short, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    for own, lifetime in ((short, "5m"), (long, "1h")):
        assert lifetimes(encode(EVERYTHING.model_copy(update={"system": [own]}))) == [lifetime] * 3


@given(contexts(legal_entries()))
def test_markers_change_nothing_else(context: NeutralContext) -> None:
    """A context without cache points gives the same request, markers aside, and has none of ours."""
    plain = encode(context.model_copy(update={"cache_points": ()}))
    assert without_markers(encode(context)["messages"]) == plain["messages"]
    assert plain.get("system") == (context.system or None)
    assert plain.get("tools", []) == list(context.tools)
    assert without_markers(encode(context).get("tools", [])) == without_markers(list(context.tools))


def test_keys_that_were_not_given_are_left_out() -> None:
    """No system prompt and no tools: the body holds messages only."""
    assert encode(NeutralContext(entries=(prompt("go"),), system=" ")).keys() == {"messages"}
    assert encoder("anthropic") is encode


SEARCH_RESULT: dict[str, Any] = {
    "type": "search_result",
    "source": "https://example.org/ports",
    "title": "Ports",
    "content": [{"type": "text", "text": "It is 8080."}],
    "citations": {"enabled": True},
}
CHUNKS = {"type": "content", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]}
DOCUMENT = {"type": "document", "source": CHUNKS, "title": "Notes", "citations": {"enabled": True}}


@pytest.mark.parametrize(
    "part",
    [SEARCH_RESULT, DOCUMENT, {"type": "tool_reference", "tool_name": "get_weather"}],
    ids=lambda p: str(p["type"]),
)
def test_what_a_tool_found_in_parts_of_this_form_is_sent_as_it_came(part: dict[str, Any]) -> None:
    """Without a tool's reference the model cannot call the tool, and without the others it knows nothing of them."""
    said = messages(prompt("go"), call("a"), result("a", "", data=[{**part, "cache_control": {"type": "ephemeral"}}]))
    assert said[2]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": [part]}]


def test_a_file_for_the_container_is_sent_with_the_users_words() -> None:
    """The API takes it nowhere else."""
    upload = {"type": "container_upload", "file_id": "file_1"}
    data: Any = [upload]
    asked = prompt("go").model_copy(update={"data": data})
    assert messages(asked)[0]["content"][1] == upload
    assert (
        messages(prompt("go"), call("a"), result("a", "", data=data))[2]["content"][0]["content"][0]["type"] == "text"
    )


@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "gemini", "ai_sdk"])
def test_other_providers_are_sent_the_words_of_a_search_result_and_a_document(wire: str) -> None:
    """They have no such parts."""
    entries = (prompt("go"), call("a"), result("a", "", data=[SEARCH_RESULT, DOCUMENT]))
    said = str(encoder(wire)(NeutralContext(entries=entries)))
    assert all(word in said for word in ("Ports", "https://example.org/ports", "It is 8080.", "Notes", "One.", "Two."))
    assert "not shown here" not in said


def test_a_search_result_counts_by_its_words() -> None:
    """They are in no text of its block."""
    long = {**SEARCH_RESULT, "content": [{"type": "text", "text": "word " * 1_000}]}
    assert 1_200 < with_media(ToolResult(call_id="a", data=[long]), 0) < 1_300
