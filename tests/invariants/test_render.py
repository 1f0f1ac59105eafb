from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.places import new_store
from tests.invariants.playing import AT, read_log, run, search
from tests.invariants.strategies import LOGS, LONG_RUNS, ORDERLY_LOGS, POLICIES, Step
from tests.invariants.watched import DECISIONS, Watched
from tests.invariants.wires import check_grown, says_something
from timeline.projection.context import RenderedContext
from timeline.timeline import Timeline

if TYPE_CHECKING:
    from timeline.policy.model import Policy

PROMPTS: Final[st.SearchStrategy[dict[str, Any]]] = st.sampled_from(
    [{}, {"system": "Be brief."}, {"system": "long " * 200, "tools": [{"name": "bash"}]}, {"ephemeral": ["now", " "]}]
)


async def watch(steps: list[Step], policy: Policy, prompt: dict[str, Any]) -> Watched:
    """Play steps and render after each of them."""
    store = await new_store()
    watched = Watched(store, await Timeline.open(store, "c", policy=policy, now=AT), **prompt)
    for step in steps:
        await watched.play(step)
        await watched.render()
    await watched.check_everything()
    return watched


@search(30)
@given(ORDERLY_LOGS, POLICIES, PROMPTS)
def test_every_render_of_an_orderly_conversation_keeps_the_invariants(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """Limit, pairing, stable prefix, recall, order, replay and progress hold after every append."""
    run(watch(steps, policy, prompt))


@search(30)
@given(LOGS, POLICIES, PROMPTS)
def test_every_render_of_a_hostile_log_keeps_the_invariants(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """The same holds for any log at all, decisions and foreign compactions included."""
    run(watch(steps, policy, prompt))


@search(25)
@given(LONG_RUNS, POLICIES, PROMPTS)
def test_every_render_of_a_long_running_agent_keeps_the_invariants(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """The same holds while time passes, the cache grows cold, and the application compacts, takes back and decides."""
    run(watch(steps, policy, prompt))


@search(30)
@given(ORDERLY_LOGS | LONG_RUNS, POLICIES)
def test_the_wires_change_nothing_before_the_previous_tail(steps: list[Step], policy: Policy) -> None:
    """Where every call was answered and nothing was decided since, a request only grows at its end.

    Before anything is said, a request has a line of its own, which gives way to what is said.
    """

    async def story() -> None:
        store = await new_store()
        watched = Watched(store, await Timeline.open(store, "c", policy=policy, now=AT))
        before: RenderedContext | None = None
        for step in steps:
            await watched.play(step)
            context = await watched.outcome()
            if isinstance(context, RenderedContext) and before is not None:
                log = await read_log(store, "c")
                if not any(line.payload.type in DECISIONS for line in log[before.version :]):
                    check_grown(before, context)
            answered = isinstance(context, RenderedContext) and not watched.timeline.window.unanswered()
            before = context if answered and isinstance(context, RenderedContext) and says_something(context) else None

    run(story())
