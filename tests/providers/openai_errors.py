"""How OpenAI refuses, in both of its formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.providers.script import Asked, Trouble

CHAT_LIMIT: Final = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} tokens. "
    "Please reduce the length of the messages."
)
RESPONSES_LIMIT: Final = "Your input exceeds the context window of this model. Please adjust your input and try again."
_REFUSALS: Final[dict[str, tuple[int, str, str | None, str]]] = {
    "rate_limit": (429, "tokens", "rate_limit_exceeded", "Rate limit reached for {model} on tokens per min (TPM)."),
    "overloaded": (503, "server_error", None, "The engine is currently overloaded, please try again later."),
    "server": (500, "server_error", None, "The server had an error while processing your request."),
    "context_limit": (400, "invalid_request_error", "context_length_exceeded", ""),
    "authentication": (401, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: none."),
    "no_model": (404, "invalid_request_error", "model_not_found", "The model `{model}` does not exist."),
    "filter": (400, "invalid_request_error", "content_filter", "The response was filtered by the content policy."),
}


def error(message: str, kind: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    """Write an error."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refusal(trouble: Trouble, asked: Asked) -> tuple[int, dict[str, Any]]:
    """Write a refusal: status and body."""
    status, kind, code, message = _REFUSALS[trouble.kind]
    told = message or (CHAT_LIMIT if asked.wire == "openai_chat" else RESPONSES_LIMIT)
    return status, error(told.format(tokens=asked.tokens, limit=trouble.limit, model=asked.model), kind, code)
