"""Calibration: the fold's comparison of the provider's counts with ours, as an application reads it."""

from __future__ import annotations

from tests.scenes import answer, log_of, opened, prompt, small_policy
from timeline.agent.calibration import Calibration, calibration_of
from timeline.events.encoding import PAYLOADS
from timeline.fold.reported import NO_REPORTS, REPORTING, REWRITES
from timeline.store.memory import MemoryStore
from timeline.usage import Usage


def test_every_type_that_is_read_is_an_event_that_exists() -> None:
    """A misspelt type would never be found."""
    assert set(REPORTING) <= PAYLOADS.keys()
    assert set(REWRITES) < set(REPORTING)


async def test_a_timeline_returns_its_calibration_from_what_was_recorded() -> None:
    """Renders and model calls in the log are all it takes; the log's events alone give the same."""
    store = MemoryStore()
    timeline = await opened(store)
    for number in range(3):
        await timeline.append(prompt(1_000))
        context = await timeline.render(system="You help.")
        usage = Usage(input_tokens=700 + context.account.sent * 6 // 5)
        await timeline.record_model_call(usage, model="m")
        await timeline.append(answer(1_000, response_id=f"r{number}"))
    found = await timeline.calibration()
    assert (found.ratio, found.counted, found.model, found.calls) == (1.2, 4_000, "m", 3)
    assert found.offset in range(699, 702)
    reported = NO_REPORTS
    for event in await log_of(store):
        reported = reported.after(event.version, event.payload)
    assert calibration_of(reported) == found


async def test_a_margin_of_the_policy_is_no_part_of_the_ratio() -> None:
    """The ratio is of the counter's own tokens, so `calibrated` takes the place of whatever margin there was."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=100_000, margin=0.5))
    for number in range(3):
        await timeline.append(prompt(2_000))
        context = await timeline.render()
        await timeline.record_model_call(Usage(input_tokens=round(context.account.sent / 1.5 * 1.3)), model="m")
        await timeline.append(answer(2_000, response_id=f"r{number}"))
    found = await timeline.calibration()
    assert found.ratio == 1.3
    assert timeline.policy.calibrated(found.ratio).margin == 0.3


async def test_a_call_within_which_the_server_searched_measures_nothing() -> None:
    """Its usage counts the context once for each search, so that a small one seemed to fill the window from then on."""
    timeline = await opened(MemoryStore(), policy=small_policy(max_tokens=100_000))
    await timeline.append(prompt(2_000))
    await timeline.render()
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    called = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
    reply = {"id": "r", "type": "message", "role": "assistant", "model": "m", "content": [called, found]}
    await timeline.record({**reply, "usage": {"input_tokens": 90_000, "output_tokens": 9}})
    await timeline.record_model_call(Usage(input_tokens=90_000), model="m", server_tools=True)
    assert await timeline.calibration() == Calibration()
    await timeline.append(prompt(100))
    assert (await timeline.render()).account.sent < 3_000


async def test_before_any_call_the_ratio_is_one() -> None:
    """Nothing was compared."""
    assert await (await opened(MemoryStore())).calibration() == Calibration()
