"""What every wire writes, the same wire reads: one property, and what some of them say besides."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given

from tests.wire.entries import THINKING, assert_survives, legal_entries
from timeline.blocks import Reasoning, ToolResult
from timeline.wire import WIRES, decoder, encoder
from timeline.wire.neutral import Entry, NeutralContext

SAY_ERRORS: Final = {"anthropic", "gemini", "ai_sdk", "ai_sdk_ui"}
"""The others have no place for a result's failure."""
KEEP_THOUGHTS: Final = {"anthropic", "ai_sdk"}
"""Reasoning that Anthropic signed."""


@pytest.mark.shows("004-82")
@pytest.mark.parametrize("wire", WIRES)
@given(entries=legal_entries())
def test_what_was_encoded_decodes_to_the_same_calls_and_texts(wire: str, entries: list[Entry]) -> None:
    """Calls with their arguments, results, prompts and answers survive the way there and back."""
    blocks = decoder(wire)(encoder(wire)(NeutralContext(entries=tuple(entries))))
    assert_survives(entries, blocks)
    if wire in SAY_ERRORS:
        failed = {b.call_id: b.is_error for b in blocks if isinstance(b, ToolResult)}
        assert failed == {e.call_id: e.is_error for e in entries if e.type == "react.tool.result"}
    if wire in KEEP_THOUGHTS:
        assert all(b.data == THINKING for b in blocks if isinstance(b, Reasoning))
