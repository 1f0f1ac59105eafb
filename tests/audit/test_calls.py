"""Model calls by number: which context each names, what proves its body, and what cannot be proved says why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.bench.growth import cycles
from tests.bench.logs import START
from tests.log.counted import Counted
from tests.scenes import AT, after, call, exchange, opened, payloads_of, prompt, result, small_policy, turn
from timeline import sync
from timeline.audit.calls import decisions_before
from timeline.audit.recorded_calls import recorded_calls
from timeline.blocks import AssistantCompletion
from timeline.errors import (
    CallNotFound,
    CallUnavailable,
    ContextNotFound,
    ContextRefused,
    InvalidArgument,
)
from timeline.events import NewEvent, event_id
from timeline.log.history import load_fold
from timeline.ports import Expected
from timeline.retention import scavenge
from timeline.store import open_store
from timeline.store.memory import MemoryStore
from timeline.timeline import Timeline
from timeline.wire import anthropic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline.ports import EventStore
    from timeline.projection.context import RenderedContext

TOOLS: Final[list[Any]] = [{"name": "run", "input_schema": {"type": "object"}}]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    """Give an empty store of either kind."""
    async with open_store("memory://" if request.param == "memory" else tmp_path / "agent.db") as store:
        yield store


def reply(number: int, **changes: Any) -> dict[str, Any]:
    """Return a message of Anthropic's that says a number."""
    fields = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": f"Answer {number}."}],
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }
    return {**fields, **changes}


async def asked(timeline: Timeline, number: int, **how: Any) -> RenderedContext:
    """Make one call with a request, and record it; return its context."""
    context = await timeline.render(system="S", tools=TOOLS, **how)
    request = context.request("anthropic", model="claude-opus-5", max_tokens=9)
    await timeline.record(reply(number), request=request, now=after(number))
    return context


async def unproved(timeline: Timeline) -> list[str | None]:
    """Return why each call cannot be proved."""
    return [call.unproved async for call in timeline.calls()]


async def test_a_call_names_the_context_that_its_request_was_made_from(store: EventStore) -> None:
    """Of two calls side by side, the reply that comes first may answer the older context."""
    timeline = await opened(store)
    await timeline.append(prompt())
    first = await timeline.render(ephemeral=["one"])
    second = await timeline.render(ephemeral=["two"])
    requests = [context.request("anthropic", model="m", max_tokens=9) for context in (second, first)]
    for number, request in enumerate(requests, start=1):
        await timeline.record(reply(number), request=request)
    calls = [call async for call in timeline.calls()]
    assert [call.context for call in calls] == [second.recorded, first.recorded]
    assert [call.request for call in calls] == [request.body for request in requests]
    assert (await timeline.verify()).ok


async def test_two_calls_may_share_one_context(store: EventStore) -> None:
    """An unchanged context is recorded once, and proves both calls, on two wires and by two models."""
    timeline = await opened(store)
    await timeline.append(prompt())
    once, again = await timeline.render(), await timeline.render()
    assert (again.recorded, len(await payloads_of(store, "context.rendered"))) == (once.recorded, 1)
    await timeline.record_model_call(request=once.request("anthropic", model="a", max_tokens=9))
    await timeline.record_model_call(request=again.request("openai_chat", model="b"))
    calls = [call async for call in timeline.calls()]
    assert [(call.wire, call.model, call.unproved) for call in calls] == [
        ("anthropic", "a", None),
        ("openai_chat", "b", None),
    ]
    assert calls[1].cause is not None
    assert calls[1].cause.kind == "wire"


async def test_tools_whose_keys_have_another_order_are_another_context(store: EventStore) -> None:
    """They are sent in other bytes, though the fingerprint, which sorts keys, is the same."""
    timeline = await opened(store)
    await timeline.append(prompt())
    orders: list[Any] = [{"name": "a", "type": "b"}, {"type": "b", "name": "a"}]
    contexts = [await timeline.render(tools=[tool]) for tool in orders]
    assert contexts[0].fingerprint == contexts[1].fingerprint
    for context in contexts:
        await timeline.record_model_call(request=context.request("anthropic", model="m", max_tokens=9))
    assert await unproved(timeline) == [None, None]


async def test_numbers_count_failed_calls_retries_and_calls_without_a_request(store: EventStore) -> None:
    """Call N is the N-th that the log has; a fork goes on with its parent's numbers."""
    timeline = await opened(store)
    await timeline.append(prompt())
    context = await asked(timeline, 1)
    await timeline.record_model_call(error="overloaded", request=context.request("anthropic", model="m", max_tokens=9))
    await timeline.record_model_call(model="m")
    branch = await timeline.fork()
    await asked(timeline, 4)
    await branch.append(prompt())
    await asked(branch, 5)
    assert [timeline.window.calls, branch.window.calls] == [4, 4]
    failed = await branch.call(2)
    assert (failed.finish_reason, failed.error, failed.reply, failed.unproved) == ("error", "overloaded", (), None)
    assert [call.number async for call in branch.calls()] == [1, 2, 3, 4]
    assert await unproved(branch) == [None, None, "request", None]
    assert [block.text for block in (await branch.call(4)).reply] == ["Answer 5."]


async def test_an_unknown_number_is_an_error_that_names_the_nearest(store: EventStore) -> None:
    """As a person would look for it."""
    timeline = await opened(store)
    with pytest.raises(CallNotFound, match="There is none"):
        await timeline.call(1)
    for _ in range(6):
        await timeline.record_model_call(model="m")
    with pytest.raises(CallNotFound, match="There are 6; the nearest are 3, 4, 5, 6") as caught:
        await timeline.call(9)
    assert (caught.value.number, caught.value.near, caught.value.calls) == (9, [3, 4, 5, 6], 6)
    with pytest.raises(InvalidArgument):
        await timeline.call(0)


async def test_a_context_that_nothing_recorded_proves_no_call(store: EventStore) -> None:
    """The reason is a word of its own, in the call, its error, the comparison and the verification."""
    timeline = await opened(store)
    await timeline.append(prompt())
    await asked(timeline, 1, record=False)
    await asked(timeline, 2, record="hash")
    await timeline.record_model_call(model="m")
    assert await unproved(timeline) == ["unrecorded", "unrecorded_prefix", "request"]
    with pytest.raises(CallUnavailable, match="was not recorded; render with record=True"):
        (await timeline.call(1)).proved()
    with pytest.raises(CallUnavailable, match="was not recorded"):
        await timeline.diff("call:1", "last")
    report = await timeline.verify()
    assert (report.ok, report.calls, report.unverifiable) == (True, 2, {"unrecorded": 1, "unrecorded_prefix": 2})


async def test_a_past_view_makes_requests_that_nothing_can_prove(store: EventStore) -> None:
    """Its context is a dry run."""
    timeline = await opened(store)
    await timeline.append(prompt())
    context = await (await timeline.at(2)).render()
    assert context.request("anthropic", model="m", max_tokens=9).context is None


async def test_another_encoder_number_is_unverifiable_and_no_mismatch(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An encoder that changed since may write a context in other bytes: nothing is wrong with the log."""
    timeline = await opened(store)
    await timeline.append(prompt(text=" "))
    monkeypatch.setattr(anthropic, "OPENING_LINE", "[As an earlier encoder began.]")
    await asked(timeline, 1)
    monkeypatch.undo()
    monkeypatch.setattr(anthropic, "ENCODER", anthropic.ENCODER + 1)
    assert await unproved(timeline) == ["wire"]
    report = await timeline.verify()
    assert (report.ok, report.unverifiable) == (True, {"wire": 1})


async def test_the_bytes_of_another_encoder_number_are_proved_where_they_are_the_same(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash proves a body, whoever wrote it: under a new number old calls stay proved, save for what changed."""
    timeline = await opened(store)
    await timeline.append(prompt())
    monkeypatch.setattr(anthropic, "ENCODER", 1)
    await asked(timeline, 1)
    monkeypatch.undo()
    assert await unproved(timeline) == [None]
    report = await timeline.verify()
    assert (report.ok, report.unverifiable) == (True, {})


async def test_any_other_difference_is_a_mismatch(store: EventStore) -> None:
    """A call that says that it was sent another body breaks the replay."""
    timeline = await opened(store)
    await timeline.append(prompt())
    await asked(timeline, 1)
    [called] = await payloads_of(store, "model.called")
    forged = called.model_copy(update={"request": called.request.model_copy(update={"parameters": {"max_tokens": 8}})})
    await store.append("c", [NewEvent(id=event_id(AT), at=AT, payload=forged)], expected=Expected.ANY)
    assert await unproved(timeline) == [None, "mismatch"]
    report = await timeline.verify()
    assert (report.ok, report.replay, report.unverifiable) == (False, 1, {})
    assert report.problems == (f"replay: the body of call 2, version {report.events}, is not what was sent",)


async def test_a_call_that_names_no_context_before_it_is_a_mismatch(store: EventStore) -> None:
    """It names a block, or a context that says that it shows a version to come; nothing was scavenged."""
    timeline = await opened(store)
    await timeline.append(prompt())
    await asked(timeline, 1)
    [called] = await payloads_of(store, "model.called")
    [rendered] = await payloads_of(store, "context.rendered")
    end = (await store.info("c")).version
    forged = (
        called.model_copy(update={"answers": 2}),
        rendered.model_copy(update={"version": 9_000}),
        called.model_copy(update={"answers": end + 2}),
    )
    events = [NewEvent(id=event_id(AT), at=AT, payload=payload) for payload in forged]
    await store.append("c", events, expected=Expected.ANY)
    assert await unproved(timeline) == [None, "mismatch", "mismatch"]


async def test_calls_before_an_undo_stay_what_they_were(store: EventStore) -> None:
    """Their contexts are built with the compaction that was in force then, those behind it without."""
    timeline = await opened(store, policy=small_policy(max_tokens=2_000))
    for number in range(1, 5):
        await timeline.append(*turn(500))
        await asked(timeline, number)
    await timeline.undo_compaction(now=AT)
    await asked(timeline, 5)
    calls = [call async for call in timeline.calls()]
    assert [call.unproved for call in calls] == [None] * 5
    kinds = [call.cause and call.cause.kind for call in calls]
    assert "compaction" in kinds
    assert kinds[-1] == "undo"
    assert [decision.type for decision in calls[-1].decisions] == ["compaction.reverted"]
    assert (await timeline.call(3)) == calls[2]
    assert (await timeline.verify()).ok


async def test_decisions_are_those_between_the_contexts_of_two_calls(store: EventStore) -> None:
    """What was decided while a call was under way is before the next one."""
    timeline = await opened(store)
    [asking, *_] = await timeline.append(prompt(200), *exchange("a", 100))
    context = await timeline.render()
    await timeline.hide(asking.path)  # while the model answers
    await timeline.record(reply(1), request=context.request("anthropic", model="m", max_tokens=9))
    await asked(timeline, 2)
    first, second = [call async for call in timeline.calls()]
    assert first.decisions == ()
    hidden = [decision for decision in second.decisions if decision.type == "blocks.hidden"]
    assert [decision.text for decision in hidden] == ["hidden (manual): version 2"]


async def test_a_call_has_the_same_cause_among_others_as_by_itself(store: EventStore) -> None:
    """In one pass each context is written once for both of its comparisons, whichever wire and model come next."""
    timeline = await opened(store, policy=small_policy(max_tokens=2_000))
    wires = ["anthropic", "anthropic", "openai_chat", "openai_chat", "gemini", "anthropic", "anthropic", "anthropic"]
    for number, wire in enumerate(wires * 3, start=1):
        await timeline.append(*turn(500))
        context = await timeline.render(ephemeral=[f"It is {number}."])
        request = context.request(wire, model="a" if number < 9 else "b")
        await timeline.record_model_call(request=None if number == 7 else request)
    together = [call.cause async for call in timeline.calls()]
    assert together == [(await timeline.call(number)).cause for number in range(1, 25)]
    assert {"wire", "model", "compaction"} <= {cause.kind for cause in together if cause is not None}


async def test_a_scavenged_context_proves_no_call_and_numbers_stay(store: EventStore) -> None:
    """What is removed takes its numbers with it."""
    timeline = await opened(store, policy=small_policy(max_tokens=4_000))
    for number in range(1, 16):
        await timeline.append(*turn(400))
        await asked(timeline, number)
    before = [call async for call in timeline.calls()]
    await timeline.set_retention("window")
    await scavenge(store)
    again = await Timeline.open(store, "c")
    left = [call async for call in again.calls()]
    assert 0 < len(left) < 15
    assert [call.number for call in left] == [*range(16 - len(left), 16)]
    assert again.window.calls == 15
    assert {call.number: call.text for call in left if call.unproved is None}.items() <= {
        call.number: call.text for call in before
    }.items()
    assert {call.unproved for call in left} <= {None, "retention"}
    assert left[-1].unproved is None
    with pytest.raises(CallNotFound):
        await again.call(1)
    report = await again.verify()
    assert report.ok
    assert report.calls == len(left)


async def test_the_first_call_behind_what_was_scavenged_has_no_invented_past(store: EventStore) -> None:
    """The call before it is gone: what broke the cache is not known, and what is left from before is no decision."""
    timeline = await opened(store, policy=small_policy(max_tokens=4_000))
    for number in range(1, 16):
        await timeline.append(*turn(400))
        if number == 2:
            await timeline.pin(timeline.window.items[-1].block.path)
        await asked(timeline, number)
    before = [call async for call in timeline.calls()]
    await timeline.set_retention("window")
    await scavenge(store)
    again = await Timeline.open(store, "c")
    since = (await store.info("c")).first_version
    first, *others = [call async for call in again.calls()]
    assert set(first.decisions) <= set(before[first.number - 1].decisions)
    assert all(decision.version >= since for decision in first.decisions)
    assert first.cause is not None
    assert (first.cause.kind, "scavenged" in first.cause.text) == ("unavailable", True)
    assert [call.decisions for call in others] == [call.decisions for call in before[first.number :]]
    assert await decisions_before(store, "c", await recorded_calls(store, "c")) == [
        call.decisions for call in (first, *others)
    ]
    for number in (1, first.number - 1):
        with pytest.raises(CallNotFound, match=rf"Call {number} .* scavenged; the nearest .* are {first.number}"):
            await again.call(number)
    with pytest.raises(CallNotFound, match=r"No call 16 .* There are 15"):
        await again.call(16)


async def test_the_reply_is_found_where_a_framework_keeps_the_messages(store: EventStore) -> None:
    """There the call is recorded first, and its blocks come behind it."""
    timeline = await opened(store)
    await timeline.append(prompt())
    await timeline.record_model_call(model="m")
    await timeline.append(AssistantCompletion(text="I run it."), call("a"), result("a"))
    await timeline.record_model_call(model="m")
    await timeline.append(AssistantCompletion(text="Done."))
    replies = [[block.type for block in call.reply] async for call in timeline.calls()]
    assert replies == [["assistant.completion", "react.tool.call"], ["assistant.completion"]]


async def test_a_request_is_recorded_in_the_conversation_that_it_was_made_in(store: EventStore) -> None:
    """Its context's version means nothing elsewhere."""
    timeline = await opened(store)
    await timeline.append(prompt())
    request = (await timeline.render()).request("anthropic", model="m", max_tokens=9)
    other = await Timeline.open(store, "other")
    with pytest.raises(InvalidArgument, match="was made from a context of 'c'"):
        await other.record(reply(1), request=request)
    with pytest.raises(InvalidArgument, match=r"what context\.request\(…\) returned"):
        await other.record_model_call(request=request.body)  # type: ignore[arg-type]  # what a hurried caller passes


async def test_the_model_that_was_asked_and_the_one_that_answered_are_two(store: EventStore) -> None:
    """Providers answer an alias with the model behind it."""
    timeline = await opened(store)
    await timeline.append(prompt())
    request = (await timeline.render()).request("anthropic", model="claude-opus", max_tokens=9)
    await timeline.record(reply(1, model="claude-opus-5-20260901"), request=request)
    call = await timeline.call(1)
    assert (call.model, call.answered_by) == ("claude-opus", "claude-opus-5-20260901")


async def test_a_framework_that_encodes_by_itself_is_said_to(store: EventStore) -> None:
    """Our body is kept beside the one that it sent."""
    timeline = await opened(store)
    await timeline.append(prompt())
    request = (await timeline.render()).request("openai_chat", model="m").by_framework()
    await timeline.record_model_call(request=request)
    call = await timeline.call(1)
    assert (call.body, call.request) == ("framework", request.body)


@pytest.mark.shows("004-18")
async def test_a_refused_call_and_its_retry_are_calls(store: EventStore) -> None:
    """Each with its own request, though the reply is recorded without naming one."""
    timeline = await opened(store, policy=small_policy(max_tokens=8_000))
    await timeline.append(prompt(50))
    for number in range(40):
        await timeline.append(*exchange(f"c{number}", 100))
    sent: list[dict[str, Any]] = []

    async def ask(context: RenderedContext) -> dict[str, Any]:
        request = context.request("anthropic", model="m", max_tokens=9)
        sent.append(request.body)
        if len(sent) == 1:
            raise RuntimeError("prompt is too long: 208310 tokens > 3000 maximum")
        return reply(len(sent))

    await timeline.record(await timeline.retry_with_compaction(ask, system="S"))
    refused, answered = [call async for call in timeline.calls()]
    assert (refused.finish_reason, refused.error) == ("error", "prompt is too long: 208310 tokens > 3000 maximum")
    assert [refused.request, answered.request] == sent
    assert answered.decisions[0].type == "compaction.completed"
    assert (await timeline.verify()).unverifiable == {}


async def test_both_of_two_refused_calls_are_kept(store: EventStore) -> None:
    """The error of the second one is raised, and in the log."""
    timeline = await opened(store, policy=small_policy(max_tokens=8_000))
    for number in range(40):
        await timeline.append(*exchange(f"c{number}", 100))

    async def ask(context: RenderedContext) -> None:
        raise RuntimeError(f"prompt is too long: {context.account.sent} tokens > 3000 maximum")

    with pytest.raises(ContextRefused):
        await timeline.retry_with_compaction(ask)
    calls = [call async for call in timeline.calls()]
    assert [(call.finish_reason, call.unproved) for call in calls] == [("error", "request")] * 2
    assert calls[0].context != calls[1].context


async def test_an_opening_counts_the_calls_that_an_earlier_snapshot_does_not(store: EventStore) -> None:
    """A snapshot of a release without the number has the log counted, and never a guess."""
    timeline = await opened(store, policy=small_policy(max_tokens=2_000))
    for number in range(1, 6):
        await timeline.append(*turn(500))
        await asked(timeline, number)
    stored = await store.load_window("c")
    assert stored.snapshot is not None
    fields = {name: value for name, value in stored.snapshot.state.items() if name != "calls"}
    old = stored.snapshot.model_copy(update={"state": fields})
    later = NewEvent(id=event_id(AT), at=AT, payload=(await payloads_of(store, "model.called"))[0])
    await store.append("c", [later], expected=Expected.ANY, snapshot=old)
    assert (await load_fold(store, "c")).window.calls == 6


async def test_contexts_of_calls_are_compared_by_their_numbers(store: EventStore) -> None:
    """``call:1`` is the context that call 1 was made from."""
    timeline = await opened(store)
    await timeline.append(*turn())
    await asked(timeline, 1)
    await timeline.append(*turn())
    await asked(timeline, 2)
    found = await timeline.diff("call:1", "call:2")
    assert (found.before, found.after) == ((await timeline.diff("#1", "#2")).before, (await timeline.diff()).after)
    with pytest.raises(CallNotFound):
        await timeline.diff("call:1", "call:3")
    with pytest.raises(ContextNotFound):
        await timeline.diff("call:1", "call")


@pytest.mark.parametrize(
    ("wire", "parameters", "named"),
    [
        ("anthropic", {"messages": []}, "messages"),
        ("anthropic", {"system": "Other."}, "system"),
        ("openai_chat", {"tools": []}, "tools"),
        ("openai_responses", {"input": "Hi"}, "input"),
        ("gemini", {"config": {"system_instruction": "Other."}}, "config.system_instruction"),
        ("gemini", {"config": {"tools": []}}, "config.tools"),
        ("gemini", {"temperature": 1}, "temperature"),
        ("gemini", {"config": 3}, "config"),
        ("anthropic", {"extra_body": {"messages": []}}, "extra_body.messages"),
        ("anthropic", {"extra_body": {"model": "x"}}, "extra_body.model"),
        ("anthropic", {"extra_headers": {"a": "b"}}, "extra_headers"),
        ("anthropic", {"temperature": float("nan")}, "parameters"),
        ("anthropic", {"metadata": object()}, "parameters"),
        ("openai_chat", {"logit_bias": {(1, 2): -100}}, "parameters"),
        ("openai_chat", {"logit_bias": {float("nan"): -100}}, "parameters"),
    ],
)
async def test_a_parameter_cannot_replace_what_the_context_gives(
    wire: str, parameters: dict[str, Any], named: str
) -> None:
    """The account counts the context's own messages, prompt and tools, and a replay builds those."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    context = await timeline.render()
    with pytest.raises(InvalidArgument) as caught:
        context.request(wire, model="m", **parameters)
    assert caught.value.field == named


async def test_the_numbers_of_tokens_are_keys_of_a_parameter(store: EventStore) -> None:
    """JSON has no other keys than texts, so numbers, flags and null become the texts that `json.dumps` writes."""
    timeline = await opened(store)
    await timeline.append(prompt())
    bias = {50256: -100, 1.5: 1, True: 2, None: 3, "7": 4}
    request = (await timeline.render()).request("openai_chat", model="m", logit_bias=bias)
    assert request.body["logit_bias"] == json.loads(json.dumps(bias))
    assert list(request.arguments["logit_bias"]) == ["50256", "1.5", "true", "null", "7"]
    await timeline.record_model_call(request=request)
    assert (await timeline.call(1)).request == request.body


@pytest.mark.parametrize(
    ("wire", "parameters", "named"),
    [
        ("anthropic", {"api_key": "sk-1"}, "api_key"),
        ("openai_chat", {"Authorization": "Bearer 1"}, "Authorization"),
        ("openai_responses", {"default_headers": {"a": "b"}}, "default_headers"),
        ("anthropic", {"extra_body": {"x-api-key": "sk-1"}}, "extra_body.x-api-key"),
        ("openai_chat", {"extra_body": {"openaiApiKey": "sk-1"}}, "extra_body.openaiApiKey"),
        ("gemini", {"config": {"api_key": "1"}}, "config.api_key"),
        ("gemini", {"config": {"http_options": {"timeout": 9, "headers": {"a": "b"}}}}, "config.http_options.headers"),
        ("gemini", {"config": {"httpOptions": {"headers": {"a": "b"}}}}, "config.httpOptions.headers"),
    ],
)
async def test_a_clients_credentials_are_refused(wire: str, parameters: dict[str, Any], named: str) -> None:
    """The log keeps parameters as they are, and every export carries them."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    context = await timeline.render()
    with pytest.raises(InvalidArgument) as caught:
        context.request(wire, model="m", **parameters)
    assert (caught.value.field, "sk-1" in str(caught.value)) == (named, False)


@pytest.mark.parametrize(
    ("wire", "parameters"),
    [
        ("openai_chat", {"prompt_cache_key": "c", "max_completion_tokens": 9}),
        ("openai_chat", {"response_format": {"json_schema": {"properties": {"api_key": {"type": "string"}}}}}),
        ("anthropic", {"mcp_servers": [{"type": "url", "url": "https://h", "authorization_token": "t"}]}),
        ("gemini", {"config": {"http_options": {"timeout": 9}}}),
    ],
)
async def test_a_parameter_of_the_body_is_no_credential(wire: str, parameters: dict[str, Any]) -> None:
    """The body cannot be sent without what the provider reads in it."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    assert (await timeline.render()).request(wire, model="m", **parameters).parameters == parameters


async def test_a_request_needs_a_model_and_a_wire() -> None:
    """Both decide about the bytes."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt())
    context = await timeline.render()
    with pytest.raises(InvalidArgument):
        context.request("anthropic", model=" ")
    with pytest.raises(InvalidArgument, match="telegraph"):
        context.request("telegraph", model="m")


async def test_a_request_is_what_it_was_made(store: EventStore) -> None:
    """Its body is a new copy each time, so that a changed one changes neither the request nor its hash."""
    timeline = await opened(store)
    await timeline.append(prompt())
    request = (await timeline.render()).request("anthropic", model="m", max_tokens=9, metadata={"z": 1, "a": 2})
    request.body["messages"].clear()
    request.parameters["metadata"]["z"] = 2
    assert list(request.body) == ["model", "max_tokens", "metadata", "messages"]
    assert request.body["messages"]
    await timeline.record(reply(1), request=request)
    call = await timeline.call(1)
    assert (call.text, call.parameters) == (request.text, {"max_tokens": 9, "metadata": {"z": 1, "a": 2}})
    assert list(call.parameters["metadata"]) == ["z", "a"]


def test_calls_are_there_without_await(tmp_path: Path) -> None:
    """`timeline.sync` has the same methods."""
    with sync.open_store(tmp_path / "agent.db") as store:
        timeline = sync.Timeline.open(store, "c")
        timeline.append(prompt())
        request = timeline.render(system="S").request("anthropic", model="m", max_tokens=9)
        timeline.record(reply(1), request=request)
        assert timeline.call(1).request == request.body
        assert [call.number for call in timeline.calls()] == [1]


async def test_a_call_is_built_again_from_the_nearest_snapshot_and_not_from_the_first_version() -> None:
    """What was called last in a long conversation is shown as quickly as in a short one."""
    store = Counted()
    timeline = await cycles(store, "c", 9_000)
    for number in range(2):
        await timeline.render(now=START)
        await timeline.record_model_call(model="m", response_id=f"r{number}", now=START)
    store.events = 0
    call = await timeline.call(2)
    assert (call.context is not None, call.cause) == (True, None)
    assert store.events < 1_000
