"""`--summarize`: the one option with which the command line calls a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli import sessions
from tests.providers import FakeProvider, Trouble
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY")


@pytest.fixture
def imported(run: Callable[..., Done], recording: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Import the small session, and take every provider's key away."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    run("import", recording)
    return run


@pytest.mark.parametrize(
    ("named", "key", "base"),
    [
        ("openai:small-1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("anthropic:small-1", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("google:small-1", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
    ],
)
def test_a_named_model_writes_the_summary(
    imported: Callable[..., Done], named: str, key: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key and address come from the variables that the provider's SDK reads."""
    with FakeProvider("- written by a model") as provider:
        monkeypatch.setenv(key, "none")
        monkeypatch.setenv(base, provider.openai_url if named.startswith("openai") else provider.url)
        done = imported("compact", sessions.SESSION, "--max-tokens", 1200, "--summarize", named, "--json")
    assert done.code == Exit.OK, done.err
    assert provider.asked
    shown = imported("show", sessions.SESSION, "--json").json
    summary = next(row for row in shown if row["type"] == "conv.range.summary")
    assert "- written by a model" in imported("read", sessions.SESSION, summary["path"]).out


def test_a_dry_run_may_ask_a_model_too_and_nothing_else_does(
    imported: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the option no model is called, whatever keys are set."""
    with FakeProvider("- written by a model") as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        words = ("render", sessions.SESSION, "--max-tokens", 1200, "--wire", "openai_chat")
        assert "written by a model" not in imported(*words).out
        assert provider.asked == []
        assert "written by a model" in imported(*words, "--summarize", "openai:small-1").out


def test_a_model_that_fails_leaves_it_to_the_extractive_summary(
    imported: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command goes on under a policy that falls back."""
    with FakeProvider(Trouble("no_model")) as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.openai_url)
        done = imported("compact", sessions.SESSION, "--max-tokens", 1200, "--summarize", "openai:small-1")
    assert done.code == Exit.OK, done.err
    assert provider.asked


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("small-1", ("'small-1'", "openai:MODEL")),
        ("openai:", ("openai:MODEL",)),
        ("mistral:large", ("anthropic:MODEL", "google:MODEL", "openai:MODEL")),
        ("openai:small-1", ("OPENAI_API_KEY",)),
        ("anthropic:small-1", ("ANTHROPIC_API_KEY",)),
        ("google:small-1", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(
    imported: Callable[..., Done], named: str, words: tuple[str, ...]
) -> None:
    """Before anything is opened or called."""
    imported("compact", sessions.SESSION, "--summarize", named).fails(Exit.USAGE, *words)


def test_a_missing_sdk_is_told_by_its_extra(imported: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    monkeypatch.setitem(sys.modules, "openai", None)
    done = imported("compact", sessions.SESSION, "--summarize", "openai:small-1")
    done.fails(Exit.USAGE, "timeline-engine[openai]")
