"""Read a plan out of the call of a planning tool: its steps, each with its status.

`TodoWrite`, `update_plan`, `todowrite` and `write_todos` give the whole plan with each call, so the newest call has the
plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from timeline.blocks import ToolCall

_KEYS: Final = ("content", "step", "title", "task", "description")
"""Keys under which planning tools have the words of a step."""
_DONE: Final = frozenset({"completed", "done"})
_GIVEN_UP: Final = frozenset({"cancelled", "canceled", "deleted"})


class PlanStep(NamedTuple):
    """A step of a plan.

    Attributes:
        status: the tool's own word.
        text: what is to be done; empty where the tool has it under another key.
    """

    status: str
    text: str

    @property
    def is_done(self) -> bool:
        """Whether the step is done."""
        return self.status in _DONE

    @property
    def is_open(self) -> bool:
        """Whether the step is still to be done, or is being done."""
        return self.status not in _DONE | _GIVEN_UP


def plan_of(call: ToolCall) -> list[PlanStep]:
    """Return the steps of the plan that a call gives: a list of objects, each with a status. Other calls give none."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    for value in arguments.values():
        if not isinstance(value, list) or not value:
            continue
        steps = [step for step in value if isinstance(step, dict) and "status" in step]
        if len(steps) == len(value):
            return [PlanStep(str(s["status"]), str(next((s[key] for key in _KEYS if s.get(key)), ""))) for s in steps]
    return []
