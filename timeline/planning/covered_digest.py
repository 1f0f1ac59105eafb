"""Make the digest of the covered items without a model: a view of their facts, and what else was covered.

The facts are those of `timeline.facts`. The digest also counts the outputs of all tools, and lists artifacts, hidden
blocks and stages.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from timeline.blocks import Attachment, StageDigest, ToolCall, ToolResult
from timeline.digest import Artifact, Command, Digest, FileUse, HiddenBlock, Named, Problem, Search, ToolOutputs
from timeline.events.addresses import Address
from timeline.facts.of_items import facts_of
from timeline.planning.strip_chitchat import is_stripped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from timeline.facts.model import Fact, FactKind
    from timeline.fold.window import Item

_HIT_PATH: Final = re.compile(r"^((?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)+)(?=[:\s]|$)", re.MULTILINE)
_MOST_HIT_PATHS: Final = 2
_STEMS: Final = ("ar:", "bl:", "fi:", "su:", "tc:")
_TIMELINE_PATH: Final = re.compile(rf"(?<![\w.:/-])(?:{'|'.join(_STEMS)})[\w%-]+(?:\.[\w%~-]+)+")
"""A path of this library, which a search of the memory finds: anywhere in a line, or in JSON."""
_MOST_MEMORY_PATHS: Final = 10
_LONGEST_REPLACEMENT: Final = 60
"""Characters of a replacement; the whole text is in the event that hid the block."""


def build_digest(covered: Sequence[Item]) -> Digest:
    """Return the digest of covered items. Deterministic; the lists keep the order of the log.

    It leaves out what never happened for the agent, since the model reads the digest as part of the summary.
    """
    covered = [item for item in covered if not item.disowned]
    facts = [fact for _, fact in facts_of(covered)]
    of_kind: dict[FactKind, list[Fact]] = {}
    for fact in facts:
        of_kind.setdefault(fact.kind, []).append(fact)
    texts = {item.block.path: item.block.text for item in covered if isinstance(item.block, ToolResult)}
    return Digest(
        artifacts=tuple(_artifacts(covered)),
        tool_outputs=tuple(_outputs(covered)),
        files_read=_files(of_kind.get("file_read", ())),
        files_written=_files(of_kind.get("file_written", ())),
        files_deleted=_files(of_kind.get("file_deleted", ())),
        commands=tuple(_command(fact) for fact in of_kind.get("command", ())),
        searches=tuple(_search(fact, texts) for fact in of_kind.get("search", ()) if not fact.failed),
        hidden=tuple(_hidden(covered)),
        errors=tuple(_problems(facts)),
        stages=tuple(item.block.text for item in covered if isinstance(item.block, StageDigest)),
        urls=_named(of_kind.get("url", ())),
        identifiers=_named(of_kind.get("identifier", ())),
    )


def _artifacts(covered: Sequence[Item]) -> Iterator[Artifact]:
    for item in covered:
        if isinstance(item.block, Attachment) or "sources_used" in item.block.meta:
            yield _artifact(item)


def _artifact(item: Item) -> Artifact:
    """Describe an artifact; its visibility is what the application says, or else that of its block in the context."""
    meta = item.block.meta
    sources, visibility = meta.get("sources_used"), meta.get("visibility")
    return Artifact(
        path=item.block.path,
        mime=item.block.mime,
        visibility=visibility if isinstance(visibility, str) else item.state,
        sources_used=tuple(str(source) for source in sources) if isinstance(sources, list) else (),
    )


def _hidden(covered: Sequence[Item]) -> Iterator[HiddenBlock]:
    """Return the blocks that were hidden behind a text. A hidden thought, or a hidden call's arguments, have none.

    An abridged result is not among them: it was in sight until it was covered.
    """
    for item in covered:
        if item.replacement is not None and item.replacement.text and item.state != "abridged":
            yield _replaced(item.block.path, item.replacement.text.removesuffix(f" {Address(item.version)}"))
        elif is_stripped(item):
            yield _replaced(item.block.path, item.block.text)


def _replaced(path: str, text: str) -> HiddenBlock:
    """Return a hidden block with the beginning of its replacement, without the path that old ones end with."""
    text = text.removesuffix(path).rstrip()
    short = text if len(text) <= _LONGEST_REPLACEMENT else text[:_LONGEST_REPLACEMENT] + "…"
    return HiddenBlock(path=path, replacement=short)


def _files(facts: Sequence[Fact]) -> tuple[FileUse, ...]:
    """Return the files of facts, each once, without failed uses: what failed was not done."""
    done = [fact for fact in facts if not fact.failed]
    times, newest = Counter(fact.subject for fact in done), {fact.subject: fact for fact in done}
    return tuple(FileUse(file=file, tool=fact.tool, path=fact.path, times=times[file]) for file, fact in newest.items())


def _named(facts: Sequence[Fact]) -> tuple[Named, ...]:
    times, newest = Counter(fact.subject for fact in facts), {fact.subject: fact for fact in facts}
    return tuple(Named(name=name, path=fact.path, times=times[name]) for name, fact in newest.items())


def _command(fact: Fact) -> Command:
    return Command(
        command=fact.subject, path=fact.path, exit_status=fact.exit_status, failed=fact.failed, output=fact.detail
    )


def _search(fact: Fact, texts: dict[str, str]) -> Search:
    text = texts.get(fact.path, "")
    # The pattern is tried at each character, and few results have a path of ours at all.
    memory = tuple(dict.fromkeys(_TIMELINE_PATH.findall(text))) if any(stem in text for stem in _STEMS) else ()
    hits = int(fact.detail) if fact.detail else len(memory) or None
    paths = (*_first_paths(text), *memory[:_MOST_MEMORY_PATHS])
    return Search(query=fact.subject, tool=fact.tool, path=fact.path, hits=hits, hit_paths=paths)


def _first_paths(text: str) -> tuple[str, ...]:
    """Return the files that the first hits name, each once; the other lines are not looked at."""
    found: dict[str, None] = {}
    for hit in _HIT_PATH.finditer(text):
        found[hit[1]] = None
        if len(found) == _MOST_HIT_PATHS:
            break
    return tuple(found)


def _problems(facts: Sequence[Fact]) -> Iterator[Problem]:
    """Return the errors, each with what its call was about: the facts of a failed call come right before its error."""
    subject = ""
    for fact in facts:
        if fact.kind == "error":
            yield Problem(tool=fact.tool, path=fact.path, message=fact.detail, subject=subject)
            subject = ""
        elif fact.failed and fact.kind != "command":
            subject = subject or fact.subject


def _outputs(covered: Sequence[Item]) -> Iterator[ToolOutputs]:
    names = {i.version: i.block.name for i in covered if isinstance(i.block, ToolCall)}
    outputs: dict[str, list[Item]] = {}
    for item in covered:
        if isinstance(item.block, ToolResult):
            name = item.block.name or names.get(item.answers or 0) or "unknown"
            outputs.setdefault(name, []).append(item)
    for tool, items in outputs.items():
        yield ToolOutputs(
            tool=tool,
            count=len(items),
            tokens=sum(i.tokens for i in items),
            errors=sum(isinstance(i.block, ToolResult) and i.block.failed for i in items),
            paths=tuple(i.block.path for i in items),
        )
