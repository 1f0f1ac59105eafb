"""A compaction reports the prompts of which the new context neither says nor lists everything; a hide, too."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from tests.scenes import (
    AT,
    Scribe,
    answer,
    call,
    exchange,
    opened,
    payloads_of,
    prompt,
    result,
    small_policy,
    turn,
    words,
)
from timeline import open_store
from timeline.cli.rows import read_rows
from timeline.events import BlocksHidden, CompactionCompleted, ModelCalled, Replacement
from timeline.events.encoding import decode_payload
from timeline.lifecycle.events import lifecycle_of
from timeline.policy.model import Hiding
from timeline.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from timeline import Timeline
    from timeline.ports import EventStore

RULE = "Never change the public names."
ROOMY = {"max_tokens": 8_000, "keep_recent_tokens": 400}


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EventStore]:
    """Both stores."""
    url = "memory://" if request.param == "memory" else str(tmp_path / "agent.db")
    async with await open_store(url) as opened_store:
        yield opened_store


async def compacted(store: EventStore, *asked: str, **policy: Any) -> tuple[Timeline, CompactionCompleted]:
    """Ask for things in a turn each, then compact with a summarizer that says nothing of them."""
    timeline = await opened(store, policy=small_policy(**ROOMY, **policy), summarizer=Scribe())
    for text in asked:
        await timeline.append(prompt(text=text), answer(300))
    return timeline, await again(store, timeline)


async def again(store: EventStore, timeline: Timeline) -> CompactionCompleted:
    """Work on, and compact once more."""
    for _ in range(3):
        await timeline.append(*turn(600, 10))
    await timeline.compact(now=AT)
    newest: CompactionCompleted = (await payloads_of(store, "compaction.completed"))[-1]
    return newest


async def test_what_is_listed_is_not_reported(store: EventStore) -> None:
    """The record has room for it, and its address."""
    timeline, done = await compacted(store, RULE)
    assert f"Asked by the user:\n- {RULE} (@" in done.block.text
    assert done.unsaid == ()
    assert RULE in (await again(store, timeline)).block.text


@pytest.mark.parametrize("policy", [{"digest_tokens": 0}, {"digest_tokens": 20}])
async def test_what_has_no_room_is_reported_as_long_as_it_is_gone(store: EventStore, policy: dict[str, int]) -> None:
    """Under a policy that lists nothing too, and by each compaction behind the one that lost it."""
    timeline, first = await compacted(store, RULE, "yes", **policy)
    assert set(first.unsaid) >= {2, 4}
    assert set((await again(store, timeline)).unsaid) >= {2, 4}


async def test_what_the_summary_says_word_for_word_is_neither_listed_nor_reported(store: EventStore) -> None:
    """Nothing is said twice."""
    said = Scribe(answers=["They said:\nNever change the\npublic names."])
    timeline = await opened(store, policy=small_policy(**ROOMY), summarizer=said)
    await timeline.append(prompt(text=RULE), answer(300))
    done = await again(store, timeline)
    assert RULE not in done.block.text
    assert 2 not in done.unsaid


async def test_a_carried_prompt_is_neither_listed_nor_reported(store: EventStore) -> None:
    """A turn that is divided keeps its prompt."""
    timeline = await opened(store, policy=small_policy(**ROOMY, digest_tokens=0), summarizer=Scribe())
    await timeline.append(prompt(text=RULE))
    for number in range(8):
        await timeline.append(*exchange(f"c{number}", 800))
    await timeline.compact(now=AT)
    (done,) = await payloads_of(store, "compaction.completed")
    assert 2 in done.carried
    assert done.unsaid == ()


async def test_a_prompt_that_is_shown_by_its_beginning_is_listed_or_reported(store: EventStore) -> None:
    """A prompt behind the range that is hidden says no more than its replacement does."""
    long = f"{RULE} {'Use tabs. ' * 40}"
    for digest, reported in ((300, False), (0, True)):
        name = f"c{digest}"
        timeline = await opened(store, name, policy=small_policy(**ROOMY, digest_tokens=digest), summarizer=Scribe())
        for _ in range(4):
            await timeline.append(*turn(900, 10))
        await timeline.append(prompt(text=long), answer(20))
        version = timeline.window.version - 1
        hidden = Replacement(version=version, text="Never change… [shortened]", tokens=5)
        await timeline.decide([BlocksHidden(reason="manual", blocks=(hidden,))], at=AT, ids=[UUID(int=1 + digest)])
        await timeline.compact(now=AT)
        (done,) = await payloads_of(store, "compaction.completed", name)
        assert version not in done.covers
        assert (version in done.unsaid) == reported
        assert (f"- {RULE} (@{version})\n- Use tabs. (@{version})" in done.block.text) != reported


async def test_a_prompt_that_says_more_than_its_requests_is_reported(store: EventStore) -> None:
    """What binds need not have a word that is known for it."""
    _, done = await compacted(store, f"{RULE} The parser is off limits. {'It is used by others. ' * 20}")
    assert f"- {RULE} (@2)" in done.block.text
    assert done.unsaid == (2,)


async def test_each_prompt_that_says_more_is_reported_by_every_compaction_behind_it(store: EventStore) -> None:
    """Their marks have the same words, none; and a user may say no more than three dots."""
    rules = [f"{RULE} {part} is off limits. {'It is used by others. ' * 20}" for part in ("The parser", "The wire")]
    timeline, done = await compacted(store, *rules, "…")
    assert done.unsaid == (2, 4, 6)
    assert (await again(store, timeline)).unsaid == (2, 4, 6)


async def test_a_rule_that_a_longer_prompt_repeats_is_listed_beside_it(store: EventStore) -> None:
    """The longer one may be hidden next, and reports no prompt but itself."""
    timeline = await opened(store, policy=small_policy(**ROOMY), summarizer=Scribe())
    await timeline.append(prompt(text=RULE), answer(300), *turn(600, 10), *turn(600, 10))
    await timeline.append(prompt(text=f"Once more: {RULE} {'Use tabs. ' * 40}"), answer(20))
    await timeline.compact(now=AT)
    (done,) = await payloads_of(store, "compaction.completed")
    assert timeline.window.version - 1 not in done.covers
    assert f"- {RULE} (@2)" in done.block.text


@pytest.mark.parametrize(
    "said",
    [
        'User has answered your questions: "Which store?"="Never SQLite". You can now continue with these answers.',
        '{"answers":{"0":"Never SQLite"}}',
    ],
)
async def test_the_answers_to_the_questions_of_a_call_are_listed_or_reported(store: EventStore, said: str) -> None:
    """The user chose, though the words are in a result."""
    asking = call("a", "ask_user", arguments={"questions": [{"question": "Which store?"}]})
    for digest, listed in ((300, True), (0, False)):
        name = f"c{digest}"
        timeline = await opened(store, name, policy=small_policy(**ROOMY, digest_tokens=digest), summarizer=Scribe())
        await timeline.append(prompt(text="go"), asking, result("a", text=said), answer(300))
        for _ in range(3):
            await timeline.append(*turn(600, 10))
        await timeline.compact(now=AT)
        (done,) = await payloads_of(store, "compaction.completed", name)
        assert ('- "Which store?"="Never SQLite" (@4)' in done.block.text, 4 in done.unsaid) == (listed, not listed)


async def test_what_is_reported_is_told_wherever_a_compaction_is(store: EventStore) -> None:
    """In its row, in the digest, in the explanation, in the decision and in the lifecycle event."""
    timeline, done = await compacted(store, RULE, digest_tokens=0)
    rows = (await read_rows(store, "c")).rows
    (row,) = [row for row in rows if row.type == "conv.range.summary"]
    assert (row.dump().unsaid, "(unsaid: @2" in row.about) == (done.unsaid, True)
    (digest,) = [digest async for digest in store.digests()]
    assert digest.unsaid == done.unsaid
    explained = (await timeline.render(now=AT, record=False)).explain()
    assert "unsaid of what was asked: @2" in " ".join(explained.split())
    (event,) = [e async for e in store.read("c", types=["compaction.completed"])]
    (told,) = lifecycle_of(event)
    assert told.model_dump()["unsaid"] == done.unsaid
    assert "; unsaid of what was asked: @2" in told.line()


@pytest.mark.parametrize("reason", ["cold", "pressure"])
async def test_a_hidden_prompt_is_reported_where_its_replacement_does_not_say_all_that_it_asks(
    store: EventStore, reason: str
) -> None:
    """The beginning is shown, and what is asked behind it is not; what is short enough stays whole."""
    hiding = Hiding(intact=1, files=1, old=1, pressure_minimum=0.0)
    warm = reason == "pressure"
    timeline = await opened(store, policy=small_policy(**ROOMY, hiding=hiding, trigger=0.2 if warm else 0.9))
    await timeline.append(prompt(text=f"Look at it. {words(400)}. {RULE}"), answer(20), prompt(text=RULE), answer(20))
    await timeline.append(*exchange("a", 800), *exchange("b", 800), prompt(text="go on"))
    used = ModelCalled(usage=Usage(input_tokens=1_000))
    await timeline.decide([used], at=AT, ids=[UUID(int=9)])
    context = await timeline.render(now=AT + timedelta(seconds=1 if warm else 900))
    hidden: BlocksHidden = (await payloads_of(store, "blocks.hidden"))[0]
    assert (hidden.reason, hidden.unsaid) == (reason, (2,))
    assert {2, 4} & {replacement.version for replacement in hidden.blocks} == {2}
    assert context.decisions[0].facts["unsaid"] == "@2"
    (row,) = [row for row in (await read_rows(store, "c")).rows if row.type == "blocks.hidden"]
    assert (row.dump().unsaid, row.about.startswith("(unsaid: @2)")) == ((2,), True)
    (event, *_) = [e async for e in store.read("c", types=["blocks.hidden"])]
    assert lifecycle_of(event)[-1].model_dump()["unsaid"] == (2,)


@pytest.mark.parametrize(("text", "reported"), [("Something was asked.", True), (f"Asked: {RULE}", False)])
async def test_a_prompt_that_is_hidden_by_hand_is_reported_unless_the_text_in_its_place_says_it(
    store: EventStore, text: str, *, reported: bool
) -> None:
    """The application's words count like ours; what is omitted is gone on purpose."""
    timeline = await opened(store, policy=small_policy(**ROOMY))
    await timeline.append(prompt(text=RULE), answer(20), prompt(text="go on"))
    await timeline.hide("@2", text=text)
    (hidden,) = await payloads_of(store, "blocks.hidden")
    assert hidden.unsaid == ((2,) if reported else ())


@pytest.mark.parametrize("hidden", [False, True])
async def test_an_answer_in_view_is_listed_and_reported_only_where_it_is_hidden(
    store: EventStore, *, hidden: bool
) -> None:
    """Its words are a user's by the tool that asked, for a hide and a compaction alike."""
    timeline = await opened(store, policy=small_policy(**ROOMY), summarizer=Scribe())
    await timeline.append(*turn(600, 10), *turn(600, 10), *turn(600, 10), prompt(text="go"))
    asking = call("a", "ask_user", arguments={"questions": [{"question": "Which store?"}]})
    await timeline.append(asking, result("a", text='{"answers":{"0":"Never SQLite"}}'))
    answered = timeline.window.version
    if hidden:
        await timeline.hide(f"@{answered}", text="The user answered.")
        assert (await payloads_of(store, "blocks.hidden"))[0].unsaid == (answered,)
    await timeline.append(prompt(text="go on"), answer(5))
    await timeline.compact(now=AT)
    (done,) = await payloads_of(store, "compaction.completed")
    assert (answered in done.covers, answered in done.unsaid) == (False, False)
    assert (f'"Which store?"="Never SQLite" (@{answered})' in done.block.text) == hidden


async def test_a_large_prompt_that_is_shown_by_a_preview_is_reported(store: EventStore) -> None:
    """Its middle is left out, where it asks for something."""
    timeline = await opened(store, policy=small_policy(max_tokens=8_000, preview_tokens=400), summarizer=Scribe())
    await timeline.append(*turn(900, 10), prompt(text=f"{words(4_000)}. {RULE} {words(4_000)}"))
    await timeline.render(now=AT)
    (hidden,) = await payloads_of(store, "blocks.hidden")
    assert (hidden.reason, hidden.unsaid) == ("spill", (timeline.window.items[-1].version,))


def test_an_event_of_earlier_versions_reports_nothing() -> None:
    """Nobody looked then; and what reports nothing is stored as it was."""
    stored = {
        "block": {"type": "conv.range.summary", "path": "su:t.conv.range.summary", "text": "x"},
        "tokens": 1,
        "counter": "chars4",
        "covers": {"ranges": [[1, 2]]},
        "written_by": {"summarizer": "none"},
    }
    payload = decode_payload("compaction.completed", 1, json.dumps(stored))
    assert isinstance(payload, CompactionCompleted)
    assert payload.unsaid == ()
    assert "unsaid" not in payload.dump()
    assert "unsaid" not in BlocksHidden(reason="manual", blocks=()).dump()
