"""The published designs keep the invariants too, on any log; what differs is what they keep, not what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.invariants.playing import run, search
from tests.invariants.strategies import LOGS, LONG_RUNS, ORDERLY_LOGS, Step
from tests.invariants.test_render import watch
from timeline.policy import presets

if TYPE_CHECKING:
    from timeline.policy.model import Policy

_SMALL: Final[dict[str, Any]] = {"counter": "chars4", "output_reserve": 100, "safety_buffer": 0, "min_progress": 0.0}
_LIMITS: Final = st.sampled_from([1_000, 2_000, 6_000])


def _few(**changes: Any) -> dict[str, Any]:
    return {**_SMALL, "min_progress_tokens": 1, **changes}


PUBLISHED: Final[st.SearchStrategy[Policy]] = st.one_of(
    st.builds(
        lambda limit, n: presets.keep_last(
            messages=n, **_few(max_tokens=limit, trigger={"kind": "over_threshold", "system_reserve": 50})
        ),
        _LIMITS,
        st.integers(1, 6),
    ),
    st.builds(
        lambda limit, share: presets.keep_ratio(share=share, **_few(max_tokens=limit)),
        _LIMITS,
        st.sampled_from([0.1, 0.4, 0.8]),
    ),
    st.builds(
        lambda limit, turns, protect: presets.prune_then_summarize(
            keep_turns=turns, protect=protect, minimum=protect // 2, **_few(max_tokens=limit)
        ),
        _LIMITS,
        st.integers(1, 2),
        st.sampled_from([0, 100, 400]),
    ),
    st.builds(
        lambda limit: presets.priority_chain(
            **_few(
                max_tokens=limit,
                steps=[
                    {"kind": "strip_chitchat"},
                    {"kind": "summarize", "cut": {"kind": "oldest", "messages": 4}},
                    {"kind": "drop_oldest", "keep_last": 6},
                ],
            )
        ),
        _LIMITS,
    ),
)
"""The designs of seeds 000, 001, 003 and 004, with figures that a short conversation meets."""
PROMPTS: Final[st.SearchStrategy[dict[str, Any]]] = st.sampled_from([{}, {"system": "Be brief."}])


@search(40)
@given(ORDERLY_LOGS, PUBLISHED, PROMPTS)
def test_every_render_of_an_orderly_conversation_keeps_the_invariants_under_a_published_design(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """Limit, pairing, stable prefix, recall, order, replay and progress hold after every append."""
    run(watch(steps, policy, prompt))


@search(40)
@given(LOGS, PUBLISHED, PROMPTS)
def test_every_render_of_a_hostile_log_keeps_the_invariants_under_a_published_design(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """The same holds for any log at all."""
    run(watch(steps, policy, prompt))


@search(25)
@given(LONG_RUNS, PUBLISHED, PROMPTS)
def test_every_render_of_a_long_running_agent_keeps_the_invariants_under_a_published_design(
    steps: list[Step], policy: Policy, prompt: dict[str, Any]
) -> None:
    """The same holds while the application compacts, takes back, hides, pins and redacts."""
    run(watch(steps, policy, prompt))
