"""Model limits: dated data, found by the longest beginning of a model's name, overridden by files and arguments."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from timeline import policies
from timeline.errors import InvalidLimits, InvalidPolicy
from timeline.policy.files import parse_policy
from timeline.policy.limits import LIMITS_VARIABLE, ModelLimits, limits_of, packaged_limits
from timeline.policy.making import with_limit
from timeline.policy.presets import PRESETS

if TYPE_CHECKING:
    from pathlib import Path

SEED_001 = {
    "gpt-4o": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "claude-3-5-sonnet-20240620": 200_000,
    "claude-3-haiku-20240307": 200_000,
}
SEED_004 = {
    "openai/gpt-4o": (128_000, 16_384),
    "openai/gpt-4o-mini": (128_000, 16_384),
    "openai/gpt-4-turbo": (128_000, 4_096),
    "openai/gpt-4": (8_192, 4_096),
    "openai/gpt-3.5-turbo": (16_385, 4_096),
    "anthropic/claude-3.5-sonnet": (200_000, 8_192),
    "anthropic/claude-3-opus": (200_000, 4_096),
    "anthropic/claude-3-sonnet": (200_000, 4_096),
    "anthropic/claude-3-haiku": (200_000, 4_096),
    "google/gemini-pro": (32_000, 8_192),
    "google/gemini-1.5-pro": (1_000_000, 8_192),
}


@pytest.fixture(autouse=True)
def _no_file_of_somebodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMITS_VARIABLE, raising=False)


def written(folder: Path, name: str, context: int, models: str = '"gpt-4"') -> Path:
    """Write a file of limits with one entry."""
    file = folder / name
    file.write_text(f"[[limits]]\nmodels = [{models}]\ncontext = {context}\n", encoding="utf-8")
    return file


@pytest.mark.shows("001-9", "R-001-7")
@pytest.mark.parametrize(("model", "context"), SEED_001.items())
def test_the_table_of_seed_001_is_in_it(model: str, context: int) -> None:
    """Literal, and `keep_last` takes it."""
    assert limits_of(model).context == context
    assert policies.keep_last(model=model).max_tokens == context


@pytest.mark.shows("004-11", "004-23", "004-35", "004-39", "R-004-1")
@pytest.mark.parametrize(("model", "figures"), SEED_004.items())
def test_the_table_of_seed_004_is_in_it(model: str, figures: tuple[int, int]) -> None:
    """Literal, and `prune_then_summarize` reserves the longest answer."""
    limits = limits_of(model)
    policy = policies.prune_then_summarize(model=model)
    assert (limits.context, limits.max_output) == (policy.max_tokens, policy.output_reserve) == figures


def test_every_packaged_entry_says_when_and_where_it_was_read() -> None:
    """Data without a day and a source cannot be checked again."""
    assert packaged_limits().limits
    assert [e for e in packaged_limits().limits if e.date is None or not e.source or not e.models] == []
    assert min(e.date for e in packaged_limits().limits if e.date) >= date(2026, 1, 1)


def test_no_beginning_of_a_name_stands_twice() -> None:
    """Which entry holds does not depend on the order of the file."""
    starts = [start for entry in packaged_limits().limits for start in entry.models]
    assert len(starts) == len(set(starts))


@pytest.mark.shows("004-39")
@pytest.mark.parametrize(
    ("model", "context"),
    [
        ("gpt-4", 8_192),
        ("gpt-4-0613", 8_192),
        ("gpt-4-32k-0613", 32_768),
        ("GPT-4o-2024-08-06", 128_000),
        ("openrouter/openai/gpt-4.1-mini", 1_047_576),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("claude-haiku-4-5@20251001", 200_000),
        ("ft:gpt-4o:someone", 128_000),
        ("anthropic:claude-opus-4-8", 1_000_000),
        ("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000),
        ("gateway/azure_openai:gpt-4.1-mini", 1_047_576),
        ("openai:ft:gpt-4o:someone", 128_000),
        ("deepseek-v4:free", 1_000_000),
        ("claude-opus-4-20250514", 200_000),
        ("claude-opus-4-8", 1_000_000),
    ],
)
def test_the_longest_beginning_of_a_name_wins(model: str, context: int) -> None:
    """Versions and variants are found by their model, with or without what a gateway puts in front."""
    assert limits_of(model).context == context


@pytest.mark.parametrize("model", ["gpt-4.9", "gpt-40", "zork", "", "my-gpt-4"])
def test_another_models_name_that_begins_alike_is_not_known(model: str) -> None:
    """A figure is taken over for variants, not for the next generation."""
    assert limits_of(model).context == 80_000


@pytest.mark.shows("001-10", "R-001-7", "R-001-8")
def test_a_model_that_is_not_known_leaves_each_preset_its_own_limit() -> None:
    """001: 128,000; 003: 200,000; 004: 16,000 and 4,096; ours: 80,000."""
    limits = {name: preset(model="zork").max_tokens for name, preset in PRESETS.items()}
    assert limits == {name: preset().max_tokens for name, preset in PRESETS.items()}
    assert (limits["cut_point"], limits["keep_last"], limits["keep_ratio"]) == (80_000, 128_000, 200_000)
    assert (limits["prune_then_summarize"], policies.prune_then_summarize(model="zork").output_reserve) == (
        16_000,
        4_096,
    )


def test_a_misspelt_model_is_warned_of_with_the_nearest_name(caplog: pytest.LogCaptureFixture) -> None:
    """It would compact at our 80,000 tokens, where its user believes in 200,000 or a million."""
    policies.balanced(model="claude-opuss-4-5")
    [message] = caplog.messages
    assert message == (
        "No limits are known for the model 'claude-opuss-4-5'; the nearest is 'claude-opus-4-5'. The policy keeps its "
        "own limit of 80,000 tokens. Give max_tokens, or name a file with its limits in TIMELINE_LIMITS."
    )


def test_a_policy_file_with_a_misspelt_model_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """The file's model is taken as a preset's is."""
    parse_policy('model = "mistral-lage"')
    [message] = caplog.messages
    assert message.startswith("No limits are known for the model 'mistral-lage'.")


def test_an_application_that_makes_its_policy_with_every_request_is_warned_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line a request would be what one filters out."""
    for _ in range(3):
        policies.balanced(model="of-each-request")
    assert len(caplog.messages) == 1


def test_a_limit_that_is_given_makes_an_unknown_model_no_matter(caplog: pytest.LogCaptureFixture) -> None:
    """Nor does a variant of a known model."""
    policies.balanced(model="of-our-own", max_tokens=32_000)
    with_limit(policies.balanced(), model="of-our-own", max_tokens=32_000)
    policies.balanced(model="gpt-5-2026-01-01")
    assert caplog.messages == []


@pytest.mark.shows("003-11", "R-003-1")
def test_the_beta_flag_opens_the_long_window() -> None:
    """Seed 003: 1,000,000 with the flag; of a model that is known, its own long window, if it has one."""
    assert policies.keep_ratio(long_context=True).max_tokens == 1_000_000
    assert policies.keep_ratio(long_context=True, model="zork").max_tokens == 1_000_000
    assert policies.keep_ratio(long_context=True, model="claude-sonnet-4-5").max_tokens == 1_000_000
    assert policies.keep_ratio(model="claude-sonnet-4-5").max_tokens == 200_000
    assert policies.keep_ratio(long_context=True, model="gpt-4o").max_tokens == 128_000


@pytest.mark.parametrize(
    ("model", "ratio"),
    [("claude-opus-5", 2.0), ("claude-sonnet-4-5", 1.66), ("anthropic/claude-9", 1.66), ("gpt-4o", None)],
)
def test_a_model_without_a_ratio_of_its_own_has_that_of_its_providers_other_models(
    model: str, ratio: float | None
) -> None:
    """The models of a family share a tokenizer; where counts are exact there is none."""
    assert limits_of(model).ratio == ratio


@pytest.mark.shows("004-109", "R-004-4")
@pytest.mark.parametrize(
    ("model", "counter", "margin"),
    [
        ("gpt-4o", "o200k_base", 0.0),
        ("gpt-4", "cl100k_base", 0.0),
        ("claude-opus-5", "o200k_base", 0.1),
        ("openai/gpt-6", "o200k_base", 0.1),
    ],
)
def test_another_tokenizer_is_given_a_margin(model: str, counter: str, margin: float) -> None:
    """Exact where the vocabulary is public, a tenth more where it is not (seed 004, gap 6), whoever the provider is."""
    for preset in (policies.cut_point, policies.prune_then_summarize):
        policy = preset(model=model)
        assert (policy.counter, policy.margin) == (counter, margin)
    assert policies.keep_last(model=model).counter == "chars4"


@pytest.mark.shows("004-109", "R-004-4")
@pytest.mark.parametrize(
    ("model", "margin"),
    [("openai/not-listed", 0.0), ("router/openai/not-listed", 0.0), ("else/not-listed", 0.1), ("not-listed", 0.1)],
)
def test_an_unlisted_model_of_openai_has_no_margin_in_the_design_that_gives_the_others_one(
    model: str, margin: float
) -> None:
    """Seed 004, gap 6: a tenth more for what is not ``openai/``; its window is that of any unlisted model."""
    policy = policies.prune_then_summarize(model=model)
    assert (policy.margin, policy.max_tokens, policy.output_reserve) == (margin, 16_000, 4_096)
    assert policy.counter == "o200k_base"
    assert policies.cut_point(model=model).margin == 0.1  # the row is for the one preset


def test_a_window_that_answers_share_is_not_promised_to_requests() -> None:
    """Where a provider refuses requests below its window, the limit is the request's and what the policy reserves."""
    limits = limits_of("gpt-5")
    assert (limits.context, limits.max_input) == (400_000, 272_000)
    assert policies.cut_point(model="gpt-5").max_tokens == 272_000
    assert policies.keep_last(model="gpt-5", output_reserve=4_000).max_tokens == 276_000
    assert policies.prune_then_summarize(model="gpt-5").max_tokens == 400_000


@pytest.mark.shows("004-35", "004-95")
def test_what_is_given_goes_before_what_the_model_takes() -> None:
    """`model=` fills in, it never overrides."""
    policy = policies.prune_then_summarize(model="claude-opus-5", max_tokens=50_000, output_reserve=500, margin=0.2)
    assert (policy.max_tokens, policy.output_reserve, policy.margin) == (50_000, 500, 0.2)
    assert policies.cut_point(model=limits_of("gpt-4o", context=64_000)).max_tokens == 64_000


@pytest.mark.shows("R-001-8")
def test_argument_goes_before_environment_goes_before_the_packaged_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a shorter beginning in a nearer file decides; a single figure decides over all of them."""
    named, exported = written(tmp_path, "a.toml", 11_000), written(tmp_path, "b.toml", 12_000, '"gpt-4", "mine"')
    assert limits_of("gpt-4-turbo").context == 128_000
    monkeypatch.setenv(LIMITS_VARIABLE, str(exported))
    assert policies.none(model="gpt-4-turbo").max_tokens == 12_000
    assert limits_of("gpt-4-turbo", file=named).context == 11_000
    assert limits_of("mine", file=named).context == 12_000
    assert limits_of("gpt-4o", file=named).context == 128_000
    assert limits_of("gpt-4-turbo", file=named, context=13_000, max_output=7).max_output == 7


@pytest.mark.parametrize(
    ("text", "field", "told"),
    [
        ("[[limits]]\ncontext = 10", "limits.0.context", "1000"),
        ("[[limits]]\nmodel = ['a']", "limits.0.model", "'models'"),
        ("[[limit]]\n", "limit", "'limits'"),
        ("[[limits]]\ntokenizer = 'o200k'", "limits.0.tokenizer", "'o200k_base'"),
        ("nonsense", "", "not TOML"),
    ],
)
def test_a_wrong_file_is_told_by_name_and_field(tmp_path: Path, text: str, field: str, told: str) -> None:
    """And the nearest name that would have held."""
    file = tmp_path / "limits.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidLimits, match=told) as caught:
        limits_of("gpt-4o", file=file)
    assert (caught.value.file, caught.value.field) == (str(file), field)


def test_a_file_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    """Named, not passed over: its figures were wanted."""
    with pytest.raises(InvalidLimits, match="cannot be read"):
        limits_of("gpt-4o", file=tmp_path / "none.toml")


def test_a_model_that_is_no_name_is_refused() -> None:
    """A file from anywhere may say anything."""
    with pytest.raises(InvalidPolicy) as caught:
        policies.none(model=3)  # type: ignore[arg-type]  # the point of the test
    assert caught.value.field == "model"


def test_limits_are_values() -> None:
    """Equal by their figures."""
    assert limits_of("gpt-4o") == limits_of("openai/gpt-4o")
    assert ModelLimits(context=9_000).room(0) == 9_000
