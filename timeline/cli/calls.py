"""`timeline calls`, `usage` and `call`: the model calls of a conversation, what they used, and one as it was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from timeline.answers.about import about_block
from timeline.answers.calls import call_rows, context_of
from timeline.answers.total_usage import usage_of
from timeline.audit.calls import SCAVENGED, read_call
from timeline.blocks import instant_text
from timeline.cli import output
from timeline.cli.database import reading
from timeline.cli.options import known_wire
from timeline.cli.output import paint, say, write
from timeline.display.brief import brief
from timeline.errors import CallUnavailable
from timeline.frozen import compact_json
from timeline.lab.prices import read_prices
from timeline.log.stopwatch import spelled
from timeline.projection.explain import counted
from timeline.wire import MESSAGE_KEYS

if TYPE_CHECKING:
    from timeline.answers.calls import CallRow
    from timeline.answers.total_usage import ConversationUsage, TotalUsage
    from timeline.audit.calls import Call
    from timeline.usage import Usage


async def list_calls(conversation: str, db: str, *, as_json: bool) -> None:
    """List the model calls of a conversation."""
    async with reading(db) as store:
        rows = await call_rows(store, conversation)
    if as_json:
        with output.JsonList() as written:
            for row in rows:
                written.add(row)
    elif rows:
        output.table(
            ("call", "version", "at", "wire", "model", "in", "cached", "out", "seconds", "decisions", "ended"),
            [_cells(row) for row in rows],
        )
    else:
        write("No model call yet. An application records one with timeline.record(reply, request=…).")


def _cells(row: CallRow) -> tuple[object, ...]:
    used = row.usage
    ended = f"{row.finish_reason or ''}{': ' if row.error else ''}{brief(row.error, 60)}"
    took = "" if row.duration is None else f"{row.duration:.1f}"
    head = (row.number, row.version, row.at[:19], row.wire or "-", row.model or "-")
    tokens = (used.sent_tokens or "", used.cache_read_tokens or "", used.output_tokens or "")
    return (*head, *tokens, took, row.decisions or "", ended)


async def show_usage(conversation: str, db: str, *, as_json: bool) -> None:
    """Print what a conversation used, what each of its subagents did, and the sum.

    Raises:
        ConversationNotFound: there is no such conversation.
    """
    async with reading(db) as store:
        found = await usage_of(store, conversation, _paid)
    if as_json:
        output.write_json(found.model_dump(mode="json"))
        return
    rows = [
        (row.conversation, row.subagent_of or "", row.calls, *_figures(row), ", ".join(row.models))
        for row in found.conversations
    ]
    if len(rows) > 1:
        rows.append(("all", "", found.calls, *_figures(found), ""))
    output.table(
        ("conversation", "of", "calls", "in", "cached", "written", "out", "summaries", "dollars", "models"), rows
    )
    if found.unreported:
        say(f"{counted(found.unreported, 'call', 'calls')} reported no usage; the figures leave out what they used.")
    if found.unpriced:
        say(f"{counted(found.unpriced, 'call is', 'calls are')} of models without a price here, and counted as free.")


def _paid(model: str, usage: Usage) -> float | None:
    """Return the list price of a call in US dollars; None of a model that has none."""
    price = read_prices().price_of(model)
    return price.money(price.units_of(usage)) if price.known else None


def _figures(of: TotalUsage | ConversationUsage) -> tuple[object, ...]:
    used, by_summaries = of.usage, of.summary_usage.sent_tokens + of.summary_usage.output_tokens
    written = used.cache_write_tokens
    return used.sent_tokens, used.cache_read_tokens, written, used.output_tokens, by_summaries, f"{of.cost:.2f}"


async def show_call(conversation: str, number: int, db: str, *, wire: str | None, body: bool, as_json: bool) -> None:
    """Print a model call: all of it, only the body that was sent, or its context on another wire.

    Raises:
        UsageProblem: there is no such wire format.
    """
    named = None if wire is None else known_wire(wire)
    async with reading(db) as store:
        with output.working("replaying"):
            call = await read_call(store, conversation, number)
            context = await context_of(store, conversation, number) if named not in {None, call.wire} else None
    if context is not None and named is not None:
        other = context.to_wire(named)
        output.send_exactly(compact_json(other)) if body else output.write_json(other)
    elif body:
        # Without a newline behind it, so that its sha256 is the recorded one.
        output.send_exactly(call.proved())
    elif named is not None:
        call.proved()
        output.write_json(call.request)
    elif as_json:
        output.write_json(call.dump())
    else:
        _print_call(conversation, call)


def _print_call(conversation: str, call: Call) -> None:
    say(paint(conversation, bold=True) + f"  call {call.number}, version {call.version}, {instant_text(call.at)[:19]}")
    sent = ", ".join(filter(None, [call.wire or "its request was not recorded", call.model]))
    given = ", ".join(f"{name}={compact_json(value)}" for name, value in call.parameters.items())
    say(f"sent      {sent}" + (f"; {given}" if given else ""))
    if call.text is not None:
        by = "" if call.body == "ours" else "; the framework sent its own body, and this is ours for comparison"
        say(f"body      {len(call.text.encode()):,} bytes, sha256 {call.sha256}, the same when built again{by}")
    elif call.wire:
        say(f"body      {CallUnavailable(call.number, call.unproved or 'request')}")
    for line in _request_lines(call.request or {}):
        write(f"          {brief(line, max(output.width() - 10, 20))}")
    took = f", in {spelled(call.duration)}" if spelled(call.duration) else ""
    by = f", by {call.answered_by}" if call.answered_by not in {"", call.model} else ""
    say(f"reply     {_ended(call)}{by}{took}")
    for block in call.reply:
        write(f"          {block.path}  {about_block(block, max(output.width() - 12 - len(block.path), 20))}")
    write(f"usage     {_used(call.usage)}")
    for number, decision in enumerate(call.decisions):
        say(f"{'' if number else 'before it':<9} @{decision.version} {decision.text}", hang=10)
    if not call.decisions:
        since = "that is still in the log" if call.cause == SCAVENGED else "since the call before"
        write(f"before it nothing was decided {since}")
    say(f"cache     {call.cause.text if call.cause is not None else 'nothing broke the prefix'}", hang=10)
    if call.text is not None:
        write()
        say("--body prints what was sent, with the recorded sha256; --wire prints it in another form.")


def _request_lines(body: dict[str, Any]) -> list[str]:
    """Describe the parts of a body, one a line: its messages by their beginning, all else by its size."""
    lines: list[str] = []
    for key, value in body.items():
        if key in MESSAGE_KEYS and isinstance(value, list):
            lines.append(f"{key}: {counted(len(value), 'message', 'messages')}")
            lines += [f"  {message.get('role') or message.get('type')}: {_said(message)}" for message in value]
        elif isinstance(value, str | list | dict):
            lines.append(f"{key}: {brief(compact_json(value), 160)}")
    return lines


def _said(message: dict[str, Any]) -> str:
    fields = {key: value for key, value in message.items() if key != "role"}
    return brief(compact_json(next(iter(fields.values())) if len(fields) == 1 else fields), 160)


def _ended(call: Call) -> str:
    if call.finish_reason == "error":
        return f"failed: {call.error}" if call.error else "failed"
    return f"{counted(len(call.reply), 'block', 'blocks')}, {call.finish_reason or 'no reason given'}"


def _used(usage: Usage) -> str:
    if not usage.sent_tokens and not usage.output_tokens:
        return "not reported"
    cached = f"{usage.cache_read_tokens:,} of them from the cache"
    return f"{usage.sent_tokens:,} tokens in, {cached}; {usage.output_tokens:,} out"
