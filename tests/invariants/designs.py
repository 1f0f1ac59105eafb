"""The published designs and our own as strategies, with figures that a short conversation meets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from timeline import policies
from timeline.policy.model import OverThreshold

if TYPE_CHECKING:
    from timeline.policy.model import Policy

_SMALL: Final[dict[str, Any]] = {"counter": "chars4", "output_reserve": 100, "safety_buffer": 0, "min_progress": 0.0}
_LIMITS: Final = st.sampled_from([1_000, 2_000, 6_000])


def _few(**changes: Any) -> dict[str, Any]:
    return {**_SMALL, "min_progress_tokens": 1, **changes}


_PUBLISHED: Final[st.SearchStrategy[Policy]] = st.one_of(
    st.builds(
        lambda limit, n: policies.keep_last(
            messages=n, **_few(max_tokens=limit, trigger=OverThreshold(system_reserve=50))
        ),
        _LIMITS,
        st.integers(1, 6),
    ),
    st.builds(
        lambda limit, share: policies.keep_ratio(share=share, **_few(max_tokens=limit)),
        _LIMITS,
        st.sampled_from([0.1, 0.4, 0.8]),
    ),
    st.builds(
        lambda limit, turns, protect: policies.prune_then_summarize(
            keep_turns=turns, protect=protect, minimum=protect // 2, **_few(max_tokens=limit)
        ),
        _LIMITS,
        st.integers(1, 2),
        st.sampled_from([0, 100, 400]),
    ),
    st.builds(
        lambda limit: policies.priority_chain(
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

_OURS: Final[st.SearchStrategy[Policy]] = st.builds(
    lambda preset, limit: preset(**_few(max_tokens=limit)),
    st.sampled_from([policies.gentle, policies.balanced, policies.economical]),
    _LIMITS,
)
"""The library's own, in the same way."""
DESIGNS: Final = _PUBLISHED | _OURS
