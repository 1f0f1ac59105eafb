"""The rendered context: reasons, figures, fingerprint and its stable shapes (design, section 6, RenderedContext)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from tests.scenes import AT, answer, call, exchange, opened, prompt, result, small_policy, turn, words
from tests.wire.entries import GOOGLE_CODE, GOOGLE_FILE, GOOGLE_FOUND, SERVER_CALL, SERVER_RESULT, SHELL_FORM
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    CustomBlock,
    Note,
    RangeSummary,
    Reasoning,
    StageDigest,
    SystemMessage,
    ToolCall,
    TurnHeader,
)
from timeline.errors import InvalidArgument
from timeline.events import (
    BlockRedacted,
    BlocksHidden,
    CompactionCompleted,
    Covers,
    Replacement,
    SummaryParts,
    WrittenBy,
    event_id,
)
from timeline.frozen import sha256_hex
from timeline.projection.project import PROJECTION
from timeline.store.memory import MemoryStore
from timeline.wire import WIRES

if TYPE_CHECKING:
    from timeline import Timeline
    from timeline.wire.neutral import NeutralContext

GOLDEN = Path(__file__).parent / "golden"
SYSTEM = "You are a careful assistant."
TOOLS: list[Any] = [
    {"name": "run", "description": "Runs a command.", "input_schema": {"type": "object", "properties": {}}}
]
PICTURE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


async def every_form() -> Timeline:
    """Return a conversation in which every type, every state and every kind of cache point occurs."""
    timeline = await opened(MemoryStore(), policy=small_policy())
    await timeline.append(Note(text="answer in French"), prompt(text="covered"), answer(text="covered too"))
    await timeline.append(
        TurnHeader(text="Monday"), prompt(text="look at this"), Attachment(data=[PICTURE], meta={"file": "a.png"})
    )
    await timeline.append(Reasoning(text="hm", data={"type": "thinking", "thinking": "hm", "signature": "c2ln"}))
    await timeline.append(answer(text="I will look."), call("a", arguments={"cmd": "ls"}), call("b", arguments="{torn"))
    await timeline.append(result("a", text="x" * 400), result("b", text="no", is_error=True, exit_status=2))
    covered = CompactionCompleted(
        block=RangeSummary(turn_id="turn_2", path="su:turn_2.conv.range.summary", text="SUMMARY", at=AT),
        tokens=2,
        counter="chars4",
        covers=Covers(ranges=((2, 4),)),
        carried=(2,),
        parts=SummaryParts(history="SUMMARY"),
        written_by=WrittenBy(summarizer="hand"),
    )
    hidden = BlocksHidden(reason="ttl", blocks=(Replacement(version=12, text="[run: 100 tokens]", tokens=5),))
    await timeline.decide([covered, hidden], at=AT, ids=[event_id(AT), event_id(AT)])
    await timeline.append(result("late", text="an answer to nothing"), StageDigest(text="outline done"))
    await timeline.append(CustomBlock(type="app.weather", author="sensor", text="rain"), SystemMessage(text="be brief"))
    await timeline.append(*[block for c in "cdef" for block in exchange(c)], prompt(text="go on"), answer(text="bye"))
    omitted = BlocksHidden(mode="omit", reason="chitchat", blocks=(Replacement(version=timeline.version - 1),))
    erased = BlockRedacted(version=timeline.version - 2, reason="asked")
    await timeline.decide([omitted, erased], at=AT, ids=[event_id(AT), event_id(AT)])
    await timeline.append(prompt(text="and now?"), call("open", arguments={"b": 1, "a": [2.5, None, "é"]}))
    return timeline


def of_some_policy(neutral: NeutralContext) -> NeutralContext:
    """Return a context as if a policy with a known hash had made it: fields that policies gain change no form."""
    return neutral.model_copy(update={"policy": sha256_hex("a policy")})


async def test_the_dump_of_projection_7_is_that_of_5_where_no_content_is_native_and_none_came_back() -> None:
    """Every block's form, state and reason, byte for byte; another form needs another projection number."""
    timeline = await every_form()
    context = await timeline.render(system=SYSTEM, tools=TOOLS, ephemeral=["It is noon."], record=False)
    dump = {**context.dump(), "fingerprint": of_some_policy(context.neutral).fingerprint()}
    written = json.dumps(dump, indent=1, ensure_ascii=False) + "\n"
    assert PROJECTION == context.projection == 7
    assert written.replace('"projection": 7', '"projection": 5') == (GOLDEN / "projection-5.json").read_text("utf-8")


async def test_native_content_in_projections_6_and_7_is_what_it_was() -> None:
    """What goes back to its provider as it came: calls and answers with their forms, parts of a server's own tools."""
    timeline = await opened(MemoryStore(), policy=small_policy())
    parts = (SERVER_CALL, SERVER_RESULT, GOOGLE_CODE, GOOGLE_FOUND, GOOGLE_FILE)
    shell = ToolCall(call_id="s", name="shell", arguments={"commands": ["ls"]}, data=SHELL_FORM, response_id="r")
    said = AssistantCompletion(text="I look.", data={"phase": "commentary", "own": 1}, response_id="r")
    own = ToolCall(call_id="o", name="run", data={"type": "of the application"}, response_id="r")
    blocks = [CustomBlock(type="assistant.part", author="assistant", data=part, response_id="r") for part in parts]
    await timeline.append(prompt(), said, *blocks, shell, own)
    context = await timeline.render(record=False)
    written = json.dumps(context.neutral.model_dump(mode="json")["entries"], indent=1) + "\n"
    assert written == (GOLDEN / "projection-6.native.json").read_text("utf-8")


async def test_the_canonical_text_of_projection_3_is_what_it_was() -> None:
    """The bytes that are fingerprinted, of every context ever recorded under this number; 4 has the same entries."""
    timeline = await every_form()
    context = await timeline.render(system=SYSTEM, tools=TOOLS, ephemeral=["It is noon."], record=False)
    written = of_some_policy(context.neutral).canonical() + "\n"
    assert written == (GOLDEN / "projection-3.canonical.json").read_text(encoding="utf-8")


def test_a_fingerprint_of_projection_4_can_be_computed_from_the_canonical_text_with_hashes_alone() -> None:
    """Each link is the hash of the link before and of the entry's hash; the last one stands for all entries."""
    text = json.loads((GOLDEN / "projection-3.canonical.json").read_text(encoding="utf-8"))
    link = b""
    for entry in text["entries"]:
        link = hashlib.sha256(link + _hash_of(entry).digest()).digest()
    beside = {**text, "entries": link.hex(), "ephemeral": [_hash_of(entry).hexdigest() for entry in text["ephemeral"]]}
    dump = json.loads((GOLDEN / "projection-4.json").read_text(encoding="utf-8"))
    assert _hash_of(beside).hexdigest() == dump["fingerprint"]


def _hash_of(value: Any) -> Any:
    written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(written.encode())


async def test_equal_contexts_have_equal_fingerprints() -> None:
    """The same conversation told again, under another id, has the same fingerprint."""
    first, second = await every_form(), await every_form()
    one = await first.render(system=SYSTEM, tools=TOOLS)
    two = await second.render(system=SYSTEM, tools=TOOLS, record=False)
    assert one.fingerprint == two.fingerprint
    assert one.fingerprint == one.neutral.fingerprint()


async def test_the_id_of_a_conversation_is_no_part_of_the_fingerprint() -> None:
    """What the model sees is what counts."""
    store = MemoryStore()
    prints = set()
    for name in ("one", "two"):
        timeline = await opened(store, name)
        await timeline.append(*turn())
        prints.add((await timeline.render()).fingerprint)
    assert len(prints) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"system": "You are a careful assistant!"},
        {"system": [{"type": "text", "text": SYSTEM}]},
        {"system": None},
        {"tools": []},
        {"tools": [*TOOLS, *TOOLS]},
        {"ephemeral": ["It is one."]},
        {"ephemeral": []},
    ],
    ids=str,
)
async def test_whatever_the_model_would_see_otherwise_changes_the_fingerprint(change: dict[str, Any]) -> None:
    """System prompt, tools and ephemeral tail are part of the context."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    given: dict[str, Any] = {"system": SYSTEM, "tools": TOOLS, "ephemeral": ["It is noon."]}
    before = await timeline.render(**given)
    changed = await timeline.render(**{**given, **change})
    assert changed.fingerprint != before.fingerprint


async def test_the_policy_that_made_a_context_is_part_of_its_fingerprint() -> None:
    """The same words under another policy are another context, which is recorded; every byte sent stays the same."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    before = await timeline.render(system=SYSTEM)
    assert before.neutral.policy == timeline.policy.hash()
    await timeline.use_policy(small_policy(max_tokens=9_000))
    after = await timeline.render(system=SYSTEM)
    assert after.fingerprint != before.fingerprint
    assert [after.to_wire(wire) for wire in WIRES] == [before.to_wire(wire) for wire in WIRES]
    report = await timeline.verify()
    assert (report.ok, report.renders, report.unverifiable) == (True, 2, {})


async def test_the_wires_bytes_are_the_same_after_opening_again() -> None:
    """A process that opens the log sends what the one that wrote it sent, down to the order of keys."""
    store = MemoryStore()
    timeline = await opened(store)
    signed: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    parts: list[Any] = [{"type": "text", "text": "t", "b": 1, "a": 2}, PICTURE]
    await timeline.append(prompt(), Attachment(data=parts), Reasoning(data=signed))
    await timeline.append(call("a", arguments={"z": 1, "a": {"y": 1, "b": 2}}), result("a", data=parts))
    again = await opened(store)
    for wire in WIRES:
        live, read = [json.dumps((await t.render(record=False)).to_wire(wire)) for t in (timeline, again)]
        assert live == read


async def test_the_ephemeral_tail_is_behind_every_cache_point_and_kept_nowhere() -> None:
    """It is said as the user, comes last and is no block."""
    timeline = await opened(MemoryStore())
    await timeline.append(*turn())
    context = await timeline.render(ephemeral=["It is noon.", "  "])
    assert [(e.role, e.text, e.path) for e in context.neutral.ephemeral] == [("user", "It is noon.", "")]
    assert max(p.index for p in context.cache_points) < len(context.neutral.entries)
    assert len(timeline.window.items) == 2
    marked = json.dumps(context.to_anthropic()["messages"][-1])
    assert "It is noon." in marked
    assert "cache_control" not in marked


async def test_the_account_is_that_of_what_is_shown() -> None:
    """System, tools, ephemeral tail and messages by category, summing up to what is sent."""
    timeline = await opened(MemoryStore())
    await timeline.append(prompt(10), *exchange("a", 30), answer(20))
    context = await timeline.render(system=words(7), tools=[words(3)], ephemeral=[words(2)])
    assert context.account.by_category == {"prompts": 10, "calls": 2, "results": 30, "completions": 20}
    assert context.account.sent == 7 + 3 + 2 + 62


async def test_a_context_is_frozen() -> None:
    """What was rendered does not change under the caller."""
    context = await (await opened(MemoryStore())).render()
    with pytest.raises(ValidationError):
        context.version = 9  # type: ignore[misc]  # the point of the test


async def test_an_unknown_wire_is_a_typed_error() -> None:
    """The error names what was asked for."""
    context = await (await opened(MemoryStore())).render()
    with pytest.raises(InvalidArgument, match="klingon"):
        context.to_wire("klingon")
