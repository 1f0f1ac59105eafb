"""Our fake and one that others wrote give the SDKs the same: whoever is wrong about a provider is not both of us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from llmock.scenarios import Fail, Reply, ToolCall

from tests.providers import Answer, Call, FakeProvider, Trouble
from tests.providers.asking import NAME, WIRES, ask

if TYPE_CHECKING:
    from llmock.testing import LLMockServer

    from tests.providers.script import Kind, WireName

_THEIRS: Final = {"anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "openai", "gemini": "gemini"}


def url_of(wire: WireName, provider: FakeProvider) -> str:
    """Return the base URL that a wire's SDK wants."""
    return provider.openai_url if wire.startswith("openai") else provider.url


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_text_reads_the_same_from_both(wire: WireName, other: LLMockServer, *, stream: bool) -> None:
    """Type of the SDK's object, text, reason to stop, and which figures of usage there are."""
    other.state.scenarios.add(Reply(text="Two plus two is four."))
    theirs = await ask(wire, other.base_url(_THEIRS[wire]), "What is 2 + 2?", stream=stream)
    with FakeProvider("Two plus two is four.") as provider:
        ours = await ask(wire, url_of(wire, provider), "What is 2 + 2?", stream=stream)
    assert (ours.kind, ours.text, ours.stop) == (theirs.kind, theirs.text, theirs.stop)
    assert ours.usage == theirs.usage


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_call_reads_the_same_from_both(wire: WireName, other: LLMockServer, *, stream: bool) -> None:
    """Name and arguments come through, and the answer ends for the same reason."""
    other.state.scenarios.add(Reply(tool_calls=(ToolCall(name=NAME, arguments={"path": "src"}),)))
    theirs = await ask(wire, other.base_url(_THEIRS[wire]), "List src.", stream=stream, tools=True)
    with FakeProvider(Answer(calls=(Call(NAME, {"path": "src"}),))) as provider:
        ours = await ask(wire, url_of(wire, provider), "List src.", stream=stream, tools=True)
    assert (ours.kind, ours.calls, ours.stop) == (theirs.kind, theirs.calls, theirs.stop)


@pytest.mark.parametrize(("kind", "status"), [("rate_limit", 429), ("server", 500), ("no_model", 404)])
@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_is_of_the_same_type_from_both(
    wire: WireName, kind: Kind, status: int, other: LLMockServer
) -> None:
    """The SDK raises the same of its errors."""
    other.state.scenarios.add(Fail(status, retry_after=0.01))
    with pytest.raises(Exception, match=str(status)) as theirs:
        await ask(wire, other.base_url(_THEIRS[wire]), "Hello")
    with FakeProvider(Trouble(kind)) as provider, pytest.raises(Exception, match=str(status)) as ours:
        await ask(wire, url_of(wire, provider), "Hello")
    assert ours.type is theirs.type
