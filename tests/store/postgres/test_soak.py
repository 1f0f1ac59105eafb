"""Many agents on one server for a while, in several processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.depth import DEPTH, Depth, full_depth
from tests.soak import Pace, soak, summary

if TYPE_CHECKING:
    from tests.postgres_server import Server

PACE = Pace(2_000, 1_200, 10) if DEPTH is Depth.NIGHT else Pace(100, 60, 2)
GROWTH = 1.5
"""Memory at the end, in times of that in the middle: windows fill up until they are compacted."""


@full_depth
@pytest.mark.timeout(3 * PACE.seconds + 300)
def test_agents_share_a_server_without_a_problem(own_postgres: Server) -> None:
    """What was acknowledged is there, every conversation is sound, and memory stays level."""
    report = soak(own_postgres.url(schema="soak"), PACE)
    print(json.dumps(summary(report, PACE)))
    assert report.problems == []
    assert report.appends > PACE.agents
    assert report.growth() < GROWTH
