"""Recognise a refusal in the place of a summary: a model's words such as ``I'm sorry, but I can't help with that``.

A provider marks a refusal only where a filter or a model of its own says so; most come as an ordinary answer. In the
place of a summary it would replace all that was covered. A text is taken for one if it is short, says in the first
person that its author does not answer, and holds nothing of what was to be summarised. So is a text in which the author
says that it ignores the request for a summary as an instruction that somebody injected: a model that is asked as the
next turn of a conversation may take it for one, and go on with the work. The rule knows English.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .invented import texts_of

if TYPE_CHECKING:
    from timeline.ports import SummaryRequest

_LONGEST: Final = 600
"""Characters of the longest text that is looked at: a refusal with its reasons is a paragraph."""
_OPENING: Final = 160
"""Characters at the beginning within which a refusal says no."""
_NO: Final = re.compile(
    r"\b(?:i|we)(?:'m|'re| am| are)?(?: (?:just|really|simply|also|must|have to|currently))*"
    r" (?:can't|cannot|can not|could not|couldn't|won't|will not|decline|unable to|not able to"
    r"|not (?:comfortable|allowed|permitted))\b"
)
_LONGEST_CLAIM: Final = 1_500
"""Characters of the longest claim of an injection that is looked at: it may go on with the work."""
_CLAIM: Final = (
    re.compile(r"\b(?:summar(?:y|ies|i[sz]e|i[sz]ing|i[sz]ation)|compact(?:ion|ing)?)\b"),
    re.compile(
        r"\binject(?:ion|ed)\b|\bdisguised\b|\b(?:did|does)(?:n't| not) come from\b"
        r"|\b(?:is|was|'s)(?:n't| not) an? (?:real |genuine |actual )?(?:system |user )?(?:instruction|request)"
    ),
    re.compile(
        r"\bi(?:'m| am|'ll| will)(?: going to| again| also)? (?:ignor|disregard|flag|not (?:follow|comply|act on))"
        r"|\bi won't (?:follow|comply|act on)\b"
    ),
)
"""What such a claim says: what is asked for, that it is none of the user's, and that its author does not do it."""
_WORD: Final = re.compile(r"[^\W\d_]{4,}|\d+")
"""Words that may say something; short ones hold a sentence together."""
_WORDS_OF_REFUSALS: Final = (
    "sorry afraid apologies apologize apologise unfortunately however cannot couldn wouldn decline declined "
    "unable able comfortable allowed permitted help helping assist assisting assistance provide providing comply "
    "fulfill fulfil complete continue engage discuss respond answer create creating generate generating produce "
    "write writing process share summarize summarise summarizing summarising summary summaries that this these "
    "those with what which your yours from because there would could should have does doing will just about other "
    "another anything something else like please feel free know request requests requested question questions "
    "task topic content contents material information conversation conversations text message messages policy "
    "policies guideline guidelines safety safe appropriate inappropriate harmful sensitive violate violates "
    "against involve involves potentially language model assistant instead rather different happy glad here thank "
    "thanks understanding understand kind such specific particular need needs matter more further into"
)
_OF_REFUSALS: Final = frozenset(_WORDS_OF_REFUSALS.split())
"""Words that a refusal is made of, whatever it is about."""


def is_refusal(text: str, request: SummaryRequest) -> bool:
    """Return whether an answer refuses to summarise, in words that say nothing of the request."""
    if len(text) > _LONGEST_CLAIM:
        return False
    words = text.replace("\u2019", "'").casefold()
    if all(said.search(words) for said in _CLAIM):
        return True
    if len(text) > _LONGEST:
        return False
    if _NO.search(" ".join(words.split()), 0, _OPENING) is None:
        return False
    record = "\n".join(texts_of(request)).casefold()
    return not any(word in record for word in _WORD.findall(words) if word not in _OF_REFUSALS)
