from __future__ import annotations

import ast
import json
import sys
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.depth import at_night, sampled
from tests.independent import calculation
from tests.independent.agreement import LIMITS, Tried, agreements, together
from tests.independent.recordings import read, tokens
from tests.project.recording import TURNS, write_recording
from tests.recorded import needs_recordings, recorded
from timeline.tokens import get_counter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from timeline.usage import CacheKind

NONE_WITHIN, CUTS_WITHIN = 0.005, 0.02
"""Shares of the cost by which the two may differ: where nothing is decided, and where a policy decides."""
FIXED: Final = 4_000
"""Tokens of system prompt and tools of a made session."""
COLD: Final = timedelta(minutes=20)
HOUR: Final = {"cache_creation_input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 100}}
"""Usage of a call that writes for an hour."""


@needs_recordings
@pytest.mark.parametrize("limit", [200_000, 32_000])
def test_the_lab_and_the_calculation_agree_on_what_no_policy_costs(limit: int) -> None:
    """Where all is sent there are sizes, cache and prices alone; at 32,000 the fixed part is cut down besides."""
    assert off(recorded("claude-code/*.jsonl"), Tried(limit)) <= NONE_WITHIN


@needs_recordings
@pytest.mark.parametrize("limit", [pytest.param(n, marks=at_night if n == LIMITS[1] else ()) for n in LIMITS])
def test_the_lab_and_the_calculation_agree_on_what_the_preset_cut_point_costs(limit: int) -> None:
    """The preset hides what is old where the cache is cold, and cuts above 0.9 of the limit."""
    assert off(recorded("claude-code/*.jsonl"), Tried(limit, 0.2)) <= CUTS_WITHIN


@needs_recordings
@pytest.mark.parametrize("keep", [pytest.param(0.1, marks=at_night), 0.4])
def test_the_lab_and_the_calculation_agree_on_cut_points_that_keep_another_share(keep: float) -> None:
    """The agreement is not one that was fitted to the preset's figures."""
    assert off(recorded("claude-code/*.jsonl"), Tried(100_000, keep)) <= CUTS_WITHIN


@pytest.mark.parametrize("idle", [timedelta(0), COLD])
@pytest.mark.parametrize("limit", [60_000, 6_000])
def test_they_agree_on_what_no_policy_costs_a_made_session(tmp_path: Path, limit: int, idle: timedelta) -> None:
    """Without recordings anybody can see it: cache warm and cold, fixed part whole and cut down."""
    assert off([made(tmp_path, idle)], Tried(limit)) <= NONE_WITHIN


@pytest.mark.parametrize("idle", [COLD, timedelta(hours=2)])
def test_they_agree_where_the_cache_is_kept_for_an_hour(tmp_path: Path, idle: timedelta) -> None:
    """Pauses within the hour cost nothing, longer ones do, and what is written is dearer."""
    assert off([made(tmp_path, idle, HOUR)], Tried(60_000)) <= NONE_WITHIN


@pytest.mark.parametrize("idle", [timedelta(0), COLD])
@pytest.mark.parametrize("cache", ["5m", "1h", "none"])
def test_they_agree_under_each_kind_of_cache(tmp_path: Path, cache: CacheKind, idle: timedelta) -> None:
    """Asked for with ``--cache``; automatic caches read in steps that are a share of such small contexts."""
    assert off([made(tmp_path, idle)], Tried(60_000, cache=cache)) <= NONE_WITHIN


@needs_recordings
@sampled
@pytest.mark.parametrize("cache", ["5m", "1h", *(pytest.param(name, marks=at_night) for name in ("automatic", "none"))])
def test_they_agree_on_recordings_under_each_kind_of_cache(cache: CacheKind) -> None:
    """At the smallest limit, where the fixed part is cut down and sizes matter most."""
    assert off(recorded("claude-code/*.jsonl"), Tried(32_000, cache=cache)) <= NONE_WITHIN


@pytest.mark.parametrize("limit", [40_000, 20_000])
def test_they_agree_on_what_cut_points_cost_a_made_session(tmp_path: Path, limit: int) -> None:
    """Without recordings anybody can see it: one cut in a session, and several."""
    assert off([made(tmp_path)], Tried(limit, 0.2)) <= CUTS_WITHIN


def test_they_agree_on_what_hiding_saves_a_made_session(tmp_path: Path) -> None:
    """What stands for a hidden block weighs more where blocks are small, so the saving is compared, not the cost."""
    sessions = [made(tmp_path, COLD)]
    none, hiding = together(agreements(sessions, [Tried(60_000), Tried(60_000, 0.2)]))
    assert hiding.calculated / none.calculated == pytest.approx(hiding.lab / none.lab, abs=CUTS_WITHIN)


@pytest.mark.parametrize("text", ["prose", "code", "listing", "JSON"])
def test_its_count_of_a_text_is_about_that_of_the_vocabulary(text: str) -> None:
    """A first message is measured by no growth, so its size is a count alone, and prose weighs less than listings."""
    repository = Path(__file__).parents[2]
    code = (repository / "timeline/lab/replay.py").read_text(encoding="utf-8")
    said = {
        "prose": (repository / "README.md").read_text(encoding="utf-8"),
        "code": code,
        "listing": "\n".join(f"{number:6}\t{line}" for number, line in enumerate(code.splitlines(), 1)),
        "JSON": json.dumps({"path": "timeline/lab/replay.py", "old_string": code[:3_000], "new_string": code[3_000:]}),
    }[text]
    assert tokens(said) == pytest.approx(get_counter("o200k_base").count(said), rel=0.1)


def test_a_signed_thought_counts_by_its_signature(tmp_path: Path) -> None:
    """What is readable of it may be a short version of what the provider is sent back."""
    row = {"type": "assistant", "uuid": "1", "timestamp": "2026-01-01T00:00:00Z"}
    thought = {"type": "thinking", "thinking": "Short.", "signature": "c2ln" * 400}
    message = {"id": "m", "model": "claude-opus-4-5", "usage": {}, "content": [thought]}
    file = tmp_path / "session.jsonl"
    file.write_text(json.dumps({**row, "message": message}), encoding="utf-8")
    [conversation] = read(file)
    assert [block.own for block in conversation.blocks] == [300]


def test_the_calculation_imports_nothing_of_the_project() -> None:
    """Its modules import each other and the standard library, so that no fault can be shared."""
    todo, seen = ["tests.independent.calculation", "tests.independent.recordings"], set[str]()
    while todo:
        name = todo.pop()
        seen.add(name)
        found = imported(Path(calculation.__file__).with_name(f"{name.rpartition('.')[2]}.py"))
        own = {one for one in found if one.startswith("tests.independent.")}
        assert {one.partition(".")[0] for one in found - own} <= sys.stdlib_module_names
        todo += own - seen
    assert seen >= {f"tests.independent.{part}" for part in ("recordings", "sizes", "cache", "hiding", "cutting")}


def off(files: Sequence[Path], tried: Tried) -> float:
    """Return the share by which the two differ over all recordings."""
    (whole,) = together(agreements(files, [tried]))
    return abs(whole.off)


def made(folder: Path, idle: timedelta = timedelta(0), usage: Mapping[str, Any] = MappingProxyType({})) -> Path:
    """Write a session of six turns whose contexts grow with what is said: a token for four characters."""
    prompts = (*TURNS, *(f"{prompt} Say what you changed." for prompt in TURNS))
    file = write_recording(folder, dict.fromkeys(prompts, 20), idle=idle)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    said = 0
    for row in rows:
        if "usage" in row["message"]:
            row["message"]["usage"] |= {**usage, "cache_read_input_tokens": FIXED + said // 4}
        said += len(json.dumps(row["message"]["content"]))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def imported(module: Path) -> set[str]:
    """Return the names of the modules that one imports."""
    names = set[str]()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom():
                names.add(node.module or "")
    return names
