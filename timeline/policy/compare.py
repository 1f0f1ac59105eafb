"""Compare two policies: every field that either of them holds, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from timeline.frozen import compact_json
from timeline.policy.model import check_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.policy.model import Policy


class FieldDiff(NamedTuple):
    """One field of two policies; ``before`` and ``after`` are None where a policy has no value there.

    Attributes:
        field: its place, for example ``hiding.ttl`` or ``steps.0.cut.turns``.
        before: the first policy's value.
        after: the second policy's value.
    """

    field: str
    before: Any
    after: Any

    @property
    def differs(self) -> bool:
        """Whether the two values differ."""
        return type(self.before) is not type(self.after) or bool(self.before != self.after)


def diff_policies(before: Policy, after: Policy) -> tuple[FieldDiff, ...]:
    """Return the fields in which two policies differ; none for equal ones.

    Raises:
        InvalidArgument: one of them is not a policy.
    """
    for name, policy in (("before", before), ("after", after)):
        check_policy(name, policy)
    return tuple(row for row in compare_policies(before, after) if row.differs)


def compare_policies(before: Policy, after: Policy) -> tuple[FieldDiff, ...]:
    """Return every field of two policies, whether it differs or not, in the order of the policy."""
    sides = flat(before), flat(after)
    fields = _in_order(list(sides[0]), list(sides[1]))
    return tuple(FieldDiff(field, sides[0].get(field), sides[1].get(field)) for field in fields)


def flat(policy: Policy) -> dict[str, Any]:
    """Return the fields of a policy by place, nested ones included; fields that are None are left out."""
    return dict(_flat(policy.model_dump(mode="json"), ""))


def _flat(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _flat(item, f"{place}.{number}")
    elif value is not None:
        yield place, value


def _in_order(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Merge two lists of places. Each list keeps its order, and the fields of one part stay together."""
    merged = list(before)
    for number, field in enumerate(after):
        if field in merged:
            continue
        ahead = after[number - 1] if number else None
        merged.insert(0 if ahead is None else merged.index(ahead) + 1, field)
    return merged


def shown(value: Any) -> str:
    """Format a field's value in one line; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value if value and value == value.strip() and "\n" not in value else compact_json(value)
    return f"{value:,}" if type(value) is int else compact_json(value)
