"""Agents of sixty turns with tools: refused for their size, killed, resumed, and regenerated from the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.depth import full_depth
from tests.integrations.sixty_turns.scene import play

if TYPE_CHECKING:
    from pathlib import Path


@full_depth
@pytest.mark.timeout(600)
def test_sixty_turns_of_langchain(tmp_path: Path) -> None:
    """Its history is a checkpointer's."""
    play("tests.integrations.contract.langchain:of_scene", tmp_path).check(has_guardrails=False)


@full_depth
@pytest.mark.timeout(600)
def test_sixty_turns_of_pydantic_ai(tmp_path: Path) -> None:
    """Its history is what the application stores after each step."""
    play("tests.integrations.contract.pydantic_ai:of_scene", tmp_path).check(has_guardrails=False)


@full_depth
@pytest.mark.timeout(600)
def test_sixty_turns_of_the_openai_agents_sdk(tmp_path: Path) -> None:
    """Its history is the session."""
    played = play("tests.integrations.contract.openai_agents:of_responses", tmp_path)
    played.check(has_guardrails=True)
