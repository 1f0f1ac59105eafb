"""Match the messages of a context with a framework's own messages, by their content.

A framework's messages hold more than blocks do: signatures, the provider's ids, citations. So a message of the context
with the same content as one of the framework's is sent as that very object. Only the others (summaries, replacements of
hidden content, messages that the framework does not have) are written from the log.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from timeline.agent.deduplication import Positions
from timeline.blocks import Attachment, Reasoning, ToolCall, ToolResult, UserPrompt
from timeline.frozen import canonical_json, sha256_hex
from timeline.wire.groups import Placed, Response, gather, is_call
from timeline.wire.providers import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.wire.groups import Call
    from timeline.wire.neutral import Entry, NeutralContext

Sayings: TypeAlias = tuple[str, ...]
"""What a message says, in order: a hash for each thing said."""
_OF_ONE_MESSAGE = frozenset({"user.prompt", "user.attachment"})


class Prompted(NamedTuple):
    """Something said to the model in one message: a prompt with its attachments, or any other single thing."""

    entries: tuple[Entry, ...]


def said_in(context: NeutralContext) -> Iterator[Prompted | Response]:
    """Go through a context message by message: what was said to the model, and its responses with their results."""
    entries = context.entries
    items = chain(gather(entries), gather(context.ephemeral, first_number=len(entries)))
    together: list[Entry] = []
    for item in items:
        if isinstance(item, Placed) and together and _same_message(together[-1], item.entry):
            together.append(item.entry)
            continue
        if together:
            yield Prompted(tuple(together))
        together = [item.entry] if isinstance(item, Placed) else []
        if isinstance(item, Response):
            yield item
    if together:
        yield Prompted(tuple(together))


def _same_message(before: Entry, entry: Entry) -> bool:
    """Return whether two entries came in one message: each message with a user's prompt has a turn of its own."""
    kinds = {before.type, entry.type}
    return kinds <= _OF_ONE_MESSAGE and before.role == entry.role == "user" and _turn(before) == _turn(entry)


def _turn(entry: Entry) -> str:
    return entry.path.partition(":")[2].partition(".")[0]


def sends_back(entry: Entry, model: str) -> bool:
    """Return whether reasoning is sent back to the model; signed reasoning is not, behind a rewritten prefix."""
    return ANTHROPIC.takes_back(entry, model)


def said_by(response: Response, model: str) -> list[Placed | Call]:
    """Return the sent parts of a response; reasoning with a signature that is no longer valid is left out."""
    return [
        part
        for part in response.parts
        if not isinstance(part, Placed) or part.entry.type != "assistant.reasoning" or sends_back(part.entry, model)
    ]


def entry_says(entry: Entry) -> str:
    """Return what an entry says, as a hash; of a block that is shown as it is, the same as `block_says`."""
    call_id = entry.call_id if entry.role == "tool" or is_call(entry) else None
    called = [entry.name, entry.arguments or {}] if is_call(entry) else []
    return sha256_hex(canonical_json([entry.type, entry.text, entry.data, call_id, *called]))


def prompt_says(prompted: Prompted) -> Sayings:
    """Return what a message to the model says; a result that came too late is its text, and no framework's result."""
    return () if any(entry.role == "tool" for entry in prompted.entries) else tuple(map(entry_says, prompted.entries))


def block_says(blocks: Sequence[Block]) -> Sayings:
    """Return what the blocks of a message say: those that no context shows say nothing."""
    return tuple(_says(block) for block in blocks if _is_shown(block))


def _is_shown(block: Block) -> bool:
    return isinstance(block, ToolCall | ToolResult) or bool(block.text) or _data(block) is not None


def _says(block: Block) -> str:
    is_of_call = isinstance(block, ToolCall | ToolResult)
    called = [block.name, block.arguments or {}] if isinstance(block, ToolCall) else []
    content = [block.type, block.text, _data(block), block.call_id if is_of_call else None, *called]
    return sha256_hex(canonical_json(content))


def _data(block: Block) -> JsonValue:
    """Return the data of a block as a context shows it: of these kinds alone."""
    return block.data if isinstance(block, Reasoning | ToolResult | UserPrompt | Attachment) else None


def originals(made: Sequence[Sayings], given: Sequence[Sayings]) -> list[int | None]:
    """Return for each message of a context the index of the framework's message with the same content, or None.

    A context is the end of a conversation, so the search begins at the end: of two messages with the same content the
    newer one is shown. A context has less than the framework where something is covered, and more where the framework
    dropped something: a dropped message may say what an earlier one says, and must not take that one's place, or all in
    front of it would be written anew. So each is looked for in the other, and the search that finds more holds.
    """
    less = _from_the_end(made, given)
    more = {place: number for number, place in _from_the_end(given, made).items()}
    found = less if len(less) >= len(more) else more
    return [found.get(number) for number in range(len(made))]


def _from_the_end(these: Sequence[Sayings], others: Sequence[Sayings]) -> dict[int, int]:
    """Return by the index of each message the index of the last of the others that says the same, in order."""
    last = len(others) - 1
    places = Positions(says or None for says in reversed(others))
    found = ((n, places.next(these[n])) for n in reversed(range(len(these))) if these[n])
    return {number: last - place for number, place in found if place is not None}
