"""Hypothesis strategies for logs, legal and hostile, as plain steps that a test plays to a timeline.

A step names blocks by numbers that are taken modulo what exists when it is played, so that any list of steps can be
played, shrunk and cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from hypothesis import strategies as st

from timeline import policies
from timeline.blocks import (
    AssistantCompletion,
    Attachment,
    Block,
    CustomBlock,
    Note,
    Reasoning,
    StageDigest,
    SystemMessage,
    ToolCall,
    ToolResult,
    TurnHeader,
    UserPrompt,
)
from timeline.policy.model import Hiding, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import SearchStrategy

PICTURE: Final[Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
SIGNED: Final[Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
DecisionKind: TypeAlias = Literal["hide", "omit", "reveal", "pin", "unpin", "redact"]
ManualKind: TypeAlias = Literal["hide", "omit", "reveal", "pin", "unpin"]


def small(max_tokens: int = 2_000, **changes: Any) -> Policy:
    """Return the cut-point policy with a small limit and the quick counter."""
    return policies.cut_point(**{"max_tokens": max_tokens, "counter": "chars4", **changes})


@dataclass(frozen=True, slots=True)
class Say:
    """Append blocks in one transaction."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Decide:
    """Append a decision about some blocks straight to the log, covered and unknown ones included."""

    kind: DecisionKind
    numbers: tuple[int, ...]
    snapshot: bool


@dataclass(frozen=True, slots=True)
class Import:
    """Append a compaction of a recorded client: it covers all up to a block, and carries some of it."""

    until: int
    carried: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """Append an event that a later version of the library wrote, with a block of its kind or without one."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let time pass, or the clock go back."""

    seconds: int


@dataclass(frozen=True, slots=True)
class Call:
    """Record a model call: what it wrote to the cache, how long ago it began, whether it failed, and what it read.

    ``ratio`` is the provider's tokens for each of ours in the newest context.
    """

    wrote: Literal["", "5m", "1h", "both"]
    began: int | None
    failed: bool
    ratio: float = 0.0


@dataclass(frozen=True, slots=True)
class Manual:
    """Decide about a block by its path, as the application does; what may not be decided is refused."""

    kind: ManualKind
    number: int


@dataclass(frozen=True, slots=True)
class Compact:
    """Compact whatever the size: by the policy's cut, or up to a block of the window."""

    until: int | None = None


@dataclass(frozen=True, slots=True)
class Undo:
    """Take a compaction back: the newest one that stands, or any, with those that cover it or without."""

    number: int | None
    cascade: bool


@dataclass(frozen=True, slots=True)
class GoBack:
    """Take a turn back: the newest one, or from any block of the log on; what may not leave is refused."""

    number: int | None


@dataclass(frozen=True, slots=True)
class Staged:
    """Begin a stage of the work, approve the current one, or go back to one; what does not fit is refused."""

    kind: Literal["enter", "approve", "rewind"]
    stage: str


Step: TypeAlias = Say | Decide | Import | Later | Wait | Call | Manual | Compact | Undo | GoBack | Staged

_ODD: Final = ("", " ", "\n", "grüße 🦦", "a\ud800b", "\u202e\u0000", "<|endoftext|>", "tc:turn_1.a.result")
_SIZES: Final = (1, 5, 20, 80, 300, 900, 3_000)


def _texts(largest: int) -> SearchStrategy[str]:
    sized = st.builds(
        lambda word, size: f"{word} " * size,
        st.sampled_from(["lorem", "übung", "src/a.py:1"]),
        st.sampled_from([n for n in _SIZES if n <= largest]),
    )
    return st.one_of(sized, sized, st.sampled_from(_ODD))


# Built once: making a strategy costs more than drawing from it.
TEXTS: Final = _texts(3_000)
"""Texts: mostly words of some length, some odd ones."""
SHORT_TEXTS: Final = _texts(80)
CALL_IDS: Final = st.sampled_from(["a", "b", "c", "d", "x.y", "toolu 1", "a~2", "ä"])
"""Call ids from a small pool, so that they repeat; some need quoting in a path."""
TURN_IDS: Final = st.sampled_from(["", "", "", "", "turn_1", "turn_2", "turn_9", "t.1", "x y"])
"""Turn ids: none in most cases, else one of a few, so that old ones come again."""
RESPONSE_IDS: Final = st.sampled_from([None, None, "r1", "r2", "r3"])
"""Response ids: none, or one of a few that interleave."""
ARGUMENTS: Final[SearchStrategy[dict[str, Any] | str]] = st.one_of(
    st.sampled_from([{}, {"command": "ls"}, {"file_path": "a.py"}, "{broken", {"n": 1, "deep": {"k": [1, None]}}]),
    TEXTS.map(lambda text: {"path": "src/b.py", "content": text}),
)
"""A call's arguments: objects small and large, and texts that are no object."""
_TURN: Final[dict[str, Any]] = {"turn_id": TURN_IDS}
_SAID: Final[dict[str, Any]] = {**_TURN, "response_id": RESPONSE_IDS}
_CALL: Final[dict[str, Any]] = {**_SAID, "call_id": CALL_IDS, "arguments": ARGUMENTS}
_NAMES: Final = st.sampled_from(["bash", "read_file", "t"])
_AUTHORS: Final = st.sampled_from(["user", "assistant", "tool", "system", "reviewer"])
ANY_BLOCK: Final[SearchStrategy[Block]] = st.one_of(
    st.builds(UserPrompt, text=TEXTS, **_TURN),
    st.builds(TurnHeader, text=st.sampled_from(["", "turn"]), **_TURN),
    st.builds(
        Attachment,
        text=SHORT_TEXTS,
        data=st.sampled_from([None, PICTURE, [PICTURE, PICTURE]]),
        meta=st.sampled_from([{}, {"file": "a.png"}]),
        **_TURN,
    ),
    st.builds(AssistantCompletion, text=TEXTS, **_SAID),
    st.builds(Reasoning, text=SHORT_TEXTS, data=st.sampled_from([None, SIGNED]), **_SAID),
    st.builds(ToolCall, name=_NAMES, pending=st.booleans(), **_CALL),
    st.builds(ToolCall, name=_NAMES, **_CALL),
    st.builds(
        ToolResult,
        call_id=CALL_IDS,
        text=TEXTS,
        is_error=st.booleans(),
        data=st.sampled_from([None, None, [PICTURE]]),
        **_TURN,
    ),
    st.builds(ToolResult, call_id=CALL_IDS, text=TEXTS, **_TURN),
    st.builds(SystemMessage, text=SHORT_TEXTS, **_TURN),
    st.builds(Note, text=SHORT_TEXTS, **_TURN),
    st.builds(StageDigest, text=SHORT_TEXTS, **_TURN),
    st.builds(
        Note, text=SHORT_TEXTS, path=st.sampled_from(["ar:turn_1.user.prompt", "tc:turn_1.a.result", "my notes"])
    ),
    st.builds(CustomBlock, type=st.sampled_from(["plan.step", "app.memo"]), text=TEXTS, author=_AUTHORS, **_TURN),
)
"""Any block at all."""


def _round(draw: st.DrawFn, number: int, turn_id: str) -> list[Block]:
    """Draw a response with parallel calls, then their results in any order, with steering prompts in between."""
    response = draw(st.sampled_from([None, f"resp_{number}"]))
    calls = draw(st.integers(0, 3))
    said: list[Block] = []
    if draw(st.booleans()):
        said.append(Reasoning(text="hm", data=SIGNED, response_id=response, turn_id=turn_id))
    if not calls or draw(st.booleans()):
        said.append(AssistantCompletion(text=draw(SHORT_TEXTS), response_id=response, turn_id=turn_id))
    ids = [f"call_{number}_{i}" for i in range(calls)]
    said += [
        ToolCall(call_id=id_, name="bash", arguments=draw(ARGUMENTS), response_id=response, turn_id=turn_id)
        for id_ in ids
    ]
    answered = draw(st.permutations(ids))
    if draw(st.integers(0, 9)) == 9:
        answered = answered[1:]
    results: list[Block] = [ToolResult(call_id=id_, name="bash", text=draw(TEXTS), turn_id=turn_id) for id_ in answered]
    if draw(st.integers(0, 5)) == 5:
        steering = UserPrompt(text=draw(SHORT_TEXTS), turn_id=turn_id)
        results.insert(draw(st.integers(0, len(results))), steering)
    return said + results


@st.composite
def a_round(draw: st.DrawFn, number: int) -> list[Block]:
    """Draw a response of the current turn, with its results."""
    return _round(draw, number, "")


@st.composite
def legal_turns(draw: st.DrawFn) -> list[Block]:
    """Draw an orderly conversation of a few turns with rounds of calls; its steering prompts stay in their turn."""
    blocks: list[Block] = []
    number = 0
    for turn in range(1, draw(st.integers(1, 4)) + 1):
        turn_id = f"turn_{turn}"
        if draw(st.booleans()):
            blocks.append(TurnHeader(turn_id=turn_id))
        blocks.append(UserPrompt(text=draw(TEXTS), turn_id=turn_id))
        if draw(st.integers(0, 3)) == 3:
            blocks.append(Attachment(data=PICTURE, meta={"file": "a.png"}, turn_id=turn_id))
        for _ in range(draw(st.integers(0, 5))):
            number += 1
            blocks += _round(draw, number, turn_id)
        if draw(st.booleans()):
            blocks.append(AssistantCompletion(text=draw(SHORT_TEXTS), turn_id=turn_id, response_id=f"end_{turn}"))
    return blocks


DECISIONS: Final = st.builds(
    Decide,
    st.sampled_from(["hide", "omit", "reveal", "pin", "unpin", "redact"]),
    st.lists(st.integers(0, 200), min_size=1, max_size=4, unique=True).map(tuple),
    st.booleans(),
)
"""Decisions of any kind about any blocks."""
IMPORTS: Final = st.builds(
    Import, st.integers(0, 200), st.lists(st.integers(0, 200), max_size=3, unique=True).map(tuple)
)
"""Compactions of a recorded client."""
_SAY: Final = st.lists(ANY_BLOCK, min_size=1, max_size=5).map(lambda blocks: Say(tuple(blocks)))
LATER: Final = st.builds(Later, st.none() | SHORT_TEXTS)
"""Events of a later version."""
WAITS: Final = st.sampled_from([1, 299, 359, 360, 361, 1_000, 3_659, 3_660, 10_000, 10_000, -400]).map(Wait)
"""Gaps around the times that providers keep a cache, and clocks that go back."""
CALLS: Final = st.builds(
    Call,
    st.sampled_from(["", "5m", "1h", "both"]),
    st.sampled_from([None, 0, 30]),
    st.sampled_from([False, False, True]),
    st.sampled_from([0.0, 0.6, 1.0, 1.4, 1.4, 2.5]),
)
"""Model calls, with or without a word about the cache, by providers that count in their own ways."""
MANUAL: Final = st.builds(Manual, st.sampled_from(["hide", "omit", "reveal", "pin", "unpin"]), st.integers(0, 200))
"""Decisions of the application."""
COMPACTIONS: Final = st.builds(Compact, st.none() | st.none() | st.integers(0, 200))
"""Compactions that the application asks for."""
UNDOS: Final = st.builds(Undo, st.none() | st.integers(0, 20), st.booleans())
"""Compactions taken back."""
GOING_BACK: Final = st.builds(GoBack, st.none() | st.none() | st.integers(0, 200))
"""Turns taken back; a decision that reveals one of their blocks gives them back."""
STAGED: Final = st.builds(
    Staged,
    st.sampled_from(["enter", "enter", "approve", "approve", "approve", "rewind"]),
    st.sampled_from(["idea", "plan", "draft"]),
)
"""What is said of stages."""
TIMELY: Final[SearchStrategy[Step]] = st.one_of(WAITS, WAITS, CALLS, MANUAL, COMPACTIONS, UNDOS, UNDOS, GOING_BACK)
"""What time and the application bring, besides blocks."""
_HOSTILE: Final[SearchStrategy[Step]] = st.one_of(
    _SAY, _SAY, _SAY, _SAY, DECISIONS, DECISIONS, DECISIONS, IMPORTS, LATER, TIMELY
)


def _in_batches(blocks: Sequence[Block], sizes: Sequence[int]) -> list[Step]:
    steps: list[Step] = []
    rest = list(blocks)
    for size in sizes:
        batch, rest = rest[:size], rest[size:]
        if batch:
            steps.append(Say(tuple(batch)))
    return [*steps, Say(tuple(rest))] if rest else steps


ORDERLY_LOGS: Final[SearchStrategy[list[Step]]] = st.tuples(
    legal_turns(), st.lists(st.integers(1, 6), max_size=10)
).map(lambda drawn: _in_batches(*drawn))
"""Orderly conversations, appended in batches of any size."""
HOSTILE_LOGS: Final[SearchStrategy[list[Step]]] = st.integers(0, 20).flatmap(
    lambda size: st.lists(_HOSTILE, min_size=size, max_size=25)
)
"""Any blocks in any order, with decisions and foreign compactions among them."""


@st.composite
def _mixed(draw: st.DrawFn) -> list[Step]:
    steps = list(draw(ORDERLY_LOGS))
    for step in draw(st.lists(_HOSTILE, max_size=6)):
        steps.insert(draw(st.integers(0, len(steps))), step)
    return list(steps)


@st.composite
def _long_run(draw: st.DrawFn) -> list[Step]:
    """Draw an orderly conversation in which something else happens behind every append or two."""
    steps: list[Step] = []
    blocks = draw(legal_turns())
    while blocks:
        size = draw(st.integers(1, 8))
        steps.append(Say(tuple(blocks[:size])))
        blocks = blocks[size:]
        steps += [draw(TIMELY) for _ in range(draw(st.integers(0, 2)))]
    return steps


LONG_RUNS: Final[SearchStrategy[list[Step]]] = _long_run()
"""Orderly conversations of a running agent: pauses, model calls, compactions, decisions of the application."""
LOGS: Final[SearchStrategy[list[Step]]] = st.one_of(ORDERLY_LOGS, HOSTILE_LOGS, _mixed(), LONG_RUNS)
"""A log: an orderly one, a hostile one, or an orderly one with hostile steps put in anywhere."""


HIDINGS: Final = st.builds(
    Hiding,
    unit=st.sampled_from(["rounds", "turns"]),
    intact=st.sampled_from([1, 2, 8]),
    files=st.sampled_from([1, 3]),
    old=st.sampled_from([1, 2, 4]),
    ttl=st.sampled_from([None, None, 100]),
    grace=st.sampled_from([60, 0, -10]),
    minimum=st.sampled_from([0.01, 0.0, 0.1]),
    pressure_minimum=st.sampled_from([None, 0.0, 0.05, 0.15]),
    replacement_tokens=st.sampled_from([60, 20]),
)
"""Ways to hide that a conversation of a few rounds meets."""
POLICIES: Final = st.builds(
    small,
    st.sampled_from([1_000, 2_000, 4_000, 10_000]),
    keep_recent=st.sampled_from([0.2, 0.05, 0.6]),
    output_reserve=st.sampled_from([0, 0, 300]),
    margin=st.sampled_from([0.0, 0.0, 0.1]),
    on_split=st.sampled_from(["split", "together", "whole_turn"]),
    target=st.sampled_from([0.7, 0.3, 0.9]),
    carried_share=st.sampled_from([0.15, 0.5]),
    attempts=st.sampled_from([3, 1]),
    hiding=st.one_of(HIDINGS, HIDINGS, st.none()),
    compact_when_cold=st.sampled_from([None, 0.35]),
)
"""Policies with small limits."""
