"""Replays that share what they have in common come to what each of them comes to alone, whatever the policies are."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.depth import DEPTH, Depth, examples
from tests.lab.talks import Talk, code, numbered, work
from tests.recorded import needs_recordings, recorded
from tests.scenes import AT
from timeline.blocks import Note
from timeline.events.other_payloads import StageApproved, StageEntered, StageRewound
from timeline.importers import read_recording
from timeline.importers.recording import RecordedEvent
from timeline.lab.beginnings import Beginnings
from timeline.lab.prices import packaged_prices
from timeline.lab.replay import replay
from timeline.lab.sizes import measure
from timeline.policy.files import find_policy
from timeline.policy.model import Hiding, OverThreshold, Policy
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from timeline.events import Replacement
    from timeline.lab.prices import Price
    from timeline.lab.replay import SentCall
    from timeline.lab.results import RunResult
    from timeline.lab.sizes import Measured
    from timeline.wire.neutral import Entry

PRICE_OF = packaged_prices().price_of
LIMITS: Final = (200_000, 32_000, 8_000)
PAUSES: Final = {5: 400.0, 11: 4_000.0, 18: 310.0}


def staged(rounds: int) -> Talk:
    """Return work whose stages begin in the midst of it: one is finished, the next one is rewound."""
    talk = work(rounds)
    at = len(talk.events) // 2
    stages = (
        StageEntered(stage="design"),
        StageApproved(stage="design", decision="Rows only."),
        StageEntered(stage="build"),
        StageRewound(stage="design"),
    )
    for number, payload in enumerate(stages):
        place = at + 4 * number
        talk.events.insert(place, RecordedEvent(payload, talk.events[place].at, f"stage {number}"))
    return talk


def noted(rounds: int) -> Talk:
    """Return work with notes in it, which stay."""
    talk = Talk(ratio=0.8, fixed=2_000, long=True)
    talk.ask("Take care of the cards.")
    for number in range(rounds):
        if number % 5 == 2:
            talk.say(Note(text=f"The user wants {number} cards a day."))
        talk.wait(400.0 if number % 7 == 6 else 0.0)
        talk.respond(("Read", {"file_path": f"src/{number % 3}.py"}, code("cards", 30)), text="I read it.")
    return talk


def numbering(rounds: int) -> Talk:
    """Return work whose files are read behind the numbers of their lines."""
    talk = Talk()
    talk.ask("Take care of the cards.")
    for number in range(rounds):
        talk.wait(400.0 if number % 9 == 8 else 0.0)
        talk.respond(("Read", {"file_path": f"src/{number % 3}.py"}, numbered(code("cards", 30 + number))))
    return talk


RECORDINGS: Final[dict[str, Callable[[], Talk]]] = {
    "with pauses": lambda: work(20, pauses=PAUSES),
    "kept by itself": lambda: work(20, pauses=PAUSES, model="gpt-5.5", left=4_000, signed=False),
    "in stages": lambda: staged(34),
    "with notes": lambda: noted(24),
    "with numbers": lambda: numbering(18),
}


@cache
def measured(name: str) -> Measured:
    """Return a recording of our own, measured."""
    return measure(RECORDINGS[name]().recording())


async def watched(of: Measured, policy: Policy, shared: Beginnings | None = None) -> tuple[RunResult, list[SentCall]]:
    """Replay under a policy; return the result and what was sent, of a shared beginning nothing."""
    sent: list[SentCall] = []
    if shared is None:
        return await replay(of, policy, PRICE_OF, watch=sent.append), sent
    return await replay(of, policy, PRICE_OF, watch=sent.append, lead=shared.lead, alike=shared.alike), sent


def figures(run: RunResult) -> dict[str, Any]:
    """Return all of a result but the seconds that it took."""
    found = run.model_dump()
    del found["totals"]["seconds"]
    return found


def shown(sent: SentCall) -> tuple[Any, ...]:
    """Return all that a context is: what is sent, why, and what it is counted as."""
    if sent.context is None:
        return sent.call, sent.refused
    context = sent.context
    return sent.call, context.fingerprint, context.neutral, context.account, context.decisions, context.window.items


async def compare(of: Measured, tried: Policy, shared: Beginnings) -> int:
    """Replay alone and with a shared beginning; return how many calls of it were shared."""
    alone, sent = await watched(of, tried)
    together, later = await watched(of, tried, shared)
    assert figures(together) == figures(alone)
    common = len(sent) - len(later)
    assert [shown(one) for one in later] == [shown(one) for one in sent[common:]]
    whole = [(one.context.dump(), one.context.explanation) for one in (*later[:1], *sent[common:][:1]) if one.context]
    assert whole[1:] == whole[:1], "the first one with its reasons, too"
    return common


@pytest.mark.parametrize("name", RECORDINGS)
async def test_every_preset_comes_to_what_it_comes_to_alone(name: str) -> None:
    """One after the other on the same beginnings, at limits that decide late, soon and at once."""
    of, shared = measured(name), Beginnings()
    common = [
        await compare(of, find_policy(preset, max_tokens=limit), shared) for preset in PRESETS for limit in LIMITS
    ]
    ends = max(common)
    assert 0 < ends < len(of.calls) if name == "in stages" else ends == len(of.calls)


async def test_policies_that_abridge_alike_have_in_common_what_comes_before_another_decision() -> None:
    """Results get shorter from the first one on: without that, such policies would have nothing in common."""
    of, shared = measured("with numbers"), Beginnings()
    common = [await compare(of, find_policy("balanced", max_tokens=limit), shared) for limit in (1_000_000, 500_000)]
    assert min(common) > 5
    without = find_policy("balanced", max_tokens=500_000).model_copy(update={"line_numbers": None})
    assert await compare(of, without, shared) == common[1]


async def test_what_policies_send_alike_is_made_once() -> None:
    """Behind their first decisions, too: the entries of a block that neither hides are the same objects."""
    of, shared = measured("with pauses"), Beginnings()
    last: list[dict[str, Entry]] = []
    for name in ("cut_point", "balanced"):
        run, sent = await watched(of, find_policy(name, max_tokens=8_000), shared)
        assert run.totals.compactions
        assert sent[-1].shown is not None
        last.append({entry.path: entry for entry in sent[-1].shown.entries})
    both = [path for path, entry in last[0].items() if last[1].get(path) == entry]
    assert both
    assert all(last[0][path] is last[1][path] for path in both)


async def test_a_block_that_policies_hide_alike_has_its_replacement_once() -> None:
    """It takes dozens of counts to write one."""
    of, shared = measured("with pauses"), Beginnings()
    hidden: list[dict[tuple[int, str], Replacement]] = []
    for limit in (16_000, 30_000):
        _, sent = await watched(of, find_policy("seed-002-first", max_tokens=limit), shared)
        items = [item for one in sent if one.shown is not None for item in one.shown.window.items]
        hidden.append({(i.version, i.replacement.text): i.replacement for i in items if i.replacement is not None})
    both = hidden[0].keys() & hidden[1].keys()
    assert both
    assert all(hidden[0][one] is hidden[1][one] for one in both)


async def test_a_beginning_that_failed_on_the_way_is_made_anew() -> None:
    """The call that failed is in the rows of the next policy, as if it had been the first one."""
    talk = work(8)
    talk.model = "claude-sonnet-4-5"
    talk.respond(text="Another model goes on.")
    of, shared = measure(talk.recording()), Beginnings()
    policy = find_policy("none")

    def out_of_reach(model: str) -> Price:
        if model == talk.model:
            raise ConnectionError(model)
        return PRICE_OF(model)

    with pytest.raises(ConnectionError):
        await replay(of, policy, out_of_reach, lead=shared.lead)
    assert await compare(of, policy, shared) == len(of.calls)


@needs_recordings
@pytest.mark.parametrize(
    "file",
    [path for path in recorded("*/*.*") if DEPTH is Depth.NIGHT or path.stat().st_size < 120_000],
    ids=lambda path: path.stem,
)
async def test_every_preset_comes_to_the_same_on_recorded_conversations(file: Path) -> None:
    """The small ones; at night all of them."""
    for recording in read_recording(file):
        of, shared = measure(recording), Beginnings()
        for preset in PRESETS:
            for limit in LIMITS:
                await compare(of, find_policy(preset, max_tokens=limit), shared)


STEPS: Final = st.lists(
    st.sampled_from(
        [
            {"kind": "summarize", "asked": "in_cache", "source": "original"},
            {"kind": "summarize", "cut": {"kind": "keep_last", "messages": 4}},
            {"kind": "summarize", "cut": {"kind": "oldest", "messages": 4}, "prompt": "bullets"},
            {"kind": "strip_chitchat"},
            {"kind": "clear_tool_outputs", "protect": 500, "minimum": 100, "keep_turns": 1},
            {"kind": "collapse_stages", "recent": 0},
            {"kind": "drop_oldest", "keep_last": 6},
        ]
    ),
    min_size=1,
    max_size=3,
)
SHARES: Final = st.sampled_from([0.1, 0.3, 0.6, 0.9])
TOKENS: Final = st.sampled_from([0, 50, 400])
HIDING: Final = st.builds(
    Hiding,
    unit=st.sampled_from(["rounds", "turns"]),
    intact=st.sampled_from([1, 4]),
    files=st.sampled_from([1, 8]),
    old=st.sampled_from([2, 12]),
    ttl=st.sampled_from([None, 60, 3_600]),
    grace=st.sampled_from([0, 60]),
    minimum=st.sampled_from([0.0, 0.01, 0.2]),
    pressure_minimum=st.sampled_from([None, 0.0, 0.2]),
    replacement_tokens=st.sampled_from([20, 60]),
    payback=st.sampled_from([None, 0, 10]),
)
POINTS: Final = st.fixed_dictionaries(
    {
        "offset_rounds": st.integers(1, 4),
        "lookback_blocks": st.sampled_from([3, 20]),
        "kept_long": st.sampled_from(["nothing", "fixed_part", "everything"]),
    }
)
TRIGGERS: Final = st.sampled_from(
    [0.3, 0.9, "over_falling_share", "over_utilization", "overdrawn", "never", "over_threshold"]
) | st.builds(OverThreshold, system_reserve=st.sampled_from([0, 500]), output_reserve=TOKENS, safety_buffer=TOKENS)
FIELDS: Final[dict[str, st.SearchStrategy[Any]]] = {
    "output_reserve": TOKENS,
    "safety_buffer": TOKENS,
    "counter": st.sampled_from(["o200k_base", "chars4"]),
    "counts": st.sampled_from(["counter", "calibrated"]),
    "margin": st.sampled_from([-0.2, 0.0, 0.2]),
    "message_tokens": st.integers(0, 9),
    "response_tokens": st.integers(0, 9),
    "results_counted_as": st.sampled_from(["text", "json"]),
    "abridged_counted_as": st.sampled_from(["shown", "whole"]),
    "trigger": TRIGGERS,
    "target": SHARES,
    "stop_at": st.sampled_from(["target", "trigger"]),
    "steps": STEPS,
    "on_failure": st.sampled_from(["next_step", "unchanged", "truncate", "fallback"]),
    "form": st.sampled_from([{"role": "assistant"}, {"heading": "Before {round}:", "record": False}]),
    "boundary": st.booleans(),
    "summary_tokens": st.sampled_from([50, 800]),
    "turn_prefix_tokens": st.sampled_from([50, 400]),
    "digest_tokens": st.sampled_from([0, 300]),
    "preview_tokens": st.sampled_from([50, 400]),
    "carried_share": SHARES,
    "min_progress": st.sampled_from([0.0, 0.5]),
    "min_progress_tokens": st.sampled_from([0, 256]),
    "attempts": st.integers(1, 3),
    "hiding": st.none() | HIDING,
    "repeats": st.none() | st.just({"lines": 1, "characters": 20, "minimum": 5}),
    "line_numbers": st.none() | st.just({"every": 4, "minimum": 5}),
    "compact_when_cold": st.none() | SHARES,
    "memory_digest": st.just({"heading": "Decided so far:"}),
    "stage_data": st.just({"heading": "Stages:"}),
    "cache_points": POINTS,
    "cache": st.sampled_from([None, "5m", "1h", "automatic", "none"]),
    "system_parts": st.sampled_from([None, 1, 2]),
}
"""Every field of a policy that may change a replay, so that the search looks at each of them."""
OFTEN: Final = ("trigger", "hiding", "compact_when_cold", "cache_points")
"""Fields that every policy of the search has: by them most of them decide, and mark what they send."""
POLICIES: Final = st.builds(
    lambda limit, fields: Policy(max_tokens=limit, **fields),
    st.sampled_from([3_000, 8_000, 12_000, 20_000, 100_000]),
    st.fixed_dictionaries(
        {name: FIELDS[name] for name in OFTEN},
        optional={name: values for name, values in FIELDS.items() if name not in OFTEN},
    ),
)
ROUNDS: Final = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.0, 0.0, 100.0, 400.0, 4_000.0]),
        st.sampled_from(["read", "read", "number", "write", "fail", "say", "ask", "note", "nothing"]),
        st.integers(1, 30),
    ),
    min_size=12,
    max_size=35,
)


def talk_of(rounds: list[tuple[float, str, int]], stages: int | None, **fields: Any) -> Talk:
    """Return a recording of so many rounds; a stage is entered in the middle of one of them, and approved later."""
    talk = Talk(**fields)
    talk.ask("Take care of the cards.")
    for number, (pause, kind, lines) in enumerate(rounds):
        talk.wait(pause)
        file = {"file_path": f"src/{lines % 4}.py"}
        match kind:
            case "read":
                talk.respond(("Read", file, code("cards", lines)), thought="Let me look." if lines % 2 else "")
            case "number":
                talk.respond(("Read", file, numbered(code("cards", lines))))
            case "write":
                talk.respond(("Write", {**file, "content": code("rows", lines)}, "Written."), text="I write it.")
            case "fail":
                talk.respond(("Bash", {"command": "make test"}, "FAILED: late\n" * lines))
            case "note":
                talk.say(Note(text="Cards have two sides. " * lines))
            case "ask":
                talk.ask("And the next part, please. " * lines)
            case "nothing":
                talk.respond(text="")
            case _:
                talk.respond(text="It is as it was. " * lines)
        if stages is not None and number in {stages, stages + 4}:
            entered = number == stages
            stage = StageEntered(stage="design") if entered else StageApproved(stage="design", decision="Rows only.")
            at = AT + timedelta(seconds=talk.seconds)
            talk.events.append(RecordedEvent(stage, at, f"stage {number}"))
    return talk


def test_the_search_looks_at_every_field_of_a_policy() -> None:
    """A new one needs values here; then the search says whether it may be left out of what replays have in common."""
    assert {*FIELDS, "name", "max_tokens"} == {*Policy.model_fields}


@settings(max_examples=examples(12))
@given(
    rounds=ROUNDS,
    tried=st.lists(POLICIES, min_size=2, max_size=4),
    stages=st.none() | st.integers(0, 25),
    apart=st.integers(1, 4),
    talk=st.fixed_dictionaries(
        {
            "model": st.sampled_from(["claude-opus-4-5", "gpt-5.5"]),
            "long": st.booleans(),
            "signed": st.booleans(),
            "fixed": st.sampled_from([300, 3_000]),
            "left": st.sampled_from([0, 200]),
        }
    ),
)
def test_any_policies_come_to_what_each_comes_to_alone(
    rounds: list[tuple[float, str, int]], tried: list[Policy], stages: int | None, apart: int, talk: dict[str, Any]
) -> None:
    """Whatever its fields are, and whichever policies went before it on the same beginnings."""
    of, shared = measure(talk_of(rounds, stages, **talk).recording()), Beginnings(apart)
    for policy in tried:
        asyncio.run(compare(of, policy, shared))
