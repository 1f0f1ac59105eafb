"""The fake itself: its script, what it keeps of a request, and how it misbehaves."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import anyio
import openai
import pytest
from anyio import to_thread
from openai import APIConnectionError, BadRequestError, OpenAI

from tests.providers import Answer, Asked, Cut, FakeProvider, Hang, Raw, Trouble
from tests.providers.asking import WIRES, ask, openai_client

if TYPE_CHECKING:
    from tests.providers.script import Kind, Step, WireName


def url_of(wire: WireName, provider: FakeProvider) -> str:
    """Return the base URL that a wire's SDK wants."""
    return provider.openai_url if wire.startswith("openai") else provider.url


def sync_client(provider: FakeProvider, *, retries: int = 0) -> OpenAI:
    """Return a client for tests that do not await."""
    return OpenAI(api_key="none", base_url=provider.openai_url, max_retries=retries)


def test_a_list_of_steps_is_used_up_in_order_and_then_refused() -> None:
    """A test that asks more often than it says is told so."""
    with FakeProvider(["one", "two"]) as provider, sync_client(provider) as client:
        assert [client.responses.create(model="m", input="x").output_text for _ in range(2)] == ["one", "two"]
        with pytest.raises(BadRequestError, match="no step for request 2"):
            client.responses.create(model="m", input="x")
    assert provider.refused == ["the script has no step for request 2"]


def test_a_function_sees_what_is_asked_with_the_system_part_by_itself() -> None:
    """What the application says stands apart from what comes from the conversation."""

    def echo(asked: Asked) -> str:
        return f"{asked.model}: {asked.system} / {asked.text}"

    with FakeProvider(echo) as provider, sync_client(provider) as client:
        answer = client.responses.create(model="m", instructions="Be brief.", input="Hello")
    assert answer.output_text == "m: Be brief. / Hello"


def test_many_threads_are_answered_at_once() -> None:
    """Each one gets the answer to its own request."""
    with FakeProvider(lambda asked: asked.text) as provider, sync_client(provider) as client:

        def said(number: int) -> str:
            return client.responses.create(model="m", input=f"n{number}").output_text

        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(said, range(24))) == [f"n{number}" for number in range(24)]
    assert len(provider.asked) == 24


def test_a_request_above_the_limit_is_refused_with_its_figures() -> None:
    """As a model does whose context is full."""
    too_long = pytest.raises(BadRequestError, match="maximum context length is 50 tokens")
    with FakeProvider(limit=50) as provider, sync_client(provider) as client, too_long as refused:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x" * 400}])
    assert refused.value.code == "context_length_exceeded"
    assert provider.asked == []


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_connection_that_is_cut_is_an_error_of_the_client(wire: WireName, *, stream: bool) -> None:
    """In the middle of a body, and in the middle of a stream: nothing passes for an answer."""
    broken_off = pytest.raises(Exception, match=r"onnection|incomplete|closed")
    with FakeProvider(Cut(Answer("word " * 50))) as provider, broken_off:
        await ask(wire, url_of(wire, provider), "Hello", stream=stream)


@pytest.mark.parametrize("step", [Hang(), Hang(Answer("word " * 50))], ids=["at once", "in the middle"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_client_that_gives_up_is_noticed(wire: WireName, step: Step) -> None:
    """A request that is cancelled is closed, and the fake sees it."""
    with FakeProvider(step) as provider:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, wire, url_of(wire, provider), "Hello")
            await to_thread.run_sync(lambda: provider.wait_for(asked=1))
            group.cancel_scope.cancel()
        await to_thread.run_sync(lambda: provider.wait_for(gone=1))


def test_the_wait_that_a_refusal_asks_for_reaches_the_client() -> None:
    """In whole seconds for all, and exactly for the SDKs that read it."""
    limited = pytest.raises(openai.RateLimitError)
    with (
        FakeProvider(Trouble("rate_limit", retry_after=1.25)) as provider,
        sync_client(provider) as client,
        limited as refused,
    ):
        client.responses.create(model="m", input="x")
    headers = refused.value.response.headers
    assert (headers["retry-after"], headers["retry-after-ms"]) == ("1", "1250")


def test_a_client_that_tries_again_gets_the_next_step() -> None:
    """Its own retries are requests of the script."""
    steps: list[Step] = [Trouble("rate_limit", retry_after=0.01), Trouble("overloaded", retry_after=0.01), "now"]
    with FakeProvider(steps) as provider, sync_client(provider, retries=2) as client:
        assert client.responses.create(model="m", input="x").output_text == "now"
    assert len(provider.asked) == 3


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "context_limit", "authentication", "filter"])
@pytest.mark.parametrize("wire", WIRES)
async def test_each_trouble_is_an_error_of_each_sdk(wire: WireName, kind: Kind) -> None:
    """None of them passes for an answer, or for a problem of the connection."""
    with FakeProvider(Trouble(kind)) as provider, pytest.raises(Exception, match=r"\b[45]\d\d\b") as raised:
        await ask(wire, url_of(wire, provider), "Hello")
    assert not isinstance(raised.value, APIConnectionError)


async def test_a_page_of_a_proxy_is_sent_as_it_is() -> None:
    """Status and body are the test's."""
    with FakeProvider(Raw(b"<html>bad gateway</html>", 502, "text/html")) as provider:
        async with openai_client(provider.openai_url) as client:
            with pytest.raises(openai.InternalServerError) as raised:
                await client.responses.create(model="m", input="x")
    assert raised.value.status_code == 502
