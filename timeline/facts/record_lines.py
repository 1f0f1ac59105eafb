"""Choose the lines of a record that the model is shown behind a summary, within a cap; find which prompts are unsaid.

The record itself has more: `timeline.facts.record` merges it, `timeline.facts.full_record` writes it out in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline.facts.name_list import list_address
from timeline.facts.record import BY_USE, NAMES
from timeline.facts.requests import is_part
from timeline.facts.said import asked_by, is_said, without_said
from timeline.facts.tool_use import asks_agents

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from timeline.facts.model import FactKind
    from timeline.ports import TokenCounter
    from timeline.queries import FactEntry, FactRecord


_CUT: Final = "…"
"""The end of a text that was cut."""
_LONGEST_SUBJECT: Final = 160
_LONGEST_COMMAND: Final = 120
_LONGEST_DETAIL: Final = 60
_LEAST_FOLDER: Final = 12
"""A folder whose name has at least so many characters is named once, above its files."""
_COUNTED: Final[Mapping[FactKind, tuple[str, str]]] = {
    "file_written": ("file written", "files written"),
    "file_deleted": ("file deleted", "files deleted"),
    "file_read": ("file read", "files read"),
    "command": ("command", "commands"),
    "search": ("search", "searches"),
    "identifier": ("identifier", "identifiers"),
    "url": ("URL", "URLs"),
    "request": ("request of the user", "requests of the user"),
}
RECORD_HEADING: Final = "Done so far, from the log (read an address for the full content)"
"""The heading of the lines about a record, behind the words of a summary."""
LISTS: Final = "Lists of all paths: "
"""Begins the line that leads to the lists of all names."""
_MOST_NAMES: Final = 8
"""Most names on one line."""
_FEWER_NAMES: Final = (4, 2, 1)
"""How many of them are taken where there is no room for all."""


class _Line(NamedTuple):
    """A line of a section, and the entry or entries that it shows; None for a path.

    ``shorter`` are lines with fewer of its entries, the longest first, to take where there is no room for all.
    """

    text: str
    shows: FactEntry | None = None
    also: tuple[FactEntry, ...] = ()
    shorter: tuple[_Line, ...] = ()


@dataclass(slots=True)
class _Section:
    """A titled list of lines: how many are taken in each round, and how many are taken so far.

    ``folder`` is left out of the names in its lines.
    """

    title: str
    lines: list[_Line]
    share: int = 1
    taken: int = 0
    folder: str = ""

    @property
    def chosen(self) -> Sequence[_Line]:
        return self.lines[: self.taken]


def shown_record(
    record: FactRecord,
    *,
    open_calls: Iterable[str],
    pins: Iterable[str],
    most_tokens: int,
    counter: TokenCounter,
    address: str,
    summary: str = "",
    whole: Collection[int] = (),
    lists: bool = False,
) -> str:
    """Return the lines about a record that follow a summary: whole lines, together at most ``most_tokens``.

    Open failures come first. Then come the user's requests, those that hold for all that comes first; files, by last
    and most use; the identifiers and URLs that later calls and prompts repeated; commands, by their last result.

    Lines are taken in rounds, some of each section, so that no section takes all the room. A round takes more lines of
    a section where one read brings back more. The last line counts what has no room, and names the block to read for
    the full record.

    Args:
        record: of everything before the window.
        open_calls: paths of the calls without a result.
        pins: paths of the pinned blocks.
        most_tokens: cap.
        counter: counts the lines.
        address: path of the summary block.
        summary: the summary's own words, by `searchable_line`; a request in them is not listed again.
        whole: versions of the prompts that are shown whole; what only they ask for is not listed again.
        lists: whether the last line leads to the lists of all names, see `timeline.facts.name_list`.
    """
    record = without_said(record, summary, whole)
    sections = [s for s in _sections(record, open_calls, pins, most_tokens) if s.lines]
    room = most_tokens - counter.count(_rest(record, (), address, lists=lists))
    while _take_lines(sections, room, counter):
        # Count anew: lines cost less together than one by one, and the line about the rest gets shorter.
        room = most_tokens - counter.count(_text(sections, record, address, lists=lists))
    while any(section.taken for section in sections):
        text = _text(sections, record, address, lists=lists)
        if counter.count(text) <= most_tokens:
            return text
        # Counts of parts do not add up exactly.
        next(section for section in reversed(sections) if section.taken).taken -= 1
    rest = _rest(record, (), address, lists=True) if lists else ""
    return rest if counter.count(rest) <= most_tokens else ""


def record_in(summary: str) -> str:
    """Return the lines about a record in a summary's text; empty where it has none."""
    return summary.partition(RECORD_HEADING)[2]


def unsaid(record: FactRecord, context: str, whole: Collection[int] = ()) -> tuple[int, ...]:
    """Return the versions of the prompts of which the context neither says nor lists everything.

    A line that was cut lists its request only in part, and nothing lists what a prompt says besides its requests.

    Args:
        record: of everything before the window.
        context: what certainly stays in view, by `searchable_line`: the summary, with its record.
        whole: versions of the prompts that are shown whole.
    """
    counted: Counter[int] = Counter()
    for entry in record.done.get("request", ()):
        if is_said(entry, context) or _lists(entry, context):
            counted.update(entry.versions)
    return tuple(sorted(v for v, count in record.asked.items() if counted[v] < count and v not in whole))


def _lists(entry: FactEntry, context: str) -> bool:
    """Return whether a context has the line of a request, with all of its words."""
    return len(entry.subject) <= _LONGEST_SUBJECT and not is_part(asked_by(entry)) and _line(entry).text in context


def _sections(
    record: FactRecord, open_calls: Iterable[str], pins: Iterable[str], most_tokens: int
) -> Iterator[_Section]:
    most = most_tokens // 4  # a line has some tokens
    folder = _folder([entry.subject for kind in BY_USE for entry in record.done.get(kind, ())[:most]])
    failures = [_Line(_failure(entry), entry) for entry in record.open_failures[:most]]
    yield _Section("Failed, and not done since", failures, share=2)
    yield _Section("Failed calls of other tools", [_Line(_failure(entry), entry) for entry in record.errors[:most]])
    asked = record.done.get("request", ())[:most]
    yield _Section("Asked by the user", [_line(entry) for entry in asked], share=2)
    reads = {entry.subject: entry for entry in record.done.get("file_read", ())}
    written = record.done.get("file_written", ())[:most]
    yield _files("Files written", written, folder, share=4, reads=reads)
    yield _files("Files deleted", record.done.get("file_deleted", ())[:most], folder, share=2)
    changed = {entry.subject for entry in written}
    only_read = [e for e in record.done.get("file_read", ())[:most] if e.subject not in changed]
    yield _files("Files read", only_read, folder, share=3)
    yield _Section("Named again", _names(_repeated(record)[:most]), share=2)
    asked_of, searched = _apart(record.done.get("search", ()), lambda entry: asks_agents(entry.tool))
    yield _Section("Asked of other agents", [_line(entry) for entry in asked_of[:most]], share=2)
    yield _Section("Searched", [_line(entry, _hits(entry)) for entry in searched[:most]])
    failing = {(entry.kind, entry.subject) for entry in record.open_failures}
    ran = (e for e in record.done.get("command", ()) if (e.kind, e.subject) not in failing)
    yield _Section("Commands by last result", [_line(e, _ended(e)) for e in islice(ran, most)])
    yield _Section("Open calls", [_Line(path) for path in open_calls])
    yield _Section("Pinned", [_Line(path) for path in pins])


def _files(
    title: str, entries: Sequence[FactEntry], folder: str, *, share: int, reads: Mapping[str, FactEntry] | None = None
) -> _Section:
    """Return a section of files; a folder that most are in is named once, in the title.

    The folder is the one of the files of all sections, so that the next title need not name it again. Where these have
    none, or no file of this section is in it, it is the section's own. A file that was changed and read is listed once,
    as changed.
    """
    files = [entry.subject for entry in entries]
    own = folder if any(file.startswith(folder) for file in files) else ""
    own = own or _folder(files)
    return _Section(
        title, [_file_line(entry, own, (reads or {}).get(entry.subject)) for entry in entries], share, folder=own
    )


def _file_line(entry: FactEntry, folder: str, read: FactEntry | None) -> _Line:
    """Return a file's line, with its newest use and its first use, which most often shows the whole file."""
    first = entry.first if read is None else min(entry.first, read.first)
    began = f", first @{first}" if first != entry.last else ""
    name = _brief(entry.subject.removeprefix(folder), _LONGEST_SUBJECT)
    text = f"{name}{_times(entry)} (@{entry.last}{began})"
    return _Line(text, entry, () if read is None else (read,))


def _heads(sections: Sequence[_Section]) -> Iterator[tuple[_Section, str]]:
    """Yield the sections with taken lines, each with its title; the first section with a folder names it."""
    folder = ""
    for section in sections:
        if not section.taken:
            continue
        if not section.folder:
            yield section, f"{section.title}:"
        elif section.folder == folder:
            yield section, f"{section.title} (there too):"
        else:
            folder = section.folder
            yield section, f"{section.title} (in {folder}):"


def _repeated(record: FactRecord) -> list[FactEntry]:
    """Return the names that calls and prompts repeated, most first, URLs and identifiers alike."""
    named = chain.from_iterable(record.done.get(kind, ()) for kind in sorted(NAMES))
    return sorted((entry for entry in named if entry.repeats), key=lambda entry: -entry.repeats)


def _names(entries: Sequence[FactEntry]) -> list[_Line]:
    """Return lines of names; names that the same block named first share a line."""
    first_in: dict[int, list[FactEntry]] = {}
    for entry in entries:
        first_in.setdefault(entry.first, []).append(entry)
    lines: list[_Line] = []
    for version, named in first_in.items():
        for start in range(0, len(named), _MOST_NAMES):
            some = named[start : start + _MOST_NAMES]
            shorter = [_name_line(some[:count], version) for count in _FEWER_NAMES if count < len(some)]
            lines.append(_name_line(some, version)._replace(shorter=tuple(shorter)))
    return lines


def _name_line(entries: Sequence[FactEntry], version: int) -> _Line:
    names = ", ".join(_brief(entry.subject, _LONGEST_SUBJECT) for entry in entries)
    return _Line(f"{names} (@{version})", entries[0], tuple(entries[1:]))


def _folder(files: Sequence[str]) -> str:
    """Return the folder whose name saves most if the lines leave it out; empty if a line could then be misread."""
    if len(files) < 2 or not all(file.startswith(("/", "~/")) for file in files):
        return ""
    inside = Counter(folder for file in files for folder in _parents(file))
    best = max(inside.items(), key=lambda pair: ((pair[1] - 1) * len(pair[0]), pair[0]), default=("", 0))
    return best[0] if best[1] > 1 and len(best[0]) >= _LEAST_FOLDER else ""


def _parents(file: str) -> Iterator[str]:
    end = file.rfind("/")
    while end > 0:
        yield file[: end + 1]
        end = file.rfind("/", 0, end)


def _line(entry: FactEntry, more: str = "", *, at: int = 0, name: str = "") -> _Line:
    most = _LONGEST_COMMAND if entry.kind == "command" else _LONGEST_SUBJECT
    return _Line(f"{_brief(name or entry.subject, most)}{more} (@{at or entry.last})", entry)


def _times(entry: FactEntry) -> str:
    return f" x{entry.times}" if entry.times > 1 else ""


def _apart(entries: Iterable[FactEntry], first: Callable[[FactEntry], bool]) -> tuple[list[FactEntry], list[FactEntry]]:
    """Return the entries for which ``first`` holds, and the others."""
    found: tuple[list[FactEntry], list[FactEntry]] = ([], [])
    for entry in entries:
        found[not first(entry)].append(entry)
    return found


def _hits(entry: FactEntry) -> str:
    return f" ({entry.detail} hits)" if entry.detail else ""


def _ended(entry: FactEntry) -> str:
    return f" (exit {entry.exit_status})" if entry.exit_status is not None else ""


def _failure(entry: FactEntry) -> str:
    """Return a failure's line: with the status of a command, or with what any other call said."""
    if entry.kind == "command":
        return f"{_brief(entry.subject, _LONGEST_COMMAND)}{_ended(entry)}{_times(entry)} (@{entry.last})"
    subject = "" if entry.kind == "error" else f" {_brief(entry.subject, _LONGEST_SUBJECT)}"
    detail = f": {_brief(entry.detail, _LONGEST_DETAIL)}" if entry.detail else ""
    return f"{entry.tool}{subject}{_times(entry)}{detail} (@{entry.last})"


def _brief(text: str, most: int) -> str:
    """Return a text on one line, cut at so many characters."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most and len(text) <= most * 4 else line[:most] + _CUT


def _take_lines(sections: Sequence[_Section], room: int, counter: TokenCounter) -> bool:
    """Take lines in rounds while there is room. A section ends at its first line of which not even a part fits.

    Returns whether any line was taken.
    """
    before = sum(section.taken for section in sections)
    waiting = list(sections)
    while waiting:
        for section in tuple(waiting):
            for place in range(section.taken, min(section.taken + section.share, len(section.lines))):
                line, cost = _fitting(section.lines[place], _head(section, sections), room, counter)
                if line is None:
                    waiting.remove(section)
                    break
                section.lines[place] = line
                section.taken += 1
                room -= cost
            else:
                if section.taken == len(section.lines):
                    waiting.remove(section)
    return sum(section.taken for section in sections) > before


def _fitting(line: _Line, head: str, room: int, counter: TokenCounter) -> tuple[_Line | None, int]:
    """Return as much of a line as fits, and what that costs; None if nothing of it fits."""
    costs = ((each, counter.count(f"{head}- {each.text}\n")) for each in (line, *line.shorter))
    return next(((each, cost) for each, cost in costs if cost <= room), (None, 0))


def _head(section: _Section, sections: Sequence[_Section]) -> str:
    """Return the title that the next line of a section needs; empty if the title is there already."""
    if section.taken:
        return ""
    named = any(other.taken and other.folder == section.folder for other in sections)
    return f"{section.title} (in {section.folder}):\n" if section.folder and not named else f"{section.title}:\n"


def _text(sections: Sequence[_Section], record: FactRecord, address: str, *, lists: bool) -> str:
    lines: list[str] = []
    for section, head in _heads(sections):
        lines += [head, *(f"- {line.text}" for line in section.chosen)]
    rest = _rest(record, sections, address, lists=lists)
    return "\n".join([*lines, rest] if rest else lines)


def _rest(record: FactRecord, sections: Sequence[_Section], address: str, *, lists: bool) -> str:
    """Return the line that counts what is not shown, and the one that leads to the lists; empty without either."""
    lines = [line for section in sections for line in section.chosen if line.shows is not None]
    shown = [entry for line in lines for entry in (line.shows, *line.also) if entry is not None]
    failures = record.open_count + record.error_count - sum(entry.failed for entry in shown)
    left = [f"{failures} {'failure' if failures == 1 else 'failures'}"] if failures else []
    by_kind = Counter(entry.kind for entry in shown if not entry.failed)
    # A failing command is shown among the failures, which have its last result.
    failing = {entry.subject for entry in shown if entry.failed and entry.kind == "command"}
    by_kind["command"] += sum(entry.subject in failing for entry in record.done.get("command", ()))
    for kind, names in _COUNTED.items():
        if (count := record.counts.get(kind, 0) - by_kind[kind]) > 0:
            left.append(f"{count} {names[count != 1]}")
    rest = [f"Not shown: {', '.join(left)}. Full record: {address}"] if left else []
    return "\n".join([*rest, _lists_line(address)] if lists else rest)


def _lists_line(address: str) -> str:
    return f"{LISTS}{list_address(address, 'paths')}, of names, ids and numbers: {list_address(address, 'names')}"
