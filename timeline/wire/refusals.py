"""Recognise the errors of providers, a refused context above all, without importing an SDK.

An error is recognised by its status, its code, the names of its types and its message; the providers' codes and
messages are data here. Providers that answer in the language of the account have codes of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from timeline.errors import message_of
from timeline.wire.foreign import object_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from timeline.errors import Cause

SHARE: Final = 0.7
"""A refused context is compacted to this share of the provider's limit (design: Agent loops)."""

_OF_HTTP: Final = range(100, 600)
_STATUSES: Final = frozenset({None, 400, 413, 422, 500})
"""Error codes of a context that is too long; a limit of requests or tokens a minute (429) is another error."""
_CODES: Final = frozenset(
    {
        *("context_length_exceeded", "context_window_exceeded", "request_too_large"),
        *("context_too_large", "prompt_too_long"),  # gateways in front of OpenAI's and Anthropic's models
        "exceed_context_size_error",  # llama.cpp
        "1261",  # Zhipu, whose messages are Chinese or English by the host
        *("tokens_too_long", "336103"),  # Qianfan, its second interface and its first
        "10907",  # Spark, whose messages are Chinese
    }
)
_TOO_LARGE: Final = 413
"""The status for a body of too many bytes: gateways answer so in words of their own, or without any."""
_RATES: Final = frozenset({"rate_limit_exceeded", "tokens"})
"""Codes of Groq's answers with that status that are about tokens a minute."""
_TYPE_NAMES: Final = re.compile(r"Context(Window|Length|Limit)Exceeded|RequestTooLarge|ContentTooLarge")
_MESSAGES: Final = (
    r"prompt is too long"  # Anthropic
    r"|input length and `?max_tokens`? exceed context limit"  # Anthropic
    r"|maximum context length"  # OpenAI, and servers that speak like it
    r"|context[ _](length|window|limit|size)[ _](is |was |has been )?exceed"  # OpenAI, OpenRouter, Groq
    r"|exceeds? (the|this model's|your|its)? ?((maximum|available|model) )*context"  # OpenAI's Responses, llama.cpp
    r"|input is too long for requested model"  # Bedrock
    r"|input token count.{0,40}exceeds the maximum number of tokens"  # Gemini
    r"|input token count is \d+ but model only supports"  # Vertex AI
    r"|reduce the length of the (messages|input|prompt)"  # OpenAI, Groq, Cerebras
    r"|maximum prompt length is \d"  # xAI
    r"|prompt token count of \d+ exceeds"  # GitHub Copilot
    r"|exceeded model token limit"  # Moonshot
    r"|longer than the (model's context|maximum model) length"  # SGLang, Together; vLLM
    r"|context length of only \d|greater than the context length"  # LM Studio
    r"|prompt too long; exceeded (max )?context"  # Ollama
    r"|range of input length should be"  # DashScope
    r"|prompt exceeds max length"  # Zhipu
    r"|exceed max message tokens"  # Volcengine
    r"|prompt tokens too long"  # Qianfan
    r"|exceeded max_prompt_tokens"  # SiliconFlow
    r"|`inputs` (tokens \+ `max_new_tokens` must be <=|must have less than)"  # Text Generation Inference
    r"|tokens in the prompt cannot exceed"  # Cohere
    r"|input tokens exceeds maximum length|too many input tokens"  # Bedrock
    r"|tokens in request more than max tokens allowed"  # servers of OpenAI's form
    r"|exceeds the maximum allowed input length"  # Poolside
    r"|the configured context size is \d"  # ds4-server
)
"""The providers' messages for such errors, as their users reported them until November 2026.

All of these are compiled with the first error: it takes 15 ms, which each start would pay for otherwise.
"""
_NUMBER: Final = r"(\d[\d,_]*)"
_LIMITS: Final = (
    rf"> {_NUMBER}",
    rf"maximum (?:context|prompt|model) length (?:is |of |\()?{_NUMBER}",
    rf"maximum number of tokens allowed \({_NUMBER}\)",
    rf"only supports up to {_NUMBER}",
    rf"model with {_NUMBER} maximum context",
    rf"(?:the limit of|model token limit:|limit is|must be <=|less than|cannot exceed) {_NUMBER}",
    rf"max input tokens: {_NUMBER}",
    rf"length should be \[\d+, {_NUMBER}\]",
    rf"max_prompt_tokens \({_NUMBER}",
    rf"(?:context|maximum)(?:(?! by )[^.\d]){{0,40}}?{_NUMBER} tokens",
)
_INPUTS: Final = (
    rf"messages resulted in {_NUMBER} tokens",
    rf"{_NUMBER} (?:in the messages|in your prompt|of text input)",
    rf"prompt is too long: {_NUMBER} tokens",
    rf"context limit: {_NUMBER} \+",
    rf"token count(?::| is| of)? \(?{_NUMBER}",
    rf"(?:request contains|request has|prompt has|prompt contains)(?: at least)? {_NUMBER} ",
    rf"{_NUMBER} tokens from the input",
    rf"(?:input|request|prompt|input tokens) \((?:length )?{_NUMBER}",
    rf"(?:input|prompt) length \(?{_NUMBER}",
    rf"(?:given:|received|current length is|keep the first|\(requested:) {_NUMBER}",
    rf"you requested (?:about )?{_NUMBER} tokens",
)
_OUTPUTS: Final = (
    rf"{_NUMBER} (?:tokens )?(?:in|for) the (?:completion|output)",
    rf"\+ {_NUMBER} >",
    rf"tokens'? is too large: {_NUMBER}",
    rf"{_NUMBER} `max_new_tokens`",
)


@dataclass(frozen=True, slots=True)
class ContextLimit:
    """The provider's figures when it refused a context, in its own tokens; None where it named no figure.

    Attributes:
        limit: the model's limit, for input and output together.
        input: the provider's count of the request.
        output: tokens reserved for the answer, which count against the limit.
    """

    limit: int | None = None
    input: int | None = None
    output: int = 0

    def target(self, sent: int) -> int:
        """Return the size to compact the context to, in our tokens.

        It is a share of the provider's limit, or, where the provider named none, of the refused size. Where the
        provider named its own count, its limit is first converted to our tokens.

        Args:
            sent: size of the refused context, in our tokens.
        """
        takes = float(sent)
        if self.limit is not None:
            provider_tokens = self.input / sent if self.input and sent else 1.0
            takes = min(takes, max(0, self.limit - self.output) / provider_tokens)
        return max(1, int(SHARE * takes))


def context_limit(error: BaseException) -> ContextLimit | None:
    """Return the figures of a provider's error for a context that is too long; None for any other error.

    The error and its causes are searched, since frameworks wrap what an SDK raised.
    """
    for one in causes(error):
        if status_of(one) not in _STATUSES:
            return None
        message = message_of(one)
        if (
            _code_of(one) in _CODES
            or (status_of(one) == _TOO_LARGE and not _RATES & {*_error_codes(one)})
            or _TYPE_NAMES.search(type(one).__name__)
            or re.search(_MESSAGES, message, re.IGNORECASE)
        ):
            return ContextLimit(
                limit=_first(_LIMITS, message), input=_first(_INPUTS, message), output=_first(_OUTPUTS, message) or 0
            )
    return None


def refuses_parameter(error: BaseException, name: str) -> bool:
    """Return whether a provider refused a request because of one parameter, which its message names."""
    return any(status_of(one) in _UNUSABLE and name in message_of(one) for one in causes(error))


_UNUSABLE: Final = frozenset({400, 422})
_BY_STATUS: Final[dict[int, Cause]] = {
    401: "authentication",
    403: "authentication",
    408: "timeout",
    429: "rate_limit",
    503: "overloaded",  # OpenAI, Gemini
    504: "timeout",
    529: "overloaded",  # Anthropic
}
_BY_CODE: Final[tuple[tuple[re.Pattern[str], Cause], ...]] = (
    (
        re.compile(
            r"data_?inspection_?failed"  # DashScope
            r"|.*(sensitivecontentdetected|riskdetection)(\..*)?"  # Volcengine
            r"|1301"  # Zhipu
            r"|content_filter|content_policy_violation",  # OpenAI, Moonshot
            re.IGNORECASE,
        ),
        "refused",
    ),
    # Bedrock's, which AWS' SDK raises without a status of their own where a stream breaks off
    (
        re.compile(r"throttlingexception|modelnotreadyexception|servicequotaexceededexception", re.IGNORECASE),
        "rate_limit",
    ),
    (re.compile(r"(modelstreamerror|modelerror|internalserver)exception", re.IGNORECASE), "server"),
    (re.compile(r"serviceunavailableexception", re.IGNORECASE), "overloaded"),
    (re.compile(r"modeltimeoutexception", re.IGNORECASE), "timeout"),
    (
        re.compile(r"(expiredtoken|accessdenied|unrecognizedclient|invalidsignature)(exception)?", re.IGNORECASE),
        "authentication",
    ),
)
"""Codes of errors whose status does not identify them; the messages beside some of them are Chinese."""
_BY_WORDS: Final[tuple[tuple[re.Pattern[str], Cause], ...]] = (
    (re.compile(r"content[ _](filter|policy|management)|safety (filter|system)", re.IGNORECASE), "refused"),
    (
        re.compile(
            r"api[ _-]?key not valid"  # Gemini, with status 400
            r"|missing credentials|no api[ _-]?key|could not resolve auth",  # the SDKs themselves
            re.IGNORECASE | re.DOTALL,
        ),
        "authentication",
    ),
)
"""Messages of errors whose status does not identify them."""
_BY_TYPE: Final[tuple[tuple[re.Pattern[str], Cause], ...]] = (
    (re.compile(r"Time-?[Oo]ut"), "timeout"),  # before the connection: the SDKs derive one from the other
    (re.compile(r"Connect(ion|Error)|TransportError|ProtocolError|ReadError|JSONDecodeError|SSLError"), "connection"),
)
"""Names of an error's base classes, of the SDKs, httpx and Python itself."""


def cause_of(error: BaseException) -> Cause:
    """Classify an error of a provider, of its SDK or of the connection; ``error`` where nothing is recognised."""
    # First, since the status of such an error (400, 413) does not identify it.
    if context_limit(error) is not None:
        return "context_limit"
    for one in causes(error):
        status = status_of(one)
        if status in _BY_STATUS:
            return _BY_STATUS[status]
        codes = _error_codes(one)
        found = next((cause for words, cause in _BY_CODE if any(map(words.fullmatch, codes))), None)
        searched = f"{codes} {message_of(one)}"
        found = found or next((cause for words, cause in _BY_WORDS if words.search(searched)), None)
        if found is None and status is not None:
            return "server" if status >= 500 else "error"
        names = " ".join(kind.__name__ for kind in type(one).__mro__)
        found = found or next((cause for types, cause in _BY_TYPE if types.search(names)), None)
        if found is not None:
            return found
    return "error"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status: from ``status_code``, or, if it is one, from ``code``, as Google's SDK has it.

    AWS' SDK has it in the answer.
    """
    values = (
        *(getattr(error, name, None) for name in ("status_code", "code")),
        object_of(getattr(error, "response", None), "ResponseMetadata").get("HTTPStatusCode"),
    )
    return next((status for status in values if isinstance(status, int) and status in _OF_HTTP), None)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over an error and what it was raised from."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _code_of(error: BaseException) -> str | None:
    """Return the error's code for a context that is too long, where it has one."""
    return next((code for code in _error_codes(error) if code in _CODES), None)


def _error_codes(error: BaseException) -> list[str]:
    """Return the code that an SDK took from the answer, and code and type of the error in the answer itself."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, dict) else None
    of_aws = object_of(getattr(error, "response", None), "Error").get("Code")
    values = (
        *(getattr(error, "code", None), of_aws),
        *(inner.get(key) for key in ("code", "type") if isinstance(inner, dict)),
    )
    return [str(code) for code in values if isinstance(code, str | int)]


def _first(patterns: tuple[str, ...], text: str) -> int | None:
    found = next((match for pattern in patterns if (match := re.search(pattern, text, re.IGNORECASE))), None)
    return int(re.sub(r"\D", "", found[1])) if found else None
