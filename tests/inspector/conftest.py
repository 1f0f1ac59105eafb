from __future__ import annotations

from tests.lab.conftest import browser

__all__ = ["browser"]
