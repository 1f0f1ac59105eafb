"""How the provider counts, measured call by call: planted ratios are found, whatever happens in between."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenes import AT, answer, apply, compact_fold, grow, prompt
from timeline.content.media_tokens import IMAGE_TOKENS
from timeline.events import (
    NUMBERED,
    REPEATED,
    BlockRedacted,
    BlocksHidden,
    BlocksPinned,
    BlocksRevealed,
    BlocksUnpinned,
    CompactionReverted,
    ContextRendered,
    ModelCalled,
    Replacement,
)
from timeline.events.other_payloads import StageEntered
from timeline.fold.fold import Fold
from timeline.fold.reported import HIGHEST, LEAST_COUNTED, LOWEST, NO_REPORTS, Reported
from timeline.fold.state import NOTHING_YET
from timeline.usage import Usage

if TYPE_CHECKING:
    from timeline.events import Payload

NUMBERS = st.integers(0, 2**32)


@dataclass
class Provider:
    """A conversation with a provider that counts ``ratio`` tokens for one of ours, and ``hidden`` ones besides."""

    random: Random
    ratio: float
    hidden: int
    noise: float = 0.0
    model: str = "m"
    reported: Reported = NO_REPORTS
    version: int = 0
    counted: int = 2_000
    media: int = 0
    true_media: int = 0
    extra: float = 0.0
    inputs: list[int] = field(default_factory=list)

    def take(self, payload: Payload) -> None:
        """Append an event."""
        self.version += 1
        self.reported = self.reported.after(self.version, payload)
        assert self.reported.ratio == 0 or LOWEST <= self.reported.ratio <= HIGHEST

    def call(self, *, failed: bool = False, again: bool = False, **rendered: Any) -> None:
        """Render and call the model; ``again`` repeats the call of the newest context."""
        if not again:
            self.take(context(self.counted, media=self.media, **rendered))
            self.answers = self.version
        true = round(self.hidden + self.ratio * self.counted + self.extra) + self.true_media
        usage = Usage() if failed else Usage(input_tokens=7, cache_read_tokens=true - 7)
        self.inputs.append(true)
        ended = "error" if failed else "end_turn"
        self.take(ModelCalled(model=self.model, usage=usage, answers=self.answers, finish_reason=ended))

    def append(self, tokens: int) -> None:
        """Append text, which the provider counts with some noise."""
        self.counted += tokens
        self.extra += self.random.uniform(-self.noise, self.noise) * tokens

    def rewrite(self, share: float) -> None:
        """Hide or cover all but a share of the text."""
        self.take(BlocksHidden(reason="cold", blocks=()))
        self.counted = round(self.counted * share)
        self.extra *= share

    def picture(self) -> None:
        """Append a picture, of which we have an estimate only."""
        self.media += IMAGE_TOKENS
        self.true_media += self.random.randint(IMAGE_TOKENS // 4, 2 * IMAGE_TOKENS)

    @property
    def account(self) -> int:
        """What we would count for the newest context."""
        ratio = self.reported.ratio_from(1.6)
        return round(ratio * self.counted) + self.media + self.reported.offset(ratio)


def context(counted: int, *, media: int = 0, **rendered: Any) -> ContextRendered:
    """Return a recorded context of which the counter counts so much."""
    return ContextRendered(version=0, projection=1, fingerprint="", policy="", counted=counted, media=media, **rendered)


def some(provider: Provider) -> None:
    """Let something happen: mostly appends, now and then all that could throw a measurement off."""
    match provider.random.randrange(12):
        case 0:
            provider.rewrite(provider.random.uniform(0.1, 0.9))
        case 1:
            provider.picture()
        case 2:
            provider.call(failed=True)
        case 3:
            provider.call(again=True) if provider.inputs else provider.call()
        case 4:
            provider.take(StageEntered(stage="s"))
    provider.append(provider.random.randint(300, 5_000))
    provider.call()


@given(NUMBERS, st.floats(LOWEST, HIGHEST), st.integers(0, 30_000))
def test_a_planted_ratio_is_found_whatever_happens_in_between(seed: int, ratio: float, hidden: int) -> None:
    """Hidden prompts, pictures, failed calls, retries, compactions and another model before leave it within 5 %."""
    random = Random(seed)
    provider = Provider(random, 1.0 + random.random() / 2, random.randint(0, 20_000), model="earlier")
    for _ in range(random.randrange(9)):
        some(provider)
    provider.model, provider.ratio, provider.hidden, provider.noise = "m", ratio, hidden, 0.04
    for _ in range(60):
        some(provider)
    assert provider.reported.counted >= 20_000
    assert provider.reported.ratio == pytest.approx(ratio, rel=0.05)
    assert provider.reported.model == "m"


@given(NUMBERS, st.floats(LOWEST, HIGHEST), st.integers(0, 30_000))
def test_the_newest_context_counts_exactly_what_was_reported(seed: int, ratio: float, hidden: int) -> None:
    """After each call the account is the provider's own figure, from the first call on."""
    provider = Provider(Random(seed), ratio, hidden, noise=0.1)
    provider.call()
    for _ in range(25):
        assert provider.account == pytest.approx(provider.inputs[-1], abs=2)
        some(provider)


def test_nothing_is_measured_before_enough_was_compared() -> None:
    """One call gives an offset, and a few words no ratio."""
    provider = Provider(Random(0), 1.4, 5_000)
    provider.call()
    assert (provider.reported.ratio, provider.reported.calls) == (0, 1)
    provider.append(LEAST_COUNTED - 1)
    provider.call()
    assert provider.reported.ratio == 0
    provider.append(1)
    provider.call()
    assert provider.reported.ratio == 1.4


@pytest.mark.parametrize(("true", "ratio"), [(3.2, 2.0), (0.4, 0.7)])
def test_the_ratio_is_held_within_bounds(true: float, ratio: float) -> None:
    """Beyond them something else was measured."""
    provider = Provider(Random(0), true, 0)
    provider.call()
    provider.append(9_000)
    provider.call()
    assert provider.reported.ratio == ratio


def test_another_model_begins_anew() -> None:
    """Its tokenizer is another one, and nothing of the earlier model's figures is left."""
    provider = Provider(Random(0), 1.4, 5_000)
    for _ in range(9):
        provider.append(2_000)
        provider.call()
    provider.model = "n"
    provider.call()
    assert (provider.reported.model, provider.reported.ratio, provider.reported.calls) == ("n", 0, 1)


@pytest.mark.parametrize("change", ["system", "tools"])
def test_another_prompt_or_tool_changes_the_offset_and_not_the_ratio(change: str) -> None:
    """What the provider counts of tools is no measure of how it counts text."""
    provider = Provider(Random(0), 1.4, 5_000)
    for _ in range(9):
        provider.append(2_000)
        provider.call()
    provider.hidden, provider.counted = 21_000, provider.counted + 2_000
    rendered: dict[str, Any] = {change: "other"}
    provider.call(**rendered)
    assert provider.reported.ratio == 1.4
    assert provider.account == pytest.approx(provider.inputs[-1], abs=2)


def test_a_figure_that_does_not_follow_a_rewrite_moves_nothing() -> None:
    """A client that goes on sending everything, or compacts by itself, reports something else than our context."""
    provider = Provider(Random(0), 1.4, 5_000)
    for _ in range(30):
        provider.append(4_000)
        provider.call()
    before = provider.reported
    provider.rewrite(0.1)
    provider.extra = 0.9 / 0.1 * provider.counted * provider.ratio  # it still counts all of it
    provider.call()
    assert (provider.reported.ratio, provider.reported.offset(1.4)) == (before.ratio, before.offset(1.4))
    provider.extra = -provider.inputs[-1] * 0.7  # and now it forgets most of it
    provider.call()
    assert (provider.reported.ratio, provider.reported.offset(1.4)) == (before.ratio, before.offset(1.4))


def test_what_cheap_text_left_behind_is_forgotten_with_it() -> None:
    """Once a cheap text was compacted away, the offset is at least that of the first call."""
    provider = Provider(Random(0), 1.5, 1_000)
    provider.call()
    for _ in range(20):
        provider.append(2_000)
        provider.call()
    provider.counted += 30_000
    provider.extra -= 15_000
    provider.call(system="s")
    provider.call(system="s")
    provider.append(5_000)
    provider.extra -= 4_000
    provider.call(system="s")
    low = provider.reported.offset(1.5)
    provider.take(BlocksHidden(reason="cold", blocks=()))
    assert (
        low
        < provider.reported.offset(1.5)
        == round(provider.reported.first_input - 1.5 * provider.reported.first_counted)
    )


def test_contexts_of_earlier_releases_say_too_little() -> None:
    """Their figures may have a margin in them: nothing is guessed from them."""
    told = ContextRendered(version=0, projection=1, fingerprint="", policy="", tokens=5_000)
    state = NO_REPORTS.after(1, told).after(2, ModelCalled(model="m", usage=Usage(input_tokens=9), answers=1))
    assert state == NO_REPORTS


@given(NUMBERS)
def test_a_snapshot_keeps_all_of_it(seed: int) -> None:
    """What goes on from the JSON form goes on alike."""
    random = Random(seed)
    provider = Provider(random, 1.3, 1_000)
    for _ in range(random.randrange(12)):
        some(provider)
    assert Reported.parse(json.loads(json.dumps(provider.reported.dump()))) == provider.reported


def test_the_fold_takes_in_contexts_calls_and_rewrites() -> None:
    """The window's state has what a reader of the events alone would have."""
    payloads = [
        context(1_000),
        ModelCalled(model="m", usage=Usage(input_tokens=1_500), answers=1),
        context(3_000),
        ModelCalled(model="m", usage=Usage(input_tokens=4_500), answers=3),
    ]
    state, alone = NOTHING_YET, NO_REPORTS
    for version, payload in enumerate(payloads, start=1):
        state, alone = state.after(version, AT, payload), alone.after(version, payload)
    assert state.reported == alone
    assert (alone.ratio, alone.calls, alone.offset(1.5)) == (1.5, 2, 0)
    assert state.rewritten().reported.rewrites == 1


@pytest.mark.parametrize(
    ("decision", "rewrites"),
    [
        (BlocksHidden(reason="cold", blocks=(Replacement(version=2),)), 1),
        (BlocksHidden(reason=NUMBERED, blocks=(Replacement(version=3),)), 0),
        (BlocksHidden(reason=REPEATED, blocks=(Replacement(version=3),)), 0),
        (BlocksRevealed(versions=(2,)), 1),
        (BlockRedacted(version=2), 1),
        (CompactionReverted(versions=(4,)), 1),
        (BlocksPinned(versions=(2,)), 0),
        (BlocksUnpinned(versions=(2,)), 0),
    ],
    ids=lambda value: getattr(value, "reason", "") or getattr(value, "type", value),
)
def test_a_fold_and_a_reader_of_the_events_count_the_same_decisions_as_rewrites(
    decision: Payload, rewrites: int
) -> None:
    """What is left out of a result before it is first sent rewrites nothing; nor does a pin."""
    fold = Fold("c", without=(4,))
    grow(fold, prompt(), answer(), answer())
    apply(fold, 5, decision)
    assert fold.window.reported.rewrites == NO_REPORTS.after(5, decision).rewrites == rewrites


def test_a_compaction_counts_as_a_rewrite() -> None:
    """Also one that is taken back later: the calls in between were sent its summary."""
    for without in ((), (5,)):
        fold = Fold("c", without=without)
        grow(fold, prompt(), answer(), prompt(), answer())
        compact_fold(fold, 2)
        assert fold.window.reported.rewrites == 1
