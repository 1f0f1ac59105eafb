"""Programs that a strict type checker lets through: mypy reads them with all tests, and here they run too."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import TYPE_CHECKING, assert_type

import pytest

import timeline
from timeline import CompactedMessages, Policy, RenderedContext, Timeline, compact_messages, open_store, policies, sync
from timeline.blocks import AssistantCompletion, ToolCall, ToolResult, UserPrompt
from timeline.errors import InvalidPolicy
from timeline.policy.fields import PolicyFields
from timeline.ports import Summarizer, TokenCounter
from timeline.sync import twins

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic.types import MessageParam, TextBlockParam, ToolParam
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam

    from timeline.fold.window import Item


async def test_system_prompts_and_tools_are_handed_over_as_the_sdks_type_them() -> None:
    """A list that a program declared for its SDK goes into a render, and comes out of it as it was."""
    system: list[TextBlockParam] = [{"type": "text", "text": "Be brief."}]
    tools: list[ToolParam] = [{"name": "read", "input_schema": {"type": "object"}}]
    of_chat: list[ChatCompletionToolParam] = [{"type": "function", "function": {"name": "read"}}]
    async with open_store("memory://") as store:
        conversation = await Timeline.open(store, "cards")
        await conversation.append(UserPrompt(text="Build a flashcard app."))
        request = (await conversation.render(system=system, tools=tools)).to_anthropic()
        assert ([part["text"] for part in request["system"]], [tool["name"] for tool in request["tools"]]) == (
            ["Be brief."],
            ["read"],
        )
        assert (await conversation.render(tools=of_chat)).to_openai_chat()["tools"] == of_chat


async def test_messages_come_back_as_the_sdks_type_them() -> None:
    """The lists of a log and of a step go into a client as they are, which takes no plain dicts."""
    async with open_store("memory://") as store:
        conversation = await Timeline.open(store, "cards")
        await conversation.append(UserPrompt(text="Build a flashcard app."), AssistantCompletion(text="Done."))
        said: list[MessageParam] = await conversation.messages("anthropic")
        step = await conversation.step_hook("openai_chat").prepare_step(
            messages=await conversation.messages("openai_chat")
        )
        prepared: list[ChatCompletionMessageParam] = step["messages"]
        assert (
            [message["role"] for message in said] == [message["role"] for message in prepared] == ["user", "assistant"]
        )


async def test_an_open_call_is_known_to_be_a_call() -> None:
    """A resumed step reads its id and its arguments without a check of its type; and it is an item as any other."""
    async with open_store("memory://") as store:
        conversation = await Timeline.open(store, "cards")
        await conversation.append(UserPrompt(text="Look."), ToolCall(call_id="1", name="ls", arguments={"path": "src"}))
        [waiting] = conversation.window.open_calls()
        assert assert_type(waiting.block, ToolCall).arguments == {"path": "src"}
        await conversation.append(ToolResult(call_id=waiting.block.call_id, text="app.py"))
        items: list[Item] = [*conversation.window.items, waiting]
        assert [item.block.type for item in items[1:]] == ["react.tool.call", "react.tool.result", "react.tool.call"]


@pytest.mark.parametrize(
    "method", [Summarizer.summarize, TokenCounter.count, TokenCounter.count_many, TokenCounter.truncate]
)
def test_what_an_application_implements_may_call_its_arguments_as_it_likes(method: Callable[..., object]) -> None:
    """They come by position; pyright refused a summarizer whose argument had another name."""
    given = [each for each in signature(method).parameters.values() if each.name != "self"]
    assert {each.kind for each in given} == {Parameter.POSITIONAL_ONLY}


def test_a_call_takes_arguments_that_a_variable_holds() -> None:
    """A dict of texts is one of JSON values, whatever the variance of `dict`."""
    arguments = {"command": "ls"}
    given: dict[str, object] = {"command": "ls", "timeout": 3}
    assert ToolCall(call_id="1", name="bash", arguments=arguments).arguments == arguments
    assert ToolCall(call_id="2", name="bash", arguments=given, meta=arguments).arguments == given


async def test_every_public_name_has_a_type_of_its_own() -> None:
    """The names are imported on first use; a checker knows each, and none beside them."""
    compacted = await compact_messages([{"role": "user", "content": "Hello"}], policies.balanced())
    assert assert_type(compacted, CompactedMessages).messages == [{"role": "user", "content": "Hello"}]
    with pytest.raises(AttributeError):
        timeline.Tmieline  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(AttributeError):
        timeline.store.SQLightStore  # type: ignore[attr-defined] # noqa: B018


def test_a_preset_takes_the_fields_of_a_policy_and_no_other() -> None:
    """A checker and an editor know them; a part is given by single fields, too."""
    assert PolicyFields.__annotations__.keys() == Policy.model_fields.keys()
    assert policies.balanced(max_tokens=50_000, hiding={"grace": 5}).max_tokens == 50_000
    with pytest.raises(InvalidPolicy):
        policies.balanced(max_tokns=50_000)  # type: ignore[call-arg]


def test_calls_without_await_have_the_options_of_those_with_it() -> None:
    """A twin refuses an option that its call has not, and returns what that one returns."""
    with sync.open_store("memory://") as store:
        conversation = sync.Timeline.open(store, "cards")
        conversation.append(UserPrompt(text="Build a flashcard app."))
        assert assert_type(conversation.render(system="Be brief."), RenderedContext).version == 2
        assert assert_type(conversation.retry_with_compaction(lambda context: context.version), int) > 2
        with pytest.raises(TypeError):
            conversation.step_hook("anthropic", sytem="Be brief.")  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            sync.rehearse(store, clocks=None)  # type: ignore[call-arg]


def test_calls_without_await_are_methods_to_every_type_checker() -> None:
    """To some checkers a `Callable` in a class is no method, so that each call lacked an argument; a descriptor is."""
    makers = (twins.blocking, twins.iterating, twins.calling, sync._giving)
    made = [str(maker.__annotations__["return"]).partition("[")[0] for maker in makers]
    assert made == ["Method", "Method", "AskingMethod", "Method"]
    assert all("__get__" in vars(getattr(twins, name)) for name in made)
