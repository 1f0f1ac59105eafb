"""`timeline policies`: list the presets, show a policy in full, or compare two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeline.cli import output
from timeline.cli.exits import UsageProblem
from timeline.cli.output import paint, write
from timeline.cli.picture import picture
from timeline.display.brief import brief
from timeline.planning.outline import outline
from timeline.policy.compare import compare_policies, diff_policies, flat, shown
from timeline.policy.files import by_name
from timeline.policy.library import designs
from timeline.policy.presets import PRESETS, PUBLISHED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from timeline.cli.contexts import Wish
    from timeline.cli.shapes import ComparedRow
    from timeline.planning.outline import Outline, Said
    from timeline.policy.model import Policy


def list_policies(*, as_json: bool) -> None:
    """Print the presets and the published designs: an outline of each, or as JSON every field."""
    made = [by_name(name) for name in (*PRESETS, *designs())]
    if as_json:
        with output.JsonList() as rows:
            for policy in made:
                rows.add(policy.model_dump(mode="json"))
        return
    outlines = [outline(policy) for policy in made]
    output.table(
        ("name", "seed", "limit", "compacts above", "down to", "hides when cold", "keeps", "on failure", "steps"),
        [
            (
                o.name,
                PUBLISHED.get(o.name, "-"),
                f"{o.limit:,}",
                "never" if o.trigger is None else f"{o.trigger:,}",
                "-" if o.target is None else f"{o.target:,}",
                o.hides,
                o.keeps,
                o.on_failure if o.steps else "-",
                ", ".join(step.title.lower() for step in o.steps) or "-",
            )
            for o in outlines
        ],
    )
    write()
    write("lean-NAME takes every decision of NAME, and sends less.")
    write()
    write(paint("Next:", bold=True) + "  timeline policies show balanced")
    write("       timeline policies show balanced keep_last")
    write("       timeline policies show pi lean-pi")


def show(wishes: Sequence[Wish], *, form: str | None) -> None:
    """Print one policy, or two side by side.

    Args:
        wishes: one or two policies.
        form: ``json``, ``toml`` or ``svg``; None for text.

    Raises:
        UsageProblem: two policies cannot be printed in this form.
    """
    made = [wish.make_policy() for wish in wishes]
    if len(made) == 1:
        _show_one(made[0], form)
    elif form == "json":
        output.write_json(_compared(made[0], made[1]))
    elif form is None:
        _print_compared(wishes, made[0], made[1])
    else:
        raise UsageProblem(f"--{form} prints one policy. Leave out --{form}, or one of the two policies.")


def _show_one(policy: Policy, form: str | None) -> None:
    match form:
        case "json":
            output.write_json(policy.model_dump(mode="json"))
        case "toml":
            output.send_escaped(policy.to_toml())
        case "svg":
            output.send(picture(outline(policy), seed=PUBLISHED.get(policy.name, "")))
        case _:
            _print_policy(policy)


def _compared(before: Policy, after: Policy) -> ComparedRow:
    return {
        "policies": [before.model_dump(mode="json"), after.model_dump(mode="json")],
        "differences": [
            {"field": row.field, "before": row.before, "after": row.after} for row in diff_policies(before, after)
        ],
    }


def _print_policy(policy: Policy) -> None:
    brief = outline(policy)
    write(paint(brief.name, bold=True))
    for name, text in outline_lines(brief):
        output.say(f"  {output.pad(name, 16)}  {text}", hang=20)
    write()
    fields = flat(policy)
    widest = max(map(len, fields))
    for field, value in fields.items():
        output.say(f"  {output.pad(field, widest)}  {shown(value)}", hang=widest + 4)


def outline_lines(brief: Outline) -> list[tuple[str, str]]:
    """Return the outline of a policy as pairs of name and text."""
    free = ", ".join(f"{name} {tokens:,}" for name, tokens in brief.reserves)
    due = "" if brief.trigger is None else f": above {brief.trigger:,}, down to {brief.target:,}"
    lines = [
        ("limit", f"{brief.limit:,} tokens" + (f"; kept free: {free}" if free else "")),
        ("counts with", brief.counts),
        ("compacts", brief.when + due),
        ("hides when cold", brief.hides),
    ]
    if brief.repeats:
        lines.append(("shows once", brief.repeats))
    if brief.line_numbers:
        lines.append(("numbers", brief.line_numbers))
    lines += [(f"step {n}", f"{step.title}: {step.does}") for n, step in enumerate(brief.steps, start=1)]
    lines.append(("keeps", brief.keeps))
    if brief.stages:
        lines.append(("approved stages", brief.stages))
    lines += [("shows", said_in_words(message)) for message in brief.shows]
    return [*lines, ("on failure", brief.on_failure)] if brief.steps else lines


def said_in_words(message: Said) -> str:
    """Return a message of a compacted context as its role and text."""
    parts = [message.text, "(summary)"] if message.is_summary else [message.text]
    return f"{message.role}: {' '.join(part for part in parts if part)}"


def _print_compared(wishes: Sequence[Wish], before: Policy, after: Policy) -> None:
    """Print every field of two policies; a star marks those that differ."""
    rows = compare_policies(before, after)
    cells = [
        ("*" if row.differs else "", row.field, brief(shown(row.before), 44), brief(shown(row.after), 44))
        for row in rows
    ]
    names = [wish.name for wish in wishes]
    colours = [output.DIFFERENT if row.differs else None for row in rows]
    output.table(("", "field", *names), cells, colours=colours)
    different = sum(row.differs for row in rows)
    write()
    write(f"{different} of {len(rows)} fields differ (*)." if different else "The two are equal.")
