"""What Google's server did in a response: it goes back with all that belongs to it, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers import gemini
from tests.wire.entries import GOOGLE_CODE, GOOGLE_FILE, GOOGLE_FOUND, answer, call, prompt, result
from timeline.blocks import CustomBlock
from timeline.content.media_tokens import IMAGE_TOKENS, with_media
from timeline.wire import WIRES, encoder
from timeline.wire.gemini import decode
from timeline.wire.neutral import Entry, NeutralContext

SEARCHED: dict[str, Any] = {
    "toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["snake_case"]}},
    "thoughtSignature": "c2ln",
}
FOUND: dict[str, Any] = {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"a_b": 1}}}


def part(data: Any, **more: Any) -> Entry:
    """Make the entry of a part of a response."""
    fields = {"path": "bl:p", "type": "assistant.part", "role": "assistant", "data": data, "response_id": "r", **more}
    return Entry(**fields)


HIDDEN = part(None, text="[hidden]")


def sent(*entries: Entry) -> list[dict[str, Any]]:
    """Return the parts of the model's content in a request that Google takes."""
    body = encoder("gemini")(NeutralContext(entries=(prompt("go"), *entries)))
    gemini.WIRE.check({"model": "gemini-2.5-pro", "contents": body["contents"]})
    parts: list[dict[str, Any]] = body["contents"][1]["parts"]
    return parts


def test_code_and_what_it_printed_go_back_with_the_text_around_them() -> None:
    """In the order of the response."""
    told = sent(
        answer("I compute.", response_id="r"), part(GOOGLE_CODE), part(GOOGLE_FOUND), answer("1.", response_id="r")
    )
    assert told == [
        {"text": "I compute."},
        {"executable_code": {"language": "PYTHON", "code": "print(1)"}},
        {"code_execution_result": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "1."},
    ]


def test_a_call_of_googles_own_tool_goes_back_with_its_signature() -> None:
    """Beside a call of the client, whose turn it is part of; what the application named keeps its names."""
    told = sent(part(SEARCHED), part(FOUND), call("c", response_id="r"), result("c"))
    assert told[0] == {
        "tool_call": {"id": "t1", "tool_type": "GOOGLE_SEARCH_WEB", "args": {"queries": ["snake_case"]}},
        "thought_signature": "c2ln",
    }
    assert told[1] == {"tool_response": {"id": "t1", "tool_type": "GOOGLE_SEARCH_WEB", "response": {"a_b": 1}}}


def test_code_with_several_results_goes_back_with_all() -> None:
    """Some responses have two for one code."""
    kinds = [next(iter(told)) for told in sent(part(GOOGLE_CODE), part(GOOGLE_FOUND), part(GOOGLE_FOUND))]
    assert kinds == ["executable_code", "code_execution_result", "code_execution_result"]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ((part(GOOGLE_CODE), HIDDEN), ["[hidden]"]),
        ((HIDDEN, part(GOOGLE_FOUND)), ["[hidden]", "[not shown here: codeExecutionResult, text/plain, bl:p]"]),
        ((part(SEARCHED), part({"toolResponse": {"id": "t2"}})), ["[not shown here: toolResponse, text/plain, bl:p]"]),
    ],
)
def test_half_a_pair_is_not_sent(entries: tuple[Entry, ...], said: list[str]) -> None:
    """A result without its call is a line with its path."""
    assert [told["text"] for told in sent(*entries)] == said


def test_a_result_behind_a_hidden_call_is_not_that_of_an_earlier_one() -> None:
    """Code has no id that would say so."""
    kinds = [next(iter(told)) for told in sent(part(GOOGLE_CODE), part(GOOGLE_FOUND), HIDDEN, part(GOOGLE_FOUND))]
    assert kinds == ["executable_code", "code_execution_result", "text", "text"]


def test_a_picture_that_the_model_drew_goes_back_to_be_changed() -> None:
    """With its signature, as the model that drew it demands; one that the SDK would refuse becomes a line."""
    signed = {**GOOGLE_FILE, "thoughtSignature": "c2ln"}
    drawn = {"inline_data": {"mime_type": "image/png", "data": "aGk="}, "thought_signature": "c2ln"}
    assert sent(part(signed)) == [drawn]
    broken = part({"inlineData": {"mimeType": "image/png", "data": "no base64!"}})
    assert sent(broken) == [{"text": "[not shown here: inlineData, text/plain, bl:p]"}]


@pytest.mark.parametrize("parts", [(GOOGLE_CODE, GOOGLE_FOUND), (SEARCHED, FOUND), (GOOGLE_FILE,)])
def test_a_request_reads_back_as_what_was_recorded(parts: tuple[Any, ...]) -> None:
    """A loop that hands out its list of contents is not told apart from one that records replies."""
    blocks = decode({"contents": [{"role": "model", "parts": sent(*map(part, parts))}]})
    assert [block.data for block in blocks] == [*parts]


@pytest.mark.parametrize("wire", [name for name in WIRES if name != "gemini"])
def test_other_providers_get_a_line_for_what_was_found_alone(wire: Any) -> None:
    """A call says nothing without what it found."""
    entries = (prompt("go"), part(GOOGLE_CODE), part(GOOGLE_FOUND), part(GOOGLE_FILE))
    said = str(encoder(wire)(NeutralContext(entries=entries)))
    assert "codeExecutionResult" in said
    assert "inlineData" in said
    assert "executableCode" not in said


def test_they_count_by_their_size() -> None:
    """A picture as any other, code and its output as text."""
    code = CustomBlock(type="assistant.part", data={"executableCode": {"code": "x" * 400}})
    assert 100 < with_media(code, 0) < 120
    assert with_media(CustomBlock(type="assistant.part", data=GOOGLE_FILE), 0) == IMAGE_TOKENS
