"""Build a named policy: the preset's own fields, then its model's limits, then the caller's changes on top."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import ValidationError

from timeline.errors import InvalidPolicy
from timeline.policy.limits import ModelLimits, limits_of
from timeline.policy.model import Never, Overdrawn, OverShare, Policy
from timeline.policy.text import invalid_policy

if TYPE_CHECKING:
    from collections.abc import Callable

    from timeline.policy.model import Trigger

Model: TypeAlias = str | ModelLimits | None
"""A model by its name, or by its limits."""
LIMITED: Final = ("max_tokens",)
COUNTED: Final = ("max_tokens", "counter", "margin")
RESERVED: Final = ("max_tokens", "output_reserve", "counter", "margin")
"""The fields that a preset takes from a model: for the designs that count characters, only the limit."""


def keywords_of(preset: Callable[..., Policy]) -> frozenset[str]:
    """Return the keywords that a preset takes besides the fields of a policy."""
    parameters = signature(preset).parameters.values()
    return frozenset(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


def make(
    preset: Callable[..., Policy],
    fields: dict[str, Any],
    changes: dict[str, Any],
    model: Model,
    takes: tuple[str, ...] = LIMITED,
) -> Policy:
    """Build the policy of a preset and name it after the preset.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    named = {"name": preset.__name__, **fields}
    try:
        # First without the model: an unknown model takes this policy's limit, the caller's changes included.
        policy = Policy.model_validate({**named, **changes})
        if model is None:
            return policy
        taken = of_model(model, policy, takes, preset=preset.__name__)
        return Policy.model_validate({**named, **taken, **changes})
    except ValidationError as error:
        raise invalid_policy(error, Policy, keywords=keywords_of(preset)) from None


def of_model(model: str | ModelLimits, policy: Policy, takes: tuple[str, ...], *, preset: str = "") -> dict[str, Any]:
    """Return the fields that a policy takes from a model; an unknown model has the policy's own limit.

    The trigger is among them where the limits name a share: the policy's trigger with that share.

    Raises:
        InvalidPolicy: the model is neither a name nor limits.
        InvalidLimits: the file that TIMELINE_LIMITS names cannot be used.
    """
    limits = model
    if isinstance(limits, str):
        limits = limits_of(limits, default=ModelLimits(context=policy.max_tokens), preset=preset)
    elif not isinstance(limits, ModelLimits):
        raise InvalidPolicy("model", f"it is a model's name, or what limits_of says, not {limits!r}")
    reserve = policy.output_reserve
    if "output_reserve" in takes and limits.max_output is not None:
        reserve = limits.max_output
    found = {
        "max_tokens": limits.room(reserve),
        "output_reserve": reserve,
        "counter": limits.counter,
        "margin": limits.margin,
    }
    taken: dict[str, Any] = {name: found[name] for name in takes}
    return taken if limits.trigger is None else {**taken, "trigger": _at_share(policy.trigger, limits.trigger)}


def _at_share(trigger: Trigger, share: float) -> Trigger:
    """Return a trigger with another share; one that has none becomes a share of the limit, and never stays never."""
    if isinstance(trigger, Never):
        return trigger
    return OverShare(share=share) if isinstance(trigger, Overdrawn) else trigger.model_copy(update={"share": share})
