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
