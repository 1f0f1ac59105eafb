"""The paths of the API, each with what it asks, what it answers, and the function that reads the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.inspector import asked, shapes
from timeline.inspector.blocks import list_rows, show_block
from timeline.inspector.calls import list_calls, show_body, show_call, show_context
from timeline.inspector.chart import show_chart
from timeline.inspector.compactions import list_compactions, show_compaction
from timeline.inspector.compared import show_lab
from timeline.inspector.conversations import list_conversations, show_conversation
from timeline.inspector.decisions import show_about
from timeline.inspector.differences import show_difference
from timeline.inspector.family import show_family
from timeline.inspector.questions import list_digests, list_facts, search_blocks
from timeline.inspector.reasons import show_why
from timeline.inspector.review import review_file
from timeline.inspector.states import show_state
from timeline.inspector.what_if import show_what_if

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from timeline.frozen import Frozen
    from timeline.inspector.reader import Reader


@dataclass(frozen=True, slots=True)
class Route:
    """A path with parameters in braces, and what answers it.

    Attributes:
        path: its segments; one in braces is a parameter, percent-encoded in a request.
        asks: the parameters of path and query.
        answers: the shape of the answer.
        read: reads the answer.
        lasts: whether the answer to such a request never changes, so that a browser may keep it for good.
    """

    path: str
    asks: type[Frozen]
    answers: type[Frozen]
    read: Callable[[Reader, Any], Awaitable[Frozen]]
    lasts: Callable[[Any, Any], bool] = lambda _asked, _answer: False

    def match(self, segments: Sequence[str]) -> dict[str, str] | None:
        """Return the parameters in a path; None where it is another one."""
        own = self.path.split("/")
        if len(own) != len(segments):
            return None
        pairs = list(zip(own, segments, strict=True))
        if any(name != given for name, given in pairs if not name.startswith("{")):
            return None
        return {name[1:-1]: given for name, given in pairs if name.startswith("{")}


_ONE: Final = "v1/conversations/{id}"

ROUTES: Final = (
    Route("v1/about", asked.AskedNothing, shapes.About, show_about),
    Route("v1/conversations", asked.AskedConversations, shapes.Conversations, list_conversations),
    Route(_ONE, asked.AskedConversation, shapes.Conversation, show_conversation),
    Route(f"{_ONE}/blocks", asked.AskedRows, shapes.LogRows, list_rows),
    Route(
        f"{_ONE}/blocks/{{address}}",
        asked.AskedBlock,
        shapes.BlockText,
        show_block,
        lasts=lambda ask, answer: bool(ask.checksum) and ask.checksum == answer.checksum,
    ),
    Route(f"{_ONE}/calls", asked.AskedCalls, shapes.Calls, list_calls),
    Route(f"{_ONE}/calls/{{number}}", asked.AskedCall, shapes.Call, show_call),
    Route(f"{_ONE}/calls/{{number}}/context", asked.AskedContext, shapes.CallContext, show_context),
    Route(f"{_ONE}/calls/{{number}}/body", asked.AskedBody, shapes.Body, show_body),
    Route(f"{_ONE}/state", asked.AskedState, shapes.State, show_state),
    Route(f"{_ONE}/why", asked.AskedWhy, shapes.WhyAnswer, show_why),
    Route(f"{_ONE}/compactions", asked.AskedConversation, shapes.Compactions, list_compactions),
    Route(f"{_ONE}/compactions/{{version}}", asked.AskedCompaction, shapes.Compaction, show_compaction),
    Route(f"{_ONE}/chart", asked.AskedChart, shapes.Chart, show_chart),
    Route(f"{_ONE}/diff", asked.AskedDifference, shapes.Difference, show_difference),
    Route(f"{_ONE}/family", asked.AskedConversation, shapes.Family, show_family),
    Route(f"{_ONE}/what-if", asked.AskedWhatIf, shapes.WhatIf, show_what_if),
    Route(f"{_ONE}/review", asked.AskedReview, shapes.Review, review_file),
    Route(f"{_ONE}/lab", asked.AskedLab, shapes.Lab, show_lab),
    Route("v1/search", asked.AskedSearch, shapes.FoundBlocks, search_blocks),
    Route("v1/facts", asked.AskedFacts, shapes.FoundFacts, list_facts),
    Route("v1/digests", asked.AskedDigests, shapes.Digests, list_digests),
)
