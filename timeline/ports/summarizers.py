"""What writes summaries: the request, the answer and the context in the cache to ask in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from timeline.blocks import Block
    from timeline.ports.counters import TokenCounter
    from timeline.usage import Usage

SummaryKind: TypeAlias = Literal["history", "turn_prefix"]
PromptName: TypeAlias = Literal["generic", "sections", "continuation", "bullets"]
"""Shapes of a summary: prose under plain headings, the sections of the keep-last design (001), the five headings of the
prune-then-summarize design (004), the three to five bullet points of the priority-chain design (000)."""
HIDDEN_KEY: Final = "hidden"
"""Key of a block's ``meta`` in a request: the reason why the model saw a replacement. Stored blocks do not have it."""
ABRIDGED_KEY: Final = "abridged"
"""Key of a block's ``meta`` in a request: the reason why the model saw it shorter, with the rest of it in sight. Stored
blocks do not have it."""
CUT_KEY: Final = "cut"
"""Key of a block's ``meta`` in a request: it is as it was said, without the middle. Stored blocks do not have it."""
GAP: Final = "[…]"
"""The line in place of what was left out of a cut block: no words and no figures, which a summary might repeat."""


class WarmContext(Protocol):
    """The context that a model was sent last and that its provider still has in the cache, to ask one more question in.

    It holds all blocks of the request, and what came after them. A question costs what reading the cache costs.
    """

    @property
    def wire(self) -> str:
        """The wire format that it was sent in."""
        ...

    @property
    def model(self) -> str:
        """Id of the model that it was sent to; no other model has it in its cache."""
        ...

    @property
    def tokens(self) -> int:
        """Its tokens, system prompt and tools included, by the policy's counter."""
        ...

    def arguments(self, question: str, most_tokens: int) -> dict[str, Any]:
        """Return the arguments of the SDK's method that ask a question after this context; a new dict each time.

        All that comes before the question is as it was sent, byte for byte, and so are the parameters that a cache
        depends on: tools and tool choice, thinking, effort.

        Args:
            question: the question; it is stored nowhere.
            most_tokens: cap of the answer, in the model's own tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """A request for a summary.

    Attributes:
        kind: finished history, or the prefix of the turn that goes on after the summary.
        blocks: the blocks to summarise, in timeline order; never empty. Each is as the model saw it; or, if the policy
            asks for originals, as it was said, cut if there is no room for it (`CUT_KEY`).
        previous: the earlier summary to integrate, whole and in its own shape; None if there is none.
        task: the prompt of the split turn (``turn_prefix``), or else the newest covered prompt, or one before the
            range; all parts of its message.
        max_tokens: hard cap of the answer: half of the new blocks' tokens, and those of the earlier summary, so that an
            answer within the cap never grows the context.
        counter: the policy's counter, to measure the answer with.
        instructions: extra wishes of the caller, such as what to focus on.
        prompt: the shape of the answer; a turn prefix has a shape of its own.
        language: language of the answer, such as ``Indonesian``; the conversation's if empty.
        compaction_number: number of the compaction, counted from 1.
        original_task: all parts of the user's first message, however long ago it was covered.
        temperature: the temperature that the policy wishes; None if it has no wish.
        answer_room: multiple of the cap at which a model is stopped.
        too_long: what to do with an answer above the cap: refuse it, so that another summarizer writes one or all stays
            as it is; or cut it to the cap, if what would come instead says less.
        invented: what to do with names in an answer that the request does not have: accept them; or ask the author once
            more, then remove the sentences with the names that are left.
        warm: the context in the provider's cache, to ask in; None if the policy asks for summaries alone, or if the
            context cannot be used. A summarizer may leave it unused.
    """

    kind: SummaryKind
    blocks: tuple[Block, ...]
    previous: str | None
    task: str | None
    max_tokens: int
    counter: TokenCounter
    instructions: str = ""
    prompt: PromptName = "generic"
    language: str = ""
    compaction_number: int = 1
    original_task: str | None = None
    temperature: float | None = None
    answer_room: float = 2.0
    too_long: Literal["refuse", "cut"] = "refuse"
    invented: Literal["accept", "repair"] = "accept"
    warm: WarmContext | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summarizer's answer, with the names of the summarizer and its model.

    ``repaired`` says which names the author had invented, and what became of them. ``asked`` says whether the model was
    asked in ``request.warm``; if not, ``alone_because`` says why.
    """

    text: str
    summarizer: str
    model: str | None = None
    prompt_version: str | None = None
    usage: Usage | None = None
    fallback_reason: str | None = None
    repaired: str | None = None
    asked: Literal["alone", "in_cache"] = "alone"
    alone_because: str | None = None


class Summarizer(Protocol):
    """Writes summaries. It runs outside of any lock, and may be slow, fail or be cancelled.

    An answer is used only if it is a `Summary` whose text can be stored, is not blank, and counts at most
    ``request.max_tokens``. Each request is cancelled at its deadline (`Timeline.open(summary_timeout=…)`).
    """

    @property
    def name(self) -> str:
        """The name that is stored beside every summary."""
        ...

    async def summarize(self, request: SummaryRequest, /) -> Summary:
        """Answer a request; the text counts at most ``request.max_tokens``.

        Raises:
            SummarizerFailed: there is no usable answer.
        """
        ...


SIGNALS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that end the program or the coroutine: not a failure of the summarizer that raises one."""
SUMMARY_TIMEOUT: Final = 110.0
"""Seconds that a summarizer has for one request, by default.

Less than the lease of a compaction (120 seconds): the next of the chain answers, and the summary is committed, before
another writer may take the compaction over."""


@runtime_checkable
class WindowedSummarizer(Summarizer, Protocol):
    """A summarizer that names its window. Originals are then cut so that it need not be asked again because of them."""

    @property
    def window_tokens(self) -> int | None:
        """Tokens that it can read and write at once; None if it knows no limit."""
        ...


def window_of(summarizer: object) -> int | None:
    """Return the window that a summarizer names, if it names one."""
    window = summarizer.window_tokens if isinstance(summarizer, WindowedSummarizer) else None
    return window if isinstance(window, int) and window > 0 else None


def name_of(summarizer: object) -> str:
    """Return a summarizer's name, or else its class, so that every failure can name its summarizer."""
    name = getattr(summarizer, "name", None)
    return name if isinstance(name, str) else type(summarizer).__name__
