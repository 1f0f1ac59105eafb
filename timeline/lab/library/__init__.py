"""Policies to compare with: the published defaults of agents and frameworks, as far as our steps can express them.

Each is a TOML file that `policies.load` reads; its first lines name the source and what is approximated.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from timeline.errors import InvalidPolicy
from timeline.policy.files import load_policy, parse_policy
from timeline.policy.presets import PRESETS, by_name
from timeline.policy.text import nearest

if TYPE_CHECKING:
    from timeline.policy.model import Policy


@cache
def peers() -> dict[str, str]:
    """Return the texts of the published policies, by name."""
    found = [file for file in files(__package__).iterdir() if file.name.endswith(".toml")]
    return {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in sorted(found, key=str)}


def about(name: str) -> str:
    """Return the comment of a published policy's file: its source, and what is approximated."""
    lines = peers()[name].splitlines()
    told = lines[: next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))]
    return " ".join(line.removeprefix("#").strip() for line in told)


def lab_policy(name: str, **changes: Any) -> Policy:
    """Return a policy by name: a preset, a published one, or a TOML file (a name that ends in ``.toml``).

    Raises:
        InvalidPolicy: there is no policy of that name, the file cannot be read, or a field is not valid.
        InvalidLimits: a model is named, and a file of limits cannot be used.
    """
    if name.endswith(".toml"):
        return load_policy(name, **changes)
    if name in PRESETS:
        return by_name(name, **changes)
    if (text := peers().get(name)) is None:
        known = nearest(name, [*PRESETS, *peers()])
        raise InvalidPolicy("policy", f"there is no preset and no published policy {name!r}{known}")
    return parse_policy(text, file=f"{name}.toml", **changes)
