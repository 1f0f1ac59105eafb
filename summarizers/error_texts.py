"""Recognise an error that came as text in the place of a summary: ``Error: rate limited``, a gateway's page.

Many functions around a client catch its errors and return their words; a gateway answers with a page of its own, and
status 200. In the place of a summary that would replace all that was covered. Three signs are certain enough: the text
is a page of HTML; it is a JSON object about an error; or it is short, opens as errors do, and holds no word of what was
to be summarised but those that errors are made of. The last rule knows English.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .invented import texts_of
from .lone_objects import lone_object

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest

_LONGEST: Final = 600
"""Characters of the longest text whose words are looked at: an error is a line, with an object of its provider's."""
_PAGE: Final = re.compile(r"\s*<(?:!doctype\s+html|html\b|head\b)", re.IGNORECASE)
_KEYS: Final = frozenset(
    {"error", "errors", "type", "code", "status", "message", "detail", "details", "request_id", "requestId", "success"}
)
"""Keys of the objects that providers and gateways answer with."""
_OPENING: Final = re.compile(
    r"\W*(?:"
    r"(?:[\w.]+ ){0,2}[\w.]*(?:error|exception)(?:\s*[:(\[{\u2014-]|\s+code\b|\s+\d{3}\b|\s*\Z)"
    r"|error (?:while |when |in )?(?:generating|creating|writing|getting) (?:the |a )?(?:summary|response)"
    r"|(?:http[ /.\d]*|status(?: code)?:? ?)?[45]\d\d\b"
    r"|(?:you've|you have|we've|we have) (?:hit|reached|exceeded) (?:your|the)\b"
    r"|(?:rate|usage|token|request) limit\b|too many requests|service (?:temporarily )?unavailable"
    r"|(?:internal server|gateway|request|connection) (?:error|time-?out|timed out|refused|reset)|bad gateway"
    r"|overloaded|quota exceeded"
    r")"
)
_WORD: Final = re.compile(r"[^\W\d_]{4,}")
"""Words that may say something; short ones hold a sentence together, and the figures of an error are its own."""
_WORDS_OF_ERRORS: Final = (
    "error errors exception code codes status http https type types message messages param none null true false "
    "rate limit limits limited limiting exceed exceeded exceeds request requests requested retry retrying retries "
    "again later after before please wait second seconds minute minutes hour hours today tomorrow reset resets "
    "token tokens quota usage used plan billing credit credits balance payment upgrade account organization tier "
    "model models overload overloaded overloading unavailable temporarily service server servers internal gateway "
    "upstream proxy bad time timeout timed connect connection connected connecting refused closed network host "
    "failed failure fail invalid authentication authenticate authorized unauthorized forbidden denied access "
    "permission permissions credentials key keys provided incorrect missing support contact details detail "
    "maximum context length window prompt long input output total than more less allowed available capacity "
    "high heavy traffic load loaded busy moment your have been with this that from many much there were will "
    "when while for the and not was try trying reach reached reaching could cannot unable process processing "
    "response respond responded received returned unexpected unknown occurred happened something went wrong "
    "openai anthropic azure google gemini bedrock litellm claude client call calls endpoint url resource exhausted "
    "generating creating writing getting summary "
    "page site website please visit check documentation docs platform learn more information"
)
_OF_ERRORS: Final = frozenset(_WORDS_OF_ERRORS.split())
"""Words that an error is made of, whatever it is about."""


def is_error_text(text: str, request: SummaryRequest) -> bool:
    """Return whether an answer is an error, or a gateway's page, in words that say nothing of the request."""
    if _PAGE.match(text) or _is_error_object(text):
        return True
    words = " ".join(text.replace("\u2019", "'").casefold().split())
    if len(words) > _LONGEST or _OPENING.match(words) is None:
        return False
    record = "\n".join(texts_of(request)).casefold()
    return not any(word in record for word in _WORD.findall(words) if word not in _OF_ERRORS)


def _is_error_object(text: str) -> bool:
    value = lone_object(text)
    return bool(value.get("error") or value.get("errors")) and value.keys() <= _KEYS
