"""An event-sourced timeline for agent conversations: the public names, each imported on first use."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # So written, pyright finds them in an editable install too.
    import timeline.store as store  # noqa: PLR0402
    import timeline.summarizers as summarizers  # noqa: PLR0402
    from timeline import policies
    from timeline.errors import TimelineError
    from timeline.message_lists import CompactedMessages, compact_messages
    from timeline.policy.model import Policy
    from timeline.ports import Hooks, Skip
    from timeline.projection.context import RenderedContext
    from timeline.store import open_store
    from timeline.timeline import Timeline

if Path(__file__).with_name("checkout").is_dir():  # no wheel has it; there, `store` and `summarizers` are inside
    from timeline import checkout

    checkout.install()

__version__: Final = "0.1.0"

__all__ = [
    "CompactedMessages",
    "Hooks",
    "Policy",
    "RenderedContext",
    "Skip",
    "Timeline",
    "TimelineError",
    "compact_messages",
    "open_store",
    "policies",
    "store",
    "summarizers",
]

_LAZY: Final = {
    "CompactedMessages": ("timeline.message_lists", "CompactedMessages"),
    "Hooks": ("timeline.ports", "Hooks"),
    "Policy": ("timeline.policy.model", "Policy"),
    "RenderedContext": ("timeline.projection.context", "RenderedContext"),
    "Skip": ("timeline.ports", "Skip"),
    "Timeline": ("timeline.timeline", "Timeline"),
    "TimelineError": ("timeline.errors", "TimelineError"),
    "compact_messages": ("timeline.message_lists", "compact_messages"),
    "open_store": ("timeline.store", "open_store"),
    "policies": ("timeline.policies", None),
    "store": ("timeline.store", None),
    "summarizers": ("timeline.summarizers", None),
}


if not TYPE_CHECKING:  # to a type checker every name would be there, and of any type

    def __getattr__(name: str) -> Any:
        """Import a public name on first use: `timeline --help` must not pay for the import of a database."""
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from timeline.log.collector import collector_at_rest  # noqa: PLC0415 - as late as the rest

        module_name, attribute = _LAZY[name]
        with collector_at_rest():
            module = import_module(module_name)
        value = module if attribute is None else getattr(module, attribute)
        globals()[name] = value
        return value
