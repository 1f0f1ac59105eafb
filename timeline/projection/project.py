"""Project a window into the neutral context. Pure: no clock, no randomness, no I/O.

Covered blocks are not in the window, so nothing is cut here. Hidden blocks are shown as their recorded replacements,
then the cache points are placed: the order of the cut-point design [cut_point].

A shown item is one neutral entry; only a summary may be several. Replacements and summary texts come from the log, so
that a later version of this library projects the same bytes. A change of the format gets a new projection number.

Signed reasoning may follow a prefix that was rewritten since: `timeline.projection.signatures` finds it.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from timeline.blocks import (
    BEHIND_KEY,
    Note,
    StageDigest,
    ToolCall,
    ToolResult,
    form_of,
)
from timeline.content.native import hidden_data, sent_data, sent_data_before_5, sent_data_before_6
from timeline.fold.window import unsent_calls
from timeline.frozen import Grown, begins_with, blank, same_names, sha256_hex, unchecked
from timeline.policy.steps import SummaryForm
from timeline.projection.cache_points import ShownEntries, cache_points
from timeline.projection.signatures import Signatures, signatures_of
from timeline.wire.neutral import Entry, EntryChain, NeutralContext

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import JsonValue

    from timeline.blocks import Block
    from timeline.fold.window import Item, Window
    from timeline.policy.model import CachePointRule
    from timeline.wire.neutral import CachePoint, Role


def sent_order(items: Sequence[Item]) -> Sequence[Item]:
    """Return items in the order in which they are sent: timeline order, unless a summary recorded another order.

    A summary is sent where its range begins, or behind the carried blocks that its ``meta`` names.
    """
    if not any(item.is_summary and BEHIND_KEY in item.block.meta for item in items):
        return items
    sent = list(items)
    for summary in (item for item in items if item.is_summary):
        named = summary.block.meta.get(BEHIND_KEY)
        before = {version for version in named if isinstance(version, int)} if isinstance(named, list) else set()
        places = [place for place, item in enumerate(sent) if item.version in before]
        at = sent.index(summary)
        if places and places[-1] > at:
            ahead = [sent[place] for place in places]
            rest = [item for item in sent[at + 1 : places[-1] + 1] if item.version not in before]
            sent[at : places[-1] + 1] = [*ahead, summary, *rest]
    return sent


_BY_AUTHOR: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_BY_TYPE: dict[str, Role] = {
    "react.tool.result": "tool",
    "conv.range.summary": "user",
    "note": "user",
    "stage.digest": "user",
    "turn.header": "user",
}


def said_as(block: Block) -> Role:
    """Return the role with which a block is sent. Other agents and tools have the role of the user."""
    return _BY_TYPE.get(block.type) or _BY_AUTHOR.get(block.author, "user")


def entries_of(
    item: Item,
    *,
    loose: bool,
    rewritten: bool = False,
    in_loop: bool = False,
    joined: bool = False,
    sent: Callable[[Block], JsonValue] = sent_data,
) -> tuple[Entry, ...]:
    """Return the entries of an item: one; none for an empty item; several for a summary with messages around it.

    Args:
        item: a live item.
        loose: for a result: its call is not shown.
        rewritten: for reasoning: its prefix was rewritten since it was signed.
        in_loop: for rewritten reasoning: it was in the assistant's newest turn when its prefix was rewritten.
        joined: it is a further part of the user's message before it.
        sent: returns what is sent of a block's data.
    """
    block = item.block
    replacement = item.replacement
    data = sent(block)
    says = bool(block.countable()) or data is not None
    if item.unsent or (replacement is None and not says and not isinstance(block, ToolCall | ToolResult)):
        return ()
    shown = data if replacement is None else hidden_data(block, data)
    entry = _entry(item, shown, loose=loose, rewritten=rewritten, in_loop=in_loop, joined=joined)
    form = form_of(block)
    return (entry,) if form is None else _messages_of(entry, SummaryForm.model_validate(form))


def _messages_of(summary: Entry, form: SummaryForm) -> tuple[Entry, ...]:
    """Return the messages of a summary in its recorded form; they are never part of the response behind them."""
    own = {"response_id": summary.path}
    question = summary.model_copy(update={"role": "user", "text": form.question, **own})
    answer = summary.model_copy(update={"role": "assistant", "text": form.answer, **own})
    messages = (question, summary.model_copy(update={"role": form.role, **own}), answer)
    return tuple(entry for entry in messages if entry.text)


def _entry(item: Item, data: JsonValue, *, loose: bool, rewritten: bool, in_loop: bool, joined: bool) -> Entry:
    block, replacement = item.block, item.replacement
    fields: dict[str, Any] = {
        "path": block.path,
        "type": block.type,
        "role": said_as(block),
        "text": block.text if replacement is None else replacement.text,
        "data": data,
        "mime": block.mime,
        "response_id": block.response_id,
        "group": item.response,
        "rewritten": rewritten,
        "in_loop": in_loop,
        "continues": joined,
    }
    if isinstance(block, Note | StageDigest) and replacement is None:
        fields["text"] = block.countable()
    elif isinstance(block, ToolCall):
        arguments = block.arguments if replacement is None else replacement.arguments or {}
        fields |= {"name": block.name, "call_id": block.call_id, "arguments": arguments}
    elif isinstance(block, ToolResult):
        fields |= {"name": block.name, "call_id": block.call_id, "is_error": block.is_error, "loose": loose}
    made = blank(Entry).copy()
    made.update(fields)
    return unchecked(Entry, made, same_names(fields))  # the fields are a block's, and were checked with the block


PROJECTION: Final = 7
"""Number of the projection's format; golden files hold each one's bytes."""
_SENT: Final = {
    3: sent_data_before_5,
    4: sent_data_before_5,
    5: sent_data_before_6,
    6: sent_data,
    PROJECTION: sent_data,
}
"""What each number sends of the native content in a block's data: from 6 on all of it, with 5 only what tools of
Anthropic's server did, with 3 and 4 nothing."""
PROJECTIONS: Final = frozenset(_SENT)
"""Numbers whose contexts can be built again. 3 has the same entries as 4, but a fingerprint of the whole text."""
_OF_WHOLE_TEXT: Final = 3


class Form(NamedTuple):
    """How the items around an item change the way it is sent, see `entries_of`."""

    loose: bool
    rewritten: bool
    in_loop: bool
    joined: bool


class _Made(NamedTuple):
    """Entries with the inputs from which they were made."""

    item: Item
    form: Form
    entries: tuple[Entry, ...]


def _shows_alike(one: Item, other: Item) -> bool:
    """Return whether two items give the same entries; it compares all that `entries_of` looks at."""
    return one is other or (
        one.block is other.block
        and one.replacement is other.replacement
        and (one.omitted, one.response) == (other.omitted, other.response)
    )


class _Whole:
    """The last projection, and how to continue it for a window that only has more items behind the same ones.

    An append changes no entry before it, so only the new items of such a window are projected. The exception is a new
    item that is omitted already, since that removes the call which it answers.
    """

    def __init__(self, signatures: Signatures) -> None:
        self.signatures = signatures
        self.items: Sequence[Item] = ()
        self.gone: set[int | None] = set()
        self.calls: set[int] = set()
        self.entries: list[Entry] = []
        self.shown = ShownEntries()

    def is_continued_by(self, items: Sequence[Item]) -> bool:
        """Return whether a window begins with the same item objects, and none behind them is omitted."""
        return begins_with(items, self.items) and not any(item.omitted for item in items[len(self.items) :])

    def shows_call(self, version: int | None) -> bool:
        """Return whether the call of this version is shown; False for None."""
        return version in self.calls and version not in self.gone


class Projected(NamedTuple):
    """What is sent of a window: its entries, and the cache points among them."""

    entries: Sequence[Entry]
    cache_points: tuple[CachePoint, ...]


def neutral_context(
    projected: Projected,
    window: Window,
    rule: CachePointRule,
    *,
    policy: str = "",
    system: JsonValue = None,
    tools: Sequence[JsonValue] = (),
    ephemeral: Sequence[str] = (),
) -> NeutralContext:
    """Return the context of a window that is projected already, see `Projector.project`."""
    beside = NeutralContext(
        system=system,
        tools=tuple(tools),
        cache_points=projected.cache_points,
        ephemeral=tuple(Entry(path="", type="ephemeral", role="user", text=text) for text in ephemeral if text.strip()),
        policy=policy,
        model=window.model,
        kept_long=rule.kept_long,
    )
    return beside.model_copy(update={"entries": projected.entries})  # each entry was checked when it was made


class Projector:
    """Projects the windows of one conversation.

    It remembers the entries that it has made, so that an unchanged block costs almost nothing in the next context. The
    result is still a pure function of the arguments.

    Args:
        projection: one of `PROJECTIONS`, whose rules it follows.
    """

    def __init__(self, projection: int = PROJECTION) -> None:
        self._projection = projection
        self._earlier: dict[int, Projector] = {}
        self._made: dict[int, _Made] = {}
        self._whole = self._nothing()
        self._chain = EntryChain()

    def _nothing(self) -> _Whole:
        """Return the projection of a window without items."""
        return _Whole(signatures_of(self._projection))

    def of(self, projection: int) -> Projector:
        """Return a projector for the same conversation with the rules of another number."""
        if projection == self._projection:
            return self
        if projection not in self._earlier:
            self._earlier[projection] = Projector(projection)
        return self._earlier[projection]

    def apart(self) -> Projector:
        """Return a projector that remembers what this one does, to project in a thread; this one does not change."""
        twin = copy(self)
        twin._made, twin._whole = {**self._made}, self._nothing()  # noqa: SLF001 - of its own class
        twin._chain = self._chain.apart()  # noqa: SLF001 - the same
        return twin

    def unknown(self, window: Window) -> int:
        """Return how many items of a window have to be projected."""
        known = self._whole
        return len(window.items) - (len(known.items) if known.is_continued_by(window.items) else 0)

    def fingerprint(self, neutral: NeutralContext) -> str:
        """Return the fingerprint of a context that was projected here.

        Args:
            neutral: the context. Entries that an earlier context had, too, are not hashed again.
        """
        if self._projection == _OF_WHOLE_TEXT:
            return sha256_hex(neutral.canonical())
        return neutral.fingerprint(self._chain)

    def project(
        self,
        window: Window,
        rule: CachePointRule,
        *,
        policy: str = "",
        system: JsonValue = None,
        tools: Sequence[JsonValue] = (),
        ephemeral: Sequence[str] = (),
    ) -> NeutralContext:
        """Project a window.

        Args:
            window: the window to project.
            rule: where cache points go.
            policy: hash of the policy that has the rule.
            system: the system prompt, as the provider takes it.
            tools: tool schemas, as the provider takes them.
            ephemeral: texts for the uncached tail, sent as the user and stored nowhere.
        """
        return neutral_context(
            self.projected(window, rule), window, rule, policy=policy, system=system, tools=tools, ephemeral=ephemeral
        )

    def projected(self, window: Window, rule: CachePointRule) -> Projected:
        """Project the conversation alone, without what is sent beside it."""
        whole = self._of(window)
        return Projected(Grown(whole.entries), cache_points(whole.shown, rule))

    def entries_of(self, item: Item, form: Form) -> tuple[Entry, ...]:
        """Return the entries of one item."""
        return entries_of(item, **form._asdict(), sent=_SENT[self._projection])

    def entries(self, window: Window) -> tuple[list[Entry], list[Item]]:
        """Return the entries of a window, and for each entry the item that it shows."""
        whole = self._of(window)
        return [*whole.entries], [*whole.shown.items]

    def _of(self, window: Window) -> _Whole:
        """Project a window: only its new items, where it continues the last one."""
        whole = self._whole
        if not whole.is_continued_by(window.items):
            whole = self._nothing()
        new = window.items[len(whole.items) :]
        # Collect these before the loop: a call whose omitted result is further on must not be sent as interrupted.
        whole.gone |= unsent_calls(new)
        whole.calls.update(i.version for i in new if isinstance(i.block, ToolCall) and not i.omitted)
        signatures = whole.signatures = whole.signatures.over(window.items)
        made: dict[int, _Made] = {}
        for item in sent_order(new):
            loose = isinstance(item.block, ToolResult) and not whole.shows_call(item.answers)
            rewritten_at = signatures.rewritten_at(item)
            in_loop = rewritten_at > 0 and signatures.in_loop(item, rewritten_at)
            joined = item.continues(whole.shown.items[-1] if whole.shown.items else None)
            form = Form(loose, rewritten_at > 0, in_loop, joined)
            if item.version in whole.gone:
                continue
            one = self._made.get(item.version)
            if one is None or one.form != form or not _shows_alike(one.item, item):
                one = _Made(item, form, self.entries_of(item, form))
            made[item.version] = one
            whole.entries += one.entries
            for _ in one.entries:
                whole.shown.add(item)
        if whole.items:
            self._made |= made
        else:
            self._made = made
        whole.items, self._whole = window.items, whole
        return whole
