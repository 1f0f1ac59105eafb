from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest
from distributed import LocalCluster

from tests.project.recording import write_recording
from timeline import policies
from timeline.errors import MissingExtra
from timeline.lab.cache_files import OutcomeFolder
from timeline.lab.results import together
from timeline.lab.runner import dask_executor, plan, run, shares, way_to_begin
from timeline.lab.work import Begun, Options, Outcome, Work, carry_out, carry_out_all, key_of
from timeline.policy.files import find_policy

if TYPE_CHECKING:
    from timeline.lab.results import RunResult


@pytest.fixture
def works(tmp_path: Path) -> list[Work]:
    """Return four units: a file under two policies at two limits."""
    tried = [
        (name, find_policy(name, max_tokens=limit)) for limit in (20_000, 12_000) for name in ("none", "cut_point")
    ]
    return plan([str(write_recording(tmp_path))], tried, Options())


def untimed(outcomes: list[Outcome]) -> list[RunResult]:
    """Return the runs without how long they took."""
    runs = [one for outcome in outcomes for one in outcome.runs]
    return [one.model_copy(update={"totals": one.totals.model_copy(update={"seconds": 0.0})}) for one in runs]


def test_processes_find_what_one_process_finds_in_the_order_of_the_work(works: list[Work]) -> None:
    """Which unit is done first, and where, makes no difference."""
    done: list[int] = []
    alone = run(works, jobs=1)
    together_ = run(works, jobs=2, on_done=done.append)
    assert untimed(together_) == untimed(alone)
    assert [(one.policy, one.max_tokens) for one in untimed(alone)] == [
        (work.name, work.policy.max_tokens) for work in works
    ]
    assert done == [0, 1, 2, 3, 4]


def several(folder: Path, files: int) -> list[Work]:
    """Return the units of so many files under two policies."""
    made: list[str] = []
    for number in range(files):
        (inside := folder / str(number)).mkdir()
        made.append(str(write_recording(inside, {f"Do part {number}.": 6, "Go on.": 5 + number})))
    return plan(made, [(name, find_policy(name, max_tokens=12_000)) for name in ("none", "balanced")], Options())


@pytest.mark.parametrize(
    ("files", "jobs", "expected"),
    [
        (4, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (3, 2, [[0], [1], [2, 3], [4, 5]]),
        (2, 2, [[0, 1], [2, 3]]),
        (2, 3, [[0], [1], [2], [3]]),
        (1, 1, [[0, 1]]),
    ],
)
def test_a_process_gets_all_units_of_a_file_unless_others_would_wait_for_it(
    tmp_path: Path, files: int, jobs: int, expected: list[list[int]]
) -> None:
    """It reads the file and replays its beginning once; what is left over is divided by unit."""
    assert sorted(shares(dict(enumerate(several(tmp_path, files))), jobs)) == expected


def test_a_file_that_changes_meanwhile_is_one_file_for_all_policies(works: list[Work]) -> None:
    """Policies are compared on the same calls, though the client that writes the recording goes on."""
    told = Path(works[0].file).read_text(encoding="utf-8")
    outcomes = []
    for outcome in carry_out_all(works[:2]):
        outcomes.append(outcome)
        Path(works[0].file).write_text(told[: len(told) // 2], encoding="utf-8")
    assert outcomes[0].runs[0].totals.calls == outcomes[1].runs[0].totals.calls


def test_units_that_go_on_where_others_left_find_what_each_finds_alone(works: list[Work]) -> None:
    """A process gets a divided file's units one by one, in whatever order, and its threads some at the same time."""
    begun = Begun()
    apart = [outcome for work in reversed(works) for outcome in carry_out_all([work], begun)]
    with ThreadPoolExecutor(2) as threads:
        together_ = [*threads.map(lambda work: next(carry_out_all([work], begun)), works)]
    alone = untimed([carry_out(work) for work in works])
    assert untimed(apart[::-1]) == untimed(together_) == alone


def test_what_takes_longest_begins_first(works: list[Work], tmp_path: Path) -> None:
    """Begun at the end, one long share would keep a process busy while the others have nothing to do."""
    assert shares(dict(enumerate(works)), 1) == [[2, 3, 0, 1]]  # the lower limit
    assert shares(dict(enumerate(works)), 2) == [[2], [3], [0], [1]]
    longer = shares(dict(enumerate(several(tmp_path, 4))), 2)
    assert longer == [[6, 7], [4, 5], [2, 3], [0, 1]]


def test_the_work_has_begun_before_progress_is_reported(works: list[Work]) -> None:
    """A progress bar has a thread, and a process that is forked beside one would inherit the locks that it holds."""
    begun: list[int] = []
    seen: list[int] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args: Any, **named: Any) -> Any:
            begun.append(len(begun))
            return super().submit(*args, **named)

    with Counting(1) as executor:
        run(works[:1], executor=executor, on_done=lambda _: seen.append(len(begun)))
    assert seen == [1, 1]


def test_a_process_with_another_thread_is_not_forked() -> None:
    """The fork would have the thread's locks, and no thread that opens them."""
    done = Event()
    other = Thread(target=done.wait)
    other.start()
    method = way_to_begin().get_start_method()
    done.set()
    other.join()
    assert method == "spawn"


JOINED = """
from threading import Thread
from timeline.lab.runner import way_to_begin

def begun():
    thread = Thread(target=int)
    thread.start()
    thread.join()
    return way_to_begin().get_start_method()

print({begun() for _ in range(500)})
"""


def test_a_thread_that_has_ended_does_not_keep_a_process_from_being_forked() -> None:
    """The kernel lists it for a moment after it was joined; each spawned process would import and read all anew."""
    ended = subprocess.run([sys.executable, "-c", JOINED], capture_output=True, text=True, check=True)
    assert ended.stdout == ("{'fork'}\n" if sys.platform == "linux" else "{'spawn'}\n")


def test_files_that_are_shared_out_whole_give_what_one_process_finds(tmp_path: Path) -> None:
    """Outcomes come in the order of the work, whichever file is done first."""
    works = several(tmp_path, 4)
    assert untimed(run(works, jobs=2)) == untimed(run(works, jobs=1))


def test_a_dask_cluster_finds_the_same(works: list[Work]) -> None:
    """The very unit of work runs on Dask's workers."""
    cluster_of: Any = LocalCluster  # it has no types
    local = cluster_of(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
    with local as cluster, dask_executor(cluster) as executor:
        found = run(works, executor=executor)
    assert untimed(found) == untimed(run(works, jobs=1))


def test_without_dask_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for a cluster learns what to install."""
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"timeline-engine\[dask\]"), dask_executor("tcp://127.0.0.1:1"):
        pass


def test_what_was_kept_is_not_run_again(works: list[Work], tmp_path: Path) -> None:
    """An interrupted comparison goes on; the outcome in the folder is what comes back."""
    folder = tmp_path / "kept"
    first = run(works[:1], jobs=1, kept=OutcomeFolder(folder))
    [file] = folder.iterdir()
    told = json.loads(file.read_text(encoding="utf-8"))
    told["runs"][0]["totals"]["seconds"] = 77.0
    file.write_text(json.dumps(told), encoding="utf-8")
    again = run(works, jobs=1, kept=OutcomeFolder(folder))
    assert again[0].runs[0].totals.seconds == 77.0
    assert untimed(again[:1]) == untimed(first)
    assert len(list(folder.iterdir())) == len(works)


def test_only_its_owner_may_read_what_was_kept(works: list[Work], tmp_path: Path) -> None:
    """It names the files of a recording; what a killed process began is in nobody's way."""
    [outcome] = run(works[:1], jobs=1)
    kept = OutcomeFolder(tmp_path / "kept")
    kept.keep(works[0], outcome)
    [file] = (tmp_path / "kept").iterdir()
    file.rename(file.with_suffix(f".{os.getpid()}.draft"))
    kept.keep(works[0], outcome)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "kept").iterdir()] == [0o600]


@pytest.mark.parametrize("change", ["policy", "file", "options", "damaged"])
def test_what_has_changed_is_run_again(works: list[Work], tmp_path: Path, change: str) -> None:
    """Another policy, other bytes, other options, or an outcome that cannot be read: nothing stale comes back."""
    folder, work = tmp_path / "kept", works[1]
    run([work], jobs=1, kept=OutcomeFolder(folder))
    [file] = folder.iterdir()
    if change == "policy":
        work = work.model_copy(update={"policy": policies.cut_point(max_tokens=19_000)})
    elif change == "file":
        with (tmp_path / "session.jsonl").open("a", encoding="utf-8") as session:
            session.write("\n")
    elif change == "options":
        work = work.model_copy(update={"options": Options(fixed=500)})
    else:
        file.write_text("{", encoding="utf-8")
    assert OutcomeFolder(folder).find(work) is None


def test_a_kept_outcome_bears_the_names_of_whoever_asks(works: list[Work], tmp_path: Path) -> None:
    """The same policy under another name, and the same file at another place, are the same work."""
    kept = OutcomeFolder(tmp_path / "kept")
    run(works[:1], jobs=1, kept=kept)
    found = kept.find(works[0].model_copy(update={"name": "mine"}))
    assert found is not None
    assert found.runs[0].policy == "mine"


def test_a_file_that_is_no_recording_is_a_failure_and_is_not_kept(works: list[Work], tmp_path: Path) -> None:
    """The others are carried out, and the failure says which error it was."""
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nothing", encoding="utf-8")
    wrong = [works[0].model_copy(update={"file": str(file)}) for file in (bad, tmp_path / "none.jsonl")]
    outcomes = run([*wrong, works[1]], jobs=1, kept=OutcomeFolder(tmp_path / "kept"))
    assert [outcome.failure and outcome.failure.type for outcome in outcomes] == ["ImportFailed", "ImportFailed", None]
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_an_outcome_of_a_database_is_found_until_the_database_is_written_to(works: list[Work], tmp_path: Path) -> None:
    """Also by another program, into the write-ahead log alone; the database itself is not read for that."""
    file = tmp_path / "sessions.db"
    work = works[0].model_copy(update={"file": str(file)})
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
        before = key_of(work)
        assert key_of(work) == before
        connection.execute("INSERT INTO t VALUES (1)")
        assert key_of(work) != before


def test_a_price_may_be_another_models(works: list[Work]) -> None:
    """What the same calls would cost elsewhere."""
    there = works[0].model_copy(update={"options": Options(price_as="claude-opus-5-5")})
    here, there_ = carry_out(works[0]).runs[0].totals, carry_out(there).runs[0].totals
    assert (there_.priced, there_.calls) == (True, here.calls)
    assert there_.units < here.units


def test_runs_are_summed(works: list[Work]) -> None:
    """Counts add up, causes too, means are those of all calls."""
    one, other = (carry_out(work).runs[0].totals for work in works[:2])
    both = together([one, other])
    assert (both.runs, both.calls, both.units) == (2, one.calls + other.calls, one.units + other.units)
    assert both.mean_visible == pytest.approx((one.visible + other.visible) / both.calls)


def test_a_result_reads_back_from_its_own_json(works: list[Work]) -> None:
    """What is kept, and what a report is made of, is the whole result."""
    outcome = carry_out(works[1])
    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome
    dumped = outcome.runs[0].dump(calls=True)
    assert len(dumped["rows"]) == dumped["rows"][-1]["number"] == dumped["calls"]
    assert "rows" not in outcome.runs[0].dump()
