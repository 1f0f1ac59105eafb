"""Summarizers of an application, as a timeline meets them: whatever they do wrong is one typed failure."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenes import opened, small_policy, turn
from timeline.errors import SummarizerFailed
from timeline.store.memory import MemoryStore


class Broken:
    """An application's summarizer without a name, which raises what it likes."""

    async def summarize(self, request: Any) -> Any:
        """Fail."""
        del request
        raise ConnectionError("down")


@pytest.mark.parametrize("on_failure", ["unchanged", "next_step"])
async def test_whatever_a_summarizer_raises_ends_as_one_typed_failure(on_failure: Any) -> None:
    """Where no other one answers for it, too; no group of errors comes through."""
    policy = small_policy(max_tokens=4_000, keep_recent_tokens=400, on_failure=on_failure)
    timeline = await opened(MemoryStore(), policy=policy, summarizer=Broken())
    await timeline.append(*turn(1_500), *turn(1_500), *turn(400, asked=300))
    with pytest.raises(SummarizerFailed, match="Broken: ConnectionError: down"):
        await timeline.compact()
    assert timeline.window.summaries == ()
