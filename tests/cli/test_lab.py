from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.project.recording import write_recording
from timeline.cli.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Done


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Return a session of some forty model calls."""
    return write_recording(tmp_path)


def test_lab_compares_policies_in_one_table(run: Callable[..., Done], session: Path) -> None:
    """A row for each policy and limit; costs are shares of the first policy's."""
    done = run("lab", session, "--policy", "none", "--policy", "balanced", "--max-tokens", 12000, "--jobs", 1)
    assert done.code == 0
    head, none, ours = [line for line in done.out.splitlines() if line.startswith(("policy", "none", "balanced"))]
    assert head.split()[:3] == ["policy", "limit", "cost"]
    assert none.split()[1:3] == ["12,000", "1.000"]
    assert ours.split()[1] == "12,000"
    assert float(ours.split()[2]) > 0
    assert "1 file, 1 conversation, 39 model calls" in done.out


def test_a_file_that_is_named_twice_counts_once(run: Callable[..., Done], session: Path) -> None:
    """Patterns overlap, and links lead to the same file."""
    link = session.with_name("link.jsonl")
    link.symlink_to(session)
    done = run("lab", session, session, link, "--policy", "none", "--jobs", 1)
    assert "1 file, 1 conversation, 39 model calls" in done.out


def test_lab_says_which_cache_it_takes_for_a_model_that_it_does_not_know(
    run: Callable[..., Done], session: Path
) -> None:
    """A local model has none, and costs several times as much for it; what was asked for is not said again."""
    named = session.read_text(encoding="utf-8")
    [model] = {
        row["message"]["model"] for line in named.splitlines() if "model" in (row := json.loads(line))["message"]
    }
    session.write_text(named.replace(model, "qwen3:8b"), encoding="utf-8")
    done = run("lab", session, "--policy", "none", "--jobs", 1)
    assert "No price is known of qwen3:8b: the calls count as if Anthropic's cache kept them" in done.out
    assert "--cache none" in done.out
    told = run("lab", session, "--policy", "none", "--jobs", 1, "--cache", "none")
    assert "No price is known" not in told.out


@pytest.mark.shows("004-141", "R-004-34")
@pytest.mark.parametrize(
    ("model", "shares"),
    [
        ("openai/gpt-4o", (2.5, 0.5, 1.0)),
        ("anthropic/claude-3.5-sonnet", (3.0, 0.1, 1.25)),
        ("deepseek/deepseek-chat", (0.27, 0.07 / 0.27, 1.0)),
        ("deepseek/deepseek-v4-pro", (1.32, 1 / 30, 1.0)),
        ("deepseek/deepseek-v4-flash", (0.3, 1 / 50, 1.0)),
        ("google/gemini-2.5-flash", (0.3, 0.1, 1.0)),
    ],
)
def test_lab_gives_what_a_provider_takes_off_for_a_cached_prefix_in_money(
    run: Callable[..., Done], session: Path, model: str, shares: tuple[float, float, float]
) -> None:
    """A recording at each provider's prices: dollars for a million tokens, and the shares for reading and writing."""
    million, read, written = shares
    words = ("lab", session, "--policy", "none", "--max-tokens", 40_000, "--jobs", 1, "--price-as", model, "--json")
    [row] = run(*words).json["policies"]
    assert (row["cost_in"], row["priced"], row["written_long"]) == ("money", True, 0)
    assert row["read"] > 10 * (row["uncached"] + row["written"]) > 0
    tokens = row["read"] * read + row["written"] * written + row["uncached"]
    assert row["money"] == pytest.approx(tokens * million / 1_000_000)


def test_lab_caches_the_prompts_as_asked(run: Callable[..., Done], session: Path) -> None:
    """Without a cache a token costs a token; the runs say how their prompts were kept, as recorded too."""
    words = ("lab", session, "--policy", "none", "--max-tokens", 40_000, "--jobs", 1, "--json")
    assert [one["lifetime"] for one in run(*words).json["runs"]] == ["5m"]
    found = run(*words, "--cache", "none").json
    [row] = found["policies"]
    assert (row["units"], row["read"], row["written"]) == (row["uncached"], 0, 0)
    assert [one["lifetime"] for one in found["runs"]] == ["none"]
    run(*words, "--cache", "2h").fails(Exit.USAGE, "2h")
    run("lab", session, "--validate", "--cache", "1h").fails(Exit.USAGE, "--cache")


def test_lab_leaves_the_same_room_for_the_answer(run: Callable[..., Done], session: Path) -> None:
    """What is left of the limit is in the table; a reserve that leaves no limit is refused."""
    words = ("lab", session, "--policy", "cut_point", "--max-tokens", 9_000, "--jobs", 1)
    [row] = run(*words, "--reserve", 3_000, "--json").json["policies"]
    assert (row["max_tokens"], row["over_limit"]) == (9_000, 0)
    assert 0 < row["largest"] <= 6_000
    lines = [line.split("\t") for line in run(*words, "--reserve", 3_000).out.splitlines()]
    place = lines[2].index("room left")
    assert lines[3][place] == f"{9_000 - row['largest']:,}"
    run(*words, "--reserve", 8_500).fails(Exit.USAGE, "--reserve", "9,000")


def kept_for_an_hour(session: Path, folder: Path) -> Path:
    """Write a session again as if its client had asked for the long time; return the file."""
    rows = [json.loads(line) for line in session.read_text(encoding="utf-8").splitlines()]
    for told in (row["message"]["usage"] for row in rows if "usage" in row.get("message", {})):
        told["cache_creation"] = {"ephemeral_1h_input_tokens": told.get("cache_creation_input_tokens", 0) or 1}
    hour = folder / "hour.jsonl"
    hour.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return hour


def test_lab_says_that_a_recording_of_an_hour_hides_what_a_policy_keeps_so_long(
    run: Callable[..., Done], session: Path, tmp_path: Path
) -> None:
    """Where policies differ in that alone they cost the same, until the recording is taken as one of five minutes."""
    longer = tmp_path / "longer.toml"
    longer.write_text('preset = "balanced"\n[cache_points]\nkept_long = "everything"\n', encoding="utf-8")
    words = ("lab", kept_for_an_hour(session, tmp_path), "--policy", "balanced", "--jobs", 1, "--policy")
    told = "kept for an hour is so under every policy; --cache 5m"
    assert told in run(*words, longer).out
    assert told not in run(*words, longer, "--cache", "5m").out
    assert told not in run(*words, "gentle").out


def test_lab_gives_figures_by_class_where_the_recordings_were_cached_differently(
    run: Callable[..., Done], session: Path, tmp_path: Path
) -> None:
    """In a table of its own, and in the JSON; of one class there is none."""
    hour = kept_for_an_hour(session, tmp_path)
    words = ("lab", session, hour, "--policy", "none", "--policy", "pi", "--max-tokens", 40_000, "--jobs", 1)
    found = run(*words, "--json").json
    assert sorted((row["lifetime"], row["policy"]) for row in found["lifetimes"]) == [
        ("1h", "none"),
        ("1h", "pi"),
        ("5m", "none"),
        ("5m", "pi"),
    ]
    assert {row["lifetime"] for row in found["policies"]} == {""}
    lines = [line.split() for line in run(*words).out.splitlines()]
    assert [line[:3] for line in lines if line[:1] in (["1h"], ["5m"])].count(["1h", "pi", "40,000"]) == 1
    assert run("lab", session, "--jobs", 1, "--json").json["lifetimes"] == []


def test_lab_prints_runs_and_calls_as_json(run: Callable[..., Done], session: Path) -> None:
    """The stable shape: policies, runs, failures; a run's calls where they are asked for."""
    words = ("lab", session, "--policy", "none", "--policy", "pi", "--max-tokens", 40000, "--jobs", 1, "--json")
    table = run(*words).json
    assert [(row["policy"], row["max_tokens"]) for row in table["policies"]] == [("none", 40_000), ("pi", 40_000)]
    assert table["policies"][0]["relative"] == 1.0
    assert table["failures"] == []
    assert [one["file"] for one in table["runs"]] == [str(session)] * 2
    assert {type(one["calls"]) for one in table["runs"]} == {int}
    rows = run(*words, "--calls").json["runs"][0]["rows"]
    assert [row["number"] for row in rows] == list(range(1, 40))


def test_lab_shows_the_calls_at_which_policies_differ(run: Callable[..., Done], session: Path) -> None:
    """From the first policy, the largest difference first, with the reason; nothing where all costs are the same."""
    words = ("lab", session, "--policy", "none", "--policy", "balanced", "--max-tokens", 9000, "--jobs", 1, "--calls")
    done = run(*words)
    lines = done.out.splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("balanced at 9,000: "))
    assert lines[place + 1].split()[:5] == ["recording", "call", "at", "read", "none"]
    told = run(*words, "--json").json["differences"]
    assert [one["policies"] for one in told] == [["none", "balanced"]] * len(told)
    assert len(told) == 20
    assert [abs(one["money"]) for one in told] == sorted((abs(one["money"]) for one in told), reverse=True)
    assert [int(line.split()[1]) for line in lines[place + 2 : place + 22]] == [one["number"] for one in told]
    assert lines[place + 22].startswith("… and ")
    same = run("lab", session, "--policy", "none", "--policy", "pi", "--jobs", 1, "--calls")
    assert "pi at 200,000: the same cost at every call" in same.out
    assert run("lab", session, "--policy", "none", "--jobs", 1, "--json").json["differences"] == []


def test_lab_writes_a_page(run: Callable[..., Done], session: Path, tmp_path: Path) -> None:
    """Beside the table or the JSON; where it is goes to standard error."""
    file = tmp_path / "report.html"
    done = run("lab", session, "--policy", "none", "--jobs", 1, "--html", file)
    assert "39 model calls" in done.out
    assert done.err == f"timeline: the report is in {file}\n"
    first = file.read_text(encoding="utf-8")
    assert first.startswith("<!doctype html>")
    assert run("lab", session, "--policy", "none", "--jobs", 1, "--html", file, "--json").json["failures"] == []


def test_lab_writes_the_page_though_nobody_reads_the_table(session: Path, tmp_path: Path, command: list[str]) -> None:
    """`timeline lab … --html report.html | head -1` leaves the page behind: it took long to work out."""
    file = tmp_path / "report.html"
    words = [*command, "lab", str(session), "--policy", "none", "--jobs", "1", "--html", str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == Exit.PIPE
    assert file.exists()


def test_lab_writes_no_page_where_there_is_nothing_to_say_or_no_place(
    run: Callable[..., Done], session: Path, tmp_path: Path
) -> None:
    """A missing folder is told before anything is replayed."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nothing", encoding="utf-8")
    file = tmp_path / "report.html"
    run("lab", bad, "--policy", "none", "--jobs", 1, "--html", file).fails(Exit.USAGE, "bad.jsonl")
    assert not file.exists()
    run("lab", session, "--jobs", 1, "--html", tmp_path / "nowhere" / "r.html").fails(Exit.USAGE, "folder", "nowhere")
    run("lab", session, "--policy", "none", "--jobs", 1, "--html", tmp_path).fails(Exit.USAGE, "")


def test_lab_takes_what_is_named_twice_once(run: Callable[..., Done], session: Path) -> None:
    """A policy is not summed up with itself."""
    words = ("--policy", "none", "--policy", "none", "--max-tokens", 9000, "--max-tokens", 9000)
    [row] = run("lab", session, *words, "--jobs", 1, "--json").json["policies"]
    assert row["calls"] == 39


def test_lab_goes_on_where_it_was(run: Callable[..., Done], session: Path, tmp_path: Path) -> None:
    """Results that are kept are not worked out again."""
    words = ("lab", session, "--jobs", 1, "--resume", tmp_path / "kept", "--json")
    first = run(*words).json
    for file in (tmp_path / "kept").iterdir():
        told = json.loads(file.read_text(encoding="utf-8"))
        told["runs"][0]["totals"]["seconds"] = 50.0
        file.write_text(json.dumps(told), encoding="utf-8")
    again = run(*words).json
    assert [row["seconds"] for row in again["policies"]] == [50.0, 50.0]
    assert [row["units"] for row in again["policies"]] == [row["units"] for row in first["policies"]]


def test_lab_validates_its_prices(run: Callable[..., Done], session: Path) -> None:
    """Predicted and recorded stand side by side, with what is off."""
    done = run("lab", "--validate", session)
    assert done.out.splitlines()[0].split()[:2] == ["conversation", "calls"]
    found = run("lab", "--validate", session, "--json").json
    assert found["total"]["calls"] == found["conversations"][0]["calls"] == 39
    assert set(found["conversations"][0]["errors"]) == {"read", "written", "units"}


def test_lab_shows_the_calls_that_its_prices_miss(run: Callable[..., Done], session: Path) -> None:
    """Each with what was predicted and reported, and the likely cause: the calls of the JSON."""
    [conversation] = run("lab", "--validate", session, "--json").json["conversations"]
    lines = [line.split() for line in run("lab", "--validate", session, "--calls").out.splitlines()]
    place = next(n for n, line in enumerate(lines) if line[-2:] == ["likely", "cause"])
    expected = [
        [
            "flashcards",
            *(f"{missed[name]:,}" for name in ("number", "context", "predicted", "recorded")),
            f"{missed['idle_seconds']:.0f}",
            *missed["cause"].split("_"),
        ]
        for missed in conversation["missed"]
    ]
    assert expected
    assert lines[place + 1 : place + 1 + len(expected)] == expected
    assert "context, read, recorded" not in run("lab", "--validate", session).out


@pytest.mark.parametrize("option", [("--policy", "none"), ("--main-only",), ("--html", "x.html")])
def test_lab_has_no_use_for_a_policy_where_it_validates(
    run: Callable[..., Done], session: Path, option: tuple[str, ...]
) -> None:
    """What would change nothing is refused rather than passed over."""
    run("lab", "--validate", session, *option).fails(Exit.USAGE, "--validate", option[0])


def test_lab_says_where_nothing_can_be_replayed_or_compared(
    run: Callable[..., Done], session: Path, tmp_path: Path
) -> None:
    """A conversation that no model was called in; alone it is wrong usage, beside others it is only named."""
    asked = tmp_path / "asked.json"
    asked.write_text('[{"role": "user", "content": "hello"}]', encoding="utf-8")
    run("lab", asked, "--policy", "none", "--jobs", 1).fails(Exit.USAGE, "asked.json", "no model call")
    run("lab", "--validate", asked).fails(Exit.USAGE, "asked.json", "usage")
    done = run("lab", asked, session, "--policy", "none", "--jobs", 1)
    assert (done.code, done.err.count("\n")) == (Exit.OK, 1)
    assert "1 file, 1 conversation, 39 model calls" in done.out
    assert run("lab", "--validate", asked, session).code == Exit.OK


def test_lab_reports_a_bad_file_and_runs_the_others(run: Callable[..., Done], session: Path, tmp_path: Path) -> None:
    """One line on standard error; the code says that something was not read."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nothing", encoding="utf-8")
    done = run("lab", bad, session, "--policy", "none", "--jobs", 1)
    assert (done.code, done.err.count("\n")) == (Exit.USAGE, 1)
    assert "bad.jsonl" in done.err
    assert "39 model calls" in done.out
    assert run("lab", "--validate", bad).code == Exit.USAGE


def test_lab_refuses_what_it_cannot_use_in_a_line(run: Callable[..., Done], session: Path, tmp_path: Path) -> None:
    """A policy that nobody has, prices that do not hold, and a model that has none."""
    run("lab", session, "--policy", "gose").fails(Exit.USAGE, "gose", "goose")
    prices = tmp_path / "prices.toml"
    prices.write_text("prices = 1", encoding="utf-8")
    run("lab", session, "--prices", prices).fails(Exit.USAGE, "prices.toml")
    run("lab", session, "--price-as", "claude-opus-55").fails(Exit.USAGE, "claude-opus-55", "claude-opus-5-5")


@pytest.mark.parametrize("scheduler", ["nowhere", "foo://127.0.0.1:1", "127.0.0.1:one", "127.0.0.1:1"])
def test_lab_names_a_cluster_that_it_cannot_reach(run: Callable[..., Done], session: Path, scheduler: str) -> None:
    """A mistyped address was a bug to report, and a scheduler that is not there a disk to check."""
    import dask.distributed  # noqa: PLC0415 - it takes long; and in `set` its settings would go with those set there

    with dask.config.set({"distributed.comm.timeouts.connect": "0.1s"}):
        done = run("lab", session, "--max-tokens", 12000, "--dask", scheduler)
    done.fails(Exit.USAGE, f"--dask '{scheduler}': no cluster is reached", "dask scheduler")


def test_lab_says_what_compares_with_nothing(run: Callable[..., Done], session: Path) -> None:
    """Refused calls, and a fixed part that was made smaller, are said below the table."""
    done = run(
        "lab", session, "--policy", "none", "--policy", "prune_then_summarize", "--max-tokens", 9000, "--jobs", 1
    )
    assert "compares only the other calls with none" in done.out
    assert "itself refuses calls" not in done.out
    first = run("lab", session, "--policy", "prune_then_summarize", "--policy", "none", "--max-tokens", 9000)
    assert "prune_then_summarize itself refuses calls" in first.out
    fixed = run("lab", session, "--policy", "none", "--fixed-tokens", 5000, "--max-tokens", 6000, "--jobs", 1)
    assert "would leave no room" in fixed.out


def test_a_report_never_replaces_a_database(
    run: Callable[..., Done], session: Path, simulated: dict[str, Any], db: Path
) -> None:
    """A database that is named by mistake stays what it is."""
    before = run("show", simulated["id"]).out
    run("lab", session, "--policy", "none", "--jobs", 1, "--html", db).fails(Exit.USAGE, db.name, "never replaces")
    assert run("show", simulated["id"]).out == before
