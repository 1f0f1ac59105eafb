"""The base of every value in the library: a frozen model that refuses unknown fields; and the JSON that is hashed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cache
from itertools import islice
from operator import eq
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, TypeVar, overload

from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

T = TypeVar("T")

JsonInput: TypeAlias = "str | int | float | Sequence[object] | Mapping[str, object] | None"
"""JSON as a caller hands it over: dicts, lists, tuples, texts, numbers, flags and None, in any depth.

To a type checker an SDK's ``TypedDict``, and a variable that holds a list or a dict, are no `pydantic.JsonValue`.
"""


class Frozen(BaseModel):
    """A frozen pydantic model that refuses unknown fields."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


FrozenT = TypeVar("FrozenT", bound=Frozen)


_new: Final = object.__new__
_SLOTS: Final = vars(BaseModel)
_set_fields: Final = _SLOTS["__dict__"].__set__
_set_given: Final = _SLOTS["__pydantic_fields_set__"].__set__
_set_extra: Final = _SLOTS["__pydantic_extra__"].__set__
_set_private: Final = _SLOTS["__pydantic_private__"].__set__


def unchecked(cls: type[FrozenT], fields: dict[str, Any], given: set[str]) -> FrozenT:
    """Build a value from fields that were validated before, at a sixth of the constructor's cost.

    Every append builds its blocks this way. ``fields`` holds every field, ``given`` names those that are not defaults.
    """
    value = _new(cls)
    # To set them by name takes twice as long: Python then looks each of them up in all classes of the value.
    _set_fields(value, fields)
    _set_given(value, given)
    _set_extra(value, None)
    _set_private(value, None)
    return value


class Grown(Sequence[T]):
    """What a list held at one time, read-only and without a copy: see `begins_with`.

    The list must only ever get longer; where something else is done to it, a copy has to take its place. A copy of this
    is a tuple, and it equals the tuple and list of the same values.

    Args:
        values: the list.
    """

    __slots__ = ("end", "values")

    def __init__(self, values: list[T]) -> None:
        self.values: list[T] = values
        self.end: int = len(values)

    def __len__(self) -> int:
        return self.end

    def __iter__(self) -> Iterator[T]:
        return islice(self.values, self.end)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self.values[: self.end])

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            return tuple(self.values[slice(*place.indices(self.end))])
        if not -self.end <= place < self.end:
            raise IndexError(place)
        return self.values[place if place >= 0 else self.end + place]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Grown | tuple | list) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def grew_from(self, known: Sequence[object]) -> bool | None:
        """Return whether it begins with what the same list held at another time; None for another list."""
        if not isinstance(known, Grown) or known.values is not self.values:
            return None
        return known.end <= self.end


_GIVEN: Final[dict[frozenset[str], set[str]]] = {}
_MOST_GIVEN: Final = 10_000


def same_names(names: Collection[str]) -> set[str]:
    """Return a set of names for `unchecked`: one object for the same names, which takes more room than a short text.

    Nothing may change it; pydantic copies it when it copies a value.
    """
    key = frozenset(names)
    found = _GIVEN.get(key)
    if found is None:
        found = set(key)
        if len(_GIVEN) < _MOST_GIVEN:
            _GIVEN[key] = found
    return found


_SPARE_KEYS: Final = 30


@cache
def blank(cls: type[BaseModel]) -> dict[str, Any]:
    """Return fields of a class to copy and fill in for `unchecked`: a copy shares its keys, and takes half the room.

    Python shares the keys of a dict whose values were set as attributes, and of its copies. Each field has its default,
    or None where there is none; an empty object has to be replaced by one of the value's own.
    """
    kind = type(cls.__name__, (), {})  # a class of its own: what else sets attributes does not change its keys
    value: object = kind()
    for name, field in cls.model_fields.items():
        setattr(value, name, None if field.is_required() else field.default)
    for _ in range(_SPARE_KEYS):  # each instance makes Python expect one key less: else a copy has room for thirty
        kind()
    fields: dict[str, Any] = vars(value)
    return fields


def begins_with(values: Sequence[object], known: Sequence[object]) -> bool:
    """Return whether values begin with ``known``.

    Since the objects are frozen, anything derived from ``known`` then holds for that beginning. Where both are what one
    list held, the lengths decide. Python compares others object by object, and looks into two of them only where they
    are not one: so it is as quick as counting.
    """
    if values is known:
        return True
    if isinstance(values, Grown) and (grew := values.grew_from(known)) is not None:
        return grew
    return tuple(values[: len(known)]) == tuple(known)


def common_length(one: Sequence[T], other: Sequence[T], same: Callable[[T, T], bool] = eq) -> int:
    """Return how many members two sequences have in common at their beginning.

    Args:
        one: a sequence.
        other: another one.
        same: whether two members count as one; by default they are equal.
    """
    # Mapped: contexts of thousands of entries are compared at each render.
    return next((n for n, alike in enumerate(map(same, one, other)) if not alike), min(len(one), len(other)))


# Made once: json.dumps would make an encoder at every call, and these run several times a block.
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)

PLAIN: Final = frozenset({str, int, bool, NoneType})
"""Types that Python's JSON writer and pydantic's write alike: texts, whole numbers and constants."""


def is_flat(value: Any) -> bool:
    """Return whether a value is an object whose values are all `PLAIN`, as the arguments of a call mostly are."""
    if type(value) is not dict:
        return False
    for key, inner in value.items():  # noqa: SIM110 - a generator costs as much as the writing
        if type(key) is not str or type(inner) not in PLAIN:
            return False
    return True


def canonical_json(value: Any) -> str:
    """Write JSON in the one form that is hashed: sorted keys, no spaces, no NaN, no escapes beyond the necessary.

    Raises:
        ValueError: the value holds NaN or an infinity, or refers to itself.
        TypeError: the value holds something that JSON has no form for.
    """
    return _flat_json(dict(sorted(value.items()))) if is_flat(value) else _CANONICAL.encode(value)


def compact_json(value: Any) -> str:
    """Write JSON without spaces, with keys in their own order: a provider gets its data back as it sent it.

    Raises:
        ValueError: the value holds NaN or an infinity, or refers to itself.
        TypeError: the value holds something that JSON has no form for.
    """
    return _flat_json(value) if is_flat(value) else _COMPACT.encode(value)


def compact_json_of_long(value: Any) -> str:
    """Write the same text as `compact_json`, in a third of the time where a long text is deep inside of the value."""
    return _flat_json(value) if _is_plain(value) else _COMPACT.encode(value)


def _is_plain(value: Any) -> bool:
    """Return whether a value is made of objects, lists and `PLAIN` values alone. Not for a value that is deep."""
    if type(value) is dict:
        return all(type(key) is str and _is_plain(inner) for key, inner in value.items())
    return all(map(_is_plain, value)) if type(value) is list else type(value) in PLAIN


def _flat_json(value: Any) -> str:
    """Write plain values in the order of their keys. pydantic's writer takes a third of the time for a long text."""
    try:
        return to_json(value).decode()
    except ValueError:  # a lone surrogate: encoding to UTF-8 reports it later
        return _COMPACT.encode(value)


def sha256_hex(text: str) -> str:
    """Hash a text's UTF-8 bytes. Lone surrogates never get here (see ``repair_text``)."""
    return hashlib.sha256(text.encode()).hexdigest()


def repair_text(text: str) -> str:
    """Replace lone surrogates as tiktoken itself does, so that counter, hash and database agree about the text."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shows(text: str) -> bool:
    """Return whether a text has a visible character; white space, controls and zero-width characters are invisible."""
    return any(character.isprintable() and not character.isspace() for character in text)


MOST_NESTING: Final = 128
"""Most levels of nesting that are read of what models, tools and files say.

pydantic takes some 5 KB of the stack for a level. Threads have 1 MB where the C library is musl, as on Alpine: some 180
levels end the process there, with no error before.
"""


def strings_in(value: Any) -> Iterator[str]:
    """Yield the strings inside a JSON value, in order, without the keys of its objects: a tool's schema names those.

    Without recursion, since values may be deep.
    """
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            waiting.extend(reversed(value.values()))


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Return whether a JSON value has more than ``levels`` levels of objects and lists."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not level:
            return False
        inner = (child for outer in level for child in (outer.values() if isinstance(outer, dict) else outer))
        level = [child for child in inner if isinstance(child, dict | list)]
    return bool(level)


def repair_json(value: Any) -> Any:
    """Repair every string in a JSON value, keys included; keys that are no texts become those that `json.dumps` writes.

    Raises:
        ValueError: a number is NaN or infinite, which JSON has no form for, a key can be no text, or the value is
            nested too deeply.
    """
    try:
        return _repaired(value)
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return repair_text(value)
    if isinstance(value, dict):
        return {repair_text(k) if isinstance(k, str) else _key(k): _repaired(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_repaired(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} has no form in JSON")
    return value


def _key(key: Any) -> str:
    """Write a key that is no text: a number, a flag or None."""
    if key is not None and not isinstance(key, int | float):
        raise ValueError(f"a key is of type {type(key).__name__}, and JSON has texts as keys")
    return _COMPACT.encode(key)


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out empty fields (None, empty text, empty list or mapping); 0 and False stay."""
    return {k: v for k, v in fields.items() if v is not None and v not in ("", [], {}, ())}
