from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from timeline.errors import InvalidLimits, InvalidPolicy, InvalidPrices
from timeline.lab.prices import read_prices
from timeline.policy.files import load_policy
from timeline.policy.limits import read_limits

if TYPE_CHECKING:
    from pathlib import Path

DEEP = 20_000
DOTTED = 4_000
"""Parts of a dotted key: the parser's work grows with their square."""


@pytest.mark.parametrize(
    "text",
    [
        f"a = {'[' * DEEP}{']' * DEEP}",
        f"a = {'{a = ' * DEEP}1{'}' * DEEP}",
        f"preset = {'[' * 900}{']' * 900}",
        f"{'.'.join(['preset'] * DOTTED)} = 1",
        f"preset = 'balanced'\n[{'.'.join(['form'] * DOTTED)}]\nheading = 'x'",
    ],
    ids=["arrays", "inline tables", "some arrays", "dotted keys", "tables"],
)
def test_a_file_nested_too_deeply_is_refused_by_its_own_error(tmp_path: Path, text: str) -> None:
    """Policies, limits and prices alike: the error names the file and says what is wrong with it."""
    file = tmp_path / "deep.toml"
    file.write_text(text, encoding="utf-8")
    for read, error in ((load_policy, InvalidPolicy), (read_limits, InvalidLimits), (read_prices, InvalidPrices)):
        with pytest.raises(error, match=r"deep\.toml: it is nested too deeply"):
            read(file)


def test_a_number_of_thousands_of_digits_is_refused_by_its_own_error(tmp_path: Path) -> None:
    """Python refuses to read it, whatever it is for."""
    file = tmp_path / "large.toml"
    file.write_text(f"max_tokens = {'9' * 10_000}", encoding="utf-8")
    for read, error in ((load_policy, InvalidPolicy), (read_limits, InvalidLimits), (read_prices, InvalidPrices)):
        with pytest.raises(error, match=r"large\.toml: it holds a number of more digits"):
            read(file)
