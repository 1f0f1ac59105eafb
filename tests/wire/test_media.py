"""Pictures and documents of one provider on the wires of the others."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.wire.entries import call, prompt, result
from tests.wire.validity import TAKEN
from timeline.wire import encoder, message_decoder
from timeline.wire.neutral import NeutralContext

PNG: Final = "data:image/png;base64,aGk="
PDF: Final = "data:application/pdf;base64,aGk="
OPENAI: Final[dict[str, Any]] = {
    "picture": {"type": "input_image", "image_url": PNG, "detail": "low"},
    "document": {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
    "document of a chat": {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
}
WIRES: Final = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock_converse", "ai_sdk")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("part", OPENAI.values(), ids=OPENAI)
def test_a_file_of_openais_is_seen_by_the_model_that_a_conversation_goes_on_with(wire: str, part: Any) -> None:
    """A line that it is not shown stood in its place, for the user's and for a tool's."""
    seen = "user" if wire == "openai_chat" else "result"
    context = NeutralContext(
        entries=(
            prompt("See.", data=[part]),
            call("c"),
            result("c", "Here.", data=[part] if seen == "result" else None),
        )
    )
    body = encoder(wire)(context)
    TAKEN[wire](body)
    sent = json.dumps(body)
    assert sent.count("aGk=") == (2 if seen == "result" else 1)
    assert "not shown" not in sent


@pytest.mark.parametrize("wire", WIRES)
def test_the_text_beside_a_tools_picture_is_said_once(wire: str) -> None:
    """A line said of it, too, that it was not shown."""
    output = [{"type": "input_text", "text": "Here."}, OPENAI["picture"]]
    item = {"type": "function_call_output", "call_id": "c", "output": output}
    [block] = message_decoder("openai_responses").decode(item)
    body = encoder(wire)(NeutralContext(entries=(prompt("See."), call("c"), result("c", block.text, data=block.data))))
    sent = json.dumps(body)
    assert sent.count("Here.") == 1
    assert "not shown" not in sent


def picture(mime: str = "image/png", data: str = "aGk=") -> dict[str, Any]:
    """Return a picture in Anthropic's form."""
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


PICTURES: Final[dict[str, Any]] = {
    "Google's": {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    "Google's SDK's": {"inline_data": {"mime_type": "image/png", "data": "aGk="}},
    "Bedrock's": {"image": {"format": "png", "source": {"bytes": "aGk="}}},
    "Bedrock's with a type": {"type": "image", "format": "png", "source": {"bytes": "aGk="}},
    "an MCP tool's": {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    "type in capitals": picture("image/PNG"),
    "jpg": picture("image/jpg"),
    "address with parameters": {"type": "image_url", "image_url": {"url": "data:image/png;charset=utf-8;base64,aGk="}},
    "address in capitals": {"type": "image_url", "image_url": {"url": "DATA:image/PNG;BASE64,aGk="}},
    "jpg in an address": {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,aGk="}},
    "address as the source": {"type": "image", "source": {"type": "url", "url": PNG}},
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("part", PICTURES.values(), ids=PICTURES)
def test_a_picture_of_every_form_is_seen_wherever_it_stands(wire: str, part: Any) -> None:
    """In a prompt or a result, a form without a type was left out without a word; of others a line was said."""
    entries = (
        prompt("See.", data=part),
        call("c"),
        result("c", "Here.", data=[{"type": "text", "text": "Here."}, part]),
    )
    body = encoder(wire)(NeutralContext(entries=entries))
    TAKEN[wire](body)
    sent = json.dumps(body)
    assert sent.count("aGk=") == 2
    assert "not shown" not in sent


@pytest.mark.parametrize("wire", ["anthropic", "gemini", "bedrock_converse", "ai_sdk"])
@pytest.mark.parametrize("mime", ["image/JPG", "image/jpeg"])
def test_a_picture_says_its_type_as_the_provider_names_it(wire: str, mime: str) -> None:
    """The APIs compare it by the letter."""
    sent = json.dumps(encoder(wire)(NeutralContext(entries=(prompt("See.", data=picture(mime)),))))
    assert '"jpeg"' in sent or '"image/jpeg"' in sent


@pytest.mark.parametrize("wire", WIRES)
def test_a_file_that_googles_sdk_wrote_is_in_the_alphabet_that_others_read(wire: str) -> None:
    """The SDK writes base64 for URLs."""
    part = {"inline_data": {"mime_type": "image/png", "data": "_-_-"}}
    body = encoder(wire)(NeutralContext(entries=(prompt("See.", data=part),)))
    TAKEN[wire](body)
    assert "/+/+" in json.dumps(body)


@pytest.mark.parametrize("wire", ["gemini", "bedrock_converse"])
def test_base64_with_line_ends_is_sent_without_them_where_the_provider_refuses_them(wire: str) -> None:
    """Programs for mail write a line end behind each 76 characters."""
    body = encoder(wire)(NeutralContext(entries=(prompt("See.", data=picture(data="aGkh\naGkh\n")),)))
    TAKEN[wire](body)
    assert "aGkhaGkh" in json.dumps(body)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            {"type": "base64", "media_type": "text/csv", "data": "aGk="},
            "[not shown here: document, text/plain, ar:See.]",
        ),
        ({"type": "text", "media_type": "text/markdown", "data": "# Words"}, "# Words"),
    ],
    ids=["base64", "text"],
)
def test_a_document_that_anthropics_api_refuses_is_said_in_words(source: dict[str, Any], said: str) -> None:
    """It takes PDF as base64 and plain text as text, and refuses the whole request for any other type."""
    body = encoder("anthropic")(NeutralContext(entries=(prompt("See.", data={"type": "document", "source": source}),)))
    TAKEN["anthropic"](body)
    assert body["messages"][0]["content"] == [{"type": "text", "text": "See."}, {"type": "text", "text": said}]
