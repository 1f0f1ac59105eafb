"""The contract of an adapter as tests: write a `Driver` of your framework, subclass `AdapterContract`, and run pytest.

    class TestMyAdapter(AdapterContract, BlockingClauses):
        def make_driver(self, model: ScriptedModel) -> Driver:
            return MyDriver(model)

A driver is an application of the framework: it keeps histories as applications do, and has the framework call a model
that answers by the contract's script. The model judges each request as a provider would, so a driver is best put on the
wire: a server on loopback that the framework's own client talks to.

`BlockingClauses`, `SummaryClauses` and `GuardrailClauses` are for frameworks that have such. Needs pytest and
pytest-asyncio with ``asyncio_mode = "auto"``.
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in ("base", "runs", "histories", "optional")))

from timeline.integrations.testing.driver import DrivenAgent, Driver  # noqa: E402 - after the asserts were announced
from timeline.integrations.testing.histories import HistoryClauses  # noqa: E402 - after the asserts were announced
from timeline.integrations.testing.model import (  # noqa: E402 - after the asserts were announced
    Reply,
    ScriptedModel,
    Sent,
    ToolUse,
)
from timeline.integrations.testing.optional import (  # noqa: E402 - after the asserts were announced
    BlockingClauses,
    GuardrailClauses,
    SummaryClauses,
)
from timeline.integrations.testing.runs import RunClauses  # noqa: E402 - after the asserts were announced

__all__ = [
    "AdapterContract",
    "BlockingClauses",
    "DrivenAgent",
    "Driver",
    "GuardrailClauses",
    "Reply",
    "ScriptedModel",
    "Sent",
    "SummaryClauses",
    "ToolUse",
]


class AdapterContract(RunClauses, HistoryClauses):
    """What every adapter keeps. Subclasses override `make_driver`."""
