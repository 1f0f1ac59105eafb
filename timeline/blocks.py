"""Blocks: the typed, immutable units of context, the discriminated union that reads them, and their paths.

Type names are the wire names of the cut-point design (002). A block of any other type is a `CustomBlock`. A block does
*not* hold its version, its state or its token count; these belong to the log and to the window.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from timeline.errors import InvalidBlock
from timeline.frozen import Frozen, blank, canonical_json, repair_json, same_names, unchecked

Text: TypeAlias = Annotated[str, BeforeValidator(repair_json)]
"""Text without lone surrogates."""
if TYPE_CHECKING:  # a checker would let no variable in: a `dict[str, str]` is no `dict[str, JsonValue]` to it
    Json: TypeAlias = Any
    JsonObject: TypeAlias = dict[str, Any]
else:
    Json: TypeAlias = Annotated[JsonValue, AfterValidator(repair_json)]
    """Any JSON value, its strings repaired like `Text`."""
    JsonObject: TypeAlias = Annotated[dict[str, JsonValue], AfterValidator(repair_json)]


def utc(at: datetime) -> datetime:
    """Return a moment in UTC.

    Raises:
        ValueError: it has no time zone, or lies outside the years 1 to 9999 of UTC.
    """
    if at.tzinfo is None:
        raise ValueError("needs a time zone, for example datetime.now(UTC)")
    try:
        return at if at.tzinfo is UTC else at.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999 of UTC") from None


Instant: TypeAlias = Annotated[datetime, AfterValidator(utc)]
"""A moment in UTC; a time without a zone is refused."""


def instant_text(at: datetime) -> str:
    """Write a moment in the log's one format: UTC, microseconds, ``Z``."""
    return at.isoformat("T", "microseconds")[:26] + "Z"


def with_hour(given: object) -> object:
    """Refuse a number or a day in the place of a time: pydantic takes 2026 for seconds since 1970.

    Raises:
        ValueError: it is one.
    """
    if isinstance(given, int | float) or (isinstance(given, str) and ":" not in given):
        raise ValueError("a number or a day is no time; write 2026-01-31T12:00:00Z")
    return given


_WRITTEN: Final[TypeAdapter[datetime]] = TypeAdapter(Annotated[Instant, BeforeValidator(with_hour)])


def parse_instant(text: str) -> datetime:
    """Read a moment with its time zone.

    Raises:
        ValueError: the text is not a moment, or has no time zone.
    """
    return stored_instant(text) or _WRITTEN.validate_python(text)


_INSTANTS: Final = frozenset(map(len, ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000000Z")))


def stored_instant(text: object) -> datetime | None:
    """Read a moment in the forms in which the log has it, at a tenth of `parse_instant`'s cost; None for any other."""
    if not isinstance(text, str) or len(text) not in _INSTANTS or text[10] != "T" or text[-1] != "Z":
        return None
    if text[19] not in {".", "Z"}:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is UTC else None


_PLACE: Final = frozenset({"turn_id", "path", "at"})


class Block(Frozen):
    """The fields that all blocks share.

    Attributes:
        type: dotted type name.
        path: permanent address of the block, unique in its conversation; filled in on append.
        turn_id: the turn that it belongs to; filled in on append.
        author: the speaker: ``user``, ``assistant``, ``tool``, ``system`` or the name of an agent.
        call_id: the tool call that this block makes or answers.
        response_id: the model response that this block is part of.
        mime: content type of ``text`` or ``data``.
        text: the content as text.
        data: structured or opaque content (an image, a signature); stored byte for byte, sent unchanged or not at all.
        at: time of the message, in UTC; filled in on append.
        meta: any other facts; never sent to a model.
    """

    type: str
    author: Text
    path: Text = ""
    turn_id: Text = ""
    call_id: Text | None = None
    response_id: Text | None = None
    mime: Text = "text/plain"
    text: Text = ""
    data: Json = None
    at: Instant | None = None
    meta: JsonObject = {}

    def countable(self) -> str:
        """Return the text to count: the part of the block that a model would be sent."""
        return self.text

    def placed(self, *, turn_id: str, path: str, at: datetime) -> Self:
        """Return this block with its place filled in.

        The same as `model_copy` with three fields, at a tenth of its cost: every append does this for each block.
        """
        fields = blank(type(self)).copy()
        fields.update(self.__dict__)
        fields["turn_id"], fields["path"], fields["at"] = turn_id, path, at
        return unchecked(type(self), fields, same_names(self.__pydantic_fields_set__ | _PLACE))

    def dump(self) -> dict[str, Any]:
        """Return the JSON form for the log: the type, and every field that differs from its default, by name.

        Inside ``data``, ``arguments`` and ``meta`` the keys keep their order.
        """
        fields = {"type": self.type, **self.model_dump(mode="json", exclude_defaults=True)}
        return {name: fields[name] for name in sorted(fields)}


class TurnHeader(Block):
    """Opens a turn; shown to the model only when it has a text."""

    type: Literal["turn.header"] = "turn.header"
    author: Text = "system"


class UserPrompt(Block):
    """A prompt of the user's; opens a turn unless one of that id is open already."""

    type: Literal["user.prompt"] = "user.prompt"
    author: Text = "user"


class Attachment(Block):
    """A file or picture that belongs to a prompt; ``data`` holds the content part, ``meta["file"]`` its name.

    ``data`` is a content part of any provider, with its ``type``, or a list of them; each wire converts what it can.
    For any other value the model is only told that it exists (docs/wires.md, "Attachments").
    """

    type: Literal["user.attachment"] = "user.attachment"
    author: Text = "user"


class AssistantCompletion(Block):
    """Text of the assistant: a turn's answer, or the text before its calls."""

    type: Literal["assistant.completion"] = "assistant.completion"
    author: Text = "assistant"


class Reasoning(Block):
    """The model's thinking. ``data`` is the provider's own content part, signature included, kept byte for byte."""

    type: Literal["assistant.reasoning"] = "assistant.reasoning"
    author: Text = "assistant"


class ToolCall(Block):
    """A call of a tool; ``arguments`` is an object, or the raw text if that is not a valid object."""

    type: Literal["react.tool.call"] = "react.tool.call"
    author: Text = "assistant"
    call_id: Text = Field(min_length=1)
    name: Text = Field(min_length=1)
    arguments: JsonObject | Text = {}
    pending: bool = False
    """The call waits for an approval: it stays open although newer responses follow."""

    def countable(self) -> str:
        """Return the name and the arguments as JSON, then the text if there is one."""
        arguments = self.arguments if isinstance(self.arguments, str) else canonical_json(self.arguments)
        return f"{self.name}{arguments}{self.text}"


class ToolResult(Block):
    """The answer to a call. ``data`` may hold the provider's content parts (pictures); ``text`` is their text."""

    type: Literal["react.tool.result"] = "react.tool.result"
    author: Text = "tool"
    call_id: Text = Field(min_length=1)
    name: Text = ""
    is_error: bool = False
    exit_status: int | None = None

    @property
    def failed(self) -> bool:
        """Whether what was called failed: it says so, or ended with a status other than 0."""
        return self.is_error or bool(self.exit_status)


CONTINUES_KEY: Final = "continues"
"""Key of the ``meta`` of a user's block that came as a further part of a message, behind that message's first part."""
BEHIND_KEY: Final = "behind"
"""Key of a summary's ``meta``: versions of the carried blocks that it is sent behind; missing where it comes first."""
HANDED_OVER_KEY: Final = "handed_over_from"
"""Key of the ``meta`` of the blocks that a conversation begins with which another one was handed over to: the address
that their summary of that one reaches to, such as ``cards@84``."""
COLLAPSED_KEY: Final = "collapsed_stages"
"""Key of a summary's ``meta``: the stages that a step about the newest ones took; missing where there are none."""
FORM_KEY: Final = "form"
"""Key of a summary's ``meta``: its form, unless it is our own. Recorded, so that it never changes."""


class RangeSummary(Block):
    """A summary of a covered range; its ``meta`` names the covered and the carried blocks, and the summarizer."""

    type: Literal["conv.range.summary"] = "conv.range.summary"
    author: Text = "system"


def form_of(block: Block) -> dict[str, JsonValue] | None:
    """Return the recorded form of a summary; None for one in our own form, and for any other block."""
    form = block.meta.get(FORM_KEY) if isinstance(block, RangeSummary) else None
    return form if isinstance(form, dict) else None


class SystemMessage(Block):
    """A message from the runtime to the model, in the middle of the conversation."""

    type: Literal["system.message"] = "system.message"
    author: Text = "system"


class Note(Block):
    """A pinned fact: never covered, kept verbatim."""

    type: Literal["note"] = "note"
    author: Text = "system"

    def countable(self) -> str:
        """Return the text behind its label."""
        return f"[pinned note] {self.text}"


IN_TAIL: Final = "in_tail"
"""Key of a stage digest's ``meta``: it is shown in the uncached tail, not at its place."""


class StageDigest(Block):
    """The decisions of approved stages, kept in view: the memory digest of the priority-chain design (000)."""

    type: Literal["stage.digest"] = "stage.digest"
    author: Text = "system"

    def countable(self) -> str:
        """Return the text behind its label."""
        return f"[stage digest] {self.text}"


class CustomBlock(Block):
    """A block of an application's own type; stored, and shown in its author's role.

    The type begins with a word of the application's own, as ``app.poll`` does; `Timeline.append` refuses others.
    """

    type: str = Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$", max_length=100)
    author: Text = "user"
    own_types_only: ClassVar[bool] = True

    @model_validator(mode="after")
    def _type_is_free(self) -> Self:
        if self.own_types_only and self.type in KNOWN_TYPES:
            raise ValueError(f"type {self.type!r} has a class of its own; use {KNOWN_TYPES[self.type].__name__}")
        return self


class NewerBlock(CustomBlock):
    """A block written by a later version of this library: text and addressing as far as they can be read."""

    own_types_only: ClassVar[bool] = False


KNOWN_TYPES: Final[dict[str, type[Block]]] = {
    cls.model_fields["type"].default: cls
    for cls in (
        TurnHeader,
        UserPrompt,
        Attachment,
        AssistantCompletion,
        Reasoning,
        ToolCall,
        ToolResult,
        RangeSummary,
        SystemMessage,
        Note,
        StageDigest,
    )
}

_WORDS: Final = frozenset({*(name.partition(".")[0] for name in KNOWN_TYPES), "tool"})
"""The first words of the library's types, which no type of an application begins with."""
_MADE_TYPES: Final = frozenset(
    {*(f"{author}.part" for author in ("assistant", "system", "tool", "user")), "assistant.native"}
)
"""The types of content parts and items that a wire or importer keeps as they are."""


def _tag(value: Any) -> str:
    type_ = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return type_ if type_ in KNOWN_TYPES else "custom"


if TYPE_CHECKING:
    AnyBlock: TypeAlias = Block
else:
    AnyBlock = Annotated[
        Annotated[TurnHeader, Tag("turn.header")]
        | Annotated[UserPrompt, Tag("user.prompt")]
        | Annotated[Attachment, Tag("user.attachment")]
        | Annotated[AssistantCompletion, Tag("assistant.completion")]
        | Annotated[Reasoning, Tag("assistant.reasoning")]
        | Annotated[ToolCall, Tag("react.tool.call")]
        | Annotated[ToolResult, Tag("react.tool.result")]
        | Annotated[RangeSummary, Tag("conv.range.summary")]
        | Annotated[SystemMessage, Tag("system.message")]
        | Annotated[Note, Tag("note")]
        | Annotated[StageDigest, Tag("stage.digest")]
        | Annotated[CustomBlock, Tag("custom")],
        Discriminator(_tag),
    ]
"""Every block, discriminated by its type; an unknown dotted type is a `CustomBlock`."""

BLOCK: Final[TypeAdapter[Any]] = TypeAdapter(AnyBlock)


def parse_block(value: Any) -> Block:
    """Read a block from its JSON form, or check one that is a block already.

    A block of the library's own classes was checked when it was made; one of an application's subclass is checked as
    the class that it will be read back as.

    Raises:
        InvalidBlock: a field is not valid; the error names it.
    """
    if isinstance(value, Block):
        if type(value) is KNOWN_TYPES.get(value.type, CustomBlock) or isinstance(value, NewerBlock):
            return value
        value = {**value.dump(), "author": value.author}
    try:
        block: Block = BLOCK.validate_python(value)
    except ValidationError as error:
        raise _refusal(value, error) from None
    return block


def _refusal(value: object, error: ValidationError) -> InvalidBlock:
    """Say why a value is no block: first of all its type, which decides what fields it has."""
    type_ = value.get("type") if isinstance(value, dict) else None
    if isinstance(type_, str) and _is_unknown(type_):
        return _unknown_type(type_)
    first = error.errors(include_url=False)[0]
    if first["type"] == "extra_forbidden" and len(first["loc"]) == _OF_BLOCK:
        return InvalidBlock(str(first["loc"][-1]), _no_such_field(str(type_)))
    return invalid_block(error)


_OF_BLOCK: Final = 2
"""Parts of the location of a block's own field: the block's type, and its name."""


def _no_such_field(type_: str) -> str:
    own = [name for name in KNOWN_TYPES.get(type_, CustomBlock).model_fields if name not in _PLACE]
    return f"a block of type {type_} has no such field; it has {', '.join(own)}"


def refuse_unknown_type(block: Block) -> None:
    """Refuse a block to append whose type is neither the library's nor an application's own.

    An application's type has a prefix of its own (``app.poll``), which is none of the library's words, nor nearly one:
    so a misspelt type is found before it is written. A log that holds such a block is read all the same.

    Raises:
        InvalidBlock: the type has no prefix, or one of the library's; the error names the nearest type.
    """
    if type(block) is CustomBlock and _is_unknown(block.type):
        raise _unknown_type(block.type)


def _is_unknown(type_: str) -> bool:
    if type_ in KNOWN_TYPES or type_ in _MADE_TYPES:
        return False
    first, dot, _ = type_.casefold().partition(".")
    return not dot or bool(get_close_matches(first, _WORDS, n=1, cutoff=0.75))


def _unknown_type(type_: str) -> InvalidBlock:
    given = type_.casefold()
    nearest = get_close_matches(given, KNOWN_TYPES, n=1, cutoff=0.6)
    alike = [name for name in KNOWN_TYPES if name.startswith(f"{given.partition('.')[0]}.")]
    near = get_close_matches(given, nearest, n=1, cutoff=0.85) or alike or nearest
    meant = f"; did you mean {' or '.join(near)}?" if near else "."
    own = f"A type of your own begins with your own word: app.{type_}"
    return InvalidBlock("type", f"there is no type {type_!r}{meant} {own}")


def invalid_block(error: ValidationError) -> InvalidBlock:
    """Turn pydantic's first error into an `InvalidBlock` that names the field."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"] if part not in KNOWN_TYPES and part != "custom"]
    return InvalidBlock(".".join(location) or "type", first["msg"])


def newer_block(value: dict[str, Any]) -> NewerBlock:
    """Read the known fields of a block that a later version wrote; ``data`` keeps the whole block."""
    kept = {k: value[k] for k in ("path", "turn_id", "author", "text") if isinstance(value.get(k), str)}
    return NewerBlock(type=str(value.get("type", "unknown")), data=value, **kept)


# Paths: the address of every block, unique in its conversation, for ever. ``.`` and ``:`` separate the parts of a path,
# so they are percent-encoded inside ids, as are ``%``, ``~`` (it numbers repeated call ids), white space and control
# characters. The choice among several blocks that would have the same path is the fold's, which counts (`numbered`).

_FAMILIES: Final[dict[type[Block], str]] = {UserPrompt: "ar", AssistantCompletion: "ar", RangeSummary: "su"}
_RESERVED: Final = re.compile(r"[.:%~\s\x00-\x1f\x7f]")


def quote_id(id_: str) -> str:
    """Percent-encode an id for use inside a path."""
    if _RESERVED.search(id_) is None:
        return id_
    return _RESERVED.sub(lambda m: "".join(f"%{byte:02X}" for byte in m.group().encode()), id_)


def continues(block: Block, before: Block | None) -> bool:
    """Return whether a block is a further part of the user's message that the block before it is part of."""
    if CONTINUES_KEY not in block.meta or before is None:
        return False
    return before.author == "user" and before.turn_id == block.turn_id


def stem(block: Block, turn_id: str | None = None) -> str:
    """Return the path of a block as if it were the first of its kind in its turn, or in ``turn_id``.

    The paths of calls and results hold their call id; other blocks of one kind are numbered (see `numbered`).
    """
    turn = quote_id(block.turn_id if turn_id is None else turn_id)
    kind = type(block)  # not isinstance: on pydantic classes it costs more than the rest of this
    if kind is ToolCall or kind is ToolResult:
        return f"tc:{turn}.{quote_id(str(block.call_id))}.{'call' if kind is ToolCall else 'result'}"
    if kind is Attachment:
        return f"fi:{turn}.{quote_id(str(block.meta.get('file') or 'attachment'))}"
    return f"{_FAMILIES.get(kind, 'bl')}:{turn}.{block.type}"


def numbered(stem_: str, n: int) -> str:
    """Return the n-th path of a stem: ``….2`` in general, ``…call~2.call`` for a repeated call id."""
    if n == 1:
        return stem_
    if stem_.startswith("tc:"):
        head, _, kind = stem_.rpartition(".")
        return f"{head}~{n}.{kind}"
    return f"{stem_}.{n}"
