"""`timeline show`: print a conversation as a tree of turns, rounds and blocks, with the state of every block.

The tree is in timeline order, with one line under a summary for each turn that it covers. With `--all` it is in the
order of the log, one event a line. The columns are on the left, the branches right of them: drawn with lines on a
terminal, by indentation in a pipe.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal

from timeline.audit.replay import recorded_policy
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.output import JsonList, pad, paint, say, state_colour, write
from timeline.cli.rows import read_rows
from timeline.display.brief import brief
from timeline.events.addresses import Address
from timeline.projection.cache_points import ShownEntries, cache_points
from timeline.projection.explain import counted, spaced
from timeline.projection.project import Projector
from timeline.projection.reports import counts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from timeline.cli.rows import Listing, Row
    from timeline.policy.model import Policy
    from timeline.ports import EventStore


_LINES: Final = ("├ ", "└ ", "│ ", "  ")
_INDENTS: Final = ("  ", "  ", "  ", "  ")
_LEAST: Final = 12
"""The least columns for a text behind a head; with fewer it is left out."""


@dataclass(slots=True)
class Node:
    """A line of a tree, and the lines below it.

    Attributes:
        columns: the text left of the tree, of fixed width and already coloured.
        head: the text on the branch, never cut.
        about: the text behind the head, cut at the end of the line.
        mark: a sign behind the head, such as a cache point.
        style: style of the head.
        children: the lines below it.
    """

    columns: str
    head: str
    about: str = ""
    mark: str = ""
    style: Literal["plain", "bold", "dim"] = "plain"
    children: list[Node] = field(default_factory=list)


def drawn(node: Node, columns: int) -> Iterator[str]:
    """Yield the lines of a tree; ``columns`` is the width of the left side."""
    lined = output.on_terminal() and (sys.stdout.encoding or "").lower().startswith("utf")
    yield from _drawn(node, columns, _LINES if lined else _INDENTS, "", "")


def _drawn(node: Node, columns: int, signs: tuple[str, str, str, str], own: str, below: str) -> Iterator[str]:
    child, last, under_child, under_last = signs
    yield (node.columns + own + _text(node, output.width() - columns - len(own))).rstrip()
    for number, branch in enumerate(node.children, start=1):
        newest = number == len(node.children)
        stem, under = (last, under_last) if newest else (child, under_child)
        yield from _drawn(branch, columns, signs, below + stem, below + under)


def _text(node: Node, room: int) -> str:
    head = node.head
    text = paint(head, bold=node.style == "bold", dim=node.style == "dim") if head else ""
    if node.mark:
        text += paint(f"  {node.mark}", output.state_colour("point"))
    left = room - len(node.head) - 2 - (len(node.mark) + 2 if node.mark else 0)
    if not node.about or left < _LEAST:
        return text
    return text + "  " + paint(brief(node.about, left), dim=node.style != "bold")


BOOKKEEPING: Final = frozenset(
    {
        "conversation.opened",
        "context.rendered",
        "model.called",
        "compaction.started",
        "framework.entry",
        "framework.record",
    }
)
"""Events that are listed with `--all` only."""
_LEFT: Final = 27
"""The width of address, state and tokens together."""
_SUMMARY: Final = "\0summary"
"""The group of live summaries, in the place of a turn id."""


async def show(conversation: str, db: str, *, at: int | None, every: bool, as_json: bool) -> None:
    """Print a conversation, now or at a past version: as a tree of turns, rounds and blocks, or its events as JSON."""
    async with reading(db) as store:
        with output.progress("reading"):
            listing = await read_rows(store, conversation, until=at)
            policy = None if as_json else await _policy(store, listing)
    if as_json:
        with JsonList() as rows_written:
            for row in listing.rows:
                rows_written.add(row.dump())
        return
    tree = _Tree(listing, _points(listing, policy))
    tree.write_head(conversation, policy)
    for node in tree.whole() if every else tree.folded():
        for line in drawn(node, _LEFT):
            write(line)


async def _policy(store: EventStore, listing: Listing) -> Policy | None:
    """Return the policy in force; where the log names none, or it cannot be read, that of the newest context."""
    newest = None if listing.rendered is None else listing.rendered.policy
    return await recorded_policy(store, listing.window.policy) or await recorded_policy(store, newest)


def _points(listing: Listing, policy: Policy | None) -> dict[int, str]:
    """Return the kind of each cache point by version, under the conversation's policy."""
    if policy is None:
        return {}
    _, shown = Projector().entries(listing.window)
    return {shown[point.index].version: point.kind for point in cache_points(ShownEntries(shown), policy.cache_points)}


class _Tree:
    """The tree of one conversation."""

    def __init__(self, listing: Listing, points: dict[int, str]) -> None:
        self._window, self._rows, self._scavenged = listing.window, listing.rows, listing.scavenged
        self._points = points
        self._sizes = Counter(row.turn_id for row in listing.rows if row.path is not None)
        self._prompts: dict[str, str] = {}
        for row in listing.rows:
            if row.type == "user.prompt" and row.turn_id:
                self._prompts.setdefault(row.turn_id, row.about)

    def write_head(self, conversation: str, policy: Policy | None) -> None:
        """Print how many blocks are in each state, the size of the window, and the policy."""
        window = self._window
        states = Counter(row.state or "lost" for row in self._rows if row.path is not None)
        counts = ", ".join(paint(f"{count} {state}", state_colour(state)) for state, count in states.most_common())
        blocks = counted(sum(states.values()), "block", "blocks")
        write(paint(conversation, bold=True) + f"  version {window.version}, {blocks}")
        start = f"starts at version {window.window_start}"
        say(f"{counts or 'no blocks'}; the window holds {window.tokens:,} tokens and {start}")
        if policy is not None:
            words = (window.origin or policy.origin).in_words()
            write(f"policy {words}, of {policy.max_tokens:,} tokens")
            unit = counts_of(policy, window.reported)
            if unit.source != "counter":
                say(f"listed in tokens of {unit.counter}; contexts in {unit.in_words()}")
        if self._scavenged:
            write(paint(f"{counted(self._scavenged, 'event', 'events')} before the window were scavenged", dim=True))
        write()

    def folded(self) -> Iterator[Node]:
        """Yield the conversation in timeline order; under each live summary one line for each turn that it covers."""
        covers = [compaction.covers for compaction in self._window.summaries]
        rows = [
            row
            for row in self._rows
            if row.covered_by is None
            and row.type not in BOOKKEEPING
            and (row.path is not None or not any(row.version in c for c in covers))
        ]
        for turn_id, members in groupby(_placed(sorted(rows, key=lambda row: row.order)), key=lambda pair: pair[0]):
            turn = [row for _, row in members]
            if turn_id == _SUMMARY:
                yield from (self._summary(row) for row in turn)
            else:
                yield self._heading(turn_id, f"{sum(row.shown for row in turn):,}", list(self._rounds(turn)))

    def whole(self) -> Iterator[Node]:
        """Yield the conversation in the order of its log, one event a line."""
        for turn_id, members in groupby(_placed(self._rows, summaries=False), key=lambda pair: pair[0]):
            yield self._heading(turn_id, "", list(self._rounds([row for _, row in members])))

    def _summary(self, summary: Row) -> Node:
        node = self._block(summary)
        turns: dict[str, list[Row]] = {}
        for row in self._rows:
            if row.covered_by == summary.version:
                turns.setdefault(row.turn_id or "", []).append(row)
        node.children = [self._covered(turn_id, rows) for turn_id, rows in turns.items()]
        return node

    def _heading(self, turn_id: str, tokens: str, children: list[Node]) -> Node:
        about = self._prompts.get(turn_id, "")
        return Node(_columns("", "", tokens), turn_id, about, style="bold", children=children)

    def _covered(self, turn_id: str, covered: Sequence[Row]) -> Node:
        """Return one line for the blocks of a turn that a summary covers."""
        tokens, every = sum(row.tokens or 0 for row in covered), self._sizes[turn_id]
        of = "" if every == len(covered) else f" of {every:,}"
        head = f"{turn_id} ({len(covered):,}{of} {'block' if every == 1 else 'blocks'})"
        columns = _columns(Address(covered[0].version), "covered", f"{tokens:,}")
        return Node(columns, head, self._prompts.get(turn_id, ""), style="dim")

    def _rounds(self, rows: Sequence[Row]) -> Iterator[Node]:
        """Yield rows under their rounds; a round of one block is shown as that block."""
        for number, members in groupby(_with_rounds(rows), key=lambda pair: pair[0]):
            run = [row for _, row in members]
            blocks = [self._block(row) for row in run]
            if not number or len(run) == 1:
                yield from blocks
                continue
            tools = ", ".join(dict.fromkeys(row.tool for row in run if row.tool))
            yield Node(
                _columns("", "", f"{sum(row.shown for row in run):,}"), f"round {number}", tools, children=blocks
            )

    def _block(self, row: Row) -> Node:
        """Return the line of one event: its block, or its type if it appends none."""
        if row.path is None:
            return Node(_columns(row.version, "", ""), row.type, row.about, style="dim")
        state = row.state or "lost"
        point = self._points.get(row.version)
        about = row.about if row.covered_by is None else f"by {Address(row.covered_by)}: {row.about}"
        return Node(
            _columns(Address(row.version), state, f"{row.shown:,}"),
            row.path,
            about,
            mark=f"^ {spaced(point)}" if point else "",
            style="plain" if state in {"visible", "carried"} else "dim",
        )


def _placed(rows: Iterable[Row], *, summaries: bool = True) -> Iterator[tuple[str, Row]]:
    """Yield each row with its turn id. With ``summaries`` a live summary has a group of its own.

    An event without a block belongs to the turn before it.
    """
    turn_id = ""
    for row in rows:
        if summaries and row.type == "conv.range.summary":
            yield _SUMMARY, row
            continue
        turn_id = row.turn_id or turn_id
        yield turn_id, row


def _with_rounds(rows: Sequence[Row]) -> Iterator[tuple[int, Row]]:
    """Yield each row with its round; an event between two blocks of one round belongs to it, too."""
    newest = 0
    upcoming: list[int] = []
    for row in reversed(rows):
        newest = row.round if row.path is not None else newest
        upcoming.append(newest)
    newest = 0
    for row, following in zip(rows, reversed(upcoming), strict=True):
        newest = row.round if row.path is not None else newest
        yield (newest if newest == following else 0), row


def _columns(place: Address | int | str, state: str, tokens: str) -> str:
    """Return the left side: the address of a block, or the version of an event that appends none; state and tokens."""
    return f"{place!s:>6}  {paint(pad(state, 8), state_colour(state))}  {tokens:>7}  "
