"""`timeline lab --validate`: compare the price model's predictions with the usage that recordings reported."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from timeline.cli import output
from timeline.cli.exits import Exit
from timeline.cli.output import note, say, write
from timeline.errors import ImportFailed
from timeline.lab.prices import read_prices
from timeline.lab.validation import Check, check, check_together
from timeline.lab.work import measured_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from timeline.lab.validation import Missed


def validate(files: Sequence[Path], prices: Path | None, *, calls: bool, as_json: bool) -> int:
    """Print the price model's predictions for the recorded calls beside the usage that they reported.

    Args:
        files: recordings.
        prices: a file whose prices take precedence over the packaged ones.
        calls: also print each wrong prediction; the JSON always has them.
        as_json: print JSON.
    """
    table = read_prices(prices)
    checks: list[Check] = []
    worst = Exit.OK
    for file in files:
        try:
            measured = measured_file(str(file))
        except ImportFailed as error:
            note(str(error))
            worst = Exit.USAGE
            continue
        found = [one for each in measured if (one := check(each, table.price_of, file=str(file))).calls]
        if not found:
            note(f"{file}: no call in it reports its usage, so there is nothing to compare with.")
        checks += found
    if as_json:
        output.write_json({"conversations": [one.dump() for one in checks], "total": _total(checks).dump()})
    elif checks:
        _print_checks(checks)
        if calls:
            _print_missed(checks)
    return worst if checks else Exit.USAGE


def _total(checks: Sequence[Check]) -> Check:
    return check_together(checks).model_copy(update={"missed": ()})


def _print_checks(checks: Sequence[Check]) -> None:
    heads = (
        "conversation",
        "calls",
        "read",
        "recorded",
        "error",
        "written",
        "recorded",
        "error",
        "cost",
        "wrong predictions",
    )
    whole = check_together(checks)
    output.table(heads, [*(_checked(one, one.conversation) for one in checks), _checked(whole, "all")])
    write()
    say("read, written: millions of tokens, predicted and recorded; cost: error of the input's cost.")
    say("wrong predictions: the number of calls whose read was predicted wrongly, by likely cause.")


def _print_missed(checks: Sequence[Check]) -> None:
    """Print each call whose read was predicted wrongly, with the likely cause."""
    heads = ("conversation", "call", "context", "read", "recorded", "idle", "likely cause")
    write()
    output.table(heads, [_missed(one, missed) for one in checks for missed in one.missed], keys=2)
    write()
    say("context, read, recorded: tokens; idle: seconds since the previous answer.")


def _missed(one: Check, missed: Missed) -> tuple[object, ...]:
    cause = missed.cause.replace("_", " ")
    figures = (missed.number, missed.context, missed.predicted, missed.recorded, f"{missed.idle_seconds:,.0f}")
    return (one.conversation, *figures, cause)


def _checked(one: Check, name: str) -> tuple[object, ...]:
    by_cause: Counter[str] = Counter({cause: found["calls"] for cause, found in one.causes.items()})
    return (
        name,
        one.calls,
        f"{one.predicted.read / 1e6:.2f}",
        f"{one.recorded.read / 1e6:.2f}",
        _percent(one.errors["read"]),
        f"{one.predicted.written / 1e6:.2f}",
        f"{one.recorded.written / 1e6:.2f}",
        _percent(one.errors["written"]),
        _percent(one.errors["units"]),
        ", ".join(f"{cause.replace('_', ' ')} {count}" for cause, count in by_cause.most_common()) or "-",
    )


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:+.2%}"
