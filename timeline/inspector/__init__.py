"""The inspector: what a model saw, and why, as a page and as a small JSON API over a store.

`inspector(store)` is one ASGI application, which `timeline inspect` serves and an application mounts. It needs the
extra ``inspector``; the modules that read and the shapes of the answers do not. Errors of the library pass through
what reads, which does not list them: `timeline.inspector.problems` answers each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timeline.inspector.app import inspector

__all__ = ["inspector"]


if not TYPE_CHECKING:  # to a type checker every name would be there, and of any type

    def __getattr__(name: str) -> Any:
        if name != "inspector":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from timeline.inspector import app  # noqa: PLC0415 - it needs the extra; the shapes beside it do not

        return app.inspector
