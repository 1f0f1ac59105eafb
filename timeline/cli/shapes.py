"""The JSON that the command prints, as types. These shapes are stable: keys may be added, none goes or changes.

| command | prints |
| --- | --- |
| `import --json` | a list of `ImportRow` |
| `simulate --json` | one `Simulation.dump()` with `subagents`, a list of the same; of several runs `SimulatedRow`s |
| `ls --json` | a list of `answers.listed.ConversationRow` |
| `show --json` | a list of `answers.listed.EventRow`, one an event |
| `render --json` | `RenderedContext.dump()`; with `--wire`, the request body of that provider and nothing else |
| `render --explain --json` | `Explanation.dump()`: every block's rule and figures, cache points, account |
| `diff --json` | one `ContextDiff.dump()`; with `--list`, a list of `RecordedRow` |
| `calls --json` | a list of `answers.calls.CallRow`, oldest first |
| `call --json` | one `Call.dump()`; with `--wire` the context in that form, with `--body` the body as it was sent |
| `diff ID @59 @156 --json` | one `SummaryDiff.dump()` |
| `why --json` | one `Why.dump()` |
| `compact --json` | one `CompactedRow` |
| `undo --json` | one `UndoneRow` |
| `fork --json` | one `ForkedRow` |
| `go-back --json`, `hide`, `reveal`, `pin`, `unpin` | one `DecidedRow` |
| `retention ID --json` | one `RetentionRow`; without an id, `{"store", "conversations"}` with one each |
| `scavenge --json` | one `ScavengeRow` |
| `find-subject --json` | one `SubjectRow` |
| `redact --json`, `erase` | one `ErasureRow` |
| `backup --json` | one `BackupRow` |
| `restore --json` | one `RestoreRow` |
| `copy --json` | one `CopyRow` |
| `migrate --json` | one `MigratedRow` |
| `doctor --json` | one `DoctorRow` |
| `watch --json` | an event a line, as `timeline.inspector.stream` sends it, in camelCase |
| `usage --json` | one `answers.total_usage.TotalUsage`: a row each of the conversation and its subagents, and the sum |
| `lab --json` | one `LabTable`; with `--validate` the predicted and the recorded cache use of each recording |
| `read --json` | the block's `dump()`, and its `address` (`cards@152`) |
| `digests --json` | a list of `answers.digests.DigestRow` |
| `facts --json` | a list of `answers.facts.FactRow`; `--record`: `FactRecordRow`s; `--reach`: one `ReachRow` |
| `search --json` | a list of `answers.found.FoundRow`, the best first |
| `verify ID --json` | a `VerifyReport`; without an id, `{"ok", "conversations", "problems"}`: of each and of the list |
| `verify --deep --json` | a `DeepReport` |
| `repair --json` | a `RepairReport` |
| `policies --json` | a list of policies, every field of each |
| `policies show A --json` | the policy, every field; of two policies one `ComparedRow` |

Times are UTC texts that end in ``Z``. Lists are written a row a line.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class ImportRow(TypedDict):
    """The import of one conversation: events added, events known from before, and the importer's findings."""

    id: str
    events: int
    known: int
    report: dict[str, Any]


class RetentionRow(TypedDict):
    """What a conversation is to keep: ``own`` is its own setting, None where the database's holds.

    All events from ``first_version`` on are there; some before it were scavenged, unless it is 1.
    """

    id: str
    retention: str
    own: str | None
    legal_hold: bool
    first_version: int


class PlaceRow(TypedDict):
    """A place at which a text is said; ``kind`` is one of `timeline.forgetting.subjects.PlaceKind`."""

    conversation: str
    place: str
    kind: str
    path: str | None
    exact: bool
    times: int


class SubjectRow(TypedDict):
    """Every place at which ``text`` is said; `redact --from` takes it."""

    text: str
    places: list[PlaceRow]


class ErasureRow(TypedDict):
    """What was erased or, in a dry run, would be; the places are those of `timeline.ports.ErasureReport`.

    ``physical`` is whether the bytes are gone from the store's files too; False in a dry run.
    """

    dry_run: bool
    conversations: list[str]
    reached: dict[str, int]
    rewritten: list[str]
    left: dict[str, str]
    physical: bool
    not_reached: dict[str, str]


class ScavengedRow(TypedDict):
    """What goes of one conversation, of the versions ``first`` to ``last``; or why it ``stays``, see `plan.Stays`.

    ``fork`` is the fork that shares what lies right before ``first``.
    """

    id: str
    stays: str | None
    events: int
    payload_bytes: int
    first: int
    last: int
    fork: str | None


class ScavengeRow(TypedDict):
    """What was removed or, in a dry run, would be. ``done`` is False where a budget ended first.

    ``before_bytes`` and ``after_bytes`` are the file's sizes, and 0 where it was not rewritten.
    """

    dry_run: bool
    done: bool
    events: int
    payload_bytes: int
    values: int
    value_bytes: int
    before_bytes: int
    after_bytes: int
    conversations: list[ScavengedRow]


class BackupRow(TypedDict):
    """A backup that was written, and what it holds."""

    file: str
    bytes: int
    conversations: int
    events: int
    schema: int


class LostRow(TypedDict):
    """A conversation that ends earlier in a backup: its version in the database, and in the backup (0: not there)."""

    id: str
    version: int
    restored: int


class ReturningRow(TypedDict):
    """A conversation of which a backup holds what was forgotten since: ``what`` is ``erased`` or ``redacted``."""

    id: str
    what: str


RestoreRow = TypedDict(
    "RestoreRow",
    {
        "dry_run": bool,
        "from": str,
        "file": str,
        "conversations": int,
        "events": int,
        "before_events": int | None,
        "problem": str | None,
        "loses": list[LostRow],
        "kept": list[str],
        "returns": list[ReturningRow],
    },
)
"""What a restore does, or did.

``before_events`` is None where the database was missing or did not read, and ``problem`` then says why; ``kept`` are
the names that the replaced files have now.
"""


class CopiedRow(TypedDict):
    """A conversation of a copy: its version there, events copied now and known before, and the head that both have.

    ``problem`` is why it was not copied, or not to its end; version and head are None then.
    """

    id: str
    version: int | None
    events: int
    known: int
    head: str | None
    problem: str | None


class CopyRow(TypedDict):
    """What a copy from one store into another did; ``not_copied`` counts the conversations with a problem."""

    conversations: list[CopiedRow]
    not_copied: int


class MigratedRow(TypedDict):
    """A store's schema before (0: there was none) and now, and over how many tables its events are spread (0: one)."""

    store: str
    before_schema: int
    schema: int
    partitions: int


class FreedRow(TypedDict):
    """The bytes that the file would shrink by under the retention ``window``: everywhere, and where it was idle."""

    window: int
    window_90_days_idle: int


class RemarkRow(TypedDict):
    """What is to be mended (``warning``) or good to know (``note``)."""

    code: str
    level: Literal["warning", "note"]
    text: str


class DoctorRow(TypedDict):
    """A database file. ``sizes`` are bytes by class; without ``log``, a file of its own, they add up to ``bytes``.

    Of a store on a server, ``server`` is the server's version, ``sizes`` are by table, and ``sqlite`` is empty.

    ``would_free`` is None where the database would have to be brought up to date first.
    """

    file: str
    bytes: int
    schema: int
    sqlite: str
    server: str
    conversations: int
    events: int
    sizes: dict[str, int]
    would_free: FreedRow | None
    remarks: list[RemarkRow]


class SimulatedRow(TypedDict):
    """One of several runs of `simulate`; beside these keys it has those of the report of a single run.

    ``policy`` is the preset or file as given, ``seconds`` the time of the run, and ``refusals`` the number of typed
    errors by type, subagents included.
    """

    file: str
    policy: str
    max_tokens: int
    seconds: float
    refusals: dict[str, int]


class ComparedRow(TypedDict):
    """Two policies, every field of each, and the fields in which they differ; None is a part that one lacks."""

    policies: list[dict[str, Any]]
    differences: list[DifferenceRow]


class DifferenceRow(TypedDict):
    """A field in which two policies differ, by its place, for example ``steps.0.cut.turns``."""

    field: str
    before: Any
    after: Any


class RecordedRow(TypedDict):
    """A recorded context: its number from 1, the version of its event, and the version that it was projected from."""

    number: int
    version: int
    at: str
    projected_from: int
    tokens: int
    fingerprint: str


class CompactedRow(TypedDict):
    """The decisions of `compact`, and the conversation's version afterwards.

    ``duration`` is how many seconds the newest compaction took, or None where none was made or measured.
    """

    conversation: str
    version: int
    decision: Literal["compact"]
    decisions: list[dict[str, Any]]
    duration: float | None


class UndoneRow(TypedDict):
    """The compactions that `undo` took back, newest first; afterwards the conversation's version and window size."""

    conversation: str
    version: int
    decision: Literal["undo"]
    reverted: list[int]
    before_tokens: int
    after_tokens: int


class ForkedRow(TypedDict):
    """A fork: its id and version, and the last version that it shares (``base``)."""

    conversation: str
    version: int
    decision: Literal["fork"]
    base: int


class DecidedRow(TypedDict):
    """A decision by hand, the version afterwards, and the changed blocks (`answers.listed.DecidedBlock`)."""

    conversation: str
    version: int
    decision: str
    blocks: list[dict[str, Any]]


class FactRecordRow(TypedDict):
    """The merged record of a conversation: an entry for each subject and outcome, by kind where it succeeded.

    Each entry has ``subject``, ``tool``, ``times``, ``exit_status``, ``failed``, ``at``, ``path`` and ``address`` of
    the newest block, the ``first_address``, and ``detail``. ``counts`` are the numbers of different subjects.
    """

    conversation: str
    open_failures: list[dict[str, Any]]
    errors: list[dict[str, Any]]
    done: dict[str, list[dict[str, Any]]]
    counts: dict[str, int]


class ReachRow(TypedDict):
    """How far the index of facts reaches: up to the event of ``position``, of those up to ``newest_position``.

    ``rules`` is the number of the rules that the facts were made by.
    """

    position: int
    newest_position: int
    rules: int


class LabTable(TypedDict):
    """A comparison: a row for each policy and limit, one for each run, and the files that could not be read.

    A row has the fields of `timeline.lab.comparison.Standing` and of its totals, a run those of
    `timeline.lab.results.RunResult` and of its totals. With ``--calls`` a run also has ``rows``, and ``differences``
    lists for each policy and limit the calls that differ most from the first policy's, each a
    `timeline.lab.differences.CallDifference`. Where the recordings' caches are kept differently, ``lifetimes`` has the
    rows of each class; else it is empty.
    """

    policies: list[dict[str, Any]]
    lifetimes: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    differences: list[dict[str, Any]]
    failures: list[dict[str, Any]]
