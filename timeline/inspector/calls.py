"""Model calls: their list, one of them, the context that it was made from, and its body piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from timeline.answers.calls import call_row, context_of
from timeline.audit.calls import decisions_before
from timeline.audit.recorded_calls import recorded_calls
from timeline.errors import CallUnavailable, InvalidFilter
from timeline.frozen import compact_json
from timeline.inspector.losses import cache_uses
from timeline.inspector.shapes import Body, Call, CallContext, Calls, ContextPiece
from timeline.inspector.tally import cost_of
from timeline.wire import MESSAGE_KEYS, WIRES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.audit.calls import Call as AuditedCall
    from timeline.inspector.asked import AskedBody, AskedCall, AskedCalls, AskedContext
    from timeline.inspector.reader import Reader

MOST_PIECE: Final = 4_000
"""Characters of a message in a context; the body has all of it."""
MOST_PIECES: Final = 2_000
"""Blocks and messages of a context."""
_SAME: Final = "same"


async def list_calls(reader: Reader, asked: AskedCalls) -> Calls:
    """List the model calls of a conversation, with the price of each."""
    calls = await recorded_calls(reader.store, asked.id)
    decided = await decisions_before(reader.store, asked.id, calls)
    uses = cache_uses(calls, decided, reader.prices)
    rows = [
        (call_row(call, len(before)), use)
        for call, before, use in zip(calls, decided, uses, strict=True)
        if call.number > asked.after
    ]
    page = rows[: asked.limit]
    return Calls(
        conversation=asked.id,
        calls=tuple(row for row, _ in page),
        costs=tuple(cost_of(row.model, row.usage, reader.prices) for row, _ in page),
        cache=tuple(use for _, use in page),
        next_after=page[-1][0].number if len(rows) > len(page) else None,
    )


async def show_call(reader: Reader, asked: AskedCall) -> Call:
    """Return a model call without its body: what came back, what was decided before it, and what broke the cache."""
    call = await reader.call(asked.id, asked.number)
    dumped = {key: value for key, value in call.dump().items() if key != "request"}
    dumped["reply"] = [_short(block) for block in dumped["reply"]]
    verdict, words = _verdict(call)
    return Call(
        conversation=asked.id,
        call=dumped,
        verdict=verdict,
        verdict_in_words=words,
        body_bytes=None if call.text is None else len(call.text.encode()),
        cost=cost_of(call.answered_by or call.model, call.usage, reader.prices),
    )


def _short(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block's stored form with its texts cut; what was left out is counted in ``left_out``."""
    kept: dict[str, Any] = {}
    left_out: dict[str, int] = {}
    for key, value in block.items():
        text = value if isinstance(value, str) else compact_json(value)
        if len(text) <= MOST_PIECE:
            kept[key] = value
        else:
            kept[key] = text[:MOST_PIECE]
            left_out[key] = len(text) - MOST_PIECE
    return {**kept, "left_out": left_out}


def _verdict(call: AuditedCall) -> tuple[str, str]:
    """Return whether the body that was built again is the one that was sent, in a word and in words."""
    if call.text is None:
        reason = call.unproved or "request"
        return reason, str(CallUnavailable(call.number, reason))
    if call.body == "framework":
        return _SAME, "The framework sent a body of its own; this is ours beside it, with the hash that was recorded."
    return _SAME, "Built again from the log: the sha256 is that of the body that was sent."


async def show_context(reader: Reader, asked: AskedContext) -> CallContext:
    """Return the context of a call: every block with its state and rule, and the request in a wire format."""
    wire = _wire(asked.wire)
    context = await context_of(reader.store, asked.id, asked.number)
    call = await reader.call(asked.id, asked.number)
    wire = wire or call.wire or "anthropic"
    body = call.request if wire == call.wire and call.request is not None else context.to_wire(wire)
    explanation, pieces = context.explanation.dump(), tuple(_pieces(body))
    sizes = {"blocks": len(explanation["blocks"]), "pieces": len(pieces)}
    return CallContext(
        conversation=asked.id,
        number=asked.number,
        wire=wire,
        fingerprint=context.fingerprint,
        explanation={**explanation, "blocks": explanation["blocks"][-MOST_PIECES:]},
        pieces=pieces[-MOST_PIECES:],
        left_out={name: size - MOST_PIECES for name, size in sizes.items() if size > MOST_PIECES},
    )


def _wire(named: str) -> str:
    name = named.replace("-", "_")
    if name and name not in WIRES:
        raise InvalidFilter("wire", f"there is no wire format {named!r}; there are {', '.join(WIRES)}")
    return name


def _pieces(body: dict[str, Any]) -> Iterator[ContextPiece]:
    """Yield the parts of a body in their order, each message for itself."""
    for key, value in body.items():
        if key in MESSAGE_KEYS and isinstance(value, list):
            for number, message in enumerate(value):
                role = message.get("role") or message.get("type") if isinstance(message, dict) else None
                yield _piece(f"{key}[{number}]", role, message)
        else:
            yield _piece(key, None, value)


def _piece(place: str, role: Any, value: Any) -> ContextPiece:
    text = compact_json(value)
    left = max(0, len(text) - MOST_PIECE)
    return ContextPiece(place=place, role=None if role is None else str(role), text=text[:MOST_PIECE], left_out=left)


async def show_body(reader: Reader, asked: AskedBody) -> Body:
    """Return a piece of the body of a call as it was sent, or of the same context in another wire format."""
    wire = _wire(asked.wire)
    call = await reader.call(asked.id, asked.number)
    if wire and wire != call.wire:
        context = await context_of(reader.store, asked.id, asked.number)
        text, sha256, verdict = compact_json(context.to_wire(wire)), "", "another_wire"
    else:
        text, sha256, verdict = call.proved(), call.sha256, _SAME
    piece = text[asked.offset : asked.offset + asked.limit]
    end = asked.offset + len(piece)
    return Body(
        conversation=asked.id,
        number=asked.number,
        wire=wire or call.wire,
        sha256=sha256,
        verdict=verdict,
        text=piece,
        offset=asked.offset,
        characters=len(text),
        next_offset=end if piece and end < len(text) else None,
    )
