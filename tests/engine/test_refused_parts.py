"""Parts that the provider refuses: pictures by name, by number, or for the bytes of the request; signed reasoning."""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import TYPE_CHECKING, Any

import httpx2
import openai
import pytest

from tests.engine.test_retry import REQUEST, of_anthropic, of_openai
from tests.scenes import COUNTER, apply, call, fold_of, opened, payloads_of, prompt, small_policy
from timeline.blocks import Attachment, Reasoning, ToolResult, UserPrompt
from timeline.errors import ContextRefused
from timeline.events import BlocksPinned
from timeline.frozen import canonical_json
from timeline.planning.hide_parts import plan_reasoning
from timeline.store.memory import MemoryStore
from timeline.wire.refused_parts import MediaRefused, ReasoningRefused, refused_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.agent.messages import MessageWire
    from timeline.projection.context import RenderedContext
    from timeline.timeline import Timeline
    from timeline.wire.refused_parts import PartsRefused

CHANCE = Random(1)
TOO_LARGE = "<html><head><title>413 Request Entity Too Large</title></head></html>"


def picture(size: int = 600) -> dict[str, Any]:
    """Return a picture of some bytes, in Anthropic's form."""
    data = b64encode(CHANCE.randbytes(size)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def of_gateway() -> openai.APIStatusError:
    """Return what the SDK makes of a page of nginx's."""
    response = httpx2.Response(413, request=REQUEST, text=TOO_LARGE)
    return openai.OpenAI(api_key="none")._make_status_error_from_response(response)


async def look(timeline: Timeline, name: str, shot: dict[str, Any]) -> None:
    """Append a call and its result: a text, and a screenshot."""
    await timeline.append(call(name), ToolResult(call_id=name, text=f"Screenshot {name}.", data=[shot]))


def pictures_in(body: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Return place and base64 of each picture of a body of Anthropic's."""
    return [
        (number, place, inner["source"]["data"])
        for number, message in enumerate(body["messages"])
        for place, part in enumerate(message["content"])
        for inner in (part, *(part["content"] if isinstance(part.get("content"), list) else ()))
        if inner["type"] == "image"
    ]


def asking(refuse: Callable[[dict[str, Any]], Exception | None], sent: list[dict[str, Any]]) -> Any:
    """Return a call of a model that takes a body of Anthropic's, or refuses it."""

    async def ask(context: RenderedContext) -> str:
        body = context.request("anthropic", model="claude-opus-5").arguments
        if (error := refuse(body)) is not None:
            raise error
        sent.append(body)
        return "Done."

    return ask


# Recognising


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (of_anthropic("Request exceeds the maximum size", 413, "request_too_large"), MediaRefused(crowd=True)),
        (of_gateway(), MediaRefused(crowd=True)),
        (
            of_anthropic(
                "messages.39.content.38.image.source.base64.data: At least one of the image dimensions exceed max "
                "allowed size for many-image requests: 2000 pixels"
            ),
            MediaRefused(True, "anthropic", 39, 38),
        ),
        (
            of_anthropic("messages.3.content.1.image.source.base64: image exceeds 5 MB maximum: 7012356 bytes"),
            MediaRefused(False, "anthropic", 3, 1),
        ),
        (of_anthropic("Could not process image"), MediaRefused(crowd=False)),
        (
            of_anthropic(
                "messages.83.content.0.tool_result.content.1.image.source.base64: The image was specified using the "
                "image/jpeg media type, but the image appears to be a image/png image"
            ),
            MediaRefused(False, "anthropic", 83, 0),
        ),
        (
            of_anthropic(
                "messages.18.content.1.image.source.base64.data: Image does not match the provided media type image/png"
            ),
            MediaRefused(False, "anthropic", 18, 1),
        ),
        (
            of_anthropic("messages.4.content.1.pdf.source.base64.data: The PDF specified is password protected."),
            MediaRefused(False, "anthropic", 4, 1),
        ),
        (
            of_anthropic("messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid."),
            MediaRefused(False, "anthropic", 0, 0),
        ),
        (of_anthropic("messages.0.content.0.pdf.source.base64: PDF cannot be empty"), MediaRefused(False, "anthropic")),
        (
            RuntimeError(
                "An error occurred (ValidationException) when calling the Converse operation: The model returned the "
                "following errors: The provided image does not match the specified image format."
            ),
            MediaRefused(crowd=False),
        ),
        (RuntimeError("400 INVALID_ARGUMENT. Unsupported MIME type: image/svg+xml"), MediaRefused(crowd=False)),
        (RuntimeError("400 INVALID_ARGUMENT. The document has no pages."), MediaRefused(crowd=False)),
        (of_anthropic("Too many images and documents: 104 + 0 > 100"), MediaRefused(crowd=True, most=100)),
        (of_anthropic("A maximum of 100 PDF pages may be provided."), MediaRefused(crowd=True)),
        (of_anthropic("Too much media: 0 document pages + 103 images > 100"), MediaRefused(crowd=True, most=100)),
        (
            of_openai("request contains 52 images, exceeding the maximum of 50 allowed per request"),
            MediaRefused(crowd=True, most=50),
        ),
        (of_openai("Image count 5 exceeds limit 4 per request."), MediaRefused(crowd=True, most=4)),
        (of_openai("At most 1 image(s) may be provided in one request."), MediaRefused(crowd=True, most=1)),
        (of_openai("At most 0 image(s) may be provided in one prompt."), MediaRefused(crowd=True, most=0)),
        (of_openai("At most 0 audio(s) may be provided in one request."), MediaRefused(crowd=True)),
        (of_openai("too many images in the message, max allowed is 16", 500), MediaRefused(crowd=True, most=16)),
        (of_openai("The limit of 20 images for a request is exceeded: 24"), MediaRefused(crowd=True, most=20)),
        (of_openai("Total image size is 54.2MB, which exceeds the allowed limit of 50MB."), MediaRefused(crowd=True)),
        (
            of_openai("Invalid 'input[3].content[1].image_url': You uploaded an unsupported image."),
            MediaRefused(False, "openai_responses", 3, 1),
        ),
        (
            RuntimeError("400 INVALID_ARGUMENT. Request payload size exceeds the limit: 20971520 bytes."),
            MediaRefused(crowd=True),
        ),
        (RuntimeError("400 INVALID_ARGUMENT. Unable to process input image."), MediaRefused(crowd=False)),
        (of_anthropic("messages.1.content.0: Invalid `signature` in `thinking` block"), ReasoningRefused()),
        (
            of_anthropic(
                "messages.19.content.24: `thinking` or `redacted_thinking` blocks in the latest assistant message "
                "cannot be modified. These blocks must remain as they were in the original response."
            ),
            ReasoningRefused(),
        ),
        (
            of_openai("The encrypted content gAAA...CwHs could not be verified.", code="invalid_encrypted_content"),
            ReasoningRefused(),
        ),
        (of_openai("Item with id 'rs_0c24' not found. Items are not persisted.", 404), ReasoningRefused()),
        (
            of_openai("Item 'rs_06a2' of type 'reasoning' was provided without its required following item."),
            ReasoningRefused(),
        ),
        (RuntimeError("400 INVALID_ARGUMENT. Corrupted thought signature."), ReasoningRefused()),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_was_refused_of_a_request_is_recognised(error: Exception, refused: PartsRefused) -> None:
    """By the status, and by the providers' words."""
    assert refused_parts(error) == refused


@pytest.mark.parametrize(
    "error",
    [
        of_anthropic("Number of request tokens has exceeded your per-minute rate limit", 429, "rate_limit_error"),
        of_openai("Too many images: the limit of images for a minute is exceeded.", 429),
        of_anthropic("messages.1.content.0: Invalid `signature` in `thinking` block", 529, "overloaded_error"),
        of_anthropic("prompt is too long: 9 tokens > 8 maximum"),
        of_openai("Invalid value: 'imagine'.", 400),
        ValueError("something else"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_any_other_error_refuses_no_part(error: Exception) -> None:
    """A context without its pictures and its reasoning would be refused likewise."""
    assert refused_parts(error) is None


@pytest.mark.parametrize(("message", "part"), [(2, 0), (1, 1), (0, 0)])
def test_a_place_that_the_body_does_not_have_names_nothing(message: int, part: int) -> None:
    """A framework may send more messages than we would; its error is about one of its own."""
    shown = [{"role": "user", "content": "Look."}, {"role": "user", "content": [picture()]}]
    assert MediaRefused(False, "anthropic", message, part).named_in({"messages": shown}) == []
    assert MediaRefused(False, "anthropic", 1, 0).named_in({"messages": shown})


# Going on


async def test_a_session_of_screenshots_goes_on_behind_a_gateway_that_takes_so_many_bytes() -> None:
    """Its pictures are a tenth of the window in tokens, and all of the bytes that are taken."""
    store, sent = MemoryStore(), list[dict[str, Any]]()
    timeline = await opened(store, policy=small_policy(max_tokens=200_000))
    await timeline.append(prompt())
    ask = asking(lambda body: of_gateway() if len(canonical_json(body)) > 60_000 else None, sent)
    for number in range(40):
        shot = picture(3_000)
        await look(timeline, f"c{number}", shot)
        assert await timeline.retry_with_compaction(ask) == "Done."
        assert pictures_in(sent[-1])[-1][2] == shot["source"]["data"]
    assert "Screenshot c0." in canonical_json(sent[-1])
    assert await payloads_of(store, "compaction.completed") == []
    assert len(await payloads_of(store, "blocks.hidden")) <= 5
    assert (await timeline.verify()).ok


def drawn_at_google(data: str) -> dict[str, Any]:
    """Return a response of Google's with a picture that the model drew."""
    return {"role": "model", "parts": [{"text": "Here."}, {"inlineData": {"mimeType": "image/png", "data": data}}]}


def drawn_at_openai(data: str) -> dict[str, Any]:
    """Return OpenAI's item for a picture that its server drew."""
    return {"type": "image_generation_call", "id": f"ig_{data[:9]}", "status": "completed", "result": data}


@pytest.mark.parametrize(("wire", "drawn"), [("gemini", drawn_at_google), ("openai_responses", drawn_at_openai)])
async def test_a_session_of_drawn_pictures_goes_on_behind_a_server_that_takes_so_many_bytes(
    wire: MessageWire, drawn: Callable[[str], dict[str, Any]]
) -> None:
    """A picture that the model drew goes back with each request, and is as large as one that it was shown."""
    store, sent = MemoryStore(), list[str]()
    timeline = await opened(store, policy=small_policy(max_tokens=200_000))

    async def ask(context: RenderedContext) -> str:
        sent.append(canonical_json(context.request(wire, model="gpt-5").body))
        if len(sent[-1]) > 60_000:
            raise of_gateway()
        return "Done."

    for number in range(40):
        data = CHANCE.randbytes(2_000).hex()  # base64 that every form writes alike
        await timeline.append(prompt(text=f"Draw picture {number}."))
        await timeline.append_messages([drawn(data)], wire=wire)
        assert await timeline.retry_with_compaction(ask) == "Done."
        assert data in sent[-1]
    assert "Draw picture 0." in sent[-1]
    assert "picture left out" in sent[-1]
    assert await payloads_of(store, "compaction.completed") == []
    assert len(await payloads_of(store, "blocks.hidden")) <= 5
    assert (await timeline.verify()).ok


async def test_a_picture_that_the_provider_names_is_left_out_and_the_words_beside_it_stay() -> None:
    """Otherwise each later request would be refused for it, a text alone too."""
    sent: list[dict[str, Any]] = []
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    shots = [picture() for _ in range(3)]
    for number, shot in enumerate(shots):
        await look(timeline, f"c{number}", shot)
    bad = shots[1]["source"]["data"]

    def refuse(body: dict[str, Any]) -> Exception | None:
        places = [(number, place) for number, place, data in pictures_in(body) if data == bad]
        named = "messages.{}.content.{}.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum"
        return of_anthropic(named.format(*places[0])) if places else None

    assert await timeline.retry_with_compaction(asking(refuse, sent)) == "Done."
    assert [data for *_, data in pictures_in(sent[-1])] == [shots[0]["source"]["data"], shots[2]["source"]["data"]]
    assert "Screenshot c1.\\n[picture left out" in canonical_json(sent[-1])
    assert (await timeline.read("tc:turn_1.c1.result")).data == [shots[1]]


async def test_above_twenty_pictures_of_which_one_is_too_large_for_so_many_a_few_newest_stay() -> None:
    """Anthropic takes 2,000 pixels a side above twenty pictures, and names the first that has more."""
    sent: list[dict[str, Any]] = []
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=200_000))
    shots = [picture() for _ in range(50)]
    await timeline.append(*(Attachment(author="user", mime="image/png", data=shot) for shot in shots))
    await timeline.append(UserPrompt(text="Compare them."))
    large = {shot["source"]["data"] for shot in shots[::7]}

    def refuse(body: dict[str, Any]) -> Exception | None:
        shown = pictures_in(body)
        named = [place for *place, data in shown if data in large]
        too_many = "messages.{}.content.{}.image.source.base64.data: At least one of the image dimensions exceed max "
        too_many += "allowed size for many-image requests: 2000 pixels"
        return of_anthropic(too_many.format(*named[0])) if named and len(shown) > 20 else None

    assert await timeline.retry_with_compaction(asking(refuse, sent)) == "Done."
    assert [data for *_, data in pictures_in(sent[-1])] == [shot["source"]["data"] for shot in shots[-10:]]


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_as_many_pictures_stay_as_the_refusal_names(most: int) -> None:
    """A model that takes few of them is asked again once, not with half as many each time."""
    sent: list[dict[str, Any]] = []
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=200_000))
    await timeline.append(prompt())
    shots = [picture() for _ in range(9)]
    for number, shot in enumerate(shots[:7]):
        await look(timeline, f"c{number}", shot)
    await timeline.append(call("both"), ToolResult(call_id="both", text="Two at once.", data=shots[7:]))
    words = f"At most {most} image(s) may be provided in one request."
    ask = asking(lambda body: of_openai(words) if len(pictures_in(body)) > most else None, sent)
    assert await timeline.retry_with_compaction(ask) == "Done."
    kept = {0: [], 1: [], 3: shots[6:]}[most]
    assert [data for *_, data in pictures_in(sent[-1])] == [shot["source"]["data"] for shot in kept]


async def test_a_session_whose_account_changed_goes_on_without_the_reasoning_of_the_old_one() -> None:
    """What the new one signs is sent; what was thought before can be read."""
    sent: list[dict[str, Any]] = []
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())

    async def step(account: str) -> None:
        def refuse(body: dict[str, Any]) -> Exception | None:
            signatures = {p["signature"] for m in body["messages"] for p in m["content"] if p["type"] == "thinking"}
            foreign = signatures - {account}
            return of_anthropic("messages.1.content.0: Invalid `signature` in `thinking` block") if foreign else None

        assert await timeline.retry_with_compaction(asking(refuse, sent)) == "Done."
        number = len(sent)
        thought = {"type": "thinking", "thinking": f"Thought {number}.", "signature": account}
        use = {"type": "tool_use", "id": f"c{number}", "name": "run", "input": {}}
        head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-opus-5"}
        await timeline.record({**head, "stop_reason": "tool_use", "content": [thought, use], "usage": {}})
        await timeline.append(ToolResult(call_id=f"c{number}", text="ok"))

    for account in ("a", "a", "b", "b", "b"):
        await step(account)
    thoughts = [p["thinking"] for m in sent[-1]["messages"] for p in m["content"] if p["type"] == "thinking"]
    assert thoughts == ["Thought 3.", "Thought 4."]
    first = next(item for item in timeline.window.items if isinstance(item.block, Reasoning))
    assert (await timeline.read(f"@{first.version}")).text == "Thought 1."
    assert (await timeline.verify()).ok


def test_only_signed_reasoning_that_is_not_pinned_gives_way() -> None:
    """Thoughts in plain words need no account: no provider can have refused them."""
    data = {"type": "thinking", "thinking": "", "signature": "a"}
    fold = fold_of(prompt(), Reasoning(text="plain"), Reasoning(text="signed", data=data), Reasoning(data=data))
    apply(fold, 6, BlocksPinned(versions=(5,)))
    decision = plan_reasoning(fold.window, small_policy(), COUNTER)
    assert decision is not None
    assert [block.version for block in decision.event.blocks] == [4]
    apply(fold, 7, decision.event)
    assert plan_reasoning(fold.window, small_policy(), COUNTER) is None


async def test_a_loop_of_a_framework_goes_on_without_the_refused_picture() -> None:
    """`after_refusal` gives the smaller context."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    await look(timeline, "c1", picture())
    context = await timeline.render()
    smaller = await timeline.after_refusal(context, of_anthropic("Could not process image"))
    assert smaller is not None
    assert pictures_in(smaller.to_anthropic()) == []


async def test_where_no_picture_may_give_way_the_providers_error_is_raised() -> None:
    """It says what was wrong; a limit of tokens was not."""
    store, error = MemoryStore(), of_anthropic("Could not process image")
    timeline = await opened(store)
    await timeline.append(prompt())
    await look(timeline, "c1", picture())
    await timeline.pin("tc:turn_1.c1.result")
    with pytest.raises(type(error)) as raised:
        await timeline.retry_with_compaction(asking(lambda _: error, []))
    assert raised.value is error
    assert await timeline.after_refusal(await timeline.render(), error) is None
    assert await payloads_of(store, "model.called") == []  # as with any other error, its caller records it


async def test_a_body_of_too_many_bytes_that_is_text_is_compacted() -> None:
    """A picture in it gives way only where the pictures are most of it."""
    store = MemoryStore()
    timeline = await opened(store, policy=small_policy(max_tokens=60_000))
    for number in range(30):
        await timeline.append(prompt(), call(f"c{number}"), ToolResult(call_id=f"c{number}", text="word " * 400))
    await look(timeline, "last", picture())
    sent: list[dict[str, Any]] = []
    ask = asking(lambda body: of_gateway() if len(canonical_json(body)) > 60_000 else None, sent)
    assert await timeline.retry_with_compaction(ask) == "Done."
    assert len(pictures_in(sent[-1])) == 1
    assert [hidden.reason for hidden in await payloads_of(store, "blocks.hidden")] == []
    with pytest.raises(ContextRefused):
        await timeline.retry_with_compaction(asking(lambda _: of_gateway(), []))
