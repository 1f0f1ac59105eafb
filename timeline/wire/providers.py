"""The providers' rules for a request, as data with source and date; the wires have no such figures of their own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from timeline.wire.neutral import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFacts:
    """The rules of one provider's message format.

    Attributes:
        name: the wire's name.
        max_markers: most cache markers in one request; the provider refuses more. 0 where caching is automatic.
        unmarkable: content part types that take no cache marker.
        id_pattern, id_length: the valid tool call ids.
        name_pattern, name_length: the valid tool names.
        signed_reasoning: content part types of reasoning that may be sent back, unaltered, while the prefix before them
            is the one they were made with. Behind a rewritten prefix only those of a tool loop are sent
            (`Entry.in_loop`), and none to a model of `prefix_bound`.
        prefix_bound: matches the ids of models that check a signature against the whole prefix that it was made with,
            and refuse or drop a signature behind another prefix.
        own: matches the ids of the provider's own models, which refuse a signature of another maker's model.
        picture_types: picture formats that the provider takes as base64.
        source, as_of: where the rules were read, and when.
        demands_signature: matches the ids of models that refuse a response whose first call has no signature.
        foreign_signature: the signature that the provider documents for a call made by another provider's model.
        unsigned: matches the ids of models of other makers that think without signing, and take their thoughts back so.
        thoughtful: matches the ids of models that refuse a response with calls without the text of its thought.
        strict_ids, strict_id_pattern, strict_id_length: models with a narrower rule for call ids, and that rule.
        plain: matches the ids of models that take no list of texts for a content.
    """

    name: str
    max_markers: int
    unmarkable: frozenset[str]
    id_pattern: re.Pattern[str]
    id_length: int
    name_pattern: re.Pattern[str]
    name_length: int
    signed_reasoning: frozenset[str]
    prefix_bound: re.Pattern[str] | None
    picture_types: frozenset[str]
    source: str
    as_of: str
    own: re.Pattern[str] | None = None
    demands_signature: re.Pattern[str] | None = None
    foreign_signature: str = ""
    unsigned: re.Pattern[str] | None = None
    thoughtful: re.Pattern[str] | None = None
    strict_ids: re.Pattern[str] | None = None
    strict_id_pattern: re.Pattern[str] | None = None
    strict_id_length: int = 0
    plain: re.Pattern[str] | None = None

    def call_ids(self, model: str) -> tuple[re.Pattern[str], int]:
        """Return the rules for call ids of a model: their pattern, and how long they may be."""
        if self.strict_ids and self.strict_id_pattern and self.strict_ids.search(model.lower()):
            return self.strict_id_pattern, self.strict_id_length
        return self.id_pattern, self.id_length

    def takes_texts_only_whole(self, model: str) -> bool:
        """Return whether a model refuses a content that is a list of texts."""
        return self.plain is not None and self.plain.search(model.lower()) is not None

    def signature_for_unsigned(self, model: str) -> str:
        """Return the signature to send for a call without one; an empty text where the provider demands none."""
        demanded = self.demands_signature is not None and self.demands_signature.search(model)
        return self.foreign_signature if demanded else ""

    def demands_thought(self, model: str) -> bool:
        """Return whether a model refuses a response with calls without the text of its thought."""
        return self.thoughtful is not None and self.thoughtful.search(model.lower()) is not None

    def takes_unsigned(self, model: str) -> bool:
        """Return whether a model takes back its thoughts with an empty signature."""
        return self.unsigned is not None and self.unsigned.search(model.lower()) is not None

    def is_own(self, model: str) -> bool:
        """Return whether a model is the provider's own."""
        return self.own is not None and self.own.search(model.lower()) is not None

    def takes_back(self, reasoning: Entry, model: str) -> bool:
        """Return whether signed reasoning may be sent to a model.

        That depends on who signed it, as far as its data names another maker's model (`SIGNED_BY`), and on whether the
        prefix before it was rewritten.
        """
        signer = reasoning.data.get(SIGNED_BY) if isinstance(reasoning.data, dict) else None
        if self.is_own(model) and isinstance(signer, str) and not self.is_own(signer):
            return False
        if not reasoning.rewritten:
            return True
        return reasoning.in_loop and not (self.prefix_bound and self.prefix_bound.search(model))


SIGNED_BY: Final = "model"
"""Key of a reasoning's data for the model that signed it, where that is not the provider's own; no provider gets it."""
_WORD: Final = re.compile(r"[a-zA-Z0-9_-]+")
_PREFIX_BOUND: Final = re.compile(r"claude-[a-z]+-(?:5[-.][1-9]\d?(?!\d)|(?:[6-9]|[1-9]\d)(?!\d))")
"""Preserved thinking: from 5.1 on, by number and not by name, since the check stays in later models. Gateways write the
number with a dot. A date behind the major version (claude-opus-5-20260901) is not a minor version."""
_PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

ANTHROPIC: Final = ProviderFacts(
    name="anthropic",
    max_markers=4,
    unmarkable=frozenset({"thinking", "redacted_thinking"}),
    id_pattern=_WORD,
    id_length=64,
    name_pattern=_WORD,
    name_length=128,
    signed_reasoning=frozenset({"thinking", "redacted_thinking"}),
    prefix_bound=_PREFIX_BOUND,
    picture_types=_PICTURES,
    source="Anthropic documentation: prompt caching, extended thinking, preserved thinking and its prefix checks, "
    "tool use, vision; anthropic SDK 2.12 types; reports of users of servers that speak this form",
    as_of="2026-11",
    own=re.compile(r"claude"),  # with a region, a host or a date around it
    unsigned=re.compile(r"(?:^|/)(?:kimi|moonshot|mimo)|^accounts/fireworks/"),
)

OPENAI_CHAT: Final = ProviderFacts(
    name="openai_chat",
    max_markers=0,
    unmarkable=frozenset(),
    id_pattern=_WORD,
    id_length=40,
    name_pattern=_WORD,
    name_length=64,
    signed_reasoning=frozenset(),  # it is beside the content, see `timeline.wire.chat_thoughts`
    prefix_bound=_PREFIX_BOUND,
    picture_types=_PICTURES,
    source="OpenAI documentation: chat completions, function calling, vision; limits as the API names them. Servers of "
    "this form: DeepSeek's thinking mode, Moonshot's thinking models, OpenRouter's preserved reasoning, Google's "
    "thought signatures, and the errors that their users reported",
    as_of="2026-11",
    thoughtful=re.compile(
        r"(?:^|/)(?:deepseek-(?:reasoner|v(?:3\.[2-9]|[4-9]))|kimi-(?:k2-thinking|k2[.-][5-9]|k[3-9]))"
    ),
    strict_ids=re.compile(
        r"(?:^|[/.-])(?:mi[sx]tral|ministral|magistral|codestral|devstral|pixtral|voxtral|leanstral)"
    ),
    strict_id_pattern=re.compile(r"[a-zA-Z0-9]{9}"),  # "must be a-z, A-Z, 0-9, with a length of 9"
    strict_id_length=9,
    plain=re.compile(r"(?:^|/)deepseek"),  # "invalid type: sequence, expected a string"
)

OPENAI_RESPONSES: Final = ProviderFacts(
    name="openai_responses",
    max_markers=0,
    unmarkable=frozenset(),
    id_pattern=_WORD,
    id_length=64,
    name_pattern=_WORD,
    name_length=64,
    signed_reasoning=frozenset({"reasoning"}),
    prefix_bound=None,
    picture_types=_PICTURES,
    source="OpenAI documentation: responses, reasoning items and their encrypted content, function calling, images and "
    "files; openai SDK types; vLLM's reasoning items as input",
    as_of="2026-11",
    # Servers of open models show the thought itself, and read it again. OpenAI's looks for an item of that id.
    unsigned=re.compile(r"^(?!(?:openai/)?(?:gpt-\d|o\d|chatgpt|codex)).+"),
)

GEMINI: Final = ProviderFacts(
    name="gemini",
    max_markers=0,  # a prefix is cached as an object of its own (`timeline.wire.gemini_cache`)
    unmarkable=frozenset(),
    id_pattern=_WORD,
    id_length=64,
    name_pattern=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]*"),
    name_length=64,
    signed_reasoning=frozenset(),  # its parts have no types: they are known by their signature
    prefix_bound=None,
    picture_types=frozenset({"image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"}),
    source="Google documentation: function calling, thought signatures and what is sent for calls of other models, "
    "context caching; google-genai SDK 3.4 types",
    as_of="2026-11",
    demands_signature=re.compile(r"gemini-(?:[3-9]|\d\d)"),
    foreign_signature="skip_thought_signature_validator",
)

BEDROCK: Final = ProviderFacts(
    name="bedrock_converse",
    max_markers=4,
    unmarkable=frozenset({"reasoningContent"}),
    id_pattern=_WORD,  # the service takes more signs, Claude does not
    id_length=64,
    name_pattern=_WORD,
    name_length=64,
    signed_reasoning=frozenset({"reasoningContent"}),
    prefix_bound=_PREFIX_BOUND,
    picture_types=_PICTURES,
    source="AWS documentation: Converse, prompt caching, tool use; the service model that botocore 1.44 ships; what "
    "users measured of it: bifrost#6942, inspect_ai#5131, hermes-agent#55092, strands-agents#1966 and #3677, "
    "LibreChat#13838, langchain-aws#401, vercel/ai#20365",
    as_of="2026-11",
    own=ANTHROPIC.own,
    unsigned=re.compile(r"nova|minimax"),
)
MARKED_ON_BEDROCK: Final = re.compile(r"claude|nova")
"""Matches the ids of models on Bedrock that take cache points, and a result's status; the others refuse both."""
LONG_ON_BEDROCK: Final = re.compile(r"claude-[a-z]+-(?:4-[5-9](?!\d)|[5-9](?!\d)|[1-9]\d(?!\d))")
"""Matches the ids of models on Bedrock that keep a prefix for an hour."""
