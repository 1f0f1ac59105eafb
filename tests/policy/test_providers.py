"""The limit and the trigger of each provider: rows of one table, which is data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.scenes import turn
from timeline import Timeline, policies
from timeline.policy.limits import LIMITS_VARIABLE, packaged_limits
from timeline.policy.model import Never, Overdrawn, OverShare, OverThreshold, OverUtilization
from timeline.store.memory import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

OWN: Final = """
[[providers]]
names = ["openai"]
trigger = 0.7

[[providers]]
names = ["groq"]
context = 20_000
max_output = 3_000
trigger = 0.6

[[providers]]
names = ["gemini"]
models = ["gemini"]
presets = ["keep_last"]
context = 500_000
trigger = 0.5

[[limits]]
models = ["gpt-5"]
context = 100_000
trigger = 0.9
"""
"""A table of an application that calls several providers."""


@pytest.fixture(autouse=True)
def _no_file_of_somebodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMITS_VARIABLE, raising=False)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the application's table, and name it."""
    file = tmp_path / "limits.toml"
    file.write_text(OWN, encoding="utf-8")
    monkeypatch.setenv(LIMITS_VARIABLE, str(file))
    return file


@pytest.mark.shows("000-10", "R-000-4")
@pytest.mark.parametrize(
    ("model", "limit"),
    [
        ("openai/gpt-9", 128_000),
        ("deepseek:deepseek-chat", 128_000),
        ("groq/moonshotai/kimi-k2", 131_072),
        ("google/gemini-9-flash", 1_000_000),
        ("gemini-9-flash", 1_000_000),
        ("nobodys-model", 128_000),
    ],
)
def test_the_priority_chain_has_a_limit_and_a_trigger_for_each_provider(model: str, limit: int) -> None:
    """Of a model without an entry of its own; the trigger is 85 % for all of them."""
    policy = policies.priority_chain(model=model)
    assert (policy.max_tokens, policy.trigger) == (limit, OverShare(share=0.85))


@pytest.mark.usefixtures("own")
@pytest.mark.shows("000-10", "R-000-4")
async def test_the_same_conversation_is_compacted_for_one_provider_and_not_for_another() -> None:
    """60,000 tokens of 80,000 are above OpenAI's 70 % and Groq's 60 %, and below the 85 % that DeepSeek has."""
    store, taken = MemoryStore(), {}
    for model in ("openai/gpt-4o", "deepseek/deepseek-chat", "groq/kimi-k2"):
        policy = policies.priority_chain(model=model, max_tokens=80_000)
        timeline = await Timeline.open(store, model.replace("/", "-"), policy=policy)
        await timeline.append(*[block for _ in range(30) for block in turn(1_000, asked=1_000)])
        context = await timeline.render()
        taken[model] = (context.account.trigger, bool(context.decisions))
    assert taken == {
        "openai/gpt-4o": (56_000, True),
        "deepseek/deepseek-chat": (68_000, False),
        "groq/kimi-k2": (48_000, True),
    }


@pytest.mark.usefixtures("own")
def test_a_providers_trigger_is_for_models_with_an_entry_too() -> None:
    """The window is the model's, the trigger the provider's, unless the model's entry has one."""
    known, named = policies.priority_chain(model="openai/gpt-4o"), policies.priority_chain(model="openai/gpt-5")
    assert (known.max_tokens, known.trigger) == (128_000, OverShare(share=0.7))
    assert (named.max_tokens, named.trigger) == (100_000, OverShare(share=0.9))


@pytest.mark.usefixtures("own")
def test_a_row_gives_its_share_to_the_trigger_that_a_policy_has() -> None:
    """A policy that compacts without a share gets one of the limit; one that never compacts goes on as it is."""
    taken = {
        preset.__name__: preset(model="groq/kimi-k2").trigger
        for preset in (policies.keep_last, policies.keep_ratio, policies.prune_then_summarize, policies.none)
    }
    assert taken == {
        "keep_last": OverThreshold(share=0.6, output_reserve=4_000, safety_buffer=5_000),
        "keep_ratio": OverUtilization(share=0.6),
        "prune_then_summarize": OverShare(share=0.6),
        "none": Never(),
    }
    assert policies.prune_then_summarize(model="mistral/large").trigger == Overdrawn()
    assert policies.prune_then_summarize(model="groq/kimi-k2").output_reserve == 3_000


@pytest.mark.usefixtures("own")
def test_a_row_for_a_preset_is_for_that_one_alone() -> None:
    """Each published design carries figures of its own."""
    assert policies.keep_last(model="gemini-9").max_tokens == 500_000
    assert policies.keep_ratio(model="gemini-9").max_tokens == 200_000


@pytest.mark.usefixtures("own")
def test_the_outermost_name_is_the_provider() -> None:
    """A model of one maker that another one serves has the limit of that one."""
    assert policies.priority_chain(model="groq/openai/gpt-oss-120b").trigger == OverShare(share=0.6)
    assert policies.priority_chain(model="gateway/groq/openai/gpt-oss-120b").max_tokens == 20_000


@pytest.mark.usefixtures("own")
def test_a_trigger_that_is_given_goes_before_the_providers() -> None:
    """`model=` fills in, it never overrides."""
    policy = policies.priority_chain(model="groq/kimi-k2", trigger=0.5, max_tokens=64_000)
    assert (policy.max_tokens, policy.trigger) == (64_000, OverShare(share=0.5))


@pytest.mark.usefixtures("own")
def test_a_policy_file_takes_its_models_providers_figures(tmp_path: Path) -> None:
    """With a preset or without."""
    file = tmp_path / "mine.toml"
    file.write_text('preset = "keep_ratio"\nmodel = "groq/kimi-k2"\n', encoding="utf-8")
    assert policies.load(file).trigger == OverUtilization(share=0.6)
    file.write_text('name = "mine"\nmodel = "groq/kimi-k2"\n', encoding="utf-8")
    assert (policies.load(file).max_tokens, policies.load(file).trigger) == (20_000, OverShare(share=0.6))


def test_every_row_of_the_table_says_when_and_where_it_was_read() -> None:
    """Figures without a date cannot be renewed."""
    rows = packaged_limits().providers
    assert {name for row in rows for name in row.names} >= {"openai", "deepseek", "groq", "google"}
    assert [row for row in rows if row.date is None or not row.source or not row.names] == []
