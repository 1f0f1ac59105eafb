"""An event-sourced timeline for agent conversations.

The public names on one screen. `open_store` and `summarizers` are lazy re-exports of the packages `store` and
`summarizers`, which applications may have names of their own for: import everything from here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from types import ModuleType

    import summarizers
    from store import open_store
    from timeline import policies
    from timeline.errors import TimelineError
    from timeline.policy.model import Policy
    from timeline.ports import Hooks, Skip
    from timeline.projection.context import RenderedContext
    from timeline.timeline import Timeline

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
    "open_store": ("store", "open_store"),
    "policies": ("timeline.policies", None),
    "summarizers": ("summarizers", None),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: `timeline --help` must not pay for a database."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module_name, attribute = _LAZY[name]
    module = import_module(module_name) if module_name.startswith("timeline.") else _sibling(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def _sibling(name: str) -> ModuleType:
    """Import the package that was installed beside this one, even where an application's own module hides its name."""
    path = Path(__file__).resolve().parent.parent / name / "__init__.py"
    known = sys.modules.get(name)
    spec = known.__spec__ if known is not None else find_spec(name)
    if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path:
        return import_module(name)
    alias = f"timeline_engine_{name}"
    if alias not in sys.modules:
        own = spec_from_file_location(alias, path, submodule_search_locations=[str(path.parent)])
        if own is None or own.loader is None:
            raise ImportError(f"the package {name!r} of timeline-engine is not installed at {path}")
        module = module_from_spec(own)
        sys.modules[alias] = module
        own.loader.exec_module(module)
    return sys.modules[alias]
