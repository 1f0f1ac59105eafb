"""Find the blocks of a message list that are not in the log yet, by their content and order.

Lists of messages carry no ids, and the log gets its blocks in several ways: as messages, as a recorded reply, one by
one. Only the content is the same in all ways, so content is compared. The order distinguishes repeated content.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from timeline.blocks import AssistantCompletion, RangeSummary, Reasoning, ToolCall, ToolResult
from timeline.content.native import compared_arguments, compared_data
from timeline.frozen import canonical_json, common_length, sha256_hex
from timeline.wire.chat_thoughts import said_alike
from timeline.wire.responses import calls_cut_off
from timeline.wire.responses_decoding import once_a_part

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from timeline.blocks import Block


_JOINTS: Final = ("", "\n", "\n\n")
"""What frameworks put between the texts of a response where they join them into one."""


def content_key(block: Block) -> str:
    """Return a hash of a block's content: to a model, two blocks with the same key are the same.

    White space around an answer or a thought does not count: models begin with blank lines, frameworks strip both ends,
    and some wires strip the end.
    """
    block = _as_read_now(block)
    text = block.text.strip() if isinstance(block, AssistantCompletion | Reasoning) else block.text
    content: list[Any] = [
        block.type,
        text,
        said_alike(block) if isinstance(block, Reasoning) else compared_data(block),
    ]
    if isinstance(block, ToolCall | ToolResult):
        content.append(block.call_id)
    if isinstance(block, ToolCall):
        content += [block.name, compared_arguments(block)]
    return sha256_hex(canonical_json(content))


def _as_read_now(block: Block) -> Block:
    """Return a block as it would be read today: older logs hold some items of OpenAI's as parts of a response."""
    item = block.data if block.type == "assistant.part" and isinstance(block.data, dict) else {}
    return once_a_part(item, block.response_id or "") or block


def content_keys(blocks: Iterable[Block]) -> Iterator[str]:
    """Return the content keys of a log's blocks in order, without summaries, but with calls that were cut off."""
    cut: list[Block] = []
    response: str | None = None
    for block in blocks:
        if isinstance(block, RangeSummary):
            continue
        if block.response_id != response:
            yield from map(content_key, cut)
            cut, response = [], block.response_id
        if not isinstance(block, AssistantCompletion) or block.text:
            yield content_key(block)
        cut += cut_calls(block)
    yield from map(content_key, cut)


def cut_calls(block: Block) -> list[Block]:
    """Return the calls in which an interrupted response was cut off; its messages have them at the end."""
    return [
        ToolCall.model_validate({**call, "name": call.get("name") or "unknown"})
        for call in calls_cut_off(block)
        if call.get("call_id")
    ]


class Positions:
    """A sequence to walk through once, looking for the next occurrence of a value; values may repeat."""

    def __init__(self, things: Iterable[Hashable]) -> None:
        self._positions: defaultdict[Hashable, list[int]] = defaultdict(list)
        for position, thing in enumerate(things):
            self._positions[thing].append(position)
        self._behind = 0

    def next(self, thing: Hashable) -> int | None:
        """Move to the next place of a thing and return that place; without one, return None and do not move."""
        own = self._positions.get(thing, [])
        found = bisect_left(own, self._behind)
        if found == len(own):
            return None
        self._behind = own[found] + 1
        return own[found]


class TextsInOne:
    """Knows responses of several texts, which frameworks join into one: texts are parted by citations or calls."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._first: dict[str, str] = {}
        self._texts: list[AssistantCompletion] = []
        self._unread: list[list[AssistantCompletion]] = []
        """Responses of several texts without a known key, or with texts that came since the key was made."""
        for block in blocks:
            self.add(block)

    def add(self, block: Block) -> None:
        """Read the log's next block."""
        if not isinstance(block, AssistantCompletion) or block.response_id is None or not block.text.strip():
            return
        if self._texts and self._texts[0].response_id != block.response_id:
            self._texts = []
        self._texts.append(block)
        if len(self._texts) > 1 and (not self._unread or self._unread[-1] is not self._texts):
            self._unread.append(self._texts)

    def first_of(self, key: str) -> str | None:
        """Return the content key of a response's first text, found by the key of its joined texts; None without one."""
        for texts in self._unread:
            first = content_key(texts[0])
            joined = (joint.join(text.text for text in texts) for joint in _JOINTS)
            self._first |= {content_key(AssistantCompletion(text=text)): first for text in joined}
        self._unread = []
        return self._first.get(key)


def nameless_key(block: Block) -> str:
    """Return the content key of a block without the id of its call, for calls that came without one."""
    return content_key(block.model_copy(update={"call_id": "-"}) if isinstance(block, ToolCall | ToolResult) else block)


def places_in_runs(keys: Sequence[str], known: Sequence[str]) -> dict[int, int]:
    """Place the keys of a list in those of a log, in order; return the place of each that has one.

    The same content may be at many places, as where a tool is called again and again. The list means the place behind
    which most of the list follows, since it may be the end of the history, or lack a part of it.
    """
    letters: dict[str, str] = {}
    said, log = ("".join(letters.setdefault(key, chr(len(letters))) for key in all_) for all_ in (keys, known))
    found: dict[int, int] = {}
    number, behind = 0, 0
    while number < len(said):
        place, length = _longest_run(said, number, log, behind)
        found |= {number + n: place + n for n in range(length)}
        number, behind = number + max(length, 1), place + length
    return found


def _longest_run(said: str, number: int, log: str, behind: int) -> tuple[int, int]:
    """Return the place from which a log agrees with a list for longest, and for how long.

    Both are written as texts with one letter for each content, and searched as texts. Where all rounds of a log are
    alike, there are as many places as rounds, and to compare each would take the square of their number.

    Args:
        said: the list.
        number: position in the list from which on it is compared.
        log: the log.
        behind: the first place in the log that counts.
    """
    place, length, further = behind, 0, 1
    while further:
        end = number + length + further
        ahead = log.find(said[number:end], place) if end <= len(said) else -1
        if ahead < 0:
            further //= 2
        else:
            place, length, further = ahead, length + further, 2 * further
    return place, length


def new_messages(
    messages: Sequence[Sequence[Block]], known: Iterable[str], texts: TextsInOne | None = None
) -> list[list[Block]]:
    """Return the blocks that are not in the log, message by message; messages without any are left out.

    Args:
        messages: the blocks of each message, in order.
        known: content keys of the log's blocks, in its order. A block is known if its content key is found there behind
            the key of the last known block before it.
        texts: of the log's responses.
    """
    positions = Positions(known)

    def is_new(block: Block) -> bool:
        key = content_key(block)
        first = None if texts is None else texts.first_of(key)
        return positions.next(key) is None and (first is None or positions.next(first) is None)

    new = [[block for block in blocks if is_new(block)] for blocks in messages]
    return [blocks for blocks in new if blocks]


def from_where_a_log_begins(messages: Sequence[Sequence[Block]], known: Sequence[str]) -> list[list[Block]]:
    """Return the messages of a list from where a log begins, if the log's earlier events were scavenged.

    What the list says before that place was once in the log. A list that shares nothing with the log is returned whole.

    Args:
        messages: the blocks of each message, in order.
        known: content keys of the blocks that are left of the log, in its order.
    """
    keys = [content_key(block) for blocks in messages for block in blocks]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    start = next((number for number, key in enumerate(known) if key in places), None)
    if start is None:
        return [list(blocks) for blocks in messages]
    # The same words may be in the list twice: the log begins at the place behind which most of it follows.
    begin = max(places[known[start]], key=lambda place: (common_length(keys[place:], known[start:]), place))
    later, position = [], 0
    for blocks in messages:
        later.append(list(blocks[max(0, begin - position) :]))
        position += len(blocks)
    return later
