"""A context that the model refuses for its size: recognised, compacted once, else reported with its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest

from tests.scenes import AT, answer, exchange, opened, payloads_of, prompt, small_policy, turn, words
from timeline import policies
from timeline.blocks import ToolCall, ToolResult
from timeline.errors import BudgetError, ContextRefused, InvalidArgument
from timeline.policy.model import Repeats
from timeline.store.memory import MemoryStore
from timeline.wire.refusals import ContextLimit, cause_of, context_limit

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from timeline.blocks import Block
    from timeline.projection.context import RenderedContext
    from timeline.timeline import Timeline

REQUEST = httpx2.Request("POST", "https://api.example.com")


def of_anthropic(message: str, status: int = 400, type_: str = "invalid_request_error") -> anthropic.APIStatusError:
    """Return the SDK's error for an answer of Anthropic's."""
    body = {"type": "error", "error": {"type": type_, "message": message}}
    response = httpx2.Response(status, request=REQUEST, json=body)
    client = anthropic.Anthropic(api_key="none")
    return client._make_status_error_from_response(response)


def of_openai(message: str, status: int = 400, code: str | int | None = None) -> openai.APIStatusError:
    """Return the SDK's error for an answer of OpenAI's."""
    body = {"error": {"type": "invalid_request_error", "message": message, "param": "messages", "code": code}}
    response = httpx2.Response(status, request=REQUEST, json=body)
    client = openai.OpenAI(api_key="none")
    return client._make_status_error_from_response(response)


# Recognising


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (of_anthropic("prompt is too long: 208310 tokens > 200000 maximum"), ContextLimit(200_000, 208_310)),
        (
            of_anthropic(
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length"
            ),
            ContextLimit(200_000, 188_240, 21_333),
        ),
        (of_anthropic("Request exceeds the maximum size", 413, "request_too_large"), ContextLimit()),
        (
            of_openai(
                "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "202868 tokens.",
                code="context_length_exceeded",
            ),
            ContextLimit(128_000, 202_868),
        ),
        (
            of_openai(
                "This model's maximum context length is 131072 tokens. However, you requested 131134 tokens "
                "(122942 in the messages, 8192 in the completion). Please reduce the length of the messages."
            ),
            ContextLimit(131_072, 122_942, 8_192),
        ),
        (
            of_openai("Your input exceeds the context window of this model.", code="context_length_exceeded"),
            ContextLimit(),
        ),
        (of_openai("the request exceeds the available context size (4096 tokens)"), ContextLimit(4_096)),
        (
            RuntimeError("The input token count (1,200,000) exceeds the maximum number of tokens allowed (1,048,576)."),
            ContextLimit(1_048_576, 1_200_000),
        ),
        (type("ContextWindowExceededError", (Exception,), {})("too much"), ContextLimit()),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_context_limit_error_is_recognised_with_its_figures(error: Exception, limit: ContextLimit) -> None:
    """By what the SDKs raise, without importing them."""
    assert context_limit(error) == limit


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("This model's maximum prompt length is 131072 but the request contains 136973 tokens.", (131_072, 136_973)),
        ("prompt token count of 93854 exceeds the limit of 90000", (90_000, 93_854)),
        ("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", (262_144, 291_351)),
        (
            (
                "Unable to submit request because the input token count is 1251952 but model only supports up to "
                "1048576. Reduce the input token count and try again."
            ),
            (1_048_576, 1_251_952),
        ),
        ("The input (40000 tokens) is longer than the model's context length (32768 tokens).", (32_768, 40_000)),
        ("The decoder prompt (length 40000) is longer than the maximum model length of 32768.", (32_768, 40_000)),
        (
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is "
                "8192 tokens and your request has 7000 input tokens (4096 > 8192 - 7000)."
            ),
            (8_192, 7_000, 4_096),
        ),
        ("Input length (265330) exceeds model's maximum context length (262144).", (262_144, 265_330)),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            (32_768, 40_000),
        ),
        (
            (
                "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with "
                "context length of only 7866 tokens, which is not enough."
            ),
            (7_866, 10_136),
        ),
        ("The number of tokens to keep from the initial prompt is greater than the context length.", ()),
        ("request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", (8_192, 9_000)),
        ("prompt too long; exceeded max context length by 1234 tokens", ()),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 1000 `max_new_tokens`",
            (4_096, 5_000, 1_000),
        ),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.", (4_081, 5_000)),
        ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", (129_024,)),
        ("Prompt exceeds max length", ()),
        ("Total tokens of image and text exceed max message tokens.", ()),
        ("Prompt tokens too long", ()),
        ("number of input tokens (83121) have exceeded max_prompt_tokens (65536) limit.", (65_536, 83_121)),
        ("invalid params, context window exceeds limit (2013)", ()),
        ("Input Tokens Exceeded: Number of input tokens exceeds maximum length.", ()),
        ("Too many input tokens. Max input tokens: 8192, request input token count: 11530", (8_192, 11_530)),
        (
            (
                "This endpoint's maximum context length is 200000 tokens. However, you requested about 210000 tokens "
                "(190000 of text input, 20000 in the output)."
            ),
            (200_000, 190_000, 20_000),
        ),
        (
            (
                "This model's maximum context length is 4097 tokens, however you requested 5000 tokens "
                "(4000 in your prompt; 1000 for the completion)."
            ),
            (4_097, 4_000, 1_000),
        ),
        (
            (
                "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a "
                "total of 270128 tokens: 261936 tokens from the input messages and 8192 tokens for the completion."
            ),
            (262_144, 261_936, 8_192),
        ),
        (
            (
                "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your "
                "prompt contains at least 262145 input tokens, for a total of at least 262145 tokens."
            ),
            (262_144, 262_145),
        ),
        ("Prompt length 131100 exceeds the maximum context length 131072", (131_072, 131_100)),
        ("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", (131_040, 131_393)),
        ("Prompt has 256,468 tokens, but the configured context size is 256,000 tokens", (256_000, 256_468)),
        ("tokens in request more than max tokens allowed", ()),
    ],
    ids=lambda value: str(value)[:60],
)
def test_the_wording_of_each_provider_and_server_is_known(message: str, limit: tuple[int | None, ...]) -> None:
    """One that is not recognised ends the loop, where a smaller context would have been taken."""
    found = context_limit(of_openai(message))
    assert found is not None
    assert (found.limit, found.input, found.output) == (*limit, *(None, None, 0)[len(limit) :])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1261", "Prompt 超长"),
        ("tokens_too_long", "请求内容超过大模型内部限制"),
        (336103, "请求内容超过大模型内部限制"),
        (10907, "token数量超过上限"),
    ],
)
def test_a_refusal_in_another_language_is_recognised_by_its_code(code: str | int, message: str) -> None:
    """The provider's documentation names it, with messages that differ by host."""
    assert context_limit(of_openai(message, code=code)) == ContextLimit()


@pytest.mark.parametrize("code", ["context_too_large", "prompt_too_long", "exceed_context_size_error"])
def test_a_refusal_that_says_nothing_else_is_recognised_by_its_code(code: str) -> None:
    """Gateways pass on the code, and put words of their own beside it."""
    assert context_limit(of_openai("Upstream request failed", code=code)) == ContextLimit()


def test_a_code_that_is_a_number_is_no_status() -> None:
    """An error that comes within a stream has no status."""
    error = openai.APIError("token数量超过上限", REQUEST, body={"code": 10907, "message": "token数量超过上限"})
    assert context_limit(error) == ContextLimit()


@pytest.mark.parametrize(
    "code", ["1301", "DataInspectionFailed", "data_inspection_failed", "InputTextSensitiveContentDetected"]
)
def test_content_that_a_provider_refuses_is_recognised_by_its_code(code: str) -> None:
    """Whatever the message beside it says."""
    assert cause_of(of_openai("系统检测到输入或生成内容可能包含不安全或敏感内容", code=code)) == "refused"


def test_an_error_that_a_framework_raised_from_it_is_recognised() -> None:
    """What it was raised from is looked at."""
    wrapped = RuntimeError("model call failed")
    wrapped.__cause__ = of_anthropic("prompt is too long: 9 tokens > 8 maximum")
    assert context_limit(wrapped) == ContextLimit(8, 9)


@pytest.mark.parametrize(
    "error",
    [
        of_anthropic("Number of request tokens has exceeded your per-minute rate limit", 429, "rate_limit_error"),
        of_openai("Request too large for gpt-6 on tokens per min. The maximum context length is 9 tokens", 429),
        of_anthropic("max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens"),
        of_anthropic("messages: roles must alternate"),
        of_openai("max_tokens is too large: 200000. This model supports at most 128000 completion tokens."),
        of_openai("Too many tokens, please wait before trying again."),
        of_openai("The limit of 20 images for a request is exceeded: 24"),
        of_openai("Invalid api key", 401),
        of_anthropic("Overloaded", 529, "overloaded_error"),
        ValueError("something else"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_any_other_error_is_not(error: Exception) -> None:
    """Rate limits and plain mistakes are not cured by a smaller context."""
    assert context_limit(error) is None


@pytest.mark.parametrize(
    ("limit", "sent", "target"),
    [
        (ContextLimit(), 10_000, 7_000),
        (ContextLimit(limit=8_000), 10_000, 5_600),
        (ContextLimit(limit=20_000), 10_000, 7_000),
        (ContextLimit(limit=10_000, input=20_000), 10_000, 3_500),
        (ContextLimit(limit=10_000, input=9_000, output=4_000), 9_000, 4_200),
        (ContextLimit(limit=10, output=20), 9_000, 1),
    ],
)
def test_the_target_is_a_share_of_what_the_provider_takes_in_our_tokens(
    limit: ContextLimit, sent: int, target: int
) -> None:
    """Its limit less the answer's room, put into our tokens by what it counted; never above what it refused."""
    assert limit.target(sent) == target


# Retrying


class Model:
    """Takes contexts up to a size, and remembers the sizes of all that it was sent."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.sent: list[int] = []

    async def __call__(self, context: RenderedContext) -> str:
        """Answer, or refuse as Anthropic does."""
        self.sent.append(context.account.sent)
        if context.account.sent > self.takes:
            raise of_anthropic(f"prompt is too long: {context.account.sent} tokens > {self.takes} maximum")
        return "Done."


async def filled(store: MemoryStore | None = None, rounds: int = 40) -> Timeline:
    """Return a conversation of some 4,000 tokens under a limit of 8,000."""
    timeline = await opened(store or MemoryStore(), policy=small_policy(max_tokens=8_000))
    await timeline.append(prompt(50))
    for number in range(rounds):
        await timeline.append(*exchange(f"c{number}", 100))
    return timeline


async def test_a_call_that_is_taken_is_made_once() -> None:
    """Nothing is compacted without need."""
    timeline, model = await filled(), Model(8_000)
    assert await timeline.retry_with_compaction(model, system="You help.") == "Done."
    assert (len(model.sent), timeline.window.compactions) == (1, 0)


@pytest.mark.shows("002-4", "002-5")
async def test_a_refused_context_is_compacted_below_what_the_model_takes() -> None:
    """Down to 0.7 of its limit, by a forced compaction; the second context is recorded like any other."""
    store = MemoryStore()
    timeline, model = await filled(store), Model(3_000)
    assert await timeline.retry_with_compaction(model, system="You help.", now=AT) == "Done."
    assert len(model.sent) == 2
    assert model.sent[1] <= 2_100
    [compaction] = await payloads_of(store, "compaction.completed")
    assert compaction.reason == "refused"
    assert [rendered.tokens for rendered in await payloads_of(store, "context.rendered")] == model.sent
    assert (await timeline.verify()).ok


@pytest.mark.parametrize("rounds", [14, 40])
async def test_a_context_of_which_the_fixed_part_is_above_the_target_is_compacted_all_the_same(rounds: int) -> None:
    """Large tools, say: the summary has the least cap, and the model takes what is smaller by that."""
    timeline, tools = await filled(rounds=rounds), [{"name": "all", "description": words(3_000)}]
    model = Model(4_000)
    assert await timeline.retry_with_compaction(model, system="You help.", tools=tools, now=AT) == "Done."
    assert model.sent[1] < 4_000
    assert timeline.window.compactions == 1
    await timeline.append(*turn(800), now=AT)
    with pytest.raises(ContextRefused):
        await timeline.retry_with_compaction(Model(3_000), system="You help.", tools=tools, now=AT)
    assert (await timeline.verify()).ok


async def test_a_context_that_an_undo_made_too_large_is_compacted_again() -> None:
    """What the model refuses ends the hold, even above the policy's own limit."""
    timeline, model = await filled(), Model(3_000)
    await timeline.compact(now=AT)
    await timeline.undo_compaction(now=AT)
    await timeline.append(prompt(100), answer(6_000), prompt())
    context = await timeline.render(record=False)
    assert [taken.kind for taken in context.decisions] == ["held"]
    assert context.account.total > context.account.limit
    assert await timeline.retry_with_compaction(model, now=AT) == "Done."
    assert timeline.window.hold is None
    assert (await timeline.verify()).ok


async def test_the_policy_stays_what_it_is() -> None:
    """The next render decides by the policy's own limit again."""
    timeline = await filled()
    policy = timeline.policy
    await timeline.retry_with_compaction(Model(3_000))
    assert timeline.policy is policy
    assert (await timeline.render()).account.limit == 8_000


async def test_a_model_that_takes_less_than_the_policy_allows_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Every context between the two limits would be refused first: it names the limit that avoids that."""
    timeline = await filled()
    await timeline.retry_with_compaction(Model(3_000))
    context = await timeline.render()
    await timeline.after_refusal(context, of_anthropic("prompt is too long: 9000 tokens > 2900 maximum"))
    assert [message.rpartition(". ")[2] for message in caplog.messages] == [
        "Give the conversation a policy with max_tokens=3000",
        "Give the conversation a policy with max_tokens=2900",
    ]


async def test_a_model_that_counts_more_than_the_library_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The limit is the policy's; the counts are what differs, and they are calibrated."""
    timeline = await filled()
    await timeline.after_refusal(
        await timeline.render(), of_anthropic("prompt is too long: 9000 tokens > 8000 maximum")
    )
    assert caplog.messages == []


async def test_injected_text_is_said_again_in_the_second_call() -> None:
    """It belongs to the step, not to the attempt."""
    timeline, model = await filled(), Model(3_000)
    tails: list[list[str]] = []

    async def call(context: RenderedContext) -> str:
        tails.append([entry.text for entry in context.neutral.ephemeral])
        return await model(context)

    await timeline.inject("Careful.")
    await timeline.retry_with_compaction(call, ephemeral=["Now."])
    await timeline.retry_with_compaction(call)
    assert tails == [["Now.", "Careful."], ["Now.", "Careful."], []]


@pytest.mark.shows("002-4")
async def test_a_second_refusal_is_a_typed_error_with_the_figures() -> None:
    """Once a step and no more: what was sent, what was named and what was tried."""
    timeline, model = await filled(), Model(3_000)

    async def stubborn(context: RenderedContext) -> str:
        model.takes = context.account.sent - 1
        return await model(context)

    with pytest.raises(ContextRefused, match="Lower max_tokens") as caught:
        await timeline.retry_with_compaction(stubborn)
    error = caught.value
    assert isinstance(error, BudgetError)
    assert error.sent == model.sent
    assert len(model.sent) == 2
    assert (error.limit, error.target) == (model.sent[1] - 1, int(0.7 * (model.sent[0] - 1)))
    assert error.tried[0].startswith("compacted (")
    assert isinstance(error.__cause__, anthropic.BadRequestError)


async def test_a_context_that_cannot_be_made_smaller_is_not_sent_again() -> None:
    """The call would be in vain."""
    timeline, model = await opened(MemoryStore()), Model(10)
    await timeline.append(prompt(50))
    with pytest.raises(ContextRefused) as caught:
        await timeline.retry_with_compaction(model)
    assert len(model.sent) == 1
    assert caught.value.tried == ["refused (nothing_to_cover)"]


async def test_an_oversize_newest_result_is_previewed() -> None:
    """Where a cut alone does not reach the target, the newest group is shown as previews."""
    timeline, model = await filled(rounds=4), Model(2_000)
    await timeline.append(*exchange("big", 5_000))
    assert await timeline.retry_with_compaction(model) == "Done."
    assert words(5_000) == (await timeline.read("tc:turn_1.big.result")).text


def same_file_again(timeline: Timeline, number: int, subject: str = "the file") -> Awaitable[list[Block]]:
    """Append a round that reads a file of some 500 tokens."""
    text = "\n".join(f"    line {line} of {subject} says something of its own" for line in range(1, 41))
    call = ToolCall(call_id=f"call{number}", name="read", arguments={"path": "a.txt"}, response_id=f"r{number}")
    return timeline.append(call, ToolResult(call_id=call.call_id, text=text), now=AT)


async def test_results_that_are_shown_whole_again_count_as_such() -> None:
    """The compaction covers what they leave out: they are larger in the second call, which is smaller nevertheless."""
    timeline = await opened(MemoryStore(), policy=small_policy(repeats=Repeats()))
    await timeline.append(prompt())
    for number in range(6):
        await same_file_again(timeline, number)
        await timeline.render(now=AT)
    model = Model(600)
    assert await timeline.retry_with_compaction(model, now=AT) == "Done."
    assert model.sent[0] > 600
    assert model.sent[1] <= 420


async def test_what_is_counted_and_not_sent_comes_on_top_of_the_target() -> None:
    """Every second result is abridged. The newest two are kept, as by the policy that sends all of them."""
    plain = small_policy(max_tokens=20_000)
    whole = plain.model_copy(update={"repeats": Repeats(), "abridged_counted_as": "whole"})
    kept = []
    for policy in (plain, whole):
        timeline = await opened(MemoryStore(), policy=policy)
        await timeline.append(prompt())
        for number in range(16):
            await same_file_again(timeline, number, "the file" if number % 2 else f"file {number}")
            await timeline.render(now=AT)
        sent = (await timeline.render(now=AT)).account.sent
        await timeline.retry_with_compaction(Model(sent - 1), now=AT)
        kept.append([item.block.path for item in timeline.window.items if item.is_in_sight and not item.is_summary])
    assert "tc:turn_1.call14.result" in kept[0]
    assert kept[0] == kept[1]


@pytest.mark.shows("002-4")
async def test_any_other_error_goes_on_to_the_caller() -> None:
    """On the first call and on the second one."""
    timeline = await filled()
    errors: list[Exception] = [
        KeyError("first"),
        of_openai("too long", code="context_length_exceeded"),
        KeyError("second"),
    ]

    async def failing(context: RenderedContext) -> str:
        assert context.version
        raise errors.pop(0)

    with pytest.raises(KeyError, match="first"):
        await timeline.retry_with_compaction(failing)
    with pytest.raises(KeyError, match="second"):
        await timeline.retry_with_compaction(failing)


async def test_an_application_may_recognise_errors_of_its_own() -> None:
    """Any function from an error to a limit does."""
    timeline = await filled()
    calls = 0

    async def call(context: RenderedContext) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(28, "no space")
        return context.account.sent

    def refused(error: BaseException) -> ContextLimit | None:
        return ContextLimit(limit=1_000) if isinstance(error, OSError) else None

    assert await timeline.retry_with_compaction(call, refused=refused) <= 1_000


async def test_a_policy_that_never_compacts_by_itself_does_so_when_it_is_asked() -> None:
    """The caller asks for it by the method's name."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=8_000, trigger="never"))
    for number in range(40):
        await timeline.append(prompt(50), answer(50, response_id=f"r{number}"))
    assert await timeline.retry_with_compaction(Model(3_000)) == "Done."


async def test_stages_that_are_told_in_short_from_now_on_count_as_freed() -> None:
    """What collapsing them spared in the tail is seen before anything more is folded."""
    timeline = await opened(MemoryStore(), policy=policies.priority_chain(max_tokens=20_000, attempts=3))
    for name in ("idea", "plan", "draft"):
        await timeline.enter_stage(name)
        await timeline.append(*[block for _ in range(4) for block in turn(100, asked=50)])
        await timeline.approve_stage(decision=f"{name} settled", short="s" * 40, detailed="d" * 1_000)
    await timeline.enter_stage("review")
    await timeline.append(*[block for _ in range(30) for block in turn(100, asked=100)])

    refusals = [ContextLimit(limit=6_950)]

    async def call(context: RenderedContext) -> int:
        if refusals:
            raise OSError(28, "no space")
        return context.account.sent

    sent = await timeline.retry_with_compaction(call, refused=lambda _: refusals.pop())
    assert sent <= 0.7 * 6_950
    completed = await payloads_of(timeline._store, "compaction.completed")
    assert [payload.written_by.summarizer for payload in completed] == ["extractive", "stage_digest"]


# Calls that somebody else makes


async def test_a_refused_context_has_a_smaller_one_in_its_place() -> None:
    """With the same prompt, tools and tail; below what the model takes."""
    timeline = await filled()
    first = await timeline.render(system="You code.", tools=[{"name": "ls"}], ephemeral=["By the way."])
    refusal = of_anthropic(f"prompt is too long: {first.account.sent} tokens > 2000 maximum")
    smaller = await timeline.after_refusal(first, refusal)
    assert smaller is not None
    assert smaller.account.sent <= 1_400
    assert (smaller.neutral.system, smaller.neutral.tools) == (first.neutral.system, first.neutral.tools)
    assert smaller.neutral.ephemeral == first.neutral.ephemeral
    with pytest.raises(ContextRefused) as raised:
        await timeline.after_refusal(smaller, refusal, earlier=first)
    assert raised.value.sent == [first.account.sent, smaller.account.sent]


async def test_another_error_has_no_smaller_context() -> None:
    """Then the caller raises it."""
    timeline = await filled(rounds=2)
    context = await timeline.render()
    assert await timeline.after_refusal(context, of_anthropic("Overloaded", 529)) is None


async def test_a_context_without_anything_to_spare_is_a_typed_error() -> None:
    """The provider's error is its cause."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(50))
    context = await timeline.render()
    refusal = of_anthropic("prompt is too long: 60 tokens > 20 maximum")
    with pytest.raises(ContextRefused) as raised:
        await timeline.after_refusal(context, refusal)
    assert raised.value.__cause__ is refusal


async def test_a_context_and_an_error_in_the_wrong_order_are_refused_by_name() -> None:
    """It was an `AttributeError` about something inside."""
    timeline = await opened(MemoryStore())
    context = await timeline.render()
    with pytest.raises(InvalidArgument, match="'context': must be what render"):
        await timeline.after_refusal(of_anthropic("Overloaded", 529), context)  # type: ignore[arg-type]
