"""Amazon Bedrock's Converse API: what its service model and its models take, and what a decoder gives back."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import examples
from tests.wire.entries import (
    PICTURE,
    answer,
    assert_all_is_said,
    call,
    contexts,
    hostile_entries,
    legal_entries,
    prompt,
    result,
    thought,
)
from tests.wire.validity import TAKEN
from timeline.blocks import AssistantCompletion, Attachment, Reasoning, ToolCall, ToolResult
from timeline.errors import InvalidArgument
from timeline.usage import Usage
from timeline.wire.bedrock_converse import decode, encode
from timeline.wire.converse_stream import ConverseStream
from timeline.wire.neutral import CachePoint, Entry, NeutralContext
from timeline.wire.refusals import cause_of, context_limit
from timeline.wire.request import make_request
from timeline.wire.responses import read_response
from timeline.wire.streams import StreamReader

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "amazon.nova-pro-v1:0"
REGIONAL = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0"
PROFILE = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc"
MODELS = ("", CLAUDE, NOVA, PROFILE, "mistral.mistral-large-2407-v1:0", "deepseek.r1-v1:0")
TOOL: dict[str, Any] = {"toolSpec": {"name": "bash", "inputSchema": {"json": {"type": "object"}}}}
POINT = {"cachePoint": {"type": "default"}}
REPLY: dict[str, Any] = {
    "ResponseMetadata": {"RequestId": "q1", "HTTPStatusCode": 200},
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Look.", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": b"\x00\xff"}},
                {"text": "I look."},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "bash", "input": {"source": {"bytes": "QUJD"}}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {
        "inputTokens": 5,
        "outputTokens": 7,
        "totalTokens": 982,
        "cacheReadInputTokens": 900,
        "cacheWriteInputTokens": 70,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 20}, {"ttl": "5m", "inputTokens": 50}],
    },
}
"""A response as AWS' SDK for Python returns it."""


class ClientError(Exception):
    """Has what an error of AWS' SDK for Python has: its code and its status are in the answer."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"An error occurred ({code}) when calling the Converse operation: {message}")
        self.response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}


def messages(*entries: Entry, model: str = CLAUDE, **options: Any) -> list[dict[str, Any]]:
    """Encode entries for a model, and return the messages."""
    said: list[dict[str, Any]] = encode(NeutralContext(entries=entries, model=model, **options))["messages"]
    return said


def points(body: Any) -> int:
    """Count the cache points anywhere in a request."""
    return str(body).count("'cachePoint'")


@given(contexts(hostile_entries()), st.sampled_from(MODELS))
@settings(max_examples=examples(100))
def test_any_entries_give_a_request_that_the_service_takes(context: NeutralContext, model: str) -> None:
    """Its service model validates it, the rules of its models hold, and no text is lost."""
    body = encode(context.model_copy(update={"model": model, "tools": (TOOL,) if context.tools else ()}))
    TAKEN["bedrock_converse"](body)
    assert points(body) == 0 or "claude" in model or "nova" in model or "cache_control" in str(context.system)
    assert_all_is_said(context, body["messages"])


@given(legal_entries())
@settings(max_examples=examples(50))
def test_appending_entries_leaves_the_blocks_before_as_they_were(entries: list[Entry]) -> None:
    """All messages but the last stay: only they are in the cache."""
    shorter, longer = messages(*entries[:-1]), messages(*entries)
    answered = [m for m in shorter if "toolResult" not in str(m)]
    assert [m for m in longer if "toolResult" not in str(m)][: len(answered) - 1] == answered[:-1]


def test_a_call_of_the_api_is_encoded_as_the_sdk_sends_it() -> None:
    """The body has base64 and no model; the SDK's arguments have bytes, but in the application's own objects."""
    picture = result("tooluse_1", "", data=[PICTURE])
    own = call("tooluse_1", {"source": {"bytes": "QUJD"}})
    context = NeutralContext(system="Be brief.", tools=(TOOL,), entries=(prompt("Look."), own, picture))
    parameters = {"inferenceConfig": {"maxTokens": 9}, "toolConfig": {"toolChoice": {"auto": {}}}}
    request = make_request(
        context, "bedrock_converse", model=CLAUDE, parameters=parameters, conversation="c", context=1
    )
    assert list(request.body) == ["inferenceConfig", "toolConfig", "system", "messages"]
    assert request.body["toolConfig"] == {"tools": [TOOL], "toolChoice": {"auto": {}}}
    shown = request.body["messages"][2]["content"][0]["toolResult"]["content"]
    assert shown == [{"image": {"format": "png", "source": {"bytes": "aGk="}}}]
    arguments = request.arguments
    assert arguments["modelId"] == CLAUDE
    assert arguments["messages"][1]["content"][0]["toolUse"]["input"] == {"source": {"bytes": "QUJD"}}
    assert arguments["messages"][2]["content"][0]["toolResult"]["content"][0]["image"]["source"]["bytes"] == b"hi"


@pytest.mark.parametrize("given", [{"modelId": CLAUDE}, {"messages": []}, {"toolConfig": {"tools": [TOOL]}}])
def test_what_a_context_gives_is_refused_as_a_parameter(given: dict[str, Any]) -> None:
    """It is in the log already, and two of it would differ."""
    with pytest.raises(InvalidArgument, match="comes from the context"):
        make_request(NeutralContext(), "bedrock_converse", model=CLAUDE, parameters=given, conversation="c", context=1)


def test_a_response_is_read_with_its_thoughts_and_its_usage() -> None:
    """A readable thought has Anthropic's form, whose API takes the same signature."""
    response = read_response(REPLY, unnamed="x")
    signed, redacted, said, called = response.blocks
    assert isinstance(signed, Reasoning)
    assert isinstance(redacted, Reasoning)
    assert signed.data == {"type": "thinking", "thinking": "Look.", "signature": "c2ln"}
    assert redacted.data == {"type": "redactedContent", "redactedContent": "AP8="}
    assert isinstance(said, AssistantCompletion)
    assert isinstance(called, ToolCall)
    assert (called.call_id, called.arguments) == ("tooluse_1", {"source": {"bytes": "QUJD"}})
    assert (response.called.response_id, response.called.finish_reason) == ("q1", "tool_use")
    assert response.called.usage == Usage(
        input_tokens=5, output_tokens=7, cache_read_tokens=900, cache_write_5m_tokens=50, cache_write_1h_tokens=20
    )


STREAM: list[dict[str, Any]] = [
    {"messageStart": {"role": "assistant"}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Lo"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "ok."}}}},
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2ln"}}}},
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": b"\x00"}}}},
    {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"reasoningContent": {"redactedContent": b"\xff"}}}},
    {"contentBlockStop": {"contentBlockIndex": 1}},
    {"contentBlockDelta": {"contentBlockIndex": 2, "delta": {"text": "I look."}}},
    {"contentBlockStop": {"contentBlockIndex": 2}},
    {
        "contentBlockStart": {
            "contentBlockIndex": 3,
            "start": {"toolUse": {"toolUseId": "tooluse_1", "name": "bash"}},
        }
    },
    {"contentBlockDelta": {"contentBlockIndex": 3, "delta": {"toolUse": {"input": '{"source": {"by'}}}},
    {"contentBlockDelta": {"contentBlockIndex": 3, "delta": {"toolUse": {"input": 'tes": "QUJD"}}'}}}},
    {"contentBlockStop": {"contentBlockIndex": 3}},
    {"messageStop": {"stopReason": "tool_use"}},
    {"metadata": {"usage": REPLY["usage"], "metrics": {"latencyMs": 3}}},
]


def test_a_stream_is_read_like_its_response() -> None:
    """Event by event, with the usage that comes last."""
    reader = StreamReader()
    for event in STREAM:
        reader.take(event)
    assert reader.response(unnamed="q1") == read_response(REPLY, unnamed="q1")


def test_a_stream_that_breaks_off_keeps_no_half_call() -> None:
    """The text is marked, and has the received part of the call beside it."""
    reader = StreamReader()
    for event in STREAM[:12]:
        reader.take(event)
    response = reader.response(unnamed="q1")
    assert response is not None
    *_, said = response.blocks
    assert isinstance(said, AssistantCompletion)
    assert said.meta["cut_calls"] == [{"call_id": "tooluse_1", "name": "bash", "arguments": '{"source": {"by'}]


def test_of_a_stream_that_broke_off_the_calls_that_are_whole_are_kept() -> None:
    """Those whose block ended, and those whose arguments did; once the message ended, all of them."""
    stream = ConverseStream()
    sent: dict[str, tuple[list[str], bool]] = {
        "ended": ([], True),
        "whole": (['{"a": ', "1}"], False),
        "cut": (['{"a": '], False),
        "begun": ([], False),
    }
    for index, (name, (inputs, ends)) in enumerate(sent.items()):
        place = {"contentBlockIndex": index}
        stream.take({"contentBlockStart": {"start": {"toolUse": {"toolUseId": name, "name": name}}, **place}})
        for text in inputs:
            stream.take({"contentBlockDelta": {"delta": {"toolUse": {"input": text}}, **place}})
        if ends:
            stream.take({"contentBlockStop": place})
    reply, cut = stream.reply()
    kept = [part["toolUse"] for part in reply["output"]["message"]["content"]]
    assert [(use["name"], use["input"]) for use in kept] == [("ended", {}), ("whole", {"a": 1})]
    assert [part["name"] for part in cut] == ["cut", "begun"]
    stream.take({"messageStop": {"stopReason": "tool_use"}})
    reply, cut = stream.reply()
    assert ([part["toolUse"]["name"] for part in reply["output"]["message"]["content"]], cut) == ([*sent], [])


def test_thoughts_go_back_to_the_models_that_take_them() -> None:
    """Claude takes what is signed, Nova and MiniMax what is not, and the others refuse every thought."""
    unsigned = thought(data={"type": "thinking", "thinking": "hm", "signature": ""}, response_id="r")
    for entry, takers in ((thought(response_id="r"), {CLAUDE, PROFILE, ""}), (unsigned, {NOVA})):
        taking = {
            m for m in MODELS if "reasoningContent" in str(messages(entry, answer("Yes.", response_id="r"), model=m))
        }
        assert taking == takers


def test_a_thought_that_was_read_goes_back_as_it_came() -> None:
    """The signature holds for these very bytes."""
    blocks = [{"role": "assistant", "content": REPLY["output"]["message"]["content"]}]
    entries = [
        Entry(path=f"p{n}", type=block.type, role="assistant", text=block.text, data=block.data, response_id="r")
        for n, block in enumerate(decode(blocks)[:3])
    ]
    assert messages(*entries)[1]["content"][:2] == [
        {"reasoningContent": {"reasoningText": {"text": "Look.", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "AP8="}},
    ]


def test_cache_points_follow_the_blocks_that_are_cached() -> None:
    """One is behind the system prompt, and the others are blocks of the messages."""
    context = NeutralContext(
        system="Be brief.",
        entries=(prompt("a"), answer("b"), prompt("c")),
        cache_points=(CachePoint(kind="previous_turn", index=1), CachePoint(kind="tail", index=2)),
        kept_long="nothing",
        model=CLAUDE,
    )
    body = encode(context)
    assert body["system"] == [{"text": "Be brief."}, POINT]
    assert [m["content"] for m in body["messages"]] == [
        [{"text": "a"}],
        [{"text": "b"}, POINT],
        [{"text": "c"}, POINT],
    ]


def test_no_cache_point_follows_a_thought_or_a_document_that_is_no_pdf() -> None:
    """The service refuses both; the block before them gets it."""
    word = {"type": "document", "format": "docx", "name": "a", "source": {"bytes": "aGk="}}
    behind = prompt("And?", continues=True)
    tail = (CachePoint(kind="tail", index=3),)
    said = messages(prompt("a"), answer("b"), prompt("Read.", data=[word]), behind, cache_points=tail)
    assert said[-1]["content"] == [
        {"text": "Read."},
        POINT,
        {"document": {"format": "docx", "name": "a", "source": {"bytes": "aGk="}}},
        {"text": "And?"},
    ]


@pytest.mark.parametrize(
    ("model", "own", "expected"),
    [
        (CLAUDE, (), 2),
        (NOVA, (), 1),
        (REGIONAL, (), 1),
        (PROFILE, (), 0),
        (PROFILE, (POINT,), 2),
        ("deepseek.r1-v1:0", (), 0),
    ],
)
def test_cache_points_are_for_the_models_that_take_them(model: str, own: tuple[Any, ...], expected: int) -> None:
    """Nova takes none behind tools. Where an address hides the model, your own point shows that it takes them."""
    context = NeutralContext(
        tools=(TOOL, *own), entries=(prompt("a"),), cache_points=(CachePoint(kind="tail", index=0),), model=model
    )
    assert points(encode(context)) == expected


@pytest.mark.parametrize(
    ("model", "ttl"), [(CLAUDE, {"ttl": "1h"}), ("anthropic.claude-opus-4-1-v1:0", {}), (NOVA, {})]
)
def test_an_hour_is_asked_of_the_models_that_know_it(model: str, ttl: dict[str, str]) -> None:
    """Others refuse a request for it."""
    points_ = (CachePoint(kind="tail", index=0),)
    said = messages(prompt("a"), model=model, cache_points=points_, kept_long="everything")
    assert said[0]["content"][-1] == {"cachePoint": {"type": "default", **ttl}}


def test_tools_that_were_called_are_declared_where_a_request_offers_none() -> None:
    """The service refuses calls and results without a declaration."""
    body = encode(NeutralContext(entries=(prompt("a"), call("c"), result("c"))))
    [declared] = body["toolConfig"]["tools"]
    assert declared["toolSpec"]["name"] == "bash"


def test_a_result_that_is_an_object_goes_back_as_an_object() -> None:
    """Text beside it stays text; a list is no object for the service."""
    came = {"b": 1, "a": [1.5, {"c": None}]}
    for content, back in (
        ([{"json": came}], [{"json": came}]),
        ([{"json": came}, {"text": "x"}], [{"text": '{"b":1,"a":[1.5,{"c":null}]}\nx'}]),
        ([{"text": '{"a": 1}'}], [{"text": '{"a": 1}'}]),
        ([], [{"text": "[no output]"}]),
    ):
        [block] = decode([{"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": content}}]}])
        assert isinstance(block, ToolResult)
        said = messages(prompt("a"), call("c"), result("c", block.text, data=block.data))
        assert said[2]["content"][0]["toolResult"]["content"] == back


@pytest.mark.parametrize(
    ("model", "said"), [(CLAUDE, {"status": "error"}), (PROFILE, {"status": "error"}), (MODELS[4], {})]
)
def test_a_failed_result_says_so_to_the_models_that_take_it(model: str, said: dict[str, str]) -> None:
    """The others refuse the field."""
    shown = messages(prompt("a"), call("c"), result("c", "no such file", is_error=True), model=model)
    assert shown[2]["content"][0]["toolResult"] == {"toolUseId": "c", "content": [{"text": "no such file"}], **said}


def test_a_document_of_texts_is_its_texts() -> None:
    """In Anthropic's form, that is: this API's own blocks say by a key, not by a type, where their content is."""
    texts: dict[str, Any] = {"type": "content", "content": [{"type": "text", "text": "words"}]}
    document = {"type": "document", "title": "T", "source": texts}
    assert messages(prompt("Look.", data=[document]))[0]["content"] == [{"text": "Look."}, {"text": "T\nwords"}]
    own = {"type": "document", "name": "T", "source": {"content": [{"text": "words"}]}}
    assert messages(prompt("Look.", data=[own]))[0]["content"][1] == {
        "document": {key: own[key] for key in ("name", "source")}
    }


def test_a_document_gets_a_name_that_the_service_takes_and_a_text() -> None:
    """It refuses a dot in a name, two spaces, and a message of documents alone."""
    source = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
    pdf = {"type": "document", "title": "John's  résumé.pdf", "source": source}
    first, second = messages(prompt("", data=[pdf, pdf]))[0]["content"][1:]
    assert first["document"]["name"].startswith("John s r sum ")
    assert first["document"]["name"] != second["document"]["name"]


def test_files_of_every_kind_are_read_from_messages_and_sent_again() -> None:
    """Pictures and PDFs have the form that the other wires send, too; a file in S3 keeps its own."""
    film = {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://bucket/film.mp4"}}}}
    content = [{"text": "See."}, {"image": {"format": "png", "source": {"bytes": b"hi"}}}, film]
    _, picture, video = decode([{"role": "user", "content": content}])
    assert isinstance(picture, Attachment)
    assert picture.data == PICTURE
    assert b64decode("aGk=") == b"hi"
    assert messages(prompt("See.", data=[picture.data, video.data]))[0]["content"][2] == film


@pytest.mark.parametrize(
    ("code", "message", "status", "cause"),
    [
        ("ValidationException", "Input is too long for requested model.", 400, "context_limit"),
        ("ThrottlingException", "Too many tokens, please wait before trying again.", 429, "rate_limit"),
        ("throttlingException", "Too many tokens, please wait before trying again.", 400, "rate_limit"),
        ("ModelErrorException", "The system encountered an unexpected error.", 424, "server"),
        ("modelStreamErrorException", "The system encountered an unexpected error.", 400, "server"),
        ("ServiceUnavailableException", "Bedrock is unable to process your request.", 503, "overloaded"),
        ("ExpiredTokenException", "The security token included in the request is expired", 403, "authentication"),
    ],
)
def test_the_errors_of_the_sdk_are_told_apart(code: str, message: str, status: int, cause: str) -> None:
    """Those in the middle of a stream have a status that says nothing."""
    error = ClientError(code, message, status)
    assert cause_of(error) == cause
    assert (context_limit(error) is not None) == (cause == "context_limit")
