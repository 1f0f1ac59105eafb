"""What users asked for, read from their prompts by a word list of its own, and what a context has lost of it.

It imports nothing of the project. A sentence counts as a constraint, a preference or a request if it has one of the
words; it is there if the context has it word for word, or a line with its prompt's address and words of it; else the
report of a compaction has to name its prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

SPACED: Final = re.compile(
    r"\b(must|never|always|don'?t|do not|only|please|make sure|ensure|prefer|keep|from now on|avoid|instead of|at least"
    r"|at most|no more than|i want|i need|should|let'?s|can you|could you"
    r"|without|need to|have to|not allowed|stop"
    r"|muss|müssen|niemals|immer|kein|keine|bitte|ab jetzt|stelle? sicher|vermeide|lass uns|höchstens"
    r"|tolong|harus|jangan|selalu|pastikan|hanya|mulai sekarang|mohon)\b",
    re.IGNORECASE,
)
UNSPACED: Final = re.compile(
    r"请|必须|不要|不能|务必|总是|永远|从现在起|禁止|确保|ください|必ず|しないで|禁止|常に|絶対|してほしい|お願い"
)
LEAST: Final = 4
"""Characters that a line has to share with a sentence, where words have no spaces."""
_FENCED: Final = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_TAGGED: Final = re.compile(r"<([a-z][a-z-]*-[a-z-]*)>.*?</\1>", re.DOTALL)
_ENDS: Final = re.compile(r"(?<=[.!?])\s+|(?<=[。!?])|\n+")
_MARKS: Final = re.compile(r"^\s*(?:[-*+>#]+|\d+[.)])\s*")
_CLIENT: Final = re.compile(r"\s*(?:Operation stopped by hook|\[Request interrupted)")
_ADDRESS: Final = re.compile(r"@(\d+)\b")


def asked_in(prompt: str) -> list[str]:
    """Return the sentences of a prompt that ask for something, each on one line, without code and marks of lists."""
    if _CLIENT.match(prompt):
        return []
    bare = _TAGGED.sub("\n", _FENCED.sub("\n", prompt))
    sentences = (" ".join(_MARKS.sub("", said).split()) for said in _ENDS.split(bare))
    return [said for said in dict.fromkeys(sentences) if SPACED.search(said) or UNSPACED.search(said)]


def lost(prompts: Mapping[int, str], context: Iterable[str], reported: Collection[int]) -> list[tuple[int, str]]:
    """Return what the user asked for and is neither in a context nor reported: the prompt's version, and the sentence.

    Args:
        prompts: the prompts so far, by version.
        context: the texts that the model is sent.
        reported: versions of the prompts that compactions named as not carried.
    """
    texts = list(context)
    whole = "\n".join(" ".join(text.split()) for text in texts)
    lines: dict[int, list[str]] = {}
    for line in (line for text in texts for line in text.splitlines()):
        for version in _ADDRESS.findall(line):
            lines.setdefault(int(version), []).append(line)
    return [
        (version, said)
        for version, prompt in prompts.items()
        for said in asked_in(prompt)
        if version not in reported
        and said not in whole
        and not any(_is_about(line, said) for line in lines.get(version, ()))
    ]


def _is_about(line: str, said: str) -> bool:
    """Return whether a line has words of a sentence: its beginning, or most of its longer words."""
    if said[: max(LEAST, len(said) // 3)] in " ".join(line.split()):
        return True
    words = set(re.findall(r"\w{4,}", said.lower()))
    return bool(words) and len(words & set(re.findall(r"\w{4,}", line.lower()))) * 2 > len(words)
