"""Of the contract on further servers, only the night plays the whole: the part of the other depths is fixed."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from tests.depth import Depth

EVERY: Final = 4
"""A repair behind a pool failed for half a day while CI played one in ten."""


@pytest.hookimpl(tryfirst=True)  # before the depth is looked at
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave three of four tests of a class with the attribute ``in_part`` to the night."""
    seen: Counter[object] = Counter()
    for item in items:
        of = getattr(item, "cls", None)
        if getattr(of, "in_part", False):
            seen[of] += 1
            if seen[of] % EVERY:
                item.add_marker(pytest.mark.from_depth(Depth.NIGHT))
