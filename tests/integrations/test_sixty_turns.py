"""Agents of sixty turns with tools: refused for their size, killed, resumed, and regenerated from the middle.

A night plays them. CI plays a scene of twenty-four turns, which hold all of these, with the Claude Agent SDK
(`frameworks/test_claude_agent_sdk_suite.py`): what differs by the framework is in the contract of adapters, which CI
plays for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.depth import at_night
from tests.integrations.sixty_turns.scene import play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.timeout(600)


@at_night
def test_turns_of_langchain(tmp_path: Path) -> None:
    """Its history is a checkpointer's."""
    play("tests.integrations.contract.langchain:of_scene", tmp_path).check(has_guardrails=False)


@at_night
def test_turns_of_pydantic_ai(tmp_path: Path) -> None:
    """Its history is what the application stores after each step."""
    play("tests.integrations.contract.pydantic_ai:of_scene", tmp_path).check(has_guardrails=False)


@at_night
def test_turns_of_the_openai_agents_sdk(tmp_path: Path) -> None:
    """Its history is the session."""
    play("tests.integrations.contract.openai_agents:of_responses", tmp_path).check(has_guardrails=True)
