"""`timeline render` and `compact`: show what a model would see, and compact by hand.

`--summarize PROVIDER:MODEL` is the only option of the command line that calls a model; its summarizers are made here.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from timeline import summarizers
from timeline.answers.calls import context_of
from timeline.blocks import utc
from timeline.cli import output
from timeline.cli.database import changing, reading
from timeline.cli.exits import UsageProblem
from timeline.cli.options import known_wire
from timeline.cli.output import paint, say, state_colour, write
from timeline.cli.wishes import PolicyWish, opened, policy_in_words
from timeline.databases import IsDatabase, NotPlain, read_text
from timeline.log.stopwatch import spelled
from timeline.projection.explain import spaced
from timeline.projection.explanation_table import account_lines, decision_in_words, explanation_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from timeline.cli.shapes import CompactedRow
    from timeline.ports import Summarizer
    from timeline.projection.context import RenderedContext
    from timeline.projection.reports import TakenDecision
    from timeline.timeline import Timeline


_FILE_NAME: Final = re.compile(r"\S*[/\\]\S*|\S+\.[A-Za-z]{1,4}")
"""One word with a separator of folders or an ending: rather a mistyped file than a prompt."""


class _Provider(NamedTuple):
    """A summarizer's public name, and the variables that its SDK reads a key from."""

    summarizer: str
    keys: tuple[str, ...]


_PROVIDERS: Final = {
    "anthropic": _Provider("AnthropicSummarizer", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")),
    "google": _Provider("GoogleSummarizer", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    "openai": _Provider("OpenAISummarizer", ("OPENAI_API_KEY",)),
}


def make_summarizer(named: str | None) -> Summarizer | None:
    """Return the summarizer that the option names, or None without the option: then no model is called.

    Raises:
        UsageProblem: there is no such provider, no model is named, or no key is set.
    """
    if named is None:
        return None
    name, _, model = named.partition(":")
    provider = _PROVIDERS.get(name)
    if provider is None or not model:
        known = ", ".join(f"{one}:MODEL" for one in _PROVIDERS)
        raise UsageProblem(f"--summarize {named!r} is not PROVIDER:MODEL. Use one of: {known}.")
    summarizer: Summarizer = getattr(summarizers, provider.summarizer)(model)
    if not any(os.environ.get(key) for key in provider.keys):
        raise UsageProblem(f"--summarize {named} needs a key. Set {' or '.join(provider.keys)}.")
    return summarizer


@dataclass(frozen=True, slots=True)
class Wish(PolicyWish):
    """How to render: the options, before they are checked."""

    system: str | None = None
    now: str | None = None
    summarize: str | None = None

    def system_text(self) -> str | None:
        """Return the system prompt: the text of the named file, or the option's own text if there is no such file.

        Raises:
            UsageProblem: the file is a folder or not UTF-8 text, or the option is blank, or looks like a path to a file
                that is not there.
        """
        if self.system is None:
            return None
        if not self.system.strip():
            raise UsageProblem("--system is blank. Give a text file or the text itself, or leave it out.")
        try:
            return read_text(self.system)
        except IsDatabase:
            raise UsageProblem(f"{self.system}: this is a database. Give a text file, or the text itself.") from None
        except UnicodeDecodeError:
            raise UsageProblem(f"{self.system}: this is not UTF-8. Give a text file, or the text itself.") from None
        except IsADirectoryError:
            raise UsageProblem(f"{self.system}: this is a folder. Give a text file, or the text itself.") from None
        except NotPlain as error:
            raise UsageProblem(f"{self.system}: {error.strerror}. Give a text file, or the text itself.") from None
        except (OSError, ValueError):  # no such file, or a text that cannot be a file's name
            if _FILE_NAME.fullmatch(self.system):
                raise UsageProblem(
                    f"{self.system}: there is no such file. Give a text file, or a text of more than one word."
                ) from None
            return self.system

    def time(self) -> datetime | None:
        """Return the time to render at.

        Raises:
            UsageProblem: the option is not a time with a zone.
        """
        if self.now is None:
            return None
        try:
            return utc(datetime.fromisoformat(self.now))
        except ValueError:
            cure = "Write 2026-01-31T12:00:00Z"
            raise UsageProblem(f"--now {self.now!r} is not a time with a zone. {cure}.") from None


async def render(
    conversation: str,
    db: str,
    wish: Wish,
    *,
    at: int | None,
    wire: str | None,
    record: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Render a conversation, now or at a past version, and print the context or a provider's request body.

    Raises:
        UsageProblem: the options exclude each other.
    """
    named = _named_form(wire, explain=explain)
    if at is not None and record:
        raise UsageProblem("A past version takes no new context. Leave out one of --at and --record.")
    wish.check()
    system, now = wish.system_text(), wish.time()
    summarizer = make_summarizer(wish.summarize)
    async with (changing if record else reading)(db) as store:
        timeline = await opened(store, conversation, wish, summarizer)
        if at is None:
            context = await timeline.render(system=system, now=now, record=record)
        else:
            context = await (await timeline.at(at)).render(system=system, now=now)
    if named is not None or as_json:
        _write_form(context, named, explain=explain)
        return
    _print_head(timeline, context, recorded=record)
    (_print_explanation if explain else _print_context)(context)


async def render_call(
    conversation: str, number: int, db: str, *, wire: str | None, explain: bool, as_json: bool
) -> None:
    """Print the context that a model call was made from, with its system prompt, tools and tail.

    Raises:
        UsageProblem: the options exclude each other.
    """
    named = _named_form(wire, explain=explain)
    async with reading(db) as store:
        with output.working("replaying"):
            context = await context_of(store, conversation, number)
    if named is not None or as_json:
        _write_form(context, named, explain=explain)
        return
    say(paint(conversation, bold=True) + f"  call {number}, the context of version {context.version}")
    write(f"policy {context.policy.origin.in_words()}, of {context.policy.max_tokens:,} tokens")
    (_print_explanation if explain else _print_context)(context)


def _named_form(wire: str | None, *, explain: bool) -> str | None:
    """Return the name of the wire format to print.

    Raises:
        UsageProblem: there is none, or the options exclude each other.
    """
    if wire is not None and explain:
        raise UsageProblem("--wire prints the request body and nothing else. Leave out one of --wire and --explain.")
    return None if wire is None else known_wire(wire)


def _write_form(context: RenderedContext, wire: str | None, *, explain: bool) -> None:
    """Write a context as JSON: as a request body, or itself, or why it is so."""
    if wire is not None:
        output.write_json(context.to_wire(wire))
    else:
        output.write_json(context.explanation.dump() if explain else context.dump())


def _print_explanation(context: RenderedContext) -> None:
    for line in explanation_lines(context.explanation, width=output.width(), paint=_paint):
        write(line)


def _paint(text: str, style: str) -> str:
    return paint(text, state_colour(style), bold=style == "bold", dim=style == "dim")


def _print_head(timeline: Timeline, context: RenderedContext, *, recorded: bool) -> None:
    head = paint(context.conversation, bold=True) + f"  version {context.version}"
    say(head + ("" if recorded else "  (dry run: nothing was recorded)"))
    write(f"policy {policy_in_words(timeline, context.policy)}")


def _print_context(context: RenderedContext) -> None:
    for line in account_lines(context.account, context.counts):
        write(line)
    states = Counter(block.state for block in context.blocks)
    write("blocks: " + ", ".join(paint(f"{count} {state}", state_colour(state)) for state, count in states.items()))
    for point in context.explanation.cache_points:
        write(f"cache point {spaced(point.kind)}: after {point.path}")
    _print_decisions(context.decisions)
    write(f"fingerprint {context.fingerprint}")
    write()
    say("--explain lists every block; --json prints the context; --wire anthropic prints the request body.")


def _print_decisions(decisions: Iterable[TakenDecision]) -> None:
    for taken in decisions:
        say(decision_in_words(taken))


async def compact(
    conversation: str, db: str, wish: Wish, instructions: str, *, until: str | None, as_json: bool
) -> None:
    """Compact a conversation now; ``until`` is the first block that stays, instead of the policy's cut.

    Raises:
        UsageProblem: the summarizer cannot be used.
    """
    wish.check()
    summarizer = make_summarizer(wish.summarize)
    async with changing(db) as store:
        timeline = await opened(store, conversation, wish, summarizer)
        decisions = await timeline.compact(until=until, instructions=instructions)
        version, tokens = timeline.version, timeline.window.tokens
        is_covered = any(taken.kind == "compacted" for taken in decisions)
        duration = timeline.compaction_state().last_duration if is_covered else None
    if as_json:
        row: CompactedRow = {
            "conversation": conversation,
            "version": version,
            "decision": "compact",
            "decisions": [taken.model_dump(mode="json") for taken in decisions],
            "duration": duration,
        }
        output.write_json(row)
        return
    took = f"; it took {spelled(duration)}" if spelled(duration) else ""
    say(paint(conversation, bold=True) + f"  version {version}, the window holds {tokens:,} tokens{took}")
    write(f"policy {policy_in_words(timeline, timeline.policy)}")
    _print_decisions(decisions)
