"""The fold at a past version, from a keyframe: the same as one from the beginning, and cheaper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.scenes import FULL, after, call, prompt, result, small_policy, turn
from timeline import Timeline
from timeline.errors import HistoryUnavailable
from timeline.inspector.figures import Figures
from timeline.inspector.moments import Moments
from timeline.inspector.plots import Plots
from timeline.lab.prices import read_prices
from timeline.log.history import fold_past
from timeline.retention import scavenge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.inspector.sent import Sent
    from timeline.events import Event
    from timeline.fold.fold import Fold
    from timeline.ports import EventStore


def seen(fold: Fold) -> list[object]:
    """Return what a fold says of its blocks, without their texts."""
    window = fold.window
    items = [
        (i.version, i.place, i.state, i.tokens, i.shown_tokens, i.response, i.answers, i.keeps) for i in window.items
    ]
    covers = [made.covers for made in window.summaries]
    return [fold.version, fold.at, items, covers, window.turn_id, window.window_start, window.state]


async def test_every_version_is_the_same_as_when_it_is_folded_from_the_beginning(store: EventStore, sent: Sent) -> None:
    """In whatever order versions are asked for, before an undo and behind it."""
    moments = Moments(store, every=7)
    last = (await store.info(sent.id)).version
    for version in [last, *range(1, last + 1, 3), *range(last, 0, -5)]:
        expected = await fold_past(store, sent.id, version)
        assert seen(await moments.fold(sent.id, version)) == seen(expected), version


async def test_the_figures_of_every_version_are_those_of_its_window(store: EventStore, sent: Sent) -> None:
    """Whether they grew from those of a keyframe, or were made anew behind a decision."""
    moments = Moments(store, every=4)
    last = (await store.info(sent.id)).version
    for version in [last, *range(1, last + 1)]:
        assert await moments.figures(sent.id, version) == Figures.of(await fold_past(store, sent.id, version)), version


async def test_the_newest_version_of_a_compacted_log_is_not_read_from_its_beginning(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its figures come from the stored snapshot; those of the past, and behind it, are the same as ever."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=9_000), now=after(0))
    for number in range(60):
        await timeline.append(prompt(300), call(f"a{number}"), result(f"a{number}", 300), now=after(number))
    await timeline.compact(now=after(70))
    await timeline.append(prompt(), now=after(80))
    moments, read, seen = Moments(store, every=10), store.read, list[int]()

    async def counted(*of: Any, **given: Any) -> AsyncIterator[Event]:
        async for event in read(*of, **given):
            seen.append(event.version)
            yield event

    expected = Figures.of(await fold_past(store, "c", timeline.version))
    monkeypatch.setattr(store, "read", counted)
    assert await moments.figures("c", timeline.version) == expected
    assert len(seen) < timeline.version // 4
    monkeypatch.undo()
    for version in (5, timeline.version // 2, timeline.version - 1, timeline.version):
        assert await moments.figures("c", version) == Figures.of(await fold_past(store, "c", version)), version
    await timeline.append(prompt(), now=after(200))
    assert await moments.figures("c", timeline.version) == Figures.of(await fold_past(store, "c", timeline.version))


async def test_a_chart_that_is_read_in_slices_is_whole_and_leaves_right_keyframes_behind(
    store: EventStore, sent: Sent
) -> None:
    """Each slice goes on behind the one before; states of any version are then those of a fold from the beginning."""
    timeline = await Timeline.open(store, sent.id)
    for number in range(40):  # longer than one look at the clock
        await timeline.append(prompt(), call(f"x{number}"), result(f"x{number}"), now=after(900 + number))
    moments = Moments(store, every=7)
    sliced, whole = Plots(store, read_prices(), moments), Plots(store, read_prices(), Moments(store))
    info = await store.info(sent.id)
    reached = [(await sliced.of(info, 0)).fold.version]
    while reached[-1] < info.version:
        reached.append((await sliced.of(info, 0)).fold.version)
    assert len(reached) > 2
    plot, expected = await sliced.of(info, 0), await whole.of(info, 60)
    assert (plot.points, plot.marks) == (expected.points, expected.marks)
    for version in [info.version, *range(1, info.version + 1, 3)]:
        assert await moments.figures(sent.id, version) == Figures.of(await fold_past(store, sent.id, version)), version
        assert seen(await moments.fold(sent.id, version)) == seen(await fold_past(store, sent.id, version)), version


async def test_figures_grow_without_a_fold_where_nothing_was_decided(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the length of a window costs nothing; calls that wait for a result are among them."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=90_000), now=after(0))
    for number in range(12):
        await timeline.append(prompt(), call(f"a{number}"), call(f"b{number}"), result(f"a{number}"), now=after(number))
    moments = Moments(store, every=10)
    await moments.figures("c", timeline.version)
    expected = [Figures.of(await fold_past(store, "c", version)) for version in range(10, timeline.version + 1)]
    monkeypatch.setattr("timeline.fold.fold.Fold.apply", None)
    assert [await moments.figures("c", version) for version in range(10, timeline.version + 1)] == expected


async def test_what_is_appended_behind_a_question_is_in_the_next_one(store: EventStore, sent: Sent) -> None:
    """Also an undo of a compaction that a keyframe has already."""
    moments = Moments(store, every=5)
    await moments.fold(sent.id, (await store.info(sent.id)).version)
    timeline = await Timeline.open(store, sent.id)
    await timeline.append(prompt(), now=after(500))
    await timeline.compact(now=after(501))
    await moments.fold(sent.id, timeline.version)
    await timeline.undo_compaction(now=after(502))
    for version in (timeline.version, timeline.version - 1, timeline.version - 3):
        assert seen(await moments.fold(sent.id, version)) == seen(await fold_past(store, sent.id, version))


async def test_a_second_question_reads_the_events_behind_the_nearest_keyframe_only(
    store: EventStore, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost of a version does not grow with the log before it."""
    moments = Moments(store, every=10)
    last = (await store.info(sent.id)).version
    await moments.fold(sent.id, last)
    read: list[int] = []
    apply = type(await moments.fold(sent.id, 1)).apply

    def counted(fold: Fold, version: int, *rest: object) -> None:
        read.append(version)
        apply(fold, version, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr("timeline.fold.fold.Fold.apply", counted)
    await moments.fold(sent.id, last - 1)
    assert 0 < len(read) <= 10


async def test_keyframes_hold_no_text(store: EventStore) -> None:
    """What is redacted later is in no memory of the inspector."""
    timeline = await Timeline.open(store, "c", policy=small_policy(), now=after(0))
    await timeline.append(*turn(), prompt(text="a secret word"), now=after(1))
    fold = await Moments(store, every=1).fold("c", timeline.version)
    assert [item.block.text for item in fold.window.items] == ["", "", ""]


async def test_beyond_their_memory_every_second_keyframe_goes(store: EventStore) -> None:
    """Questions take longer then, and their answers stay the same."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=90_000), now=after(0))
    for _ in range(8):
        await timeline.append(*FULL, now=after(1))
    moments = Moments(store, every=2, most_bytes=timeline.version * 1_600)
    for version in (timeline.version, 30, 55):
        assert seen(await moments.fold("c", version)) == seen(await fold_past(store, "c", version))
    film = moments._films["c"]
    assert film.bytes <= timeline.version * 1_600
    assert len(film.frames) < timeline.version // 2


async def test_a_scavenged_version_is_refused_as_the_library_refuses_it(store: EventStore, sent: Sent) -> None:
    """Also where a keyframe of it was there before."""
    moments = Moments(store, every=5)
    await moments.fold(sent.id, 20)
    timeline = await Timeline.open(store, sent.id)
    await timeline.compact(now=after(900))
    await timeline.set_retention("window", now=after(901))
    await scavenge(store)
    assert (await store.info(sent.id)).first_version > 20
    with pytest.raises(HistoryUnavailable) as refusal:
        await moments.fold(sent.id, 20)
    assert refusal.value.scavenged


async def test_what_was_kept_of_a_scavenged_past_is_kept_without_its_texts(store: EventStore) -> None:
    """The fold goes on from the stored snapshot, whose blocks have theirs."""
    timeline = await Timeline.open(store, "c", policy=small_policy(max_tokens=1_000), now=after(0))
    for number in range(8):
        await timeline.append(*turn(60, 60), now=after(number))
    await timeline.hide((await timeline.read(f"@{timeline.version}")).path, now=after(20))
    await timeline.compact(now=after(21))
    await timeline.append(*turn(), now=after(22))
    await timeline.set_retention("window", now=after(23))
    await scavenge(store)
    fold = await Moments(store).fold("c", timeline.version)
    assert seen(fold) == seen(await fold_past(store, "c", timeline.version))
    assert {item.block.text for item in fold.window.items} == {""}
    assert {item.replacement.text for item in fold.window.items if item.replacement is not None} <= {""}
