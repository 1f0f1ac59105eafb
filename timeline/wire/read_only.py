"""Values that requests share: a caller reads them, and copies them before changing anything.

They are dicts and lists, so that JSON writers and SDKs take them. A copy, a slice and a pickle are plain.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

_CURE: Final = "this part of the request is shared with later ones; change a copy of it: copy.deepcopy(message)"


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise TypeError(_CURE)


class ReadOnlyDict(dict[str, Any]):
    """A dict that refuses changes with a `TypeError`; its copies are plain dicts."""

    __slots__ = ()
    __setitem__: Any = _refuse
    __delitem__: Any = _refuse
    __ior__: Any = _refuse
    clear: Any = _refuse
    pop: Any = _refuse
    popitem: Any = _refuse
    setdefault: Any = _refuse
    update: Any = _refuse

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)


class ReadOnlyList(list[Any]):
    """A list that refuses changes with a `TypeError`; its copies are plain lists."""

    __slots__ = ()
    __setitem__: Any = _refuse
    __delitem__: Any = _refuse
    __iadd__: Any = _refuse
    __imul__: Any = _refuse
    append: Any = _refuse
    clear: Any = _refuse
    extend: Any = _refuse
    insert: Any = _refuse
    pop: Any = _refuse
    remove: Any = _refuse
    reverse: Any = _refuse
    sort: Any = _refuse

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return list, (list(self),)


def read_only(value: Any) -> Any:
    """Return a JSON value that nobody can change, down to the last list in it. Texts and numbers are not copied."""
    if isinstance(value, dict):
        return ReadOnlyDict((key, read_only(inner)) for key, inner in value.items())
    return ReadOnlyList(map(read_only, value)) if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """Return a copy of a JSON value with dicts and lists of its own, which the caller may change."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [*map(plain, value)] if isinstance(value, list) else value
