"""Recall once more, the slow and plain way: every fact is searched in every text of every context.

Written from the method in docs/lab.md; it shares no code with `timeline.lab.facts`.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from tests.lab.naive_search import Doc, doc_of, first_hits, naive_queries, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ENDED: Final = (
    "astro bash bat c cc cfg cjs conf cpp cs css csv cts cxx dart db diff env erb ex exs go gradle graphql h hpp hs"
    " html ini ipynb java jpeg jpg js json jsonl jsx kt kts less lock log lua m md mdx mjs mm mts nix parquet patch pdf"
    " php pl png prisma proto ps1 py pyi pyx r rb rs rst sass scala scss sh sol sql sqlite svelte svg swift tf toml ts"
    " tsv tsx txt vue wasm webp xml yaml yml zig zip zsh"
)
_ENDINGS: Final = frozenset(_ENDED.split())
_CHARACTERS: Final = 8_000
"""Of a short block, what the first answer of the recall tool holds: 2,000 tokens of four characters."""
_HALF: Final = _CHARACTERS // 2
"""Of a long block: of its beginning, and of the names in the rest."""
_PRINTED: Final = re.compile(r"(?:ar|bl|fi|su|tc):[\w%-]+(?:\.[\w%~-]+)+|(?<![\w@/.])@\d+")


def naive_recall(events: Sequence[Any], calls: Sequence[int], contexts: Sequence[Any]) -> Counter[str]:
    """Count the facts of all calls by distance: needed, in sight, and in sight or one read away.

    The full record behind a summary is not made here: ``reachable`` counts without it, and ``listed`` as if it had
    every fact of what calls and prompts said, so that what is so lies between the two.
    """
    blocks = [getattr(event.payload, "block", None) for event in events]
    found: Counter[str] = Counter()
    known: dict[str, Any] = {}
    docs: dict[int, Doc] = {}
    for number, (position, context) in enumerate(zip(calls, contexts, strict=True)):
        if context is None:
            continue
        for item in context.window.items:
            known[item.block.path] = known[f"@{item.version}"] = item.block
        answer = _answer(events, blocks, position)
        facts = list(dict.fromkeys(fact for text in answer for fact in sorted(_facts(text), key=text.index)))
        before = [at for at in range(position) if blocks[at] is not None and _sent(blocks[at])]
        shown = "\n".join(text for entry in context.neutral.entries if _sent(entry) for text in _texts(entry))
        needed = [fact for fact in facts if any(fact in text for at in before for text in _texts(blocks[at]))]
        in_sight = {fact for fact in needed if fact in shown}
        docs.update({at: doc_of(text_of([*_texts(blocks[at])])) for at in before if at not in docs})
        for fact in facts:
            held = [at for at in before if any(fact in text for text in _texts(blocks[at]))]
            if not held:
                continue
            since = number - sum(call <= held[-1] for call in calls) + 1
            distance = "near" if since <= 2 else "middle" if since <= 15 else "far"
            seen = fact in shown
            found[f"facts_{distance}"] += 1
            found[f"seen_{distance}"] += seen
            without, listed = (True, True) if seen else _reached(fact, context, known)
            found[f"reachable_{distance}"] += without
            found[f"listed_{distance}"] += listed
            if not without:
                text = next(text for text in answer if fact in _facts(text))
                asked = naive_queries(fact, needed, _facts(text), text, seen=in_sight, shown=shown)
                hits = {at for query in asked for at in first_hits(query, docs)}
                found[f"searched_{distance}"] += any(
                    fact in text[:_CHARACTERS] for at in hits for text in _texts(blocks[at])
                )
    return found


def naive_summaries(
    events: Sequence[Any], calls: Sequence[int], contexts: Sequence[Any], logged: Mapping[int, Any]
) -> Counter[str]:
    """Count what the summaries of a run hold of what later answers needed, and what nobody in their range said.

    Args:
        events: of the recording.
        calls: the places of its calls there.
        contexts: what each was sent.
        logged: the blocks of the run's log, by version.
    """
    blocks = [getattr(event.payload, "block", None) for event in events]
    found: Counter[str] = Counter()
    judged: set[str] = set()
    for position, context in zip(calls, contexts, strict=True):
        for done in () if context is None else context.window.summaries:
            if done.block.path in judged:
                continue
            judged.add(done.block.path)
            covered = {version: block for version, block in logged.items() if version in done.covers}
            texts = [text for v, block in covered.items() if v not in done.carried for text in _texts(block)]
            later = {fact for call in calls if call >= position for fact in _needed(events, blocks, call)}
            wanted = {fact for fact in later if any(fact in text for text in texts)}
            said = f"{done.parts.history}\n{done.parts.turn_prefix}"
            beside = [f"{block.path} {getattr(block, 'arguments', '')}" for block in covered.values()]
            whole = "\n".join([*beside, *(text for block in covered.values() for text in _texts(block))])
            found["summary_facts"] += len(wanted)
            found["summary_held"] += sum(fact in done.block.text for fact in wanted)
            found["summary_said"] += sum(fact in said for fact in wanted)
            found["summary_invented"] += sum(fact not in whole for fact in _facts(said))
    return found


def _needed(events: Sequence[Any], blocks: Sequence[Any], position: int) -> set[str]:
    """Return the facts that the answer at a place needs."""
    answer = _answer(events, blocks, position)
    before = "\n".join(
        text for block in blocks[:position] if block is not None and _sent(block) for text in _texts(block)
    )
    return {fact for text in answer for fact in _facts(text) if fact in before}


def _answer(events: Sequence[Any], blocks: Sequence[Any], position: int) -> list[str]:
    """Return the texts of the answer at a place, without the names of tools."""
    key = getattr(blocks[position], "response_id", None) or events[position].key
    return [
        text
        for event, block in zip(events, blocks, strict=True)
        if block is not None
        and block.type in {"assistant.completion", "react.tool.call"}
        and (block.response_id or event.key) == key
        for text in _texts(block)
        if text != getattr(block, "name", None)
    ]


def _reached(fact: str, context: Any, known: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether something that the library wrote names a block with the fact, on a line with other words.

    First without the record behind a summary, then as if that had all that calls and prompts said.
    """
    written = {item.block.path for item in context.window.items if item.replacement is not None or item.is_summary}
    entries = [entry for entry in context.neutral.entries if entry.path in written]
    lines = [line for entry in entries for text in _texts(entry) for line in text.split("\n")]
    names = {name for line in lines if line.strip("- `") not in known for name in _PRINTED.findall(line)}
    read = [known[name] for name in names if name in known]
    without = any(fact in _first_answer(text) for block in read for text in _texts(block))
    lists = {name for name in names if name.endswith((".paths", ".names"))}
    without = without or any(fact in _listed(name, context, known) for name in sorted(lists))
    summary = any(block.type == "conv.range.summary" for block in read)
    return without, without or (summary and any(fact in text for text in _said(known)))


def _listed(name: str, context: Any, known: Mapping[str, Any]) -> str:
    """Return the beginning of a list of names: what tools did not say, then its folders, then the rest; by use."""
    path, _, kind = name.rpartition(".")
    covers = next(done.covers for done in context.window.summaries if done.block.path == path)
    times: Counter[str] = Counter()
    last: dict[str, int] = {}
    meant: set[str] = set()
    for version, block in sorted(
        ((int(at[1:]), block) for at, block in known.items() if at[0] == "@"), key=lambda one: one[0]
    ):
        if version not in covers or block.type in {"conv.range.summary", "assistant.reasoning"}:
            continue
        for fact in {fact for text in _texts(block) for fact in _facts(text)}:
            if ("/" in fact and "://" not in fact) == (kind == "paths"):
                times[fact] += 1
                last[fact] = version
                meant |= {fact} if block.type != "react.tool.result" else set()
    folders = {fact.rpartition("/")[0] for fact in meant}
    ranks = {fact: (fact in meant, fact.rpartition("/")[0] in folders, times[fact], last[fact]) for fact in times}
    return " ".join(sorted(times, key=lambda fact: ranks[fact], reverse=True))[:_CHARACTERS]


@cache
def _first_answer(text: str) -> str:
    """Return the beginning of a text, and of a long one names of the rest, of each piece as many as of any other."""
    if len(text) <= _CHARACTERS:
        return text
    answer = text[:_HALF]
    pieces = [sorted(_facts(text[at : at + _CHARACTERS])) for at in range(_HALF, len(text), _CHARACTERS)]
    for turn in zip_longest(*pieces):
        for name in turn:
            if name is not None and not name.isdigit() and name not in answer:
                answer += f" {name}"
        if len(answer) > _CHARACTERS:
            break
    return answer


def _said(known: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of calls and prompts, which the record behind a summary is made from."""
    for block in known.values():
        if block.type in {"react.tool.call", "user.prompt"}:
            yield from _texts(block)


def _sent(said: Any) -> bool:
    """Return whether a block or an entry is sent: all but thoughts that the provider did not sign."""
    if said.type != "assistant.reasoning":
        return True
    data = said.data
    signed = isinstance(data, dict) and bool(data.get("signature") or data.get("type") == "redacted_thinking")
    return signed and (not getattr(said, "rewritten", False) or said.in_loop)


def _texts(said: Any) -> Iterator[str]:
    if said.text:
        yield said.text
    arguments = getattr(said, "arguments", None)
    if arguments is not None:
        yield said.name
        yield from _values(arguments)


def _values(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _values(one)
        case dict():
            for one in value.values():
                yield from _values(one)


def _facts(text: str) -> set[str]:
    """Return the facts of a text: one kind after the other, each taken out of what is left."""
    found = set()
    for pattern, holds in _KINDS:
        kept = []
        end = 0
        for match in re.finditer(pattern, text):
            fact = match[0].rstrip(".,:;!?*-")
            if not holds(fact):
                continue
            if len(fact) >= 4:
                found.add(fact)
            kept.append(text[end : match.start()])
            end = match.end()
        text = "|".join([*kept, text[end:]])
    return found


def _path(fact: str) -> bool:
    return fact[:1] in {"/", "~", "."} or fact.rstrip("/").count("/") >= 2 or fact.rpartition(".")[2] in _ENDINGS


def _file(fact: str) -> bool:
    return "." in fact[1:] and fact.rpartition(".")[2] in _ENDINGS


def _id(fact: str) -> bool:
    return not fact.isdigit() and not fact.isalpha()


def _compound(word: str) -> bool:
    return not word[0].isdigit() and bool(re.search(r"[a-z0-9][A-Z]|[A-Za-z0-9]_+[A-Za-z0-9]", word))


_KINDS: Final[list[tuple[str, Any]]] = [
    (r"https?://[\w./~@+:%#?=&$*!-]+", bool),
    (r"(?<![\w./~@+-])(?:~/|\.\.?/|/)?[\w.@+-]+(?:/[\w.@+-]+)+/?", _path),
    (rf"(?<![\w./@+-])[\w+-][\w.+-]*\.(?:{'|'.join(sorted(_ENDINGS))})(?![\w/-]|\.\w)", _file),
    (r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])", bool),
    (r"(?<![\w-])[0-9a-f]{7,64}(?![\w-])", _id),
    (r"(?<![\w.,-])[0-9]{4,18}(?![\w-]|\.[0-9])", str.isdigit),
    (r"(?<!\w)\w{4,80}(?!\w)", _compound),
]
