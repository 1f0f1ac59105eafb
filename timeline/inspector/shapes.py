"""What the API answers, as frozen models: `openapi` describes them, and a golden file holds that description.

Times are UTC texts that end in ``Z``, figures are tokens and seconds, as in the command's `--json`; rows that the
command prints too are in `timeline.answers`. Keys may be added, none goes or changes.
"""

from __future__ import annotations

from typing import Any, Literal

from timeline.answers.calls import CallRow
from timeline.answers.digests import DigestRow
from timeline.answers.found import FoundRow
from timeline.frozen import Frozen
from timeline.usage import Usage


class Problem(Frozen):
    """Why a request was not answered. ``type`` is the error's name in words, ``detail`` what happened and the cure.

    ``facts`` are the error's own attributes, such as the nearest paths.
    """

    type: str
    title: str
    status: int
    detail: str
    facts: dict[str, Any] = {}


class PolicyRow(Frozen):
    """The policy in force: its name, the release of its preset (0 for another policy), and its hash."""

    name: str
    release: int
    hash: str


class ConversationRow(Frozen):
    """A conversation at a glance.

    Attributes:
        id: its id.
        title: its title.
        parent: its origin (conversation, version, path, relation); None where it has none.
        base: the last version that a fork shares with its parent; 0 for a conversation that shares nothing.
        version: of its newest event.
        first_version: all events from this version on are there; some before it were scavenged.
        window_start: the lowest version of a visible block that is not carried.
        created_at: time of its first event.
        updated_at: time of its newest event.
        policy: the policy in force; None where the log names none, as for an imported recording.
        turns: number of its newest turn; None where the turns have no numbers.
        calls: recorded model calls, failed ones and retries included.
        tokens: what the next request would send, as far as the log says: the newest context, and what came behind it.
        limit: the context limit of that request; None where none is known.
        fill: ``tokens`` as a share of the limit.
        compactions: completed compactions that are in force.
        last_compaction_at: time of the newest one.
        cost: what its calls and summaries cost, in US dollars; None where a model has no known price.
    """

    id: str
    title: str
    parent: dict[str, Any] | None
    base: int
    version: int
    first_version: int
    window_start: int
    created_at: str
    updated_at: str
    policy: PolicyRow | None
    turns: int | None
    calls: int
    tokens: int | None
    limit: int | None
    fill: float | None
    compactions: int
    last_compaction_at: str | None
    cost: float | None


class Conversations(Frozen):
    """A page of conversations, the one that changed last first; ``next`` is the ``after`` of the page behind it."""

    conversations: tuple[ConversationRow, ...]
    total: int
    next: str | None


class Remark(Frozen):
    """Something that is wrong, or unusual: a short ``code``, a sentence, and the version of the event behind it."""

    code: str
    level: Literal["warning", "note"]
    text: str
    version: int | None = None


class CompactionRow(Frozen):
    """A completed compaction, in the figures of its event.

    Attributes:
        number: its number in the conversation, from 1; ``version`` is that of its event and of its summary.
        address: the summary's address; ``path`` is its path.
        reason: why it ran; ``source`` is ``imported`` for one that another client made.
        saved: the share of ``before_tokens`` that it freed.
        cut: the first version that stayed behind it, and the turn that the cut split, if it did.
        covers: ranges of versions and superseded summaries; ``first_turn`` and ``last_turn`` are their turns.
        carried: versions inside the ranges that are still sent as they are.
        summarizer: who wrote the summary; ``fallback_reason`` is why the first choice did not.
        usage: what the summarizer's model reported; ``cost`` is its price in US dollars.
        reverted_by: version of the event that undid it.
        superseded_by: version of the compaction whose summary integrates this one.
    """

    number: int
    version: int
    at: str
    address: str
    path: str
    reason: str
    source: str
    before_tokens: int
    after_tokens: int
    saved: float | None
    cut: int | None
    split_turn_id: str | None
    covers: dict[str, Any]
    first_turn: str | None
    last_turn: str | None
    covered_blocks: int
    covered_tokens: int
    carried: tuple[int, ...]
    target_missed: bool
    summary_tokens: int
    summarizer: str
    model: str | None
    fallback_reason: str | None
    asked: str
    usage: Usage | None
    cost: float | None
    duration: float | None
    unsaid: tuple[int, ...]
    reverted_by: int | None
    superseded_by: int | None


class FailureRow(Frozen):
    """A compaction that was refused or failed: why, in a word and in detail."""

    version: int
    at: str
    reason: str
    detail: str
    duration: float | None


class Conversation(Frozen):
    """A conversation: its row, its policy with every field, and what a person looks at first."""

    conversation: ConversationRow
    policy: dict[str, Any] | None
    model: str
    warnings: tuple[Remark, ...]
    newest_call: CallRow | None
    newest_call_cost: float | None
    newest_compaction: CompactionRow | None


class LogRow(Frozen):
    """An event of the log, as `timeline show --json` has it, and the beginning of its text.

    Attributes:
        version: of the event; ``at`` is its time, ``checksum`` that of its stored form.
        type: the block's type; of an event that appends none, the event's own.
        path: the block's path, and ``address`` its address; None for other events, as for the next ones.
        state: visible, hidden, carried, omitted, covered, redacted, or null for one that is in no state.
        covered_by: version of the summary that covers it.
        role: who said it.
        turn_id: its turn; ``response_id`` the model response that it is part of, ``call_id`` its tool call.
        tool: name of the tool that it calls.
        failed: whether it is a failed tool result.
        tokens: its own tokens; ``shown_tokens`` what is sent of it.
        duration: seconds that a compaction or a model call took.
        unsaid: versions of covered prompts of which something asked is left out.
        text: the beginning of its text; ``left_out`` is how many characters more it has.
    """

    version: int
    at: str
    checksum: str
    type: str
    path: str | None = None
    address: str | None = None
    state: str | None = None
    covered_by: int | None = None
    role: str | None = None
    turn_id: str | None = None
    response_id: str | None = None
    call_id: str | None = None
    tool: str | None = None
    failed: bool = False
    tokens: int | None = None
    shown_tokens: int | None = None
    duration: float | None = None
    unsaid: tuple[int, ...] = ()
    text: str
    left_out: int = 0


class LogRows(Frozen):
    """The events ``after < version <= until``, at most ``limit`` of them.

    Attributes:
        at: the version whose states the rows have.
        version: of the newest event of the conversation.
        first_version: all events from this version on are there.
        rows: a row each; a version without a row was scavenged.
        next: the ``after`` of the rows behind these; None at the end.
    """

    conversation: str
    at: int
    version: int
    first_version: int
    rows: tuple[LogRow, ...]
    next: int | None


class BlockText(Frozen):
    """A block, a piece of its text, and the rest of its stored form.

    Attributes:
        text: the piece, from character ``offset`` on; ``length`` is that of the whole text.
        next: offset of the piece behind it; None at the end.
        block: the block's other fields, without those that are too large: ``left_out`` names these with their size.
    """

    conversation: str
    version: int
    at: str
    checksum: str
    address: str
    path: str
    type: str
    text: str
    offset: int
    length: int
    next: int | None
    block: dict[str, Any]
    left_out: dict[str, int]


class Calls(Frozen):
    """The model calls of a conversation, oldest first; ``costs`` are their prices in US dollars, in the same order."""

    conversation: str
    calls: tuple[CallRow, ...]
    costs: tuple[float | None, ...]
    next: int | None


class Call(Frozen):
    """A model call, as `timeline call --json` has it, without its body: that has an address of its own.

    ``verdict`` is ``same`` where the body that was built again has the recorded hash; else why it could not be shown
    to be the same. ``body_bytes`` is its size.
    """

    conversation: str
    call: dict[str, Any]
    verdict: str
    verdict_in_words: str
    body_bytes: int | None
    cost: float | None


class ContextPiece(Frozen):
    """A piece of the context of a call: system prompt, tools, or one message, in the order in which it was sent.

    ``text`` is the beginning of its JSON, ``left_out`` how many characters more it has.
    """

    place: str
    role: str | None
    text: str
    left_out: int


class CallContext(Frozen):
    """The context that a call was made from, with every block's state and rule, as `render --explain --json` has it.

    ``request`` are the pieces of the body in the wire format that was asked for.
    """

    conversation: str
    n: int
    wire: str
    fingerprint: str
    explanation: dict[str, Any]
    request: tuple[ContextPiece, ...]


class Body(Frozen):
    """The body of a call as JSON text: a piece of it, and the verdict about its hash."""

    conversation: str
    n: int
    wire: str
    sha256: str
    verdict: str
    text: str
    offset: int
    length: int
    next: int | None


class Digests(Frozen):
    """Compactions that meet every filter, as `timeline digests --json` has them."""

    digests: tuple[DigestRow, ...]
    more: bool


class FoundBlocks(Frozen):
    """Blocks with all words of a text, the best first, as `timeline search --json` has them."""

    found: tuple[FoundRow, ...]
    more: bool
