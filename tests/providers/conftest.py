from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from llmock.testing import LLMockServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def other() -> Iterator[LLMockServer]:
    """Serve a fake provider of other authors."""
    with LLMockServer() as server:
        yield server
