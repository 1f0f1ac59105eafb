"""Find policies by name, and read them from TOML files: a preset or published design with changes, or a whole policy.

preset = "keep_last"            # or "pi"; leave it out for a whole policy
max_tokens = 64_000
messages = 20                   # the preset's own keywords, too
hiding = false                  # switches an optional part off

[form]                          # the preset's form, with this text
heading = "## So far (round {round})"

[[steps]]                       # instead of all the preset's steps
kind = "summarize"
cut = {kind = "keep_last", messages = 20}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import ValidationError

from timeline.databases import read_text
from timeline.errors import InvalidPolicy
from timeline.policy import lean
from timeline.policy.library import RELEASE, designs
from timeline.policy.making import COUNTED, keywords_of, made_by, merged, of_model
from timeline.policy.model import Policy
from timeline.policy.presets import PRESETS
from timeline.policy.reading import InvalidToml, read_toml, unreadable
from timeline.policy.text import invalid_policy, nearest

if TYPE_CHECKING:
    from os import PathLike

    from timeline.events import PolicyOrigin

_MAY_BE_ABSENT: Final = frozenset(
    name for name, field in Policy.model_fields.items() if type(None) in get_args(field.annotation)
)
"""Fields that ``false`` switches off; TOML has no null."""


def by_name(name: str, /, **changes: Any) -> Policy:
    """Build a policy by its name: a preset, a published design such as ``pi``, or a lean one such as ``lean-pi``.

    Args:
        name: the preset or design; with ``lean-`` before it, a policy that decides the same and sends less.
        changes: the preset's keyword arguments, and fields of the policy. Of a lean policy, those of `lean.FIELDS`
            change the lean policy itself, all others the policy that it is made from.

    Raises:
        InvalidPolicy: there is no such policy, or a field is not valid.
        InvalidLimits: a model is named, and a file of limits cannot be used.
    """
    if not isinstance(name, str):
        raise InvalidPolicy(
            "preset", f"it must be a policy's name, such as 'balanced', not of type {type(name).__name__}"
        )
    if (preset := PRESETS.get(name)) is not None:
        return preset(**changes)
    if (text := designs().get(name)) is not None:
        return made_by(name, RELEASE, parse_policy(text, file=f"{name}.toml", **changes), changes)
    if name in policy_names():
        return _lean_by_name(name, changes)
    near = nearest(name, policy_names())
    known = f"the presets are {', '.join(PRESETS)}, the published designs {', '.join(designs())}"
    raise InvalidPolicy("preset", f"there is no preset and no published design {name!r}{near}; {known}")


def _lean_by_name(name: str, changes: dict[str, Any]) -> Policy:
    """Build a lean policy. Changes of `lean.FIELDS` apply to it; all others apply to the policy it is made from."""
    own = {field: changes[field] for field in lean.FIELDS if field in changes}
    others = {field: value for field, value in changes.items() if field not in own}
    whole = by_name(name.removeprefix(lean.PREFIX), **others)
    try:
        made = Policy.model_validate(merged(lean.lean(whole).model_dump(), own))
    except ValidationError as error:
        raise invalid_policy(error, Policy) from None
    return made_by(name, whole.origin.release + lean.RELEASE - 1, made, changes)


def policy_names() -> list[str]:
    """Return every name that `by_name` knows: the presets, the published designs, and the lean ones of both."""
    plain = [*PRESETS, *designs()]
    return [*plain, *(f"{lean.PREFIX}{name}" for name in plain)]


def load_policy(path: str | PathLike[str], **changes: Any) -> Policy:
    """Read a policy from a TOML file.

    Args:
        path: the file.
        changes: keyword arguments of the preset, and fields of the policy, that override the file's; a model
            overrides the file's limit, too.

    Raises:
        InvalidPolicy: the file cannot be read, or a field is not valid; the error names file and field, and the nearest
            valid name.
        InvalidLimits: the file names a model, and a file of limits cannot be used.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPolicy("", unreadable(error), file=str(path)) from None
    return parse_policy(text, file=str(path), **changes)


def find_policy(name: str, **changes: Any) -> Policy:
    """Return the policy of a name that a user typed: a preset, a published design, or the path of a ``.toml`` file.

    Raises:
        InvalidPolicy: there is no such policy, the file cannot be read, or a field does not hold.
        InvalidLimits: a model is named, and a file of limits cannot be used.
    """
    return load_policy(name, **changes) if name.endswith(".toml") else by_name(name, **changes)


def parse_policy(text: str, *, file: str = "", **changes: Any) -> Policy:
    """Read a policy from the text of a TOML file; see `load_policy`.

    Raises:
        InvalidPolicy: the text is no TOML, or a field does not hold.
        InvalidLimits: the text names a model, and a file of limits cannot be used.
    """
    try:
        fields = read_toml(text)
    except InvalidToml as error:
        raise InvalidPolicy("", str(error), file=file) from None
    if "model" in changes:
        fields.pop("max_tokens", None)
    fields = merged(fields, changes)
    fields |= {name: None for name in _MAY_BE_ABSENT if fields.get(name) is False}
    preset = fields.pop("preset", None)
    try:
        return _whole(fields) if preset is None else _changed(preset, fields)
    except ValidationError as error:
        keywords = keywords_of(PRESETS[preset]) if preset in PRESETS else {"model", "preset"}
        raise invalid_policy(error, Policy, keywords=keywords, file=file) from None
    except InvalidPolicy as error:
        raise InvalidPolicy(error.field, error.problem, file=file) from None


def _whole(fields: dict[str, Any]) -> Policy:
    """Build a policy from its fields; a model, if named, supplies the limits and counter that the fields leave out."""
    model = fields.pop("model", None)
    policy = Policy.model_validate(fields)
    return (
        policy if model is None else Policy.model_validate({**of_model(model, policy, COUNTED, given=fields), **fields})
    )


def _changed(preset: Any, fields: dict[str, Any]) -> Policy:
    """Apply changes to a preset: its own keywords first, then single fields, tables field by field."""
    if not isinstance(preset, str):
        raise InvalidPolicy("preset", f"it must be the name of a preset, not {preset!r}")
    tables = {name: value for name, value in fields.items() if isinstance(value, dict)}
    policy = by_name(preset, **{name: value for name, value in fields.items() if name not in tables})
    if not tables:
        return policy
    changed = Policy.model_validate(merged(policy.model_dump(), tables))
    return changed.made_from(_with_tables(changed, policy.origin, tables))


def _with_tables(changed: Policy, made: PolicyOrigin, tables: dict[str, Any]) -> PolicyOrigin:
    """Return the origin of a file's preset. Tables, which change single fields of a part, are arguments, too."""
    return made.model_copy(update={"name": changed.name, "arguments": {**made.arguments, "tables": tables}})
