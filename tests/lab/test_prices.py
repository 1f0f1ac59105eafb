from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from timeline.errors import InvalidPrices
from timeline.lab.prices import UNKNOWN, CacheRule, ModelPrice, Price, packaged_prices, read_prices
from timeline.policy.limits import limits_of

if TYPE_CHECKING:
    from pathlib import Path


def test_the_packaged_table_names_a_date_and_a_source_for_every_figure() -> None:
    """No price and no rule is without its origin, and every price's cache is there."""
    table = packaged_prices()
    assert [rule.name for rule in table.caches if rule.date is None or not rule.source] == []
    assert [price.models for price in table.prices if price.date is None or not price.source] == []
    assert {price.cache for price in table.prices} <= {rule.name for rule in table.caches}


@pytest.mark.parametrize(
    ("model", "minimum", "read"),
    [
        ("claude-opus-4-5-20251101", 4_096, 0.5),
        ("anthropic/claude-opus-5", 512, 0.5),
        ("claude-opus-5-5", 512, 0.2),
        ("claude-sonnet-4-5-20250929", 1_024, 0.3),
        ("openai/gpt-5.1", 1_024, 0.125),
        ("gpt-5-mini", 1_024, 0.025),
        ("gemini-2.5-flash", 2_048, 0.03),
    ],
)
def test_the_longest_beginning_of_a_name_decides(model: str, minimum: int, read: float) -> None:
    """A date, or a provider in front, does not hide whose price it is; a longer name is another model."""
    price = packaged_prices().price_of(model)
    assert (price.minimum, price.model.read, price.known) == (minimum, read, True)


@pytest.mark.timeout(60)  # looking at each place takes minutes
@pytest.mark.parametrize("letter", ["/", "1"])
def test_a_name_in_a_recording_that_is_no_models_has_no_price(letter: str) -> None:
    """What may stand ahead of a name is looked for at its beginning alone, and each price looks."""
    assert not packaged_prices().price_of(letter * 16_000).known


def test_a_model_that_nobody_knows_has_the_commonest_ratios() -> None:
    """It can be compared in base tokens, and says that its money is none."""
    price = packaged_prices().price_of("my-own-model")
    assert (price.model, price.known) == (UNKNOWN, False)
    assert price.units(read=10, written=4, uncached=1, output=1) == pytest.approx(1 + 5 + 1 + 5)


def test_a_cost_is_told_in_base_tokens_and_in_dollars() -> None:
    """Read, written for either time, uncached and answered tokens each have their price."""
    price = packaged_prices().price_of("claude-opus-4-5")
    assert price.units(read=1_000, written=100, uncached=10, output=2) == pytest.approx(100 + 125 + 10 + 10)
    assert price.units(written=100, written_long=100) == pytest.approx(200)
    assert price.units(written=100, written_long=40) == pytest.approx(60 * 1.25 + 40 * 2)
    assert price.money(1_000_000) == pytest.approx(5.0)


@pytest.mark.shows("R-004-34")
def test_a_summary_sent_as_a_pair_costs_a_fifth_of_one_in_the_system_prompt() -> None:
    """The example of `tests/projection/test_diff_reuse.py`, in dollars: 1,500 tokens anew instead of all 11,500."""
    price = packaged_prices().price_of("claude-opus-4-5")
    pair, injected = price.units(read=10_000, written=1_500), price.units(written=11_500)
    assert price.money(pair) == pytest.approx(0.014375)
    assert price.money(injected) == pytest.approx(0.071875)


def test_above_the_tier_the_whole_call_is_dearer() -> None:
    """A tier is a cliff: all tokens of the call pay the higher price, not those above it alone."""
    price = packaged_prices().price_of("claude-sonnet-4-5")
    assert price.units(uncached=200_000, output=100) == pytest.approx(200_000 + 500)
    assert price.units(uncached=200_001, output=100) == pytest.approx(2 * 200_001 + 1.5 * 500)


def test_without_prices_for_writing_it_costs_as_much_as_input() -> None:
    """A provider that caches by itself takes nothing for it."""
    price = Price(model=ModelPrice(cache="x", input=2.0, read=1.0, output=8.0), rule=CacheRule(name="x"))
    assert price.units(written=10) == price.units(written=10, written_long=10) == price.units(uncached=10)


def test_a_file_of_ones_own_goes_before_the_packaged_table(tmp_path: Path) -> None:
    """What it does not say is still known, rules of the same name are its own."""
    file = tmp_path / "prices.toml"
    file.write_text(
        '[[caches]]\nname = "anthropic"\nlookback = 5\n'
        '[[prices]]\nmodels = ["claude-opus-4-5"]\ncache = "anthropic"\ninput = 1.0\nread = 0.3\noutput = 1.0\n',
        encoding="utf-8",
    )
    table = read_prices(file)
    assert table.price_of("claude-opus-4-5").model.read == 0.3
    assert table.price_of("claude-sonnet-5").rule.lookback == 5
    assert table.price_of("gpt-4.1").rule.granularity == 128


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prices = 3", "prices"),
        ("[[prices]\n", "it is not TOML"),
        ('[[prices]]\ncache = "anthropic"\ninput = 0\nread = 0\noutput = 0\n', "prices.0.input"),
        ('[[prices]]\ncache = "anthropic"\nimput = 1\nread = 0\noutput = 0\n', "input"),
        ('[[prices]]\ncache = "nowhere"\ninput = 1\nread = 0\noutput = 0\n', "there is no cache 'nowhere'"),
        ('[[caches]]\nname = "a"\n[[caches]]\nname = "a"\n', "twice"),
    ],
)
def test_a_file_that_does_not_hold_is_refused_by_field(tmp_path: Path, text: str, words: str) -> None:
    """The error names the file and what is wrong with it."""
    file = tmp_path / "prices.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidPrices, match=r"prices\.toml") as raised:
        read_prices(file)
    assert words in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """It is no packaged table in silence."""
    with pytest.raises(InvalidPrices, match="cannot be read"):
        read_prices(tmp_path / "none.toml")


@pytest.mark.shows("004-141", "R-004-34")
@pytest.mark.parametrize(
    ("model", "pair", "injected", "read", "written"),
    [
        # 11,500 tokens of the cache example: 10,000 read and 1,500 anew, against all of them anew
        ("openai/gpt-4o", 0.01625, 0.02875, 0.5, 1.0),
        ("openai/gpt-4o-mini", 0.000975, 0.001725, 0.5, 1.0),
        ("anthropic/claude-3.5-sonnet", 0.008625, 0.043125, 0.1, 1.25),
        ("deepseek/deepseek-chat", 0.001105, 0.003105, 0.07 / 0.27, 1.0),
        ("deepseek/deepseek-v4-pro", 0.00242, 0.01518, 1 / 30, 1.0),
        ("deepseek/deepseek-v4-flash", 0.00051, 0.00345, 1 / 50, 1.0),
        ("groq/moonshotai/kimi-k2-instruct", 0.0065, 0.0115, 0.5, 1.0),
        ("google/gemini-2.5-flash", 0.00075, 0.00345, 0.1, 1.0),
    ],
)
def test_each_provider_has_its_discount_for_a_cached_prefix_in_money(
    model: str, pair: float, injected: float, read: float, written: float
) -> None:
    """OpenAI and Groq take half, Anthropic and Gemini a tenth, DeepSeek a quarter and less.

    In dollars, and as shares of the price of uncached input; writing costs a quarter more with Anthropic.
    """
    price = packaged_prices().price_of(model)
    assert price.known
    assert price.money(price.units(read=10_000, written=1_500)) == pytest.approx(pair)
    assert price.money(price.units(written=11_500)) == pytest.approx(injected)
    assert price.units(read=1) == pytest.approx(read)
    assert price.units(written=1) == pytest.approx(written)


@pytest.mark.shows("004-92")
@pytest.mark.parametrize(
    ("model", "match"),
    [
        ("openai/gpt-4o", "prefix"),
        ("deepseek/deepseek-chat", "prefix"),
        ("groq/moonshotai/kimi-k2-instruct", "prefix"),
        ("google/gemini-2.5-flash", "prefix"),
        ("anthropic/claude-3.5-sonnet", "markers"),
    ],
)
def test_four_providers_match_prefixes_by_themselves_and_anthropic_at_markers(model: str, match: str) -> None:
    """What a call is reckoned to read from the cache follows from it."""
    assert packaged_prices().price_of(model).rule.match == match


def test_a_model_that_has_limits_under_another_spelling_has_its_price_under_it_too() -> None:
    """OpenRouter writes ``claude-opus-4.6`` for ``claude-opus-4-6``, and Pydantic AI ``anthropic:`` ahead of it."""
    table = packaged_prices()
    assert not table.price_of("claude-opus-4.9").known
    for name in ("claude-opus-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-opus-5-5"):
        dotted = re.sub(r"-(\d)-(\d)(?=-|$)", r"-\1.\2", name)
        for other in (f"anthropic/{dotted}", f"openrouter/anthropic/{dotted}:beta", f"anthropic:{name}"):
            assert table.price_of(other) == table.price_of(name) != table.price_of("zork"), other
            assert limits_of(other) == limits_of(name), other
