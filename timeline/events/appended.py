"""Read and write the payload that fills a log, `block.appended`, without asking pydantic for each of its fields.

A row whose checksum was compared holds what the library wrote; each field is still looked at here, for its name and its
type. Whatever is not certainly what pydantic would make of it is left to pydantic: every error is its own.
`timeline.events.encoding` defines the bytes; tests compare the two.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from sys import intern
from typing import Any, Final, NamedTuple

from pydantic_core import PydanticUndefined, from_json, to_json, to_jsonable_python

from timeline.blocks import KNOWN_TYPES, Block, CustomBlock, NewerBlock, stored_instant
from timeline.events import BlockAppended, block_appended
from timeline.frozen import PLAIN, blank, is_flat, same_names, unchecked

_PARTS: Final = frozenset({"block", "tokens", "counter"})
_ORDER: Final = ("block", "counter", "tokens")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(?!000000)\d{6})?Z", re.ASCII)
"""A block's moment as it is written: without microseconds where there are none."""
_TEXTS: Final = frozenset(
    {"type", "author", "path", "turn_id", "mime", "text", "call_id", "response_id", "name", "at", "arguments"}
)
_FLAGS: Final = frozenset({"pending", "is_error"})
_OBJECTS: Final = frozenset({"meta", "arguments"})
_REPEATED: Final = ("turn_id", "response_id", "name", "author", "mime")
"""Texts that many blocks share: one object for all saves the memory of a copy each."""
_MOST_SHAPES: Final = 1_000
"""A log of ours has some dozens; the bound is for one that was made to have more."""


class _Shape(NamedTuple):
    """What blocks of one type have in common that have the same fields, of the same types.

    Attributes:
        cls: their class.
        defaults: a value for each field, in the order of the class.
        given: the names of the fields that are there; one set for all of these blocks, which nothing changes.
        filled: the texts that may not be empty.
        nested: the fields whose values may hold others.
        repeated: the texts that are likely to be those of other blocks.
        empty: the fields that are missing and have an empty object, one of its own for each block.
        timed: whether a moment is there.
        ordered: whether the fields come in the order in which they are written.
        spare: the fields that may have the value that is left out where it is written, with this value.
    """

    cls: type[Block]
    defaults: dict[str, Any]
    given: set[str]
    filled: tuple[str, ...]
    nested: tuple[str, ...]
    repeated: tuple[str, ...]
    empty: tuple[str, ...]
    timed: bool
    ordered: bool
    spare: tuple[tuple[str, Any], ...]

    def holds(self, data: dict[str, Any]) -> bool:
        """Return whether the values of a block of this shape are such that nothing is left for pydantic."""
        for name in self.filled:
            if not data[name]:
                return False
        for name in self.nested:  # noqa: SIM110 - a generator costs as much as the rest of this
            if not _is_plain(data[name]):
                return False
        return True


APPENDED: Final[str] = BlockAppended.model_fields["type"].default
"""Type of the event of a block that was appended."""
_SHAPES: Final[dict[tuple[Any, ...], _Shape]] = {}


class Columns(NamedTuple):
    """What a row repeats of its payload: the block's path and turn, None where it has none, and its tokens."""

    path: str | None
    turn_id: str | None
    tokens: int


_columns: Final = tuple.__new__
"""Makes `Columns` in a third of the time that its constructor takes."""


def read_appended(text: str) -> BlockAppended | None:
    """Read the payload of a `block.appended` event; None where pydantic has to look at it."""
    data = _parts(text.encode())
    shape = None if data is None else _shape_of(data["block"])
    if data is None or shape is None:
        return None
    block = _made(shape, data["block"])
    return None if block is None else block_appended(block, data["tokens"], intern(data["counter"]))


def columns_of(text: str) -> Columns | None:
    """Check the payload of a `block.appended` event as `read_appended` does, and return what its row repeats.

    An export writes the text as it is: to make a block of it takes as long as all the rest.
    """
    data = _parts(text.encode())
    shape = None if data is None else _shape_of(data["block"])
    if data is None or shape is None:
        return None
    block = data["block"]
    if shape.timed and stored_instant(block["at"]) is None:
        return None
    return Columns(block.get("path") or None, block.get("turn_id") or None, data["tokens"])


def written_columns(raw: bytes, time: str) -> Columns | None:
    """Return what a row repeats of a payload, if its bytes are certainly what `write_appended` makes of it; else None.

    `read_appended` then reads it. None is no error: the payload has to be read and written anew in order to know.

    Args:
        raw: the payload, in UTF-8.
        time: a moment in a block's form, which most blocks have: that of the event.
    """
    data = _parts(raw)
    if data is None or tuple(data) != _ORDER:
        return None
    block = data["block"]
    shape = _known_shape(block)
    if shape is None or not shape.ordered or not all(map(block.get, shape.filled)):
        return None
    if shape.timed and block["at"] != time and not (_MOMENT.fullmatch(block["at"]) and stored_instant(block["at"])):
        return None
    for name, default in shape.spare:
        if block[name] == default:
            return None
    for name in shape.nested:
        if not is_flat(block[name]):
            return None
    try:
        if to_json(data) != raw:
            return None
    except ValueError:  # a lone surrogate, which the other way refuses
        return None
    return _columns(Columns, (block.get("path") or None, block.get("turn_id") or None, data["tokens"]))


def _parts(raw: bytes) -> dict[str, Any] | None:
    try:
        data = from_json(raw, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return None
    if type(data) is not dict or data.keys() != _PARTS or type(data["block"]) is not dict:
        return None
    return data if type(data["tokens"]) is int and type(data["counter"]) is str else None


def _shape_of(data: dict[str, Any]) -> _Shape | None:
    shape = _known_shape(data)
    return shape if shape is not None and shape.holds(data) else None


def _known_shape(data: dict[str, Any]) -> _Shape | None:
    signature = (data.get("type"), *data, *map(type, data.values()))
    shape = _SHAPES.get(signature) if type(signature[0]) is str else None
    if shape is None:
        shape = _shape(data)
        if shape is not None and len(_SHAPES) < _MOST_SHAPES:
            _SHAPES[signature] = shape
    return shape


def _made(shape: _Shape, data: dict[str, Any]) -> Block | None:
    fields = shape.defaults.copy()
    fields.update(data)
    fields["type"] = shape.defaults["type"]
    for name in shape.repeated:
        fields[name] = intern(data[name])
    for name in shape.empty:
        fields[name] = {}
    if shape.timed:
        moment = stored_instant(data["at"])
        if moment is None:
            return None
        fields["at"] = moment
    return unchecked(shape.cls, fields, shape.given)


def _shape(data: dict[str, Any]) -> _Shape | None:
    """Return the shape of a block; None where pydantic has to look at a field."""
    type_ = data.get("type")
    cls = KNOWN_TYPES.get(type_) if type(type_) is str else None
    if cls is None:
        return None
    known = cls.model_fields
    if not all(name in known and _fits(name, type(value)) for name, value in data.items()):
        return None
    if any(field.is_required() and name not in data for name, field in known.items()):
        return None
    return _Shape(
        cls,
        blank(cls),
        same_names(data),
        tuple(name for name, field in known.items() if any(getattr(m, "min_length", 0) for m in field.metadata)),
        tuple(name for name, value in data.items() if type(value) not in PLAIN),
        tuple(name for name in _REPEATED if name in data),
        tuple(name for name, field in known.items() if name not in data and field.default == {}),
        "at" in data,
        list(data) == sorted(data),
        tuple((n, known[n].default) for n in data if n != "type" and type(data[n]) is type(known[n].default)),
    )


def _fits(name: str, kind: type) -> bool:
    if kind is str:
        return name in _TEXTS or name == "data"
    if kind is dict:
        return name in _OBJECTS or name == "data"
    if kind is bool:
        return name in _FLAGS or name == "data"
    if kind is int:
        return name in {"exit_status", "data"}
    return kind is list and name == "data"


def _is_plain(value: Any) -> bool:
    """Return whether a JSON value holds nothing but texts, whole numbers, constants, and objects and lists of them."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind is dict:
        return all(map(_is_plain, value.values()))
    return kind is list and all(map(_is_plain, value))


_WRITTEN: Final[tuple[type[Block], ...]] = (*KNOWN_TYPES.values(), CustomBlock, NewerBlock)
_FIELDS: Final[dict[type[Block], tuple[tuple[str, Any], ...]]] = {
    cls: tuple(
        (name, PydanticUndefined if name == "type" else cls.model_fields[name].default)
        for name in sorted(cls.model_fields)
    )
    for cls in _WRITTEN
}
"""By class, each field in the order of `Block.dump`, with the default at which it is left out."""


def write_appended(payload: BlockAppended, at: datetime, time: str) -> str | None:
    """Write a payload as `encode_payload` does, several times as fast; None where that may not be the same.

    Args:
        payload: the payload.
        at: the time of its event, which mostly is the block's.
        time: this time in a block's form, without microseconds where there are none.
    """
    block = payload.block
    known = _FIELDS.get(type(block))
    fields = None if known is None else _plain_fields(block, known, at, time)
    if fields is None:
        return None
    try:
        return to_json({"block": fields, "counter": payload.counter, "tokens": payload.tokens}).decode()
    except ValueError:  # a lone surrogate, which the other way refuses
        return None


def _plain_fields(block: Block, known: tuple[tuple[str, Any], ...], at: datetime, time: str) -> dict[str, Any] | None:
    """Return the result of `Block.dump` where both JSON writers agree on it; None where that is not certain.

    They agree on texts, whole numbers and constants, also one level down, as in the arguments of a call.
    """
    values = block.__dict__
    fields: dict[str, Any] = {}
    for name, default in known:
        value = values[name]
        if value is default:
            continue
        kind = type(value)
        if kind is str:  # first, since most are: comparing a text with a default of another type takes long
            if value != default:
                fields[name] = value
        elif name == "at":
            fields[name] = time if value == at else to_jsonable_python(value.astimezone(UTC))
        elif value == default:
            continue
        elif kind in PLAIN or is_flat(value):
            fields[name] = value
        else:
            return None
    return fields
