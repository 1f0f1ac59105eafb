"""What the API answers, as frozen models: `openapi` describes them, and a golden file holds that description.

Times are UTC texts that end in ``Z``, figures are tokens and seconds, as in the command's `--json`; rows that the
command prints too are in `timeline.answers`. Keys may be added, none goes or changes.
"""

from __future__ import annotations

from typing import Any, Literal

from timeline.answers import listed
from timeline.answers.calls import CallRow
from timeline.answers.digests import DigestRow
from timeline.answers.facts import FactRow
from timeline.answers.found import FoundRow
from timeline.answers.listed import DecidedBlock
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


class ConversationRow(listed.ConversationRow):
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
        compactions: how many compactions it had, as `timeline ls` counts them: undone ones too.
        last_compaction_at: time of the newest one.
        cost: what its calls and summaries cost, in US dollars; None where a model has no known price.
        problem: what is damaged, where its log cannot be read; its figures are missing then.
    """

    base: int
    first_version: int
    turns: int | None
    calls: int
    tokens: int | None
    limit: int | None
    fill: float | None
    cost: float | None
    problem: str | None = None


class Conversations(Frozen):
    """A page of conversations, the one that changed last first; ``next_cursor`` is the ``cursor`` of the next page."""

    conversations: tuple[ConversationRow, ...]
    total: int
    next_cursor: str | None


class Remark(Frozen):
    """Something that is wrong, or unusual: a short ``code``, a sentence, and the version of the event behind it."""

    code: str
    level: Literal["warning", "note"]
    text: str
    version: int | None = None


class CompactionRow(Frozen):
    """A completed compaction, in the figures of its event.

    Attributes:
        compaction_number: its number in the conversation, from 1; ``version`` is that of its event and of its summary.
        address: the summary's address; ``path`` is its path.
        reason: why it ran; ``source`` is ``imported`` for one that another client made.
        saved_share: the share of ``before_tokens`` that it freed.
        cut: the first version that stayed behind it, and the turn that the cut split, if it did.
        covers: ranges of versions and superseded summaries; ``first_turn_id`` and ``last_turn_id`` are
            their turns.
        carried: versions inside the ranges that are still sent as they are.
        unsaid: versions of covered prompts of which something asked is left out, the newest of them; of both lists
            ``left_out`` says how many more there are.
        summarizer: who wrote the summary; ``fallback_reason`` is why the first choice did not.
        usage: what the summarizer's model reported; ``cost`` is its price in US dollars.
        reverted_by: version of the event that undid it.
        superseded_by: version of the compaction whose summary integrates this one.
    """

    compaction_number: int
    version: int
    at: str
    address: str
    path: str
    reason: str
    source: str
    before_tokens: int
    after_tokens: int
    saved_share: float | None
    cut: int | None
    split_turn_id: str | None
    covers: dict[str, Any]
    first_turn_id: str | None
    last_turn_id: str | None
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
    left_out: dict[str, int]
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
    remarks: tuple[Remark, ...]
    newest_call: CallRow | None
    newest_call_cost: float | None
    newest_compaction: CompactionRow | None


class LogRow(listed.EventRow):
    """An event of the log, as `timeline show --json` has it, and the beginning of its text.

    Attributes:
        version: of the event; ``at`` is its time, ``checksum`` that of its stored form.
        type: the block's type; of an event that appends none, the event's own.
        path: the block's path, and ``address`` its address; None for other events, as for the next ones.
        state: visible, abridged, hidden, carried, omitted, covered, redacted, or null for one that is in no state.
        covered_by: version of the summary that covers it.
        role: who said it.
        turn_id: its turn; ``response_id`` the model response that it is part of, ``call_id`` its tool call.
        tool: name of the tool that it calls.
        failed: whether it is a failed tool result.
        orphan: whether it is a call without a result in the log, or a result without its call.
        tokens: its own tokens; ``shown_tokens`` what is sent of it.
        duration: seconds that a compaction or a model call took.
        unsaid: versions of the prompts of which a compaction or a hide leaves something asked unsaid, the newest of
            them; the event has all.
        text: the beginning of its text; ``left_out`` is how many characters more it has.
    """

    checksum: str
    address: str | None = None
    role: str | None = None
    response_id: str | None = None
    tool: str | None = None
    failed: bool = False
    orphan: bool = False
    shown_tokens: int | None = None
    text: str
    left_out: int = 0


class LogRows(Frozen):
    """The events ``after < version <= until``, at most ``limit`` of them.

    Attributes:
        at_version: the version whose states the rows have.
        version: of the newest event of the conversation.
        first_version: all events from this version on are there.
        rows: a row each; a version without a row was scavenged.
        next_after: the ``after`` of the rows behind these; None at the end.
    """

    conversation: str
    at_version: int
    version: int
    first_version: int
    rows: tuple[LogRow, ...]
    next_after: int | None


class BlockText(Frozen):
    """A block, a piece of its text, and the rest of its stored form.

    Attributes:
        text: the piece, from character ``offset`` on; ``characters`` are those of the whole text.
        next_offset: offset of the piece behind it; None at the end.
        block: the block's other fields, without those that are too large: ``left_out`` names these with their size.
        partner: address of a call's result, or of the call that a result answers; None where a checksum was asked with.
        lists: of a summary the addresses of two lists of everything before it: of all paths, and of all other names.
        list_of: of such a list the summary, as it was asked for; None for a block.
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
    characters: int
    next_offset: int | None
    block: dict[str, Any]
    left_out: dict[str, int]
    partner: str | None = None
    lists: tuple[str, ...] = ()
    list_of: str | None = None


class LossCause(Frozen):
    """Why a prefix was lost: a cause of `timeline.lab.cache` or a kind of decision, in words, and the event behind it.

    ``kind`` is ``model``, ``gap`` (it expired), ``below_minimum``, ``compaction``, ``undo``, ``hide``, ``reveal``,
    ``redaction``, ``tools``, ``system`` or ``other``. It is ``likely`` where it follows from the provider's rules,
    and the log does not say it.
    """

    kind: str
    text: str
    version: int | None = None
    likely: bool = False


class CacheUse(Frozen):
    """What a call found in the provider's cache.

    Attributes:
        idle_seconds: seconds since the call before; None for the first one.
        left_tokens: tokens that the call before had left in the cache.
        lost_tokens: those of them that this call could have read and did not; 0 for a few.
        cause: why they were lost; None where none were.
        extra_cost: what the loss cost, in US dollars; ``saved_cost`` is what the cache saved against a request without
            one. None where the model has no known price.
    """

    idle_seconds: float | None
    left_tokens: int
    lost_tokens: int
    cause: LossCause | None
    extra_cost: float | None
    saved_cost: float | None


class Calls(Frozen):
    """The model calls of a conversation, oldest first; ``costs`` are their prices in US dollars, in the same order.

    So are ``cache``: what each found in the provider's cache; None for one that reported no usage.
    """

    conversation: str
    calls: tuple[CallRow, ...]
    costs: tuple[float | None, ...]
    cache: tuple[CacheUse | None, ...] = ()
    next_after: int | None


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

    ``pieces`` are those of the body in the wire format that was asked for. Of long lists both have the newest:
    ``left_out`` says how many older ``blocks`` and ``pieces`` there are.
    """

    conversation: str
    number: int
    wire: str
    fingerprint: str
    explanation: dict[str, Any]
    pieces: tuple[ContextPiece, ...]
    left_out: dict[str, int]


class Body(Frozen):
    """The body of a call as JSON text: a piece of it, and the verdict about its hash."""

    conversation: str
    number: int
    wire: str
    sha256: str
    verdict: str
    text: str
    offset: int
    characters: int
    next_offset: int | None


class Digests(Frozen):
    """Compactions that meet every filter, as `timeline digests --json` has them."""

    digests: tuple[DigestRow, ...]
    more: bool


class FoundFact(FactRow):
    """A fact, as `timeline facts --json` has it, and where the model still has it.

    ``state`` is that of its block now; ``covered_by`` the version of the compaction that covered it, as `timeline why`
    says it, and ``compaction_number`` its number.
    """

    state: str | None = None
    covered_by: int | None = None
    compaction_number: int | None = None


class FoundFacts(Frozen):
    """The newest facts that meet every filter, newest first; ``more`` is whether older ones do too."""

    facts: tuple[FoundFact, ...]
    more: bool


class FoundBlocks(Frozen):
    """Blocks with all words of a text, the best first, as `timeline search --json` has them."""

    found: tuple[FoundRow, ...]
    more: bool


class Counted(Frozen):
    """Blocks and their tokens."""

    blocks: int = 0
    tokens: int = 0


class State(Frozen):
    """A conversation at a version.

    Attributes:
        at_version: that version; ``at`` is the time of its event.
        version: of the newest event of the conversation.
        tokens: of the window as shown, in the log's own counts.
        by_role: the same by kind of block (prompts, completions, reasoning, calls, results, summaries, hidden, other).
        ratio: the provider's tokens for one of these, where the policy counts in the provider's, as limit, trigger and
            target are; else 1.
        states: blocks and tokens by state; ``covered`` is what live summaries stand for.
        window_start: the lowest version of a visible block that is not carried.
        turn_id: the turn at that time; ``calls`` and ``compactions`` are how many there were by then.
        limit: of the policy in force, with its trigger and target; None where the log names none.
        context: the newest recorded context at that time.
        summary_address: that of the newest live summary.
        open_calls: addresses of tool calls that wait for a result.
        held: whether an undo keeps automatic compactions off.
    """

    conversation: str
    at_version: int
    version: int
    at: str
    tokens: int
    by_role: dict[str, int]
    ratio: float
    states: dict[str, Counted]
    window_start: int
    turn_id: str
    calls: int
    compactions: int
    limit: int | None
    trigger: int | None
    target: int | None
    context: int | None
    summary_address: str | None
    open_calls: tuple[str, ...]
    held: bool


class WhyAnswer(Frozen):
    """Why a block is shown as it is, or is not there: ``why`` is what `timeline why --json` prints.

    ``decisions`` are those that can be taken about it now: none where the inspector only reads.
    """

    conversation: str
    why: dict[str, Any]
    decisions: tuple[str, ...] = ()


class Compactions(Frozen):
    """The compactions of a conversation, oldest first, undone ones too, and those that were refused or failed."""

    conversation: str
    compactions: tuple[CompactionRow, ...]
    failures: tuple[FailureRow, ...]


class Compaction(Frozen):
    """A compaction with its summary in full and the digest of what it newly covered.

    Attributes:
        text: the summary; ``left_out`` is how many characters more it has, which the block at its address holds.
        history: its first part, finished history; ``turn_prefix`` the part about the turn that the cut split.
        chain: versions of the compactions that led to it, each integrated by the next; its own is the last.
        next_version: that of the compaction behind it.
        failures: compactions that were refused or failed since the one before.
        written_by: who wrote the summary, with all that was recorded about it.
    """

    conversation: str
    compaction: CompactionRow
    text: str
    left_out: int
    history: str
    turn_prefix: str
    digest: dict[str, Any]
    chain: tuple[int, ...]
    next_version: int | None
    failures: tuple[FailureRow, ...]
    written_by: dict[str, Any]


class ChartPoint(Frozen):
    """A model call in the chart of a conversation.

    Attributes:
        number: of the call, from 1; ``version`` is that of its event.
        context: version of the recorded context that it answers; None where there is none.
        sent_tokens: those of the request, as the provider reported it; 0 where it did not.
        cache_read_tokens: those of them that were read from the provider's cache.
        cache_write_tokens: those of them that went into it.
        output_tokens: those of the answer.
        cost: in US dollars; None where the model has no known price.
        total: what the render compared with the limit; None without a recorded context, as for the next ones.
        limit: the limit, with the policy's trigger and target.
        by_role: tokens of the window by kind of block, in the log's own counts.
        ratio: how many tokens of ``total`` and ``limit`` one of these is: the provider's where the policy counts so.
        failed: whether the call failed.
    """

    number: int
    version: int
    at: str
    context: int | None
    sent_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost: float | None
    total: int | None
    limit: int | None
    trigger: int | None
    target: int | None
    by_role: dict[str, int]
    ratio: float
    failed: bool


class Mark(Frozen):
    """Something that changed a context: the version, type and time of its event, and what it did in words."""

    version: int
    at: str
    type: str
    text: str


class Chart(Frozen):
    """How full the context was at each call, and what changed it. ``next_after`` is the ``after`` of the calls behind.

    ``read_until`` is the version up to which the log was read so far, of ``version``. ``turn_versions`` are those at
    which the newest turns begin.
    """

    conversation: str
    points: tuple[ChartPoint, ...]
    marks: tuple[Mark, ...]
    marks_left_out: int
    turn_versions: tuple[int, ...] = ()
    read_until: int
    version: int
    next_after: int | None


class Difference(Frozen):
    """What differs between two contexts (``kind`` is ``contexts``), or two summaries, as `timeline diff --json` has it.

    ``left_out`` names the lists that were cut, with how many rows more they have.
    """

    conversation: str
    kind: Literal["contexts", "summaries"]
    difference: dict[str, Any]
    left_out: dict[str, int]


class Relative(Frozen):
    """A conversation of a family: its origin, as in its row, and how far it got."""

    id: str
    title: str
    parent: dict[str, Any] | None
    base: int
    version: int
    created_at: str
    updated_at: str


class Stretch(Frozen):
    """A stretch of the log: a stage of the work, or an attempt to compact.

    Attributes:
        kind: ``stage`` or ``attempt``.
        name: the stage's label, or the reason of the attempt.
        first: version of the event that began it, ``last`` of the one that ended it; None where nothing did.
        outcome: ``approved``, ``rewound``, ``completed``, ``failed``, or ``open``.
        text: the stage's decision, or why an attempt failed.
    """

    kind: Literal["stage", "attempt"]
    name: str
    first: int
    last: int | None
    outcome: Literal["approved", "rewound", "completed", "failed", "open"]
    text: str


class Family(Frozen):
    """A conversation's forks and subagents, those of its parents too, parents first; and its stages and attempts.

    ``stretches`` are its own newest stages of the work and attempts to compact, in the order in which they began.
    """

    conversation: str
    family: tuple[Relative, ...]
    left_out: int
    stretches: tuple[Stretch, ...] = ()


class ReplayedCall(Frozen):
    """A recorded call under another policy: the tokens and the cost of what it would be sent."""

    number: int
    tokens: int
    cost: float
    compactions: int


class WhatIf(Frozen):
    """The same log under another policy, from its beginning: nothing of it is written.

    ``simulation`` is what `timeline simulate --json` prints; ``recorded`` are the same figures of the log as it is.
    ``priced`` is the run of `timeline lab --facts --json`: cost, and facts in sight; None where ``not_priced`` says why
    there is none. ``calls`` has for each call of that run its number, tokens, cost and whether it compacted.
    """

    conversation: str
    policy: str
    max_tokens: int
    simulation: dict[str, Any]
    recorded: dict[str, Any]
    priced: dict[str, Any] | None = None
    not_priced: str = ""
    calls: tuple[ReplayedCall, ...] = ()


class Lab(Frozen):
    """How far a comparison of policies on one log is: calls that were replayed, of all of them under each policy.

    Of one that ``ended`` there are ``rows``, as `timeline lab --facts --json` has them, and under ``…/lab-page``
    with the same query the page of `timeline lab`.
    """

    conversation: str
    policies: tuple[str, ...]
    limits: tuple[int, ...]
    done: int
    of: int
    ended: bool
    rows: tuple[dict[str, Any], ...] = ()
    failures: tuple[str, ...] = ()


class About(Frozen):
    """The library that answers, and the decisions that it takes here; none where it only reads."""

    name: str
    library_version: str
    decisions: tuple[str, ...]


class Decided(Frozen):
    """What a decision did.

    Attributes:
        conversation: its id; of a fork, that of the fork.
        version: the conversation's version afterwards.
        decision: what was asked.
        blocks: the blocks that changed, at most 500; ``blocks_left_out`` is how many more did.
        reverted: versions of the compactions that were undone.
        dry_run: whether this is what it would do: nothing was appended.
        gone: how many blocks left the window: a summary covers them, or one that did was undone.
        before_tokens: of the window before it, in the log's own counts; ``after_tokens`` are those behind it.
        base: of a fork: the last version that both share.
    """

    conversation: str
    version: int
    decision: str
    blocks: tuple[DecidedBlock, ...]
    blocks_left_out: int
    reverted: tuple[int, ...]
    dry_run: bool = False
    gone: int = 0
    before_tokens: int = 0
    after_tokens: int = 0
    base: int | None = None


class Finding(Frozen):
    """What is taken out of a file that is to be shared.

    Attributes:
        name: of the finding, to keep it by; the same in every run, and wherever the same text is found.
        kind: what it looks like.
        times: how often it is taken out, at ``places`` places.
        places: as ``times``.
        place: the first of them.
        excerpt: what is around it there: of a credential the first characters alone, of a home folder the name.
    """

    name: str
    kind: str
    times: int
    places: int
    place: str
    excerpt: str


class Review(Frozen):
    """The credentials and home folders that would be taken out of a file that is to be shared."""

    conversation: str
    version: int
    format: str
    findings: tuple[Finding, ...]
