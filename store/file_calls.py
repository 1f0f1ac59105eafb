"""The calls on open files that POSIX has: ``fcntl`` is None on Windows."""

from __future__ import annotations

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["fcntl"]
