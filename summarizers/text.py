"""Clean text for the extractive summarizer: remove everything that could pose as structure, and cut it into sentences.

The result is single lines without control characters, role tags, headings or fences, so that a line from the
conversation can be in a summary only as data.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from timeline.ports import GAP

if TYPE_CHECKING:
    from collections.abc import Iterator

ELLIPSIS: Final = "…"
MOST_CHARACTERS: Final = 20_000
"""Characters above which only a text's beginning and end are read, so that a giant line cannot slow a summary."""
LONGEST_SENTENCE: Final = 300
LINES_REMEMBERED: Final = 8_192
"""Lines whose words are remembered: of one record the same ones are compared again and again, and the next compaction
of a conversation, or another policy's, reads many of them once more."""
_TEXTS_REMEMBERED: Final = 1_024
_LONGEST_REMEMBERED: Final = 8_000
"""Characters of a text whose sentences are remembered, so that little is kept of what nobody shows any more."""
_LONGEST_WORD: Final = 240

_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffd]")
_ROLES: Final = (
    r"system|assistant|user|human|developer|tool|function|role|message|instruction|prompt|summary|context|"
    r"conversation|transcript|reminder|thinking|result|command|invoke|parameter|document|antml|inst\b|sys\b|im_"
)
_TAGS: Final = re.compile(
    rf"[<\uff1c]\s*+[/|!]?\s*+[\w:.|-]*(?:{_ROLES})[^<>\uff1c\uff1e]{{0,200}}[>\uff1e]"  # <system-reminder>, </summary>
    r"|<\|[^<>\n]{0,100}\|>"  # <|endoftext|>
    r"|<</?SYS>>|\[/?(?:INST|SYSTEM|USER|ASSISTANT)\]",
    re.IGNORECASE,
)
_BOLD: Final = re.compile(r"(?<![\w/*])\*\*(?=[^\s*])|(?<=[^\s*/])\*\*(?![\w/*])")
"""Marks of bold text; not powers, nor the stars of a pattern of paths."""
_LEAD: Final = re.compile(
    r"^(?:[\s>*+•|\u2013\u2014=-]+|[~_]+(?:\s+|$)|#{1,6}(?:\s+|$)|\d{1,3}[.)]\s+|\[[ xX]\]\s*"
    r"|(?:system|assistant|user|human|developer|tool)(?: (?:message|prompt))?\s*[:\uff1a]\s*)+",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(r"\s*#{1,6}\s")
_STRUCTURE: Final = re.compile(r"\s*(?:#{1,6}\s|\||- \[)")
_FENCE: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END: Final = re.compile(r"(?<=[.!?…])[\"')\]*_]*\s+|(?<=[\u3002\uff01\uff1f])\s*")
_ENDS: Final = tuple(".!?:…\u3002\uff01\uff1f\uff1a")
"""What ends a sentence, or a line that announces the next one: in front of a gap it is taken to be whole."""
_LETTERS: Final = re.compile(r"(?:[^\W\d_][\W\d_]*){3}|[\u2e80-\u9fff\uac00-\ud7af]")
_SIGN: Final = re.compile(r"[^\w\s]|_")
_WORD: Final = re.compile(r"[^\W_]+")
_NAME: Final = re.compile(r"[\x21-\x7e]+")
_LAST_WORD: Final = re.compile(r"\s\S*\Z")
_FIRST_SPACE: Final = re.compile(r"\s")
_LEFT_OUT: Final = re.compile(
    rf"\n?\[{ELLIPSIS} (?:preview: [^\n\[\]]* {ELLIPSIS}|left out[^\n\[\]]*)\](?:\n?\S{{0,60}}(?=\s))?"
)
"""What stands for a part that a preview leaves out, and the end of a word behind it. None of it was said."""
_WIDE: Final = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")


def clean(text: str) -> str:
    """Remove escape sequences, control characters and text that looks like a role tag; line breaks stay."""
    text = _CONTROLS.sub(" ", _ESCAPES.sub("", head_and_tail(text, MOST_CHARACTERS)))
    text = _BOLD.sub("", text)
    while True:  # again, since removing a tag may join two halves around it to another
        stripped = _TAGS.sub(" ", text)
        if stripped == text:
            return text
        text = stripped


def verbatim(text: str) -> str:
    """Keep a text unchanged, lines included, except where it could pose as structure.

    A line that looks like a heading or a row is quoted; role tags and control characters are removed, as in `clean`.
    """
    cleaned = clean(text)
    kept = text if cleaned == _BOLD.sub("", text) else cleaned
    return "\n".join(f"> {line}" if _STRUCTURE.match(line) else line for line in kept.strip().splitlines())


def one_line(text: str) -> str:
    """Clean a text and join it to one line, without the marks that open a heading, a list item or a role."""
    joined = clean(" ".join(head_and_tail(text, MOST_CHARACTERS).split()))
    return " ".join(_shorten(word) for word in _LEAD.sub("", joined).split())


def sentences(text: str) -> tuple[str, ...]:
    """Return a text's sentences as clean single lines; code blocks, headings and lines of signs are left out.

    A sentence that a gap divides has an ellipsis where it goes on: half of one can say the opposite of the whole.
    """
    return _known_sentences(text) if len(text) <= _LONGEST_REMEMBERED else tuple(_sentences(text))


@lru_cache(maxsize=_TEXTS_REMEMBERED)
def _known_sentences(text: str) -> tuple[str, ...]:
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[str]:
    lines = _FENCE.sub("\n", _LEFT_OUT.sub(f"{ELLIPSIS}\n", clean(text))).splitlines()
    for line, before, behind in zip(lines, ["", *lines], [*lines[1:], ""], strict=False):
        if _HEADING.match(line):
            continue
        parts = [" ".join(map(_shorten, part.split())) for part in _END.split(_LEAD.sub("", line.strip()))]
        if before == GAP and parts[0][:1].islower():
            parts[0] = ELLIPSIS + parts[0]
        if behind == GAP and not parts[-1].endswith(_ENDS):
            parts[-1] += ELLIPSIS
        for sentence in (clip(part, LONGEST_SENTENCE) for part in parts):
            if is_language(sentence):
                yield sentence


def is_language(line: str) -> bool:
    """Return whether a line reads as words: at least three letters, and more letters, digits and spaces than signs."""
    return _LETTERS.search(line) is not None and len(_SIGN.findall(line)) < 0.4 * len(line)


def clip(text: str, characters: int) -> str:
    """Cut a line after a word, and mark the cut with an ellipsis."""
    return text if len(text) <= characters else ended(text[: max(characters - 1, 0)])


def ended(cut: str) -> str:
    """End a cut line: back to the end of a word, then an ellipsis; writing without spaces is cut between letters."""
    at_word = cut.rfind(" ")
    near = at_word > len(cut) // 2 or (at_word > 0 and _NAME.fullmatch(cut, at_word + 1))
    return (cut[:at_word] if near else cut).rstrip(" ,;:") + ELLIPSIS


def head_and_tail(text: str, characters: int) -> str:
    """Keep the beginning and the end of a text: two thirds and one third of ``characters``."""
    if len(text) <= characters:
        return text
    tail = characters // 3
    head, end = text[: characters - tail - 3], text[len(text) - tail :]
    # Leave out the parts of the words that the cuts divide, unless they are long runs without spaces: half a name is
    # another name.
    begun = _LAST_WORD.search(head, max(len(head) - _LONGEST_WORD, 0))
    partial = _FIRST_SPACE.search(end, 0, _LONGEST_WORD)
    head = f"{head[: begun.start()]} " if begun else head
    return f"{head}{ELLIPSIS}{end[partial.start() :] if partial else end}"


@lru_cache(maxsize=LINES_REMEMBERED)
def terms(text: str) -> tuple[str, ...]:
    """Return a line's words in lower case, each once; writing without spaces gives pairs of characters."""
    found: dict[str, None] = {}
    for word in _WORD.findall(text.lower()):
        if _WIDE.search(word):
            found.update(dict.fromkeys(word[i : i + 2] for i in range(max(len(word) - 1, 1))))
        elif len(word) > 2:
            found[word] = None
    return tuple(found)


def _shorten(word: str) -> str:
    return word if len(word) <= _LONGEST_WORD else f"{word[:60]}{ELLIPSIS}"
