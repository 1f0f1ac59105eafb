"""Build a named policy: the preset's own fields, then its model's limits, then the caller's changes on top."""

from __future__ import annotations

from functools import lru_cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias

from pydantic import TypeAdapter, ValidationError

from timeline.display.logs import logger_of
from timeline.errors import InvalidPolicy
from timeline.events import PolicyOrigin
from timeline.policy.limits import ModelLimits, limits_of, own_limits, unknown_model
from timeline.policy.model import Never, Overdrawn, OverFallingShare, OverShare, Policy
from timeline.policy.text import invalid_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from timeline.policy.model import Trigger

P = ParamSpec("P")
_LOGGER: Final = logger_of("timeline")
_AS_GIVEN: Final[TypeAdapter[Any]] = TypeAdapter(Any)

Model: TypeAlias = str | ModelLimits | None
"""A model by its name, or by its limits."""
LIMITED: Final = ("max_tokens",)
COUNTED: Final = ("max_tokens", "counter", "margin")
RESERVED: Final = ("max_tokens", "output_reserve", "counter", "margin")
"""The fields that a preset takes from a model: for the designs that count characters, only the limit."""


def preset(release: int) -> Callable[[Callable[P, Policy]], Callable[P, Policy]]:
    """Mark a function that builds a policy as a preset: its policies know their preset, its release and the arguments.

    Args:
        release: number of the preset's figures. Raise it whenever the same arguments make another policy:
            conversations that recorded an earlier release keep their figures.
    """

    def mark(build: Callable[P, Policy]) -> Callable[P, Policy]:
        @wraps(build)
        def made(*args: P.args, **kwargs: P.kwargs) -> Policy:
            return made_by(build.__name__, release, build(*args, **kwargs), kwargs)

        return made

    return mark


def made_by(name: str, release: int, policy: Policy, arguments: Mapping[str, Any]) -> Policy:
    """Return a policy that knows the preset that made it, with its arguments as the caller gave them.

    The limits that the user's own file has for a model are arguments, too: a change of the file is another choice.
    """
    given = _AS_GIVEN.dump_python(dict(arguments), mode="json", exclude_unset=True, fallback=str)
    model = arguments.get("model")
    if isinstance(model, str) and (own := own_limits(model, name)) is not None:
        given["limits"] = own.model_dump(mode="json", exclude_unset=True)
    return policy.made_from(PolicyOrigin(name=policy.name, preset=name, release=release, arguments=given))


def keywords_of(build: Callable[..., Policy]) -> frozenset[str]:
    """Return the keywords that a preset takes besides the fields of a policy."""
    parameters = signature(build).parameters.values()
    return frozenset(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


def make(
    build: Callable[..., Policy],
    fields: dict[str, Any],
    changes: Mapping[str, Any],
    model: Model,
    takes: tuple[str, ...] = LIMITED,
) -> Policy:
    """Build the policy of a preset and name it after the preset.

    A change that is a table changes single fields of the preset's part, as it does in a file.

    Raises:
        InvalidPolicy: a field does not exist or does not hold.
    """
    named = {"name": build.__name__, **fields}
    try:
        tables = {name: change for name, change in changes.items() if isinstance(change, dict)}
        if tables:
            parts = Policy.model_validate(named).model_dump(include=set(tables))
            changes = {**changes, **merged(parts, tables)}
        # First without the model: an unknown model takes this policy's limit, the caller's changes included.
        policy = Policy.model_validate({**named, **changes})
        if model is None:
            return policy
        taken = of_model(model, policy, takes, given=changes, preset=build.__name__)
        return Policy.model_validate({**named, **taken, **changes})
    except ValidationError as error:
        raise invalid_policy(error, Policy, keywords=keywords_of(build)) from None


def merged(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with changes, where a table changes single fields of a part of its kind."""
    return {**fields, **{name: _merged_part(fields.get(name), change) for name, change in changes.items()}}


def _merged_part(held: Any, change: Any) -> Any:
    """Change a part field by field where old and new are tables of one kind; otherwise replace it."""
    if not isinstance(held, dict) or not isinstance(change, dict):
        return change
    kind = held.get("kind")
    return merged(held, change) if change.get("kind", kind) == kind else change


def with_limit(policy: Policy, *, max_tokens: int | None = None, model: Model = None) -> Policy:
    """Return a policy with another limit, or with that of a model; what counts characters goes on doing so.

    Raises:
        InvalidPolicy: the policy cannot have this limit.
        InvalidLimits: the file that TIMELINE_LIMITS names cannot be used.
    """
    takes = LIMITED if policy.counter == "chars4" else COUNTED
    given = {} if max_tokens is None else {"max_tokens": max_tokens}
    taken = {} if model is None else of_model(model, policy, takes, given=given)
    try:
        return Policy.model_validate({**policy.model_dump(), **taken, **given})
    except ValidationError as error:
        raise invalid_policy(error, Policy) from None


def of_model(
    model: str | ModelLimits, policy: Policy, takes: tuple[str, ...], *, given: Collection[str], preset: str = ""
) -> dict[str, Any]:
    """Return the fields that a policy takes from a model; an unknown model has the policy's own limit, with a warning.

    The trigger is among them where the limits name a share: the policy's trigger with that share.

    Args:
        model: whose limits.
        policy: the policy as it is without the model.
        takes: names of the fields that it takes.
        given: names of the fields that the caller gives, which go before what the model has.
        preset: takes the providers' figures that are for this preset, too.

    Raises:
        InvalidPolicy: the model is neither a name nor limits.
        InvalidLimits: the file that TIMELINE_LIMITS names cannot be used.
    """
    limits = model
    if isinstance(limits, str):
        if "max_tokens" not in given:
            _warn_of_unknown(limits, policy.max_tokens, preset)
        limits = limits_of(limits, default=ModelLimits(context=policy.max_tokens), preset=preset)
    elif not isinstance(limits, ModelLimits):
        raise InvalidPolicy("model", f"it must be a model's name, or what limits_of returned, not {limits!r}")
    reserve = policy.output_reserve
    if "output_reserve" in takes and limits.max_output is not None:
        reserve = limits.max_output
    found = {
        "max_tokens": limits.room(reserve),
        "output_reserve": reserve,
        "counter": limits.counter,
        "margin": limits.margin if policy.counts == "counter" else round(limits.first_ratio - 1, 4),
    }
    taken: dict[str, Any] = {name: found[name] for name in takes}
    return taken if limits.trigger is None else {**taken, "trigger": _at_share(policy.trigger, limits.trigger)}


@lru_cache(maxsize=128)
def _warn_of_unknown(model: str, max_tokens: int, preset: str) -> None:
    """Log that a model's name is in no table: if it is misspelt, its limit may be too small, or too large.

    Each name is logged once in a process, since an application may make its policy with every request.
    """
    problem = unknown_model(model, preset)
    if problem is not None:
        cure = "Give max_tokens, or name a file with its limits in TIMELINE_LIMITS."
        _LOGGER.warning("%s The policy keeps its own limit of %s tokens. %s", problem, f"{max_tokens:,}", cure)


def _at_share(trigger: Trigger, share: float) -> Trigger:
    """Return a trigger with one other share: of the limit, if it had none or two. `Never` stays `Never`."""
    if isinstance(trigger, Never):
        return trigger
    if isinstance(trigger, Overdrawn | OverFallingShare):
        return OverShare(share=share)
    return trigger.model_copy(update={"share": share})
