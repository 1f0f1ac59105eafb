"""The context that `Timeline.render` returns, with the reason for each block, its account and its fingerprint."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from heapq import nsmallest
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, GetPydanticSchema, PrivateAttr
from pydantic_core.core_schema import is_instance_schema

from timeline.display.controls import show_controls
from timeline.fold.window import Window
from timeline.frozen import Frozen
from timeline.planning.account import Account
from timeline.policy.model import Policy
from timeline.projection.explain import ContextBlock, Explanation, Rulings, context_block, explained_points, shown_sizes
from timeline.projection.explanation_table import explanation_lines
from timeline.projection.project import sent_order
from timeline.projection.reports import Counts, TakenDecision, counts_of, overflow_check, preparation, prune_result
from timeline.wire.converse_body import with_bytes
from timeline.wire.gemini_cache import cached_prefixes
from timeline.wire.neutral import CachePoint, NeutralContext
from timeline.wire.read_only import plain
from timeline.wire.request import ALONE, BodyEncoders, LateRecord, Request, make_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.projection.reports import OverflowCheck, Preparation, PruneResult
    from timeline.wire.gemini_cache import CachedPrefix

_AS_IS = GetPydanticSchema(lambda source, _: is_instance_schema(source))
"""Validates a value of a class without changing it. Before pydantic 2.13 `InstanceOf` needs a schema of the class."""


class RenderedContext(Frozen):
    """A context to send, frozen.

    Attributes:
        conversation, version: the log and the version that it was projected from.
        projection: number of the projection's format.
        fingerprint: hash of all that is sent: equal fingerprints are equal contexts.
        window: the window that it was projected from.
        policy: the policy in force at that time.
        neutral: the context in the neutral form that all wire formats are made from.
        account: tokens by category.
        decisions: of this render.
        overflow: whether the total is still above the trigger, but within the limit.
        recorded: version of the event that recorded it, or the same context before; None where nothing did, or where
            it is recorded while the model is called.
    """

    conversation: str
    version: int
    projection: int
    fingerprint: str
    window: Annotated[Window, _AS_IS] = Field(repr=False, exclude=True)
    policy: Policy = Field(repr=False, exclude=True)
    neutral: NeutralContext
    account: Account
    decisions: tuple[TakenDecision, ...] = ()
    overflow: bool = False
    recorded: int | None = None
    _note: Callable[[Request], None] | None = PrivateAttr(default=None)
    _late: LateRecord | None = PrivateAttr(default=None)
    _encoders: BodyEncoders = PrivateAttr(default=ALONE)

    def recorded_late(self, late: LateRecord) -> Self:
        """Return the same context with a record that is written later, in which its requests find the version."""
        twin = self.model_copy()
        twin._late = late  # noqa: SLF001 - of its own class
        return twin

    @property
    def answered_as(self) -> int | None:
        """Version of the event that recorded it, also of one that was recorded after it was rendered."""
        return self.recorded if self._late is None else self._late.version

    def encoded_by(self, encoders: BodyEncoders) -> Self:
        """Return the same context with the encoders that encoded the contexts before it."""
        twin = self.model_copy()
        twin._encoders = encoders  # noqa: SLF001 - of its own class
        return twin

    def noting(self, note: Callable[[Request], None]) -> Self:
        """Return the same context, which passes each request that is made of it to ``note``."""
        twin = self.model_copy()
        twin._note = note  # noqa: SLF001 - of its own class
        return twin

    def __repr_args__(self) -> Iterator[tuple[str, object]]:
        yield from {"conversation": self.conversation, "version": self.version}.items()
        yield from {"entries": len(self.neutral.entries), "tokens": self.account.needed}.items()
        yield from {"limit": self.account.limit, "decisions": len(self.decisions)}.items()

    def _repr_html_(self) -> str:
        from timeline.projection.notebook import notebook_html  # noqa: PLC0415 - only a notebook asks

        account = self.account
        facts = (f"{account.needed:,} of {account.limit:,} tokens", f"{len(self.neutral.entries):,} entries")
        return notebook_html(type(self).__name__, self.window, facts, limit=account.limit, total=account.needed)

    @cached_property
    def blocks(self) -> tuple[ContextBlock, ...]:
        """Every live block in order, with its state and the reason for it."""
        entries = {entry.path: entry for entry in self.neutral.entries}
        rulings = Rulings(self.window, entries, self.projection)
        return tuple(context_block(item, *rulings.of(item)) for item in sent_order(self.window.items))

    def largest(self, most: int) -> list[tuple[str, int]]:
        """Return paths and tokens of the largest blocks, as `blocks` has them, without the reason for each."""
        sizes = shown_sizes(sent_order(self.window.items), {entry.path for entry in self.neutral.entries})
        return nsmallest(most, sizes, key=lambda size: -size[1])

    @cached_property
    def explanation(self) -> Explanation:
        """The explanation of the context: the rule of each block and cache point, the account and the decisions."""
        return Explanation(
            conversation=self.conversation,
            version=self.version,
            fingerprint=self.fingerprint,
            policy=self.policy.name,
            blocks=self.blocks,
            kept_long=self.neutral.kept_long,
            cache_points=explained_points(self.neutral, self.blocks, self.policy.cache_points),
            ephemeral=len(self.neutral.ephemeral),
            account=self.account,
            counts=self.counts,
            decisions=self.decisions,
            overflow=self.overflow,
        )

    @property
    def counts(self) -> Counts:
        """The unit of its tokens: the counter's, or the provider's by a ratio, and where that is from."""
        return counts_of(self.policy, self.window.reported)

    @property
    def overflow_check(self) -> OverflowCheck:
        """Whether the context is above the model's limit, in figures."""
        return overflow_check(self.account)

    @property
    def pruned(self) -> PruneResult:
        """The tool outputs that this render cleared."""
        return prune_result(self.decisions)

    @property
    def preparation(self) -> Preparation:
        """The steps of this render before the context could be sent: tokens after each, cleared and covered blocks."""
        return preparation(self.account, self.decisions)

    @property
    def cache_points(self) -> tuple[CachePoint, ...]:
        """The positions of the cache markers."""
        return self.neutral.cache_points

    def request(self, wire: str, /, *, model: str, **parameters: Any) -> Request:
        """Return the complete request of a model call: its body, and what `Timeline.record` keeps as proof of it.

        Pass ``request.arguments`` to the SDK's method, and the request to `record` with the reply. The keys of the body
        are ``model``, the parameters as they are given, then what `to_wire` gives, in its order. Google's body is the
        one that its SDK sends, and its parameters are in ``config``, as there.

        Args:
            wire: the wire format.
            model: id of the model that is called.
            parameters: the other keys of the body, such as ``max_tokens``, ``temperature`` or ``stream``.

        Raises:
            InvalidArgument: there is no such wire format.
            InvalidArgument: a parameter is one that the context gives, such as ``messages``, is a client's credential,
                or has no form in JSON.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            context = await timeline.render(system="Be brief.")
            request = context.request("anthropic", model="claude-opus-5", max_tokens=1_000)
            assert list(request.body) == ["model", "max_tokens", "system", "messages"]
            ```
        """
        made = make_request(
            self.neutral,
            wire,
            model=model,
            parameters=parameters,
            conversation=self.conversation,
            context=self.recorded,
            late=self._late,
            encoders=self._encoders,
        )
        if self._note is not None:
            self._note(made)
        return made

    def to_wire(self, wire: str, *, model: str | None = None) -> dict[str, Any]:
        """Return the request body of a wire format, by name.

        Args:
            wire: its name.
            model: id of the model that the request is for, since a provider's models accept different requests; by
                default the model of the newest recorded call.

        Raises:
            InvalidArgument: there is no such wire format.
        """
        neutral = self.neutral if model is None else self.neutral.model_copy(update={"model": model})
        return self._encoders.encode(wire, neutral)

    def to_anthropic(self, *, model: str | None = None) -> dict[str, Any]:
        """Return ``system``, ``tools`` and ``messages`` for Anthropic's messages call, cache markers included.

        ``model`` as for `to_wire`: it decides about signed reasoning of a tool loop whose prefix was rewritten since.
        Older models require that reasoning, newer ones refuse it.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            request = (await timeline.render(system="Be brief.")).to_anthropic(model="claude-opus-5")
            assert sorted(request) == ["messages", "system"]  # client.messages.create(model=…, **request)
            ```
        """
        return self.to_wire("anthropic", model=model)

    def to_openai_chat(self, *, model: str | None = None) -> dict[str, Any]:
        """Return ``messages`` and ``tools`` for a chat completions call, of OpenAI or of a server that speaks its form.

        ``model`` as for `to_wire`: what a model thought goes back to that model, and some refuse a request without it.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            request = (await timeline.render(system="Be brief.")).to_openai_chat()
            assert [message["role"] for message in request["messages"]] == ["system", "user"]
            ```
        """
        return self.to_wire("openai_chat", model=model)

    def to_openai_responses(self, *, model: str | None = None) -> dict[str, Any]:
        """Return ``instructions``, ``input`` and ``tools`` for OpenAI's responses call.

        ``model`` as for `to_wire`: OpenAI's models get calls of a shell or a patch in a form of their own, and the
        phase of each answer; other servers know neither.
        """
        return self.to_wire("openai_responses", model=model)

    def to_gemini(self, *, model: str | None = None) -> dict[str, Any]:
        """Return ``contents`` and ``config`` for Google's ``generate_content``; see `gemini_prefixes` for caching.

        ``model`` as for `to_wire`: newer models require a signature on calls that no model of Google's made.
        """
        return self.to_wire("gemini", model=model)

    def gemini_prefixes(self, *, model: str | None = None) -> list[CachedPrefix]:
        """Return the prefixes of the request that Google's API may cache as objects, one for each cache point."""
        return cached_prefixes(self.neutral if model is None else self.neutral.model_copy(update={"model": model}))

    def to_bedrock_converse(self, *, model: str | None = None) -> dict[str, Any]:
        """Return ``system``, ``messages`` and ``toolConfig`` for the ``converse`` call of AWS' SDK.

        Pictures and documents are bytes here, as the SDK takes them; `to_wire` has them as base64 text. ``model`` as
        for `to_wire`: the service refuses cache points and thoughts for models that do not know them.
        """
        return with_bytes(plain(self.to_wire("bedrock_converse", model=model)))

    def to_ai_sdk(self, *, model: str | None = None) -> dict[str, Any]:
        """Return ``instructions`` and ``messages`` (``ModelMessage[]``) for the AI SDK's ``generateText``.

        Cache points are marked for Anthropic's models; other providers ignore them. Tools are left out: in that SDK
        they are objects of the program. ``model`` as for `to_wire`: it decides about signed reasoning.
        """
        return self.to_wire("ai_sdk", model=model)

    def to_ai_sdk_ui(self) -> dict[str, Any]:
        """Return ``messages`` (``UIMessage[]``) for an interface made with the AI SDK, and ``instructions``."""
        return self.to_wire("ai_sdk_ui")

    def explain(self) -> str:
        """Return a readable table: each block with its state, its tokens and why it is so, then the account.

        Control characters of the conversation are visible in it, without effect on a terminal.

        Example:
            ```python
            from timeline import Timeline, open_store

            store = await open_store("memory://")
            timeline = await Timeline.open(store, "cards")
            await timeline.append({"type": "user.prompt", "text": "Build a flashcard app."})
            table = (await timeline.render()).explain()
            assert "ar:turn_1.user.prompt" in table
            ```
        """
        return show_controls("\n".join(explanation_lines(self.explanation)))

    def dump(self) -> dict[str, Any]:
        """Return the stable JSON shape of `timeline render --json`."""
        return {
            "conversation": self.conversation,
            "version": self.version,
            "projection": self.projection,
            "fingerprint": self.fingerprint,
            "blocks": [b.model_dump() for b in self.blocks],
            "entries": [e.model_dump(mode="json", exclude_defaults=True) for e in self.neutral.entries],
            "cache_points": [p.model_dump() for p in self.cache_points],
            "account": self.account.facts(),
            "counts": self.counts.model_dump(),
            "decisions": [d.model_dump() for d in self.decisions],
            "overflow": self.overflow,
        }
