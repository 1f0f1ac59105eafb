"""`timeline calls`, `call`, `render --call` and `diff call:…`: one call from a fresh shell, with no policy typed in."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.audit.test_calls import TOOLS, reply
from tests.scenes import after, opened, prompt, small_policy, turn
from timeline.events import ParentLink
from timeline.frozen import compact_json, sha256_hex
from timeline.lab.prices import read_prices
from timeline.retention import scavenge
from timeline.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


@pytest.fixture
def sent(db: Path, run: Callable[..., Done]) -> list[dict[str, Any]]:
    """Make five calls with a compaction among them, one that failed and one without a request; return the bodies."""
    del run  # it demands that there is no database yet

    async def work() -> list[dict[str, Any]]:
        bodies = []
        async with open_store(db) as store:
            timeline = await opened(store, policy=small_policy(max_tokens=2_000))
            for number in range(1, 6):
                await timeline.append(*turn(500))
                context = await timeline.render(system="You help. ünd", tools=TOOLS, ephemeral=[f"It is {number}."])
                request = context.request("anthropic", model="claude-opus-5", max_tokens=9, metadata={"z": 1, "a": 2})
                await timeline.record(reply(number), request=request, duration=1.25, now=after(number))
                bodies.append(request.body)
            await timeline.record_model_call(error="Overloaded. Try again.", request=request)
            await timeline.record_model_call(model="claude-opus-5")
        return bodies

    return asyncio.run(work())


def test_calls_are_listed_a_line_each(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """With their numbers, wires and models; a failed one with its error."""
    done = run("calls", "c")
    head, *rows = done.out.splitlines()
    assert head.split("\t") == [
        "call",
        "version",
        "at",
        "wire",
        "model",
        "in",
        "cached",
        "out",
        "seconds",
        "decisions",
        "ended",
    ]
    assert [row.split("\t")[0] for row in rows] == ["1", "2", "3", "4", "5", "6", "7"]
    assert rows[0].split("\t")[3:9] == ["anthropic", "claude-opus-5", "10", "", "2", "1.2"]
    assert rows[5].endswith("error: Overloaded. Try again.")
    listed = run("calls", "c", "--json").json
    assert [row["number"] for row in listed] == [*range(1, 8)]
    assert listed[0]["sha256"] == sha256_hex(compact_json(sent[0]))
    assert (listed[6]["wire"], listed[6]["sha256"], listed[6]["context"]) == ("", "", listed[5]["context"])
    assert any(row["decisions"] for row in listed)


def test_what_a_conversation_used_is_shown_with_each_of_its_subagents(run: Callable[..., Done], db: Path) -> None:
    """A fork has only what is its own, and is no part of its parent's sum."""

    async def work() -> None:
        async with open_store(db) as store:
            mother = await opened(store, "mother", policy=small_policy(max_tokens=2_000))
            await mother.append(prompt())
            await mother.record(reply(1))
            for id_, parent in (("agent", "mother"), ("agent of it", "agent"), ("other", "nobody")):
                link = ParentLink(conversation=parent, relation="subagent")
                child = await opened(store, id_, policy=small_policy(max_tokens=2_000), parent=link)
                await child.append(prompt())
                await child.record(reply(2))
            await mother.record_model_call(model="claude-opus-5")
            branch = await mother.fork(conversation="branch")
            await branch.append(prompt())
            await branch.record(reply(3))

    asyncio.run(work())
    rows = [row.split("\t") for row in run("usage", "mother").out.splitlines()]
    assert [row[:4] for row in rows[1:5]] == [
        ["mother", "", "2", "10"],
        ["agent", "mother", "1", "10"],
        ["agent of it", "agent", "1", "10"],
        ["all", "", "4", "30"],
    ]
    assert "1 call reported no usage" in rows[5][0]
    told = run("usage", "mother", "--json").json
    assert told["usage"]["input_tokens"] == 30
    assert run("usage", "branch", "--json").json["calls"] == 1
    priced = read_prices().price_of("claude-opus-5")
    assert told["cost"] == pytest.approx(3 * priced.money(priced.units(uncached=10, output=2)))
    assert told["unpriced"] == 0


def test_a_conversation_without_calls_says_how_they_are_made(run: Callable[..., Done], db: Path) -> None:
    """An empty list is no dead end."""

    async def begin() -> None:
        async with open_store(db) as store:
            await opened(store)

    asyncio.run(begin())
    assert "timeline.record(reply, request=…)" in run("calls", "c").out
    assert run("calls", "c", "--json").json == []
    run("call", "c", 1).fails(3, "No call 1", "There is none")


def test_the_body_is_printed_as_it_was_hashed(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """Compact JSON in the encoder's order, without a newline behind it."""
    for number, body in enumerate(sent, start=1):
        out = run("call", "c", number, "--body").out
        assert out == compact_json(body)
        assert sha256_hex(out) == run("call", "c", number, "--json").json["sha256"]


def test_a_call_shows_request_reply_usage_decisions_and_cause(
    run: Callable[..., Done], sent: list[dict[str, Any]]
) -> None:
    """On one page for people, and as JSON."""
    compacted = next(row["number"] for row in run("calls", "c", "--json").json if row["decisions"])
    shown = run("call", "c", compacted).out
    for part in (
        f"call {compacted}, version ",
        "sent      anthropic, claude-opus-5; max_tokens=9, metadata=",
        "the same when built again",
        'system: [{"type":"text","text":"You help. ünd"',
        "assistant.completion",
        "1 block, end_turn, in 1.2 s",
        "10 tokens in, 0 of them from the cache; 2 out",
        "compaction 1 (over_trigger) into su:",
        "cache     compaction at version ",
    ):
        assert part in shown
    found = run("call", "c", compacted, "--json").json
    keys = {"number", "version", "at", "wire", "model", "parameters", "request", "reply", "usage", "decisions", "cause"}
    assert keys <= found.keys()
    assert found["request"] == sent[compacted - 1]
    assert list(found["request"]) == list(sent[compacted - 1])
    assert found["decisions"][0]["type"] == "compaction.completed"
    assert found["cause"]["version"] == found["decisions"][0]["version"]


def test_a_failed_call_and_one_without_a_request_say_so(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """The first was sent what the newest one was; of the second nobody said what it was sent."""
    assert "failed: Overloaded. Try again." in run("call", "c", 6).out
    assert json.loads(run("call", "c", 6, "--body").out) == sent[-1]
    assert "its request was not recorded" in run("call", "c", 7).out
    run("call", "c", 7, "--body").fails(2, "What call 7 was sent cannot be built again", "request=…")
    run("call", "c", 9).fails(3, "No call 9", "4, 5, 6, 7")


def test_a_call_is_shown_on_another_wire(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """System prompt, tools and tail go along; on its own wire it is the recorded body."""
    assert run("call", "c", 3, "--wire", "anthropic").json == sent[2]
    other = run("call", "c", 3, "--wire", "openai-chat").json
    assert other["messages"][0] == {"role": "system", "content": "You help. ünd"}
    assert "It is 3." in other["messages"][-1]["content"]
    assert other["tools"] == TOOLS
    assert json.loads(run("call", "c", 3, "--wire", "openai-chat", "--body").out) == other
    assert run("render", "c", "--call", 3, "--wire", "openai-chat").json == other
    run("call", "c", 3, "--wire", "telegraph").fails(2, "There is no wire format")


def test_the_context_of_a_call_is_rendered_as_it_was(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """Not with what happened since, and not under another policy."""
    context = run("render", "c", "--call", 2, "--json").json
    assert context["fingerprint"] == run("diff", "c", "--list", "--json").json[1]["fingerprint"]
    assert f"call 2, the context of version {context['version']}" in run("render", "c", "--call", 2).out
    assert "inside the window" in run("render", "c", "--call", 2, "--explain").out
    assert run("render", "c", "--call", 2, "--wire", "anthropic").json["messages"] == sent[1]["messages"]
    run("render", "c", "--call", 2, "--max-tokens", 900).fails(2, "a context as it was")
    run("render", "c", "--call", 2, "--record").fails(2, "a context as it was")
    run("render", "c", "--call", 2, "--explain", "--wire", "anthropic").fails(2, "Leave out one")
    run("render", "c", "--call", 88).fails(3, "No call 88")


def test_contexts_of_calls_are_compared(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """By the numbers of the calls."""
    assert len(sent) == 5
    found = run("diff", "c", "call:2", "call:4", "--json").json
    assert found == run("diff", "c", "#2", "#4", "--json").json
    run("diff", "c", "call:7", "call:99").fails(3, "No call 99")


def test_verify_counts_the_bodies_that_it_built(run: Callable[..., Done], sent: list[dict[str, Any]]) -> None:
    """Six calls have a request, and five contexts are recorded."""
    assert "11 of 11 recorded contexts and bodies of calls were rebuilt" in run("verify", "c").out
    assert run("verify", "c", "--json").json["calls"] == len(sent) + 1


def test_a_call_behind_what_was_scavenged_says_so(db: Path, run: Callable[..., Done]) -> None:
    """Neither "nothing broke the prefix" nor "no such call" is true where history was removed."""

    async def work() -> int:
        async with open_store(db) as store:
            timeline = await opened(store, policy=small_policy(max_tokens=4_000))
            for number in range(1, 16):
                await timeline.append(*turn(400))
                request = (await timeline.render()).request("anthropic", model="m", max_tokens=9)
                await timeline.record(reply(number), request=request, now=after(number))
            await timeline.set_retention("window")
            await scavenge(store)
            return (await anext(timeline.calls())).number

    first = asyncio.run(work())
    shown = run("call", "c", first).out
    assert "the call before was scavenged" in shown
    assert "since the call before" not in shown
    run("call", "c", 1).fails(3, "Call 1 ", "scavenged", str(first))
