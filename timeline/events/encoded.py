"""An event that was written before, as it is taken from one log into another: by an import, or by a copy of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeline.blocks import parse_instant
from timeline.events import NewEvent
from timeline.events.appended import Columns  # noqa: TC001 - a field's type
from timeline.events.encoding import decode_payload
from timeline.frozen import unchecked

if TYPE_CHECKING:
    from timeline.events import Payload

_MADE: Final = frozenset({"id", "at", "payload"})
_GIVEN: Final = {*_MADE, "text", "written", "columns", "proved"}


class EncodedEvent(NewEvent):
    """An event to be appended that was written before, by `encode_payload`: a store need not write it again.

    Its id, its time and its payload are values as those of any event. They are made where they are asked for, which a
    store need not do.

    Attributes:
        text: the payload as it is stored.
        written: id, time, type and schema version, as they are stored.
        columns: what a row repeats of the payload of `BlockAppended`; None where the payload has to be asked.
        proved: the version for which a checksum was compared, and this checksum; None where none was. A seal that it is
            appended with was compared with it, too.
    """

    text: str
    written: tuple[str, str, str, int]
    columns: Columns | None
    proved: tuple[int, str] | None

    @property
    def type(self) -> str:
        """The event's type."""
        return self.written[2]

    @property
    def schema_version(self) -> int:
        """The schema version that the payload is written in."""
        return self.written[3]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in _MADE:
                return super().__getattr__(name)
            fields = self.__dict__
            id_, at, type_, schema_version = fields["written"]
            if "payload" not in fields:
                fields["payload"] = decode_payload(type_, schema_version, fields["text"])
            fields |= {"id": UUID(id_), "at": parse_instant(at)}
            return fields[name]


def encoded_event(
    written: tuple[str, str, str, int],
    text: str,
    *,
    payload: Payload | None = None,
    columns: Columns | None = None,
    proved: tuple[int, str] | None = None,
) -> EncodedEvent:
    """Make an event of parts that were validated before, and of the text that its payload is written as.

    Args:
        written: see `EncodedEvent`.
        text: see there.
        payload: the payload, where it was read.
        columns: see there.
        proved: see there. The checksum is that of the conversation which the event is appended to.
    """
    fields: dict[str, Any] = {"text": text, "written": written, "columns": columns, "proved": proved}
    if payload is not None:
        fields["payload"] = payload
    return unchecked(EncodedEvent, fields, _GIVEN)
